//! Relay in front of an API server, which counts its watches and can be down.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Number of open watches by path.
type Watches = Arc<Mutex<BTreeMap<String, usize>>>;

/// Relay over plain HTTP, which passes the credentials of each request on. It ends with the runtime of its test.
pub struct Relay {
    address: SocketAddr,
    is_up: watch::Sender<bool>,
    watches: Watches,
}

impl Relay {
    /// Starts a relay to the API server of a kubeconfig.
    pub async fn start(kubeconfig: &Path) -> Relay {
        let options = KubeConfigOptions::default();
        let read = Kubeconfig::read_from(kubeconfig).unwrap();
        let mut config = Config::from_custom_kubeconfig(read, &options)
            .await
            .unwrap();
        config.auth_info = AuthInfo::default();
        let client = Client::try_from(config).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Relay {
            address: listener.local_addr().unwrap(),
            is_up: watch::Sender::new(true),
            watches: Arc::default(),
        };
        let (is_up, watches) = (relay.is_up.subscribe(), Arc::clone(&relay.watches));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, watches) = (client.clone(), Arc::clone(&watches));
                let mut is_up = is_up.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = connection(stream, client, watches) => {}
                        _ = is_up.wait_for(|is_up| !is_up) => {}
                    }
                });
            }
        });
        relay
    }

    /// Lets the API server be reachable or not; open connections break.
    pub fn set_up(&self, is_up: bool) {
        self.is_up.send_replace(is_up);
    }

    /// Returns a kubeconfig of the relay for a token.
    pub fn kubeconfig(&self, token: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let address = self.address;
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: relay\n\
             clusters: [{{name: relay, cluster: {{server: \"http://{address}\"}}}}]\n\
             users: [{{name: relay, user: {{token: \"{token}\"}}}}]\n\
             contexts: [{{name: relay, context: {{cluster: relay, user: relay}}}}]\n"
        );
        std::fs::write(file.path(), text).unwrap();
        file
    }

    /// Returns the number of open watches by path.
    pub fn watches(&self) -> BTreeMap<String, usize> {
        self.watches.lock().unwrap().clone()
    }
}

async fn connection(stream: TcpStream, client: Client, watches: Watches) {
    let service = service_fn(|request| answer(request, client.clone(), Arc::clone(&watches)));
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    client: Client,
    watches: Watches,
) -> Result<Response<Counted>, kube::Error> {
    let (mut head, body) = request.into_parts();
    head.headers.remove("host");
    let query = head.uri.query().unwrap_or_default();
    let path = head.uri.path().to_owned();
    let open = query.contains("watch=").then(|| Open::new(watches, path));
    let body = body.collect().await.map(|body| body.to_bytes().to_vec());
    let request = Request::from_parts(head, Body::from(body.unwrap_or_default()));
    let response = client.send(request).await?;
    Ok(response.map(|body| Counted { body, _open: open }))
}

/// Body of a response, which counts as an open watch until it is dropped.
struct Counted {
    body: Body,
    _open: Option<Open>,
}

impl hyper::body::Body for Counted {
    type Data = hyper::body::Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }
}

struct Open(Watches, String);

impl Open {
    fn new(watches: Watches, path: String) -> Open {
        *watches.lock().unwrap().entry(path.clone()).or_default() += 1;
        Open(watches, path)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut watches = self.0.lock().unwrap();
        let count = watches.entry(self.1.clone()).or_default();
        *count -= 1;
        if *count == 0 {
            watches.remove(&self.1);
        }
    }
}
