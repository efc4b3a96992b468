//! Connects to API servers.

use std::path::Path;
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::bounded::BoundedLayer;
use super::settings::{ApiServer, KubernetesSettings};
use super::throttle::Throttle;
use crate::source::stream::causes;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long a server may take to answer a question about what it serves.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A client of a server, and how long the server asked to be left alone.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(super) client: Client,
    pub(super) throttle: Throttle,
}

#[cfg(test)]
impl Connected {
    /// A client of a mock server, with the bounds of a real client.
    pub(crate) fn to<S, B>(service: S) -> Connected
    where
        S: tower_service::Service<
                http::Request<kube::client::Body>,
                Response = http::Response<B>,
                Error = std::io::Error,
            > + Send
            + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = bytes::Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        use tower_layer::Layer;
        let throttle = Throttle::default();
        let layer = BoundedLayer::new(throttle.clone());
        Connected {
            client: Client::new(layer.layer(service), "default"),
            throttle,
        }
    }
}

/// Where the clients of servers come from.
#[derive(Clone)]
pub(crate) enum Clients {
    /// The kubeconfig, or the service account of the pod.
    Configured,
    /// A test, which has one for each server.
    #[cfg(test)]
    Given(std::sync::Arc<[Connected]>),
}

impl Clients {
    /// The client of the server with this number.
    pub(super) async fn connect(
        &self,
        settings: &KubernetesSettings,
        number: usize,
    ) -> Result<Connected, String> {
        match self {
            Clients::Configured => {
                let kubeconfig = settings.kubeconfig.as_deref();
                open(&settings.servers[number], kubeconfig).await
            }
            #[cfg(test)]
            Clients::Given(clients) => Ok(clients[number].clone()),
        }
    }
}

/// A client of `server`. The kubeconfig is read anew each time, so that new credentials count; `Err` says in words what is
/// missing.
pub(in crate::source) async fn connect(
    server: &ApiServer,
    kubeconfig: Option<&Path>,
) -> Result<Client, String> {
    Ok(open(server, kubeconfig).await?.client)
}

/// The address of `server`, as the kubeconfig has it.
pub(in crate::source) async fn address(
    server: &ApiServer,
    kubeconfig: Option<&Path>,
) -> Result<String, String> {
    let config = configure(server, kubeconfig).await?;
    Ok(config.cluster_url.to_string())
}

async fn open(server: &ApiServer, kubeconfig: Option<&Path>) -> Result<Connected, String> {
    let mut config = configure(server, kubeconfig).await?;
    config.connect_timeout = Some(CONNECT_MAX);
    // Watches have a back-off of their own.
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config).map_err(|error| error.to_string())?;
    let throttle = Throttle::default();
    let layer = BoundedLayer::new(throttle.clone());
    Ok(Connected {
        client: builder.with_layer(&layer).build(),
        throttle,
    })
}

async fn configure(server: &ApiServer, kubeconfig: Option<&Path>) -> Result<Config, String> {
    let options = KubeConfigOptions {
        context: Some(server.context.clone()).filter(|context| !context.is_empty()),
        ..KubeConfigOptions::default()
    };
    let of = |error: &dyn std::error::Error| causes::with_causes(error);
    match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path).map_err(|error| of(&error))?;
            let config = Config::from_custom_kubeconfig(read, &options).await;
            config.map_err(|error| of(&error))
        }
        None if options.context.is_some() => {
            let config = Config::from_kubeconfig(&options).await;
            config.map_err(|error| of(&error))
        }
        None => Config::infer().await.map_err(|error| of(&error)),
    }
}
