//! Connections to the containers of this pod.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpSocket, TcpStream};

use crate::runtime::interception::{INBOUND_SOURCE_V4, INBOUND_SOURCE_V6};
use traffic::error::BoxError;

/// Source addresses of connections to the workload; the rules of the capture let them pass.
const SOURCES: [IpAddr; 2] = [IpAddr::V4(INBOUND_SOURCE_V4), IpAddr::V6(INBOUND_SOURCE_V6)];

/// Opens a connection to a port of this pod.
pub(super) async fn connect(pod: IpAddr, port: u16) -> Result<TcpStream, BoxError> {
    let to = SocketAddr::new(pod, port);
    let socket = match pod {
        IpAddr::V4(_) => TcpSocket::new_v4(),
        IpAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    for source in SOURCES.iter().filter(|ip| ip.is_ipv4() == pod.is_ipv4()) {
        // without capture, the address may not be there for IPv6; nothing needs it then
        let _ = socket.bind(SocketAddr::new(*source, 0));
    }
    let connected = socket.connect(to).await;
    connected.map_err(|error: io::Error| format!("cannot connect to {to}: {error}").into())
}
