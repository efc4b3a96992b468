//! Connections of an HTTPS server: acceptance, TLS handshakes, and the limits of HTTP.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Timeout of the TLS handshake, and of the head of a request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of buffered bytes of an HTTP/2 response.
const SEND_BYTES_MAX: usize = 64 << 10;

/// Accepts connections until `closes` ends, at most `max` at once, and runs what `serve` makes of each; a connection of
/// which it makes nothing is closed. Returns the connections that are open at the end. They end when that is dropped.
pub(crate) async fn accept<C>(
    listener: TcpListener,
    max: usize,
    closes: impl Future<Output = ()>,
    serve: impl Fn(TcpStream, SocketAddr) -> Option<C>,
) -> JoinSet<()>
where
    C: Future<Output = ()> + Send + 'static,
{
    let free = Arc::new(Semaphore::new(max));
    let mut closes = pin!(closes);
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let permit = Arc::clone(&free).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            accepted = accepted => accepted,
            () = closes.as_mut() => return connections,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, address)) => {
                if let Some(connection) = serve(stream, address) {
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Makes the TLS handshake of a connection; `None` if it fails, or is not done in time.
pub(crate) async fn handshake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
) -> Option<TlsStream<TcpStream>> {
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await;
    handshake.ok()?.ok()
}

/// Returns HTTP with its limits.
pub(crate) fn http() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}
