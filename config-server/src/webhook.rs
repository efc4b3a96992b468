//! `strait control --inject`: the webhook that adds sidecars to pods when the API server creates them, and the one that
//! refuses invalid resources.
//!
//! Every replica serves. They share a Secret with the certificate, and each of them writes its CA to the configuration of
//! the webhook, so that none leads. Nothing is stored on a disk.

mod bundle;
pub mod certificate;
mod cluster;
mod events;
pub(crate) mod health;
mod response;
mod review;
pub(crate) mod secret;
mod serve;
pub(crate) mod settings;
mod validate;

use std::net::SocketAddr;
use std::sync::Arc;

use inject::Settings;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::Client;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use self::events::Events;
use self::review::Known;
use self::secret::Served;

pub use cluster::settings_of;
pub use review::Injector;

/// Settings of the webhook.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Address of the webhook.
    pub listen: SocketAddr,
    /// Whether resources are validated as well.
    pub validates: bool,
    /// Whether the namespace label `istio-injection: enabled` is consent.
    pub adopts_istio_injection: bool,
}

/// Parts that the roles of a process share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    /// Namespace of this server.
    pub(crate) namespace: String,
    pub(crate) settings: watch::Receiver<Arc<Settings>>,
    pub(crate) certificate: watch::Receiver<Option<Served>>,
    /// Whether the CA of the certificate is written to the configurations of webhooks.
    pub(crate) writes_authorities: bool,
    /// Whether the signal to end has come.
    pub(crate) leaving: watch::Receiver<bool>,
    /// Whether the listeners close, some time later.
    pub(crate) closing: watch::Receiver<bool>,
}

/// Running webhook.
pub(crate) struct Started {
    pub(crate) address: SocketAddr,
    pub(crate) injector: Arc<Injector>,
    /// Whether the configurations have the CA.
    pub(crate) is_bundled: watch::Receiver<bool>,
    /// Server, which ends after the listeners close.
    pub(crate) server: JoinHandle<()>,
}

impl Webhook {
    /// Starts to serve. `tasks` gets what has to run beside the server.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub(crate) async fn start(
        self,
        shared: &Shared,
        tasks: &mut JoinSet<()>,
    ) -> Result<Started, String> {
        let (listener, address) = bind(self.listen).await?;
        let client = &shared.client;
        let namespaces = cluster::follow_namespaces(client, tasks);
        let version = cluster::follow_version(client, tasks);
        let (bundled, is_bundled) = watch::channel(false);
        let revision = shared.settings.borrow().revision.clone();
        let certificate = shared.certificate.clone();
        if shared.writes_authorities {
            tasks.spawn(bundle::follow::<MutatingWebhookConfiguration>(
                client.clone(),
                revision.clone(),
                certificate.clone(),
                bundled,
            ));
        } else {
            bundled.send_replace(true);
        }
        if self.validates && shared.writes_authorities {
            tasks.spawn(bundle::follow::<ValidatingWebhookConfiguration>(
                client.clone(),
                revision,
                certificate,
                // without the CA, `failurePolicy` decides: readiness does not wait for it
                watch::Sender::new(false),
            ));
        }
        let injector = Arc::new(Injector::new(Known {
            settings: shared.settings.clone(),
            namespaces,
            kubernetes: version,
            client: client.clone(),
            events: Events::start(client.clone(), tasks),
            validates: self.validates,
            adopts_istio_injection: self.adopts_istio_injection,
            own_namespace: shared.namespace.clone(),
        }));
        let config = certificate_of(shared.certificate.clone());
        let closing = shared.closing.clone();
        let leaving = shared.leaving.clone();
        let server = serve::serve(listener, config, Arc::clone(&injector), leaving, closing);
        Ok(Started {
            address,
            injector,
            is_bundled,
            server: tokio::spawn(server),
        })
    }
}

/// Listens on an address. Returns the one that is bound.
///
/// # Errors
/// If that is not possible, as a message.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let said = |error: std::io::Error| format!("cannot listen on {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(said)?;
    let bound = listener.local_addr().map_err(said)?;
    Ok((listener, bound))
}

fn certificate_of(
    served: watch::Receiver<Option<Served>>,
) -> impl Fn() -> Option<Arc<ServerConfig>> {
    move || {
        let served = served.borrow();
        served.as_ref().map(|served| Arc::clone(&served.tls))
    }
}

#[cfg(test)]
mod tests;
