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
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tonic::codegen::Service;
use tonic::transport::{Channel, Endpoint};

/// Timeout for establishing a connection.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Interval between keep-alive pings of an idle connection, and timeout of each.
const KEEP_ALIVE: Duration = match cfg!(test) {
    true => Duration::from_millis(100),
    false => Duration::from_secs(5),
};

/// Callback for data received from a server, including replies to keep-alive pings.
pub type OnRead = Arc<dyn Fn() + Send + Sync>;

/// Files of the client's TLS settings, in PEM format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// CA certificate that server certificates are verified with.
    pub ca: Option<PathBuf>,
    /// Client certificate with its chain.
    pub certificate: Option<PathBuf>,
    /// Private key of the client certificate.
    pub key: Option<PathBuf>,
}

/// Builds the client's TLS connector from these files. `missing_ca` is the error message if no CA is set.
///
/// # Errors
///
/// Returns a message if a file cannot be used.
pub fn client_tls(files: &ClientTlsFiles, missing_ca: &str) -> Result<TlsConnector, String> {
    let ca = files.ca.as_ref().ok_or(missing_ca)?;
    client_tls_with(roots(ca)?, files, b"h2")
}

/// Reads CA certificates from a file in PEM format.
///
/// # Errors
///
/// Returns a message if the file cannot be used.
pub fn roots(ca: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca)? {
        roots.add(certificate).map_err(in_file(ca))?;
    }
    Ok(roots)
}

/// Builds a TLS connector as [`client_tls`] does, with these CA certificates, for this protocol (ALPN).
///
/// # Errors
///
/// Returns a message if a file cannot be used.
pub fn client_tls_with(
    roots: RootCertStore,
    files: &ClientTlsFiles,
    protocol: &[u8],
) -> Result<TlsConnector, String> {
    let own = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key_file)) => {
            let key = PrivateKeyDer::from_pem_file(key_file).map_err(in_file(key_file))?;
            Some((certificates(certificate)?, key))
        }
        _ => None,
    };
    let made = client_tls_as(roots, own, protocol);
    made.map_err(|error| match &files.certificate {
        Some(certificate) => in_file(certificate)(error),
        None => error,
    })
}

/// Builds a TLS connector as [`client_tls_with`] does, with the certificate chain and key of the client, if it has any.
///
/// # Errors
///
/// Returns a message if the key does not belong to the certificate.
pub fn client_tls_as(
    roots: RootCertStore,
    own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    protocol: &[u8],
) -> Result<TlsConnector, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut config = match own {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| error.to_string())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Creates a channel to one address. It connects when it is first used, and reconnects after the connection was closed.
/// An IPv6 address is written without brackets.
///
/// # Errors
///
/// Returns a message if `host` is neither a DNS name nor an address.
pub fn channel(host: &str, port: u16, tls: Option<&TlsConnector>) -> Result<Channel, String> {
    channel_with(host, port, tls, Arc::new(|| ()))
}

/// Server of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// DNS name or address; an IPv6 address is written without brackets.
    pub host: &'a str,
    /// Port.
    pub port: u16,
    /// Name or address in the certificate of the server.
    pub name: &'a str,
}

/// Creates a channel with TLS as [`channel`] does, to a server whose certificate may have another name than its host.
///
/// # Errors
///
/// Returns a message if host or name is neither a DNS name nor an address.
pub fn channel_to(server: Server<'_>, tls: &TlsConnector) -> Result<Channel, String> {
    connecting(server, Some(tls), Arc::new(|| ()))
}

/// Creates a channel as [`channel`] does, and calls `on_read` whenever data is received.
///
/// # Errors
///
/// Returns a message if `host` is neither a DNS name nor an address.
pub fn channel_with(
    host: &str,
    port: u16,
    tls: Option<&TlsConnector>,
    on_read: OnRead,
) -> Result<Channel, String> {
    let name = host;
    connecting(Server { host, port, name }, tls, on_read)
}

fn connecting(
    Server { host, port, name }: Server<'_>,
    tls: Option<&TlsConnector>,
    on_read: OnRead,
) -> Result<Channel, String> {
    let tls = match tls {
        None => None,
        Some(tls) => {
            let name = ServerName::try_from(name.to_owned())
                .map_err(|_| format!("{name:?} is no host name and no address"))?;
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
        on_read,
    };
    Ok(endpoint.connect_with_connector_lazy(connect))
}

/// Creates a channel without TLS to a Unix socket. It connects when it is first used.
pub fn unix_channel(path: PathBuf) -> Channel {
    let endpoint = Endpoint::from_static("http://localhost").connect_timeout(CONNECT_MAX);
    endpoint.connect_with_connector_lazy(ConnectUnix(path))
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

/// Connector for one address.
#[derive(Clone)]
struct Connect {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    on_read: OnRead,
}

/// Stream of a connection, with or without TLS.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Connects to a host. An IPv6 address is written without brackets.
///
/// # Errors
///
/// If no address of the host accepts the connection, or TLS fails.
pub async fn connect(host: &str, port: u16, tls: Option<&TlsConnector>) -> io::Result<Box<dyn Io>> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(Box::new(stream));
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(tls.connect(name, stream).await?))
}

/// Connection that calls [`OnRead`] whenever it receives data.
struct ObservedStream {
    stream: TcpStream,
    on_read: OnRead,
}

impl AsyncRead for ObservedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            (self.on_read)();
        }
        read
    }
}

impl AsyncWrite for ObservedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

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
            let stream = ObservedStream {
                stream,
                on_read: connect.on_read,
            };
            let io: Box<dyn Io> = match connect.tls {
                None => Box::new(stream),
                Some((tls, name)) => Box::new(tls.connect(name, stream).await?),
            };
            Ok(TokioIo::new(io))
        })
    }
}

/// Connector for one Unix socket.
#[derive(Clone)]
struct ConnectUnix(PathBuf);

impl Service<Uri> for ConnectUnix {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let path = self.0.clone();
        Box::pin(async move { Ok(TokioIo::new(UnixStream::connect(path).await?)) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::Request;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tonic::body::Body;

    use super::*;

    #[tokio::test]
    async fn connection_that_died_silently_ends_its_streams() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let reads = Arc::new(AtomicUsize::new(0));
        let on_read: OnRead = {
            let reads = Arc::clone(&reads);
            Arc::new(move || _ = reads.fetch_add(1, Ordering::Relaxed))
        };
        let mut channel = channel_with("127.0.0.1", port, None, on_read).unwrap();
        let accept = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // Its settings, and then nothing more.
            stream
                .write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])
                .await
                .unwrap();
            std::future::pending::<()>().await;
        };
        let ask = async {
            std::future::poll_fn(|cx| channel.poll_ready(cx))
                .await
                .unwrap();
            let request = Request::get("http://127.0.0.1/").body(Body::empty());
            channel.call(request.unwrap()).await
        };
        tokio::select! {
            () = accept => {}
            asked = tokio::time::timeout(Duration::from_secs(20), ask) => {
                assert!(asked.expect("it ends").is_err());
            }
        }
        assert!(reads.load(Ordering::Relaxed) > 0);
    }
}
