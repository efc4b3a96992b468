//! TLS gateways as YAML, and TLS clients.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::client::{Answer, Client, Front};
use super::mesh::{documents, routes, service};
use super::origin::{Back, Body, Origin, empty, full};
use super::pki::{Authority, Pair};
use super::proxy::{Proxy, Start};

/// TLS gateway in front of one origin.
pub struct Edge {
    pub proxy: Proxy,
    pub origin: Origin,
    pub ca: Authority,
}

/// Returns an HTTPS server of a Gateway, as an entry of `servers`; `hosts` and `tls` are YAML in flow style.
pub fn server(address: SocketAddr, name: &str, hosts: &str, tls: &str) -> String {
    let (ip, port) = (address.ip(), address.port());
    format!(
        "  - {{port: {{number: {port}, name: {name}, protocol: HTTPS}}, bind: {ip}, hosts: {hosts}, tls: {tls}}}\n"
    )
}

/// Returns a Gateway named `edge` with these servers.
pub fn gateway(servers: &[String]) -> String {
    named_gateway("edge", servers)
}

/// Returns a Gateway with these servers.
pub fn named_gateway(name: &str, servers: &[String]) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: {name}}}\n\
         spec:\n  selector: {{istio: ingressgateway}}\n  servers:\n{}",
        servers.concat()
    )
}

/// Returns routes from all hosts of the gateway to this origin.
pub fn to(origin: &Origin) -> String {
    documents([
        service("web", Back::H1, &[(origin.address, "v1")]),
        routes(
            "all",
            "[\"*\"]",
            "- {name: all, route: [{destination: {host: web.test}}]}",
        ),
    ])
}

/// Returns a Secret with these keys and values.
pub fn secret(name: &str, values: &[(&str, &str)]) -> String {
    let mut text =
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData:\n");
    for (key, value) in values {
        writeln!(text, "  {key}: |").unwrap();
        for line in value.lines() {
            writeln!(text, "    {line}").unwrap();
        }
    }
    text
}

/// Returns a Secret with a certificate and its key.
pub fn credential(name: &str, pair: &Pair) -> String {
    secret(name, &[("tls.crt", &pair.chain), ("tls.key", &pair.key)])
}

/// Echoes the request body, or answers `hello` if it is empty.
async fn answer(request: Request<Incoming>) -> Response<Body> {
    let body = request.into_body().collect().await;
    let body = body.expect("a whole body").to_bytes();
    match body.len() {
        0 => Response::new(full("hello")),
        _ => Response::new(full(body)),
    }
}

impl Edge {
    /// Starts a gateway with the `servers` for its address, and with Secrets and other documents.
    pub fn start(
        ca: Authority,
        more: &[String],
        servers: impl FnOnce(SocketAddr) -> Vec<String>,
    ) -> Self {
        Self::start_with(ca, more, servers, |start| start)
    }

    /// Starts a gateway as [`Edge::start`] does, from a prepared builder.
    pub fn start_with(
        ca: Authority,
        more: &[String],
        servers: impl FnOnce(SocketAddr) -> Vec<String>,
        with: impl FnOnce(Start) -> Start,
    ) -> Self {
        let origin = Origin::start(Back::H1, answer);
        let start = Start::new();
        let text = documents([gateway(&servers(start.edge())), to(&origin)]);
        let start = start.file("mesh.yaml", text);
        let start = match more {
            [] => start,
            more => start.file("more.yaml", documents(more)),
        };
        Self {
            proxy: with(start).start(),
            origin,
            ca,
        }
    }

    /// Starts `https://*` in mode SIMPLE with a certificate for these names.
    pub fn simple(names: &[&str]) -> Self {
        let ca = Authority::new("ca");
        let pair = ca.server(names);
        Self::start(ca, &[credential("cred", &pair)], |edge| {
            vec![server(
                edge,
                "https",
                "['*']",
                "{mode: SIMPLE, credentialName: cred}",
            )]
        })
    }

    /// Returns a client that trusts the gateway's authority.
    pub fn visitor(&self) -> Visitor {
        Visitor::new(self.proxy.edge, &self.ca)
    }

    /// Returns the number of connections that were refused for a reason.
    pub fn turned_away(&self, reason: &str) -> f64 {
        let labels = [("reason", reason)];
        self.proxy
            .metric("strait_downstream_tls_errors_total", &labels)
    }

    /// Waits until this many connections were refused for a reason; the client may notice earlier.
    #[track_caller]
    pub fn turns_away(&self, reason: &str, count: f64) {
        super::eventually(reason, || self.turned_away(reason) >= count);
        assert_eq!(self.turned_away(reason), count, "{reason}");
    }
}

