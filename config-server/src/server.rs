//! HTTPS server: connections, authentication, and dispatch of requests to the API.

mod accept;
mod body;
mod dispatch;
mod report_watch;
mod reports;
mod reviews;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::access::attempts::Attempts;
use crate::access::{User, Users, pki};
use crate::api::Api;
use crate::audit::Audit;
use crate::metrics::Metrics;
use crate::proxies::{Proxies, Reporter};
use crate::xds::Streams;

/// Timeout of the TLS handshake, and of the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Grace period after the connection of its reports ended, in which a proxy may reconnect before it is removed.
/// Proxies report every 20 s.
const LEAVES_AFTER: Duration = Duration::from_secs(25);
/// Default maximum number of concurrent connections.
pub(crate) const CONNECTIONS_MAX: usize = 20_000;
/// Default maximum duration of a connection without an authenticated request. It keeps anonymous clients from using up
/// the connections.
pub(crate) const ANONYMOUS_MAX: Duration = Duration::from_secs(30);

/// Maximum number of buffered bytes of an HTTP/2 response.
const SEND_BYTES_MAX: usize = 64 << 10;

/// HTTPS server of the API.
#[derive(Clone, Debug)]
pub struct Server {
    pub(crate) api: Api,
    pub(crate) proxies: Arc<Proxies>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) users: Users,
    pub(crate) attempts: Arc<Attempts>,
    /// Audit log; `None` for a server without writes.
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) xds: Streams,
    pub(crate) tls: Arc<ServerConfig>,
    /// Data directory; empty for a server without one.
    pub(crate) data: PathBuf,
    pub(crate) connections_max: usize,
    pub(crate) anonymous_max: Duration,
    pub(crate) closing: Closing,
}

/// End of a server: its listener closes, and its connections end at random within a time, so that proxies find another
/// replica one by one.
#[derive(Clone, Debug)]
pub(crate) struct Closing {
    pub(crate) is_closing: watch::Receiver<bool>,
    pub(crate) within: Duration,
}

impl Closing {
    /// Returns the end of a server that ends when its future is dropped.
    pub(crate) fn never() -> Closing {
        Closing {
            is_closing: watch::channel(false).1,
            within: Duration::ZERO,
        }
    }

    /// Waits until the listener closes.
    async fn closes(&mut self) {
        let closes = self.is_closing.wait_for(|is_closing| *is_closing);
        if closes.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until a connection ends.
    async fn ends(mut self) {
        self.closes().await;
        tokio::time::sleep(self.within.mul_f64(rand::random())).await;
    }
}

/// Client side of a connection.
#[derive(Clone, Debug)]
struct Peer {
    address: SocketAddr,
    /// User of the client certificate; `None` without one.
    user: Option<User>,
    /// Whether a request, or the connection itself, was authenticated.
    is_known: Arc<AtomicBool>,
    /// Reporter of the proxy reports on this connection.
    reporter: Reporter,
}

impl Server {
    /// Accepts connections until the server closes, and waits for their ends then.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let free = Arc::new(Semaphore::new(self.connections_max));
        let acceptor = TlsAcceptor::from(Arc::clone(&self.tls));
        let mut closing = self.closing.clone();
        // Connections end with the server.
        let mut connections = JoinSet::new();
        loop {
            let accepted = async {
                let permit = Arc::clone(&free).acquire_owned().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                accepted = accepted => accepted,
                () = closing.closes() => break,
            };
            match accepted {
                Ok((stream, address)) => {
                    let (server, acceptor) = (self.clone(), acceptor.clone());
                    connections.spawn(async move {
                        server.connection(stream, address, acceptor).await;
                        drop(permit);
                    });
                    while connections.try_join_next().is_some() {}
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    async fn connection(self, stream: TcpStream, address: SocketAddr, acceptor: TlsAcceptor) {
        let _ = stream.set_nodelay(true);
        let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await else {
            return;
        };
        let certificates = stream.get_ref().1.peer_certificates();
        let user = certificates.and_then(|chain| pki::user_of(chain.first()?));
        let reporter = self.proxies.reporter();
        let is_known = Arc::new(AtomicBool::new(user.is_some()));
        let anonymous_max = self.anonymous_max;
        let peer = Peer {
            address,
            user,
            is_known: Arc::clone(&is_known),
            reporter,
        };
        let proxies = Arc::clone(&self.proxies);
        let closing = self.closing.clone();
        let service = service_fn(move |request| {
            let (server, peer) = (self.clone(), peer.clone());
            async move { Ok::<_, std::convert::Infallible>(server.handle(&peer, request).await) }
        });
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
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        // Errors of one connection do not affect others, and are ignored.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = closing.ends() => {}
            () = anonymous(anonymous_max, &is_known) => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(PATIENCE, connection).await;
            }
        }
        proxies.ended(reporter, Instant::now() + LEAVES_AFTER);
    }
}

/// Returns once a connection has been unauthenticated for `max`; never returns if it is authenticated in time.
async fn anonymous(max: Duration, is_known: &AtomicBool) {
    tokio::time::sleep(max).await;
    if is_known.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}
