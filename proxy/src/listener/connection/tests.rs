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
use crate::snapshot::ListenerKey;
use crate::telemetry::{BuildInfo, Telemetry, WorkerId};

/// What a parked connection may hold: its task, on top of which come the socket's registration and two small `Rc`s.
const PARKED_BYTES_MAX: usize = 848;

#[tokio::test]
async fn futures_of_idle_connections_stay_small() {
    LocalSet::new().run_until(check_sizes()).await;
}

async fn check_sizes() {
    let telemetry = Telemetry::new(
        1,
        BuildInfo {
            version: String::new(),
            revision: String::new(),
        },
    );
    // An answer that is large while it is being made.
    let answer = |_: Rc<Connection>, _: Request<DownstreamBody>| async move {
        let large = [1_u8; 16 * 1024];
        tokio::task::yield_now().await;
        Response::new(Full::from(Bytes::copy_from_slice(&large)))
    };
    let server = codec::Server::new(answer, codec::Settings::default(), telemetry, WorkerId(0));
    let server = Rc::new(server);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let _client = TcpStream::connect(address).await.unwrap();
    let (tcp, remote) = listener.accept().await.unwrap();
    let downstream = Downstream {
        listener: Arc::new(ListenerKey::from(address)),
        remote,
        local: address,
    };
    let slot = Admission::new(1, 1).admit(0).unwrap();
    let serving = serve(codec::Server::enter(
        &server,
        Transport::Tcp(tcp),
        slot,
        downstream,
    ));
    let size = size_of_val(&serving);
    assert!(size <= PARKED_BYTES_MAX, "{size} bytes");
}
