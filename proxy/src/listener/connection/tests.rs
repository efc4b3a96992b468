use std::net::Ipv4Addr;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use super::*;
use crate::codec::transport::Transport;
use crate::codec::{self, Downstream};
use crate::exchange::{Connection, DownstreamBody};
use crate::runtime::admission::Admission;
use crate::runtime::latest::slot;
use crate::snapshot::ListenerKey;
use crate::telemetry::{BuildInfo, ConnectionProtocol, Telemetry, WorkerId};

/// Maximum size of a waiting connection's future. With 136 bytes of its supervisor and of tokio, its task has 256
/// bytes; tokio rounds up to 128.
const WAITING_BYTES_MAX: usize = 120;

/// Maximum size of the state outside of the future: the socket, its addresses, and the data that they refer to.
const ACCEPTED_BYTES_MAX: usize = 224;

/// The same for an HTTP/2 connection without streams, and for a raw TCP connection, apart from buffers.
const HTTP2_BYTES_MAX: usize = 1280;
const OPAQUE_BYTES_MAX: usize = 768;

#[tokio::test]
async fn futures_of_idle_connections_stay_small() {
    LocalSet::new().run_until(check_sizes()).await;
}

fn telemetry() -> Arc<Telemetry> {
    let build = BuildInfo {
        version: String::new(),
        revision: String::new(),
    };
    Telemetry::new(1, build)
}

/// Returns a connection that was just accepted, and its client.
async fn accepted<A: Handler>(
    server: &Rc<codec::Server<A>>,
) -> (Box<AcceptedConnection<A>>, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(address).await.unwrap();
    let (tcp, remote) = listener.accept().await.unwrap();
    let downstream = Downstream {
        listener: Arc::new(ListenerKey::from(address)),
        remote,
        local: address,
    };
    let slot = Admission::new(1, 1).admit(0).unwrap();
    let accepted = codec::Server::enter(server, Transport::Tcp(tcp), slot, downstream);
    (accepted, client)
}

#[tokio::test]
async fn connection_that_is_refused_once_its_endpoint_was_asked_for_is_counted_once() {
    let check = async {
        let answer = |_: Rc<Connection>, _: Request<DownstreamBody>| async {
            Response::new(Full::<Bytes>::default())
        };
        let telemetry = telemetry();
        let settings = slot(codec::Settings::default());
        let server = codec::Server::new(answer, settings, Arc::clone(&telemetry), WorkerId(0));
        let (mut accepted, client) = accepted(&Rc::new(server)).await;
        let name = client.peer_addr().unwrap().to_string();
        assert!(accepted.connect_endpoint(Arc::default()).await.is_none());
        accepted.refuse(Counter::TlsHandshakeLimit);
        let stats = telemetry.stats.listener_stats(&name);
        let totals = ConnectionProtocol::ALL.map(|protocol| stats.totals(protocol));
        assert_eq!(totals.iter().map(|totals| totals.opened).sum::<u64>(), 1);
        assert_eq!(totals.iter().map(|totals| totals.closed).sum::<u64>(), 1);
    };
    LocalSet::new().run_until(check).await;
}

async fn check_sizes() {
    let telemetry = telemetry();
    // An answer whose future is large.
    let answer = |_: Rc<Connection>, _: Request<DownstreamBody>| async move {
        let large = [1_u8; 16 * 1024];
        tokio::task::yield_now().await;
        Response::new(Full::from(Bytes::copy_from_slice(&large)))
    };
    let settings = slot(codec::Settings::default());
    let server = codec::Server::new(answer, settings, telemetry, WorkerId(0));
    let server = Rc::new(server);
    let (accepted, _client) = accepted(&server).await;
    let check = |what, size, max| assert!(size <= max, "{what}: {size} bytes");
    check("accepted", size_of_val(&*accepted), ACCEPTED_BYTES_MAX);
    check(
        "waiting",
        returned_bytes(serve, &accepted),
        WAITING_BYTES_MAX,
    );
    let http2 = AcceptedConnection::http2;
    check("HTTP/2", returned_bytes(http2, &accepted), HTTP2_BYTES_MAX);
    let opaque = |accepted: Box<AcceptedConnection<_>>| accepted.opaque(None, None);
    check(
        "raw TCP",
        returned_bytes(opaque, &accepted),
        OPAQUE_BYTES_MAX,
    );
}

/// Returns the size of the function's return value.
fn returned_bytes<T, F>(_: impl Fn(Box<T>) -> F, _: &T) -> usize {
    size_of::<F>()
}
