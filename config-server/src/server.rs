//! HTTPS server: connections, authentication, and dispatch of requests to the API.

mod accept;
mod body;
mod dispatch;
mod page;
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
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::access::attempts::Attempts;
use crate::access::{User, Users, pki};
use crate::api::Api;
use crate::audit::Audit;
use crate::connections::{PATIENCE, accept, handshake, http};
use crate::identities::Identities;
use crate::metrics::Metrics;
use crate::proxies::{Proxies, Reporter};
use crate::xds::Streams;

/// Grace period after the connection of its reports ended, in which a proxy may reconnect before it is removed.
/// Proxies report every 20 s.
const LEAVES_AFTER: Duration = Duration::from_secs(25);
/// Default maximum number of concurrent connections.
pub(crate) const CONNECTIONS_MAX: usize = 20_000;
/// Default maximum duration of a connection without an authenticated request. It keeps anonymous clients from using up
/// the connections.
pub(crate) const ANONYMOUS_MAX: Duration = Duration::from_secs(30);

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
    /// CA of workloads; `None` without the role.
    pub(crate) identities: Option<Identities>,
    pub(crate) tls: Arc<ServerConfig>,
    /// Verifier of client certificates of users; `None` for a server without them.
    pub(crate) user_certificates: Option<Arc<dyn ClientCertVerifier>>,
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
    /// Certificates of the client, its own first.
    certificates: Arc<[CertificateDer<'static>]>,
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
        let acceptor = TlsAcceptor::from(Arc::clone(&self.tls));
        let mut closing = self.closing.clone();
        // connections end with the server
        let max = self.connections_max;
        let mut connections = accept(listener, max, closing.closes(), |stream, address| {
            Some(self.clone().connection(stream, address, acceptor.clone()))
        })
        .await;
        while connections.join_next().await.is_some() {}
    }

    async fn connection(self, stream: TcpStream, address: SocketAddr, acceptor: TlsAcceptor) {
        let Some(stream) = handshake(acceptor, stream).await else {
            return;
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let user = self.user_of(certificates);
        let certificates = certificates.iter().map(|one| one.clone().into_owned());
        let certificates = certificates.collect();
        let reporter = self.proxies.reporter();
        let is_known = Arc::new(AtomicBool::new(user.is_some()));
        let anonymous_max = self.anonymous_max;
        let peer = Peer {
            address,
            certificates,
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
        let http = http();
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
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

impl Server {
    /// Returns the user of client certificates. Those of workloads are not of users, and none of a workload is one.
    fn user_of(&self, certificates: &[CertificateDer<'_>]) -> Option<User> {
        let (own, chain) = certificates.split_first()?;
        let verifier = self.user_certificates.as_ref()?;
        let verified = verifier.verify_client_cert(own, chain, UnixTime::now());
        verified.ok().and_then(|_| pki::user_of(own))
    }
}

/// Returns once a connection has been unauthenticated for `max`; never returns if it is authenticated in time.
async fn anonymous(max: Duration, is_known: &AtomicBool) {
    tokio::time::sleep(max).await;
    if is_known.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}