/// TLS client.
#[derive(Clone)]
pub struct Visitor {
    pub address: SocketAddr,
    pub roots: RootCertStore,
    /// Client certificate and key.
    pub identity: Option<Pair>,
    pub alpn: Vec<Vec<u8>>,
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// Offered cipher suites; empty for all.
    pub suites: Vec<SupportedCipherSuite>,
    /// Whether the client sends SNI.
    pub sni: bool,
    /// Configuration shared by all connections, from which sessions are resumed.
    pub kept: Option<Arc<ClientConfig>>,
}

impl Visitor {
    pub fn new(address: SocketAddr, ca: &Authority) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(ca.der())).unwrap();
        Self {
            address,
            roots,
            identity: None,
            alpn: Vec::new(),
            versions: vec![&rustls::version::TLS12, &rustls::version::TLS13],
            suites: Vec::new(),
            sni: true,
            kept: None,
        }
    }

    /// Uses this client certificate.
    pub fn with(mut self, pair: &Pair) -> Self {
        self.identity = Some(pair.clone());
        self
    }

    /// Offers only this TLS version.
    pub fn speaking(mut self, version: &'static SupportedProtocolVersion) -> Self {
        self.versions = vec![version];
        self
    }

    fn config(&self) -> ClientConfig {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        if !self.suites.is_empty() {
            provider.cipher_suites.clone_from(&self.suites);
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone());
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder
                    .with_client_auth_cert(chain.map(Result::unwrap).collect(), key)
                    .unwrap()
            }
        };
        config.alpn_protocols.clone_from(&self.alpn);
        config.enable_sni = self.sni;
        config
    }

    /// Enables session resumption, with HTTP/1.1.
    pub fn resuming(mut self) -> Self {
        self.alpn = vec![b"http/1.1".to_vec()];
        self.kept = Some(Arc::new(self.config()));
        self
    }

    /// Returns the ClientHello.
    pub fn hello(&self, host: &str) -> Vec<u8> {
        let mut connection = self.session(host);
        let mut bytes = Vec::new();
        connection.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// Returns a new TLS session with this host, for blocking clients.
    pub fn session(&self, host: &str) -> rustls::ClientConnection {
        let name = ServerName::try_from(host.to_owned()).unwrap();
        rustls::ClientConnection::new(Arc::new(self.config()), name).unwrap()
    }

    /// Connects to this host and completes the handshake.
    pub async fn connect(&self, host: &str) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let kept = self.kept.clone();
        let connector = TlsConnector::from(kept.unwrap_or_else(|| Arc::new(self.config())));
        let connect = connector.connect(name, stream);
        tokio::time::timeout(super::DEADLINE, connect)
            .await
            .expect("a handshake in time")
    }

    /// Returns an HTTP client of this host; ALPN negotiates HTTP/2.
    pub async fn client(&self, front: Front, host: &str) -> io::Result<Client> {
        let mut visitor = self.clone();
        if visitor.alpn.is_empty() {
            let name = match front {
                Front::H1 => b"http/1.1".to_vec(),
                Front::H2 => b"h2".to_vec(),
            };
            visitor.alpn = vec![name];
        }
        let stream = visitor.connect(host).await?;
        if front == Front::H2 {
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        }
        Client::over(front, stream).await
    }

    /// Sends a GET request for `https://HOST/` on a connection of its own.
    ///
    /// With TLS 1.3, a client may learn only from this error that its certificate was rejected.
    pub async fn get(&self, host: &str) -> Result<Answer, Box<dyn std::error::Error>> {
        let mut client = self.client(Front::H1, host).await?;
        Ok(client.try_call(get(host, "/")).await?)
    }

    /// Returns the status of [`Visitor::get`]; 0 if there was no response.
    pub async fn status(&self, host: &str) -> u16 {
        self.get(host).await.map_or(0, |answer| answer.status)
    }

    /// Returns the server's certificate.
    pub async fn certificate(&self, host: &str) -> io::Result<Vec<u8>> {
        let stream = self.connect(host).await?;
        let certificates = stream.get_ref().1.peer_certificates().unwrap();
        Ok(certificates[0].to_vec())
    }
}

/// Returns a GET request for `https://HOST/PATH`.
pub fn get(host: &str, path: &str) -> Request<super::origin::Body> {
    Request::get(format!("https://{host}{path}"))
        .body(empty())
        .unwrap()
}

/// Writes certificates and keys into files of a directory, and returns their paths.
pub fn files(directory: &std::path::Path, files: &[(&str, &str)]) -> Vec<PathBuf> {
    let write = |(name, text): &(&str, &str)| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    files.iter().map(write).collect()
}
