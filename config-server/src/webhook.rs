//! `strait control --inject`: the webhook that adds sidecars to pods when the API server creates them, and the one that
//! refuses invalid resources.
//!
//! Every replica serves. They share a Secret with the certificate, and each of them writes its CA to the configuration of
//! the webhook, so that none leads. Nothing is stored on a disk.

mod bundle;
pub mod certificate;
mod cluster;
mod health;
mod response;
mod review;
mod secret;
mod serve;
mod settings;
mod validate;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config_loader::ApiServer;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::Api;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use self::review::Known;
use self::secret::Served;
use crate::remote::Remote;

pub use cluster::settings_of;
pub use review::Injector;

/// Time after the signal to end in which the API server still finds the webhook, but readiness fails.
const LEAVES_AFTER: Duration = Duration::from_secs(5);

/// Settings of the webhook server.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// API server.
    pub server: ApiServer,
    /// Path of the kubeconfig; `None` for `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Address of the webhook.
    pub listen: SocketAddr,
    /// Address of the health pages and metrics.
    pub health: Option<SocketAddr>,
    /// Namespace of the Secret, and of this server.
    pub namespace: String,
    /// Names and addresses in the certificate.
    pub names: Vec<String>,
    /// File with the settings of the injection; followed. `None` for the defaults.
    pub settings: Option<PathBuf>,
    /// Whether resources are validated as well.
    pub validates: bool,
    /// Whether the namespace label `istio-injection: enabled` is consent.
    pub adopts_istio_injection: bool,
    /// Time between the signal to end and the end of the listeners.
    pub leaves_after: Duration,
}

impl Webhook {
    /// Returns the default time between the signal to end and the end of the listeners.
    pub fn default_leaves_after() -> Duration {
        LEAVES_AFTER
    }

    /// Serves until `stop` fires, and then finishes the requests in flight. `listening` gets the addresses of the webhook
    /// and of the health pages.
    ///
    /// # Errors
    /// If the settings, the kubeconfig or a socket cannot be used.
    pub async fn run(
        self,
        listening: Option<oneshot::Sender<(SocketAddr, Option<SocketAddr>)>>,
        stop: oneshot::Receiver<()>,
    ) -> Result<(), String> {
        let (settings, followed) = settings::follow(self.settings.clone())?;
        let remote = Remote::new(self.server.clone(), self.kubeconfig.clone());
        let client = remote.client().await?;
        let listener = bind(self.listen).await?;
        let health = match self.health {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let revision = followed.borrow().revision.clone();
        let (tls, certificate) = watch::channel(None);
        let (bundled, is_bundled) = watch::channel(false);
        let (validated, _) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let namespaces = cluster::follow_namespaces(&client, &mut tasks);
        let version = cluster::follow_version(&client, &mut tasks);
        tasks.spawn(settings);
        let secrets = Api::namespaced(client.clone(), &self.namespace);
        let name = secret::name_for(&revision);
        tasks.spawn(secret::follow(secrets, name, self.names.clone(), tls));
        tasks.spawn(bundle::follow::<MutatingWebhookConfiguration>(
            client.clone(),
            revision.clone(),
            certificate.clone(),
            bundled,
        ));
        if self.validates {
            tasks.spawn(bundle::follow::<ValidatingWebhookConfiguration>(
                client.clone(),
                revision,
                certificate.clone(),
                validated,
            ));
        }
        let injector = Arc::new(Injector::new(Known {
            settings: followed,
            namespaces,
            kubernetes: version,
            client,
            validates: self.validates,
            adopts_istio_injection: self.adopts_istio_injection,
            own_namespace: self.namespace.clone(),
        }));
        let (stopping, is_stopping) = watch::channel(false);
        let (closing, is_closing) = watch::channel(false);
        let addresses = (
            address(&listener)?,
            health.as_ref().map(address).transpose()?,
        );
        let _ = listening.map(|listening| listening.send(addresses));
        let ready = health::Ready {
            injector: Arc::clone(&injector),
            certificate: certificate.clone(),
            is_bundled,
            is_stopping,
        };
        let _ = health.map(|health| tasks.spawn(health::serve(health, ready)));
        let config = certificate_of(certificate);
        let server = tokio::spawn(serve::serve(listener, config, injector, is_closing));
        let _ = stop.await;
        let _ = stopping.send(true);
        tokio::time::sleep(self.leaves_after).await;
        let _ = closing.send(true);
        let _ = server.await;
        Ok(())
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| format!("cannot listen on {address}: {error}"))
}

fn address(listener: &TcpListener) -> Result<SocketAddr, String> {
    listener.local_addr().map_err(|error| error.to_string())
}

fn certificate_of(
    served: watch::Receiver<Option<Served>>,
) -> impl Fn() -> Option<Arc<ServerConfig>> {
    move || {
        served
            .borrow()
            .as_ref()
            .map(|served| Arc::clone(&served.tls))
    }
}

#[cfg(test)]
mod tests;
