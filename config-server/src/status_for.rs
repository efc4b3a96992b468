//! `strait control --status-for`: conditions of the objects of a Kubernetes API server, written by the leader of
//! several instances.

use std::path::PathBuf;
use std::sync::Arc;

use config_loader::ApiServer;
use config_loader::catalog::gateway_api::status::CrdBundle;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::Api;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use crate::conditions::{self, GatewayController, Writer, follow_remote};
use crate::lease::{Candidate, Times};
use crate::remote::Remote;

/// Maximum number of queued batches of changes before findings are computed.
const FEED_MAX: usize = 16;

/// Destination of the conditions, and election of the writing instance.
#[derive(Clone, Debug)]
pub struct StatusFor {
    /// API server.
    pub server: ApiServer,
    /// Path of the kubeconfig; `None` for `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the Lease that elects the writing instance.
    pub lease_namespace: String,
    /// Name of this instance.
    pub identity: String,
    /// Timing of the election.
    pub times: Times,
    /// Controller of the Gateway API. Channel and version of its CRDs are read from the server.
    pub controller: GatewayController,
}

/// Path of the CRD that tells channel and version of the Gateway API's CRDs.
const CRD: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/httproutes.gateway.networking.k8s.io";
/// Annotation with the channel.
const CHANNEL: &str = "gateway.networking.k8s.io/channel";
/// Annotation with the version.
const VERSION: &str = "gateway.networking.k8s.io/bundle-version";

/// Returns the channel and version of the CRDs of the Gateway API; the standard channel if they cannot be read.
async fn crds(client: &Client) -> CrdBundle {
    let Ok(request) = http::Request::get(CRD).body(Vec::new()) else {
        return CrdBundle::default();
    };
    match client.request::<Value>(request).await {
        Ok(crd) => {
            let annotations = &crd["metadata"]["annotations"];
            let version = annotations[VERSION].as_str().unwrap_or_default();
            CrdBundle {
                is_experimental: annotations[CHANNEL] == "experimental",
                version: Some(version.to_owned()),
            }
        }
        Err(error) => {
            tracing::info!(%error, "channel and version of the Gateway API's CRDs are unknown");
            CrdBundle::default()
        }
    }
}

/// Name of the Lease.
const LEASE: &str = "strait-status";

impl StatusFor {
    /// Writes conditions until `stop` fires, and then releases the Lease.
    ///
    /// # Errors
    /// If the kubeconfig cannot be read, or a thread cannot be started.
    pub async fn run(self, stop: oneshot::Receiver<()>) -> Result<(), String> {
        let remote = Remote::new(self.server.clone(), self.kubeconfig.clone());
        let client = remote.client().await?;
        let (sender, feed) = mpsc::channel(FEED_MAX);
        let followed = follow_remote(self.server, self.kubeconfig, sender)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let (leader, is_leader) = watch::channel(false);
        let candidate = Candidate {
            server: remote.name(),
            lease: LEASE.to_owned(),
            identity: self.identity,
            times: self.times,
        };
        let leases: Api<Lease> = Api::namespaced(client.clone(), &self.lease_namespace);
        let election = tokio::spawn(candidate.run(leases, leader));
        let controller = GatewayController {
            crds: crds(&client).await,
            ..self.controller
        };
        let engine = conditions::Engine::new(controller);
        let writer = Writer::Remote(Arc::new(remote));
        tokio::select! {
            () = conditions::run(engine, feed, None, writer, is_leader) => {}
            _ = stop => {}
        }
        // The receiver was dropped, which ends the election.
        let _ = tokio::task::spawn_blocking(move || drop(followed)).await;
        let _ = election.await;
        Ok(())
    }
}
