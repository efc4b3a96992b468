//! Connections to API servers.

use std::path::Path;
use std::time::Duration;

use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use tower::ServiceBuilder;

use super::bounded::BoundedLayer;
use super::problems::{MOUNT_ACCESS, NO_ACCESS};
use super::settings::{ApiServer, ApiServerTimes, KubernetesSettings};
use super::throttle::Throttle;
use crate::source::stream::causes;
use crate::source::stream::signs::Signs;

/// Longest time to establish a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// TCP keepalive: idle time before the first probe, interval between probes, and number of unanswered probes. A lost
/// connection is noticed after 45 s, as in client-go.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_RETRIES: u32 = 3;

/// Longest time that sent data may stay unacknowledged (`TCP_USER_TIMEOUT`).
const ACKNOWLEDGED_MAX: Duration = Duration::from_secs(45);

/// Largest read buffer of a connection. Watches last for hours, and a buffer that grew for a list does not shrink.
const READ_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Client of a server, its rate limit (`Retry-After`), and the liveness of its watches.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(super) client: Client,
    pub(super) throttle: Throttle,
    pub(super) signs: Signs,
}

#[cfg(test)]
impl Connected {
    /// Creates a client of a mock server, with the limits of a real client.
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
        let (throttle, signs) = (Throttle::default(), Signs::default());
        let times = ApiServerTimes::default();
        let layer = BoundedLayer::new(times, throttle.clone(), signs.clone());
        Connected {
            client: Client::new(layer.layer(service), "default"),
            throttle,
            signs,
        }
    }
}

/// Origin of the clients.
#[derive(Clone)]
pub(crate) enum Clients {
    /// Clients are made from the kubeconfig, or from the service account of the pod.
    Configured,
    /// Clients are given by a test, one per server.
    #[cfg(test)]
    Given(std::sync::Arc<[Connected]>),
}

impl Clients {
    /// Returns the client of the server `number`.
    pub(super) async fn connect(
        &self,
        settings: &KubernetesSettings,
        number: usize,
    ) -> Result<Connected, String> {
        match self {
            Clients::Configured => {
                let kubeconfig = settings.kubeconfig.as_deref();
                let config = configure(&settings.servers[number], kubeconfig).await?;
                open(config, settings.times)
            }
            #[cfg(test)]
            Clients::Given(clients) => Ok(clients[number].clone()),
        }
    }
}

/// Connects to `server`. Reads the kubeconfig each time, so that new credentials take effect. `Err` says in words what
/// is missing.
pub(in crate::source) async fn connect(
    server: &ApiServer,
    kubeconfig: Option<&Path>,
) -> Result<Client, String> {
    let config = configure(server, kubeconfig).await;
    let config = config.map_err(|reason| match reason.starts_with(NO_ACCESS) {
        true => format!("{reason}; {MOUNT_ACCESS}"),
        false => reason,
    })?;
    Ok(open(config, ApiServerTimes::default())?.client)
}

/// Returns the address of `server` from the kubeconfig.
pub(in crate::source) async fn address(
    server: &ApiServer,
    kubeconfig: Option<&Path>,
) -> Result<String, String> {
    let config = configure(server, kubeconfig).await?;
    Ok(config.cluster_url.to_string())
}

/// Opens a client with response limits and TCP keepalive.
fn open(config: Config, times: ApiServerTimes) -> Result<Connected, String> {
    let wrong = |error: kube::Error| error.to_string();
    if CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster.
        let _ = aws_lc_rs::default_provider().install_default();
    }
    if config.proxy_url.is_some() {
        // Refused, in its words.
        ClientBuilder::try_from(config.clone()).map_err(wrong)?;
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_MAX));
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
    connector.set_tcp_user_timeout(Some(ACKNOWLEDGED_MAX));
    let connector = config
        .rustls_https_connector_with_connector(connector)
        .map_err(wrong)?;
    let mut http = HttpClient::builder(TokioExecutor::new());
    http.http1_max_buf_size(READ_BUFFER_BYTES_MAX);
    let http: HttpClient<_, Body> = http.build(connector);
    let (throttle, signs) = (Throttle::default(), Signs::default());
    let service = ServiceBuilder::new()
        .layer(BoundedLayer::new(times, throttle.clone(), signs.clone()))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(wrong)?)
        .layer(config.extra_headers_layer().map_err(wrong)?)
        .map_err(Into::<Box<dyn std::error::Error + Send + Sync>>::into)
        .service(http);
    Ok(Connected {
        client: ClientBuilder::new(service, config.default_namespace).build(),
        throttle,
        signs,
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
        None => {
            let config = Config::infer().await;
            config.map_err(|error| format!("{NO_ACCESS}: {}", of(&error)))
        }
    }
}
