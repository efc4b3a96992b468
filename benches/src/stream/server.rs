//! `strait control` process, and its API.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::progress::PATIENCE;
use crate::compare::accounting::{cpu_time, resident_kib};
use crate::compare::failure::{Failure, context};
use crate::compare::process::{CommandLine, Launcher, Process};
use crate::compare::tls::read_certificate;

/// API path of VirtualServices.
pub(super) const ROUTES: &str = "/apis/networking.istio.io/v1/namespaces/bench/virtualservices";

/// Interval between checks for a file that the server writes when it has started.
const LOOK: Duration = Duration::from_millis(10);

/// Running server.
#[derive(Debug)]
pub(super) struct Server {
    process: Process,
    data: PathBuf,
    address: String,
    token: String,
    tls: Arc<ClientConfig>,
}

impl Server {
    /// Starts a server with an empty store.
    pub(super) async fn start(launcher: &Launcher, strait: &Path) -> Result<Server, Failure> {
        let data = launcher.directory().join("data");
        let line = CommandLine::new(
            strait,
            ["control", "--listen", "127.0.0.1:0", "--data"]
                .map(Into::into)
                .into_iter()
                .chain([data.clone().into_os_string()]),
        );
        let mut process = launcher.start("control", 0, &line)?;
        let deadline = Instant::now() + PATIENCE;
        // It is the last file that a server writes.
        while !data.join("proxy.kubeconfig").exists() {
            process.check_alive()?;
            if Instant::now() > deadline {
                return Err(Failure::new("the config server does not start"));
            }
            tokio::time::sleep(LOOK).await;
        }
        let kubeconfig = fs::read_to_string(data.join("admin.kubeconfig"));
        let kubeconfig = kubeconfig.map_err(context("admin.kubeconfig"))?;
        let value = |name: &str| {
            let found = kubeconfig
                .lines()
                .find_map(|line| line.trim().strip_prefix(name));
            let found = found.ok_or_else(|| Failure::new("the kubeconfig is incomplete"))?;
            Ok::<_, Failure>(found.trim().to_owned())
        };
        Ok(Server {
            process,
            address: value("server: https://")?,
            token: value("token: ")?,
            tls: Arc::new(client_config(&data)?),
            data,
        })
    }

    /// Returns the address as `HOST:PORT`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the path of a file in the data directory.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    /// Returns the resident memory, in MiB.
    pub(super) fn memory_mib(&self) -> u64 {
        resident_kib(self.process.pid()) / 1024
    }

    /// Returns the CPU time since the start.
    pub(super) fn cpu(&self) -> Duration {
        cpu_time(self.process.pid())
    }

    /// Opens a new connection to the API.
    pub(super) async fn connect(&self) -> Result<Api, Failure> {
        let stream = TcpStream::connect(&self.address).await;
        let stream = stream.map_err(context("no connection to the server"))?;
        stream.set_nodelay(true).map_err(context("TCP_NODELAY"))?;
        let name = ServerName::try_from("localhost").map_err(context("localhost"))?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = connector.connect(name, stream).await;
        let stream = TokioIo::new(stream.map_err(context("no TLS with the server"))?);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
            .await
            .map_err(context("no HTTP/2 with the server"))?;
        tokio::spawn(connection);
        let token = self.token.clone();
        Ok(Api { sender, token })
    }
}

fn client_config(data: &Path) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    let ca = read_certificate(&data.join("ca.crt"))?;
    roots.add(ca).map_err(context("ca.crt"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(context("TLS"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Client of the server's API, on one connection.
#[derive(Clone, Debug)]
pub(super) struct Api {
    sender: http2::SendRequest<Full<Bytes>>,
    token: String,
}

impl Api {
    /// Sends a GET request and returns the body of the response, which may be endless.
    pub(super) async fn read(&self, path: &str) -> Result<Incoming, Failure> {
        self.send(Method::GET, path, String::new()).await
    }

    /// Returns the latest revision of the server.
    pub(super) async fn revision(&self) -> Result<String, Failure> {
        let answer = self.read(&format!("{ROUTES}?limit=1")).await?;
        let text = answer.collect().await.map_err(context("a list"))?;
        let list: Value = serde_json::from_slice(&text.to_bytes()).map_err(context("a list"))?;
        let revision = list["metadata"]["resourceVersion"].as_str();
        let revision = revision.ok_or_else(|| Failure::new("a list has no revision"))?;
        Ok(revision.to_owned())
    }

    /// Sends a write. Returns the time at which it was acknowledged.
    pub(super) async fn write(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Instant, Failure> {
        let answer = self.send(method, path, body.to_string()).await?;
        let acknowledged = Instant::now();
        answer.collect().await.map_err(context(path))?;
        Ok(acknowledged)
    }

    async fn send(&self, method: Method, path: &str, body: String) -> Result<Incoming, Failure> {
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("https://localhost{path}"))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", kind)
            .body(Full::new(Bytes::from(body)))
            .map_err(context(path))?;
        let mut sender = self.sender.clone();
        sender.ready().await.map_err(context(path))?;
        let response = sender.send_request(request).await.map_err(context(path))?;
        let code = response.status();
        if code.is_success() {
            Ok(response.into_body())
        } else {
            Err(Failure::new(format!("{path} was answered with {code}")))
        }
    }
}
