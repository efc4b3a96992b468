//! Roles of `strait control` that serve a cluster, in one process: the webhook, the hub, and the writer of conditions. They
//! share the certificate, its Secret, and the health pages. Nothing is stored on a disk.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use config_loader::ApiServer;
use kube::api::Api;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::access::pki::Files;
use crate::hub::Hub;
use crate::remote::Remote;
use crate::status_for::StatusFor;
use crate::webhook::{Shared, Webhook, bind, health, secret, settings};

/// Time after the signal to end in which clients still find the server, but readiness fails.
const LEAVES_AFTER: Duration = Duration::from_secs(5);

/// Roles of one process, and what they share.
#[derive(Clone, Debug)]
pub struct Roles {
    /// API server.
    pub server: ApiServer,
    /// Path of the kubeconfig; `None` for `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Address of the health pages and metrics.
    pub health: Option<SocketAddr>,
    /// Namespace of the Secret, and of this server.
    pub namespace: String,
    /// Names and addresses in the certificate.
    pub names: Vec<String>,
    /// Certificate of the webhook that somebody else makes, who also writes its CA to the API server; `None` for one of its own.
    pub files: Option<Files>,
    /// File with the settings of the injection; followed. `None` for the defaults.
    pub settings: Option<PathBuf>,
    /// Time between the signal to end and the end of the listeners. Streams of the hub end within twice this time then.
    pub leaves_after: Duration,
    /// Webhook that adds sidecars.
    pub webhook: Option<Webhook>,
    /// Hub that serves proxies.
    pub hub: Option<Hub>,
    /// Writer of conditions.
    pub status_for: Option<StatusFor>,
}

/// Bound addresses of the roles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addresses {
    /// Address of the health pages.
    pub health: Option<SocketAddr>,
    /// Address of the webhook.
    pub webhook: Option<SocketAddr>,
    /// Address of the hub.
    pub hub: Option<SocketAddr>,
}

impl Roles {
    /// Returns the default time between the signal to end and the end of the listeners.
    pub fn default_leaves_after() -> Duration {
        LEAVES_AFTER
    }

    /// Serves until `stop` fires, and then finishes the requests in flight. `listening` gets the bound addresses.
    ///
    /// # Errors
    /// If the settings, the kubeconfig or a socket cannot be used, or the writer of conditions fails.
    pub async fn run(
        self,
        listening: Option<oneshot::Sender<Addresses>>,
        stop: oneshot::Receiver<()>,
    ) -> Result<(), String> {
        let mut tasks = JoinSet::new();
        let (stopping, is_stopping) = watch::channel(false);
        let (shared, close) = self.share(is_stopping.clone(), &mut tasks).await?;
        let (mut addresses, mut servers) = (Addresses::default(), JoinSet::new());
        let mut ready = health::Ready {
            certificate: shared.certificate.clone(),
            is_stopping,
            webhook: None,
            hub: None,
        };
        let mut followed = None;
        if let Some(webhook) = self.webhook {
            let started = webhook.start(&shared, &mut tasks).await?;
            addresses.webhook = Some(started.address);
            ready.webhook = Some((started.injector, started.is_bundled));
            servers.spawn(started.server);
        }
        if let Some(hub) = self.hub {
            let (of, within) = ((self.server, self.kubeconfig), self.leaves_after * 2);
            let started = hub.start(of, &shared, within, &mut tasks).await?;
            addresses.hub = Some(started.address);
            ready.hub = Some(Arc::new(started.shown));
            servers.spawn(started.server);
            followed = Some(started.followed);
        }
        if let Some(address) = self.health {
            let (listener, bound) = bind(address).await?;
            addresses.health = Some(bound);
            tasks.spawn(health::serve(listener, ready));
        }
        if let Some(listening) = listening {
            let _ = listening.send(addresses);
        }
        let (stop_status, status_stops) = oneshot::channel();
        let status = self.status_for.map(|status| status.run(status_stops));
        let mut status = pin!(async {
            match status {
                Some(status) => status.await,
                None => std::future::pending().await,
            }
        });
        let failed = tokio::select! {
            _ = stop => None,
            ended = status.as_mut() => Some(ended),
        };
        let _ = stopping.send(true);
        let writes = stop_status.send(()).is_ok();
        tokio::time::sleep(self.leaves_after).await;
        let _ = close.send(true);
        while servers.join_next().await.is_some() {}
        let _ = tokio::task::spawn_blocking(move || drop(followed)).await;
        match failed {
            Some(ended) => ended,
            None if writes => status.await,
            None => Ok(()),
        }
    }

    /// Starts what the roles share. Returns it, with the sender that closes the listeners.
    async fn share(
        &self,
        leaving: watch::Receiver<bool>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(Shared, watch::Sender<bool>), String> {
        let (following, settings) = settings::follow(self.settings.clone())?;
        let remote = Remote::new(self.server.clone(), self.kubeconfig.clone());
        let client = remote.client().await?;
        tasks.spawn(following);
        let (tls, certificate) = watch::channel(None);
        let source = match &self.files {
            Some(files) => secret::Source::Files(files.clone()),
            None => {
                let secrets = Api::namespaced(client.clone(), &self.namespace);
                let name = secret::name_for(&settings.borrow().revision);
                secret::Source::Secret(secrets, name, self.names.clone())
            }
        };
        tasks.spawn(secret::follow(source, tls));
        let (close, closing) = watch::channel(false);
        let shared = Shared {
            client,
            namespace: self.namespace.clone(),
            settings,
            certificate,
            writes_authorities: self.files.is_none(),
            leaving,
            closing,
        };
        Ok((shared, close))
    }
}
