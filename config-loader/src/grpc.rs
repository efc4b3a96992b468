//! Channels of gRPC clients, with TLS by rustls.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::codegen::Service;
use tonic::transport::{Channel, Endpoint};

/// How long a server may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How often an idle connection is checked, and how long the answer may take.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The files of a client's TLS, PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// The CA that servers are verified by.
    pub ca: Option<PathBuf>,
    /// A client certificate with its chain.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// The TLS of a client with these files. `missing_ca` is the error without a CA.
///
/// # Errors
/// If a file is not what it should be, in words.
pub fn client_tls(files: &ClientTlsFiles, missing_ca: &str) -> Result<TlsConnector, String> {
    let ca = files.ca.as_ref().ok_or(missing_ca)?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca)? {
        roots.add(certificate).map_err(in_file(ca))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut config = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key_file)) => {
            let key = PrivateKeyDer::from_pem_file(key_file).map_err(in_file(key_file))?;
            builder
                .with_client_auth_cert(certificates(certificate)?, key)
                .map_err(in_file(certificate))?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A channel to one address, which connects when it is first used, and again after it was closed. An IPv6 address is written
/// without brackets.
///
/// # Errors
/// If `host` is no name and no address.
pub fn channel(host: &str, port: u16, tls: Option<&TlsConnector>) -> Result<Channel, String> {
    let tls = match tls {
        None => None,
        Some(tls) => {
            let name = ServerName::try_from(host.to_owned())
                .map_err(|_| format!("{host:?} is no host name and no address"))?;
            Some((tls.clone(), name))
        }
    };
    let authority = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    // TLS is ours, below the channel, which therefore is one of plain text.
    let endpoint = Endpoint::from_shared(format!("http://{authority}"))
        .map_err(|_| format!("{authority:?} is no address"))?
        .connect_timeout(CONNECT_MAX)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true);
    let connect = Connect {
        host: host.to_owned(),
        port,
        tls,
    };
    Ok(endpoint.connect_with_connector_lazy(connect))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(in_file(path))?
        .collect();
    let found = found.map_err(in_file(path))?;
    if found.is_empty() {
        return Err(format!("{}: no certificate in it", path.display()));
    }
    Ok(found)
}

fn in_file<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> String {
    let path = path.to_owned();
    move |error| format!("{}: {error}", path.display())
}

/// Connects to one address.
#[derive(Clone)]
struct Connect {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// A connection, with or without TLS.
trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl Service<Uri> for Connect {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connect = self.clone();
        Box::pin(async move {
            let stream = TcpStream::connect((&*connect.host, connect.port)).await?;
            stream.set_nodelay(true)?;
            let io: Box<dyn Io> = match connect.tls {
                None => Box::new(stream),
                Some((tls, name)) => Box::new(tls.connect(name, stream).await?),
            };
            Ok(TokioIo::new(io))
        })
    }
}
