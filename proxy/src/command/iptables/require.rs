//! `strait iptables show --require`: checks without any privilege that connections are captured.
//!
//! A connection of the proxy's own user to an address of the pod is redirected to the inbound port, see `rules`. So one
//! that arrives there proves that the rules are in place.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use super::capture::CaptureArgs;

/// Port that nothing listens on; Istio's own check uses it as well.
const PROBE_PORT: u16 = 15_002;

/// Maximum time to connect.
const PATIENCE: Duration = Duration::from_secs(2);

/// Checks that the connections of the pod are captured.
///
/// # Errors
///
/// They are not, or it cannot be found out.
pub(super) fn check(capture: &CaptureArgs) -> Result<String, String> {
    let port = capture.inbound_port;
    let own = own_address().ok_or("the pod has no address to connect to")?;
    let any = match own {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let listener = TcpListener::bind((any, port))
        .map_err(|error| format!("cannot listen on port {port}: {error}"))?;
    let target = SocketAddr::new(own, PROBE_PORT);
    match arrives(&listener, target) {
        Ok(true) => Ok(format!("a connection to {target} arrives at port {port}\n")),
        Ok(false) | Err(_) => Err(format!(
            "connections are not captured: one to {target} does not arrive at port {port}; run this as the user of the \
             proxy, and install the rules before, by `strait iptables install` or by Istio's CNI plugin"
        )),
    }
}

/// Returns whether a connection to the target arrives at the listener.
fn arrives(listener: &TcpListener, target: SocketAddr) -> io::Result<bool> {
    let connection = TcpStream::connect_timeout(&target, PATIENCE)?;
    // it is established, so that it waits already
    listener.set_nonblocking(true)?;
    let (_, peer) = listener.accept()?;
    Ok(peer.port() == connection.local_addr()?.port())
}

/// Returns the address that the pod sends from. No packet is sent.
fn own_address() -> Option<IpAddr> {
    let documentation = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    documentation.into_iter().find_map(|(from, to)| {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_arrives_only_at_its_own_listener() {
        let [one, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let target = one.local_addr().unwrap();
        assert!(arrives(&one, target).unwrap());
        assert!(arrives(&other, target).is_err());
    }
}
