//! Server in the test process, and a client.

use std::path::Path;
use std::sync::Arc;

use config_server::store::Store;
use config_server::store::etcd::EtcdSettings;
use config_server::transfer::{Location, Opened};
use config_server::{Settings, start};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Server with its own data directory.
pub struct TestServer {
    pub data: TempDir,
    pub address: std::net::SocketAddr,
    pub store: Arc<dyn Store>,
    settings: Settings,
    task: JoinHandle<()>,
}

/// Generates a test of each function for each store.
macro_rules! on_each_store {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::support::TestServer::embedded().await).await;
            })*
        }
        mod etcd {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if let Some(etcd) = crate::etcd::shared() {
                    super::$name(crate::support::TestServer::on(etcd.settings()).await).await;
                }
            })*
        }
    };
}
pub(crate) use on_each_store;

impl TestServer {
    /// Starts a server with an embedded store that writes no conditions.
    pub async fn embedded() -> TestServer {
        TestServer::start_with(|settings| settings.writes_status = false).await
    }

    /// Starts a replica with a store in etcd that writes no conditions.
    pub async fn on(etcd: EtcdSettings) -> TestServer {
        TestServer::start_with(|settings| {
            settings.etcd = Some(etcd);
            settings.writes_status = false;
        })
        .await
    }

    pub async fn start_with(change: impl FnOnce(&mut Settings)) -> TestServer {
        TestServer::start_in(tempfile::tempdir().unwrap(), change).await
    }

    /// Starts a server on an existing data directory.
    pub async fn start_in(data: TempDir, change: impl FnOnce(&mut Settings)) -> TestServer {
        let mut settings = Settings::new(data.path().to_owned(), "127.0.0.1:0".parse().unwrap());
        change(&mut settings);
        let running = start(&settings).await.unwrap();
        TestServer {
            data,
            address: running.address,
            store: running.store(),
            settings,
            task: tokio::spawn(running.serve()),
        }
    }

    /// Restarts the server on the same data, at the same address.
    pub async fn restart_in_place(mut self) -> TestServer {
        self.settings.listen = self.address;
        self.restart().await
    }

    /// Restarts the server on the same data.
    pub async fn restart(self) -> TestServer {
        self.stop().await.start().await
    }

    /// Stops the server.
    pub async fn stop(self) -> Stopped {
        let TestServer {
            data,
            settings,
            store,
            task,
            ..
        } = self;
        task.abort();
        let _ = task.await;
        drop(store);
        Stopped { data, settings }
    }

    /// Returns the storage location of the server.
    pub fn location(&self) -> Location {
        Location {
            data: self.data.path().to_owned(),
            etcd: self.settings.etcd.clone(),
        }
    }

    /// Returns the token in a kubeconfig that the server wrote.
    pub fn token(&self, name: &str) -> String {
        token_in(&self.data.path().join(format!("{name}.kubeconfig")))
    }

    /// Connects with the admin's token.
    pub async fn admin(&self) -> Client {
        self.client(Some(&self.token("admin"))).await
    }

    pub async fn client(&self, token: Option<&str>) -> Client {
        Client::connect(self.address, &self.data.path().join("ca.crt"), token).await
    }

    /// Opens a TLS connection for one of these ALPN protocols, without sending a request.
    pub async fn tls(&self, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        let mut config = client_config(&self.data.path().join("ca.crt"), None);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.unwrap()
    }

    /// Opens an HTTP/2 connection.
    pub async fn http2(&self) -> http2::SendRequest<Full<Bytes>> {
        let stream = TokioIo::new(self.tls(&[b"h2"]).await);
        let connected = http2::handshake(TokioExecutor::new(), stream).await;
        let (sender, connection) = connected.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Connects with a client certificate of the server's CA for that common name and organization.
    pub async fn with_certificate(&self, name: &str, organization: &str) -> Client {
        let read = |name: &str| std::fs::read_to_string(self.data.path().join(name)).unwrap();
        let ca_key = KeyPair::from_pem(&read("ca.key")).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&read("ca.crt"), ca_key).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::CommonName, name);
        subject.push(DnType::OrganizationName, organization);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let identity = Some((certificate.der().clone(), key));
        let ca = self.data.path().join("ca.crt");
        Client::connect_as(self.address, &ca, None, identity)
            .await
            .unwrap()
    }
}

/// Stopped server.
pub struct Stopped {
    pub data: TempDir,
    settings: Settings,
}

impl Stopped {
    /// Starts the server again.
    pub async fn start(self) -> TestServer {
        let Stopped { data, settings } = self;
        let running = until_free(async || start(&settings).await).await;
        TestServer {
            data,
            address: running.address,
            store: running.store(),
            settings,
            task: tokio::spawn(running.serve()),
        }
    }

    /// Starts the server again at an address.
    pub async fn start_at(mut self, address: std::net::SocketAddr) -> TestServer {
        self.settings.listen = address;
        self.start().await
    }

    /// Opens the store.
    pub async fn open(&self) -> Opened {
        let location = Location {
            data: self.data.path().to_owned(),
            etcd: self.settings.etcd.clone(),
        };
        until_free(async || location.open().await).await
    }
}

/// Opens a resource, and retries while connections that are closing still hold it.
async fn until_free<T>(open: impl AsyncFn() -> Result<T, String>) -> T {
    loop {
        match open().await {
            Ok(opened) => return opened,
            Err(error) => assert!(
                error.contains("in use") || error.contains("a server runs"),
                "{error}"
            ),
        }
        tokio::task::yield_now().await;
    }
}

pub fn token_in(kubeconfig: &Path) -> String {
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let token = text.lines().find_map(|l| l.trim().strip_prefix("token: "));
    token.unwrap().to_owned()
}

fn client_config(ca: &Path, identity: Option<(CertificateDer<'static>, KeyPair)>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(ca).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match identity {
        Some((certificate, key)) => {
            let key = PrivatePkcs8KeyDer::from(key.serialize_der());
            config
                .with_client_auth_cert(vec![certificate], key.into())
                .unwrap()
        }
        None => config.with_no_client_auth(),
    }
}

/// Connection to a server.
pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    token: Option<String>,
}

/// Response of a server.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

/// Open watch.
pub struct Lines {
    body: Incoming,
    rest: Vec<u8>,
}

impl Client {
    pub async fn connect(address: std::net::SocketAddr, ca: &Path, token: Option<&str>) -> Client {
        Client::try_connect(address, ca, token).await.unwrap()
    }

    /// Connects a client; `None` if the server is unreachable.
    pub async fn try_connect(
        address: std::net::SocketAddr,
        ca: &Path,
        token: Option<&str>,
    ) -> Option<Client> {
        Client::connect_as(address, ca, token, None).await
    }

    async fn connect_as(
        address: std::net::SocketAddr,
        ca: &Path,
        token: Option<&str>,
        identity: Option<(CertificateDer<'static>, KeyPair)>,
    ) -> Option<Client> {
        Client::connect_with(address, client_config(ca, identity), token).await
    }

    /// Connects a client with these TLS settings and without a token.
    pub async fn connect_by(address: std::net::SocketAddr, config: ClientConfig) -> Client {
        let connected = Client::connect_with(address, config, None).await;
        connected.unwrap()
    }

    async fn connect_with(
        address: std::net::SocketAddr,
        config: ClientConfig,
        token: Option<&str>,
    ) -> Option<Client> {
        let stream = TcpStream::connect(address).await.ok()?;
        stream.set_nodelay(true).ok()?;
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.ok()?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        Some(Client {
            sender,
            token: token.map(str::to_owned),
        })
    }

    pub async fn send(&mut self, method: Method, path: &str, kind: &str, body: String) -> Answer {
        self.try_send(method, path, kind, body).await.unwrap()
    }

    /// Sends a request; `None` if the connection broke before the complete response.
    pub async fn try_send(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: String,
    ) -> Option<Answer> {
        let headers = [("content-type", kind)];
        let response = self.try_request(method, path, &headers, body).await?;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.ok()?.to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Some(Answer {
            code: head.status.as_u16(),
            headers: head.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::String(text)),
        })
    }

    pub async fn request(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> http::Response<Incoming> {
        let sent = self.try_request(method, path, headers, body).await;
        sent.unwrap()
    }

    async fn try_request(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Option<http::Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        self.sender.ready().await.ok()?;
        self.sender.send_request(request).await.ok()
    }

    /// Returns once the server has closed the connection.
    pub async fn closed(&mut self) {
        while self.sender.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    /// Sends a request as [`Client::get`]; `None` if the connection broke.
    pub async fn try_get(&mut self, path: &str) -> Option<Answer> {
        self.try_send(Method::GET, path, "", String::new()).await
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, "", String::new()).await
    }

    pub async fn post(&mut self, path: &str, object: &Value) -> Answer {
        let body = object.to_string();
        self.send(Method::POST, path, "application/json", body)
            .await
    }

    pub async fn put(&mut self, path: &str, object: &Value) -> Answer {
        let body = object.to_string();
        self.send(Method::PUT, path, "application/json", body).await
    }

    pub async fn patch(&mut self, path: &str, kind: &str, patch: &Value) -> Answer {
        let kind = format!("application/{kind}");
        self.send(Method::PATCH, path, &kind, patch.to_string())
            .await
    }

    pub async fn delete(&mut self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "", String::new()).await
    }

    /// Starts a watch, which takes over the connection.
    pub async fn watch(self, path: &str) -> Lines {
        self.try_watch(path).await.unwrap()
    }

    /// Starts a watch; `None` if the connection broke before.
    pub async fn try_watch(mut self, path: &str) -> Option<Lines> {
        let sent = self.try_request(Method::GET, path, &[], String::new());
        let response = sent.await?;
        assert_eq!(response.status(), 200);
        Some(Lines {
            body: response.into_body(),
            rest: Vec::new(),
        })
    }
}

impl Lines {
    /// Returns the next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.ok()?;
            self.rest.extend_from_slice(&frame.into_data().ok()?);
        }
    }

    /// Returns the type and the object name of the next event.
    pub async fn step(&mut self) -> String {
        let event = self.next().await.unwrap();
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or("");
        format!("{} {name}", event["type"].as_str().unwrap())
            .trim_end()
            .to_owned()
    }
}
