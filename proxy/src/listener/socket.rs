//! Makes listening sockets: options, port sharing, and the wildcard on both IP versions.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Whether a socket may share its port with other sockets of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Exclusive,
    Shared,
}

/// Fails when another process has the address.
///
/// Sockets that share a port do not notice others that do the same, so two proxies on one port would each get part of
/// the traffic. A socket that does not share is refused where anybody listens; it is closed again at once.
///
/// # Errors
///
/// `AddrInUse` when somebody listens there, or whatever else binding failed with.
pub fn probe(address: SocketAddr) -> io::Result<()> {
    bind(address, Port::Exclusive).map(drop)
}

/// Opens a socket that listens on `address`, sharing the port with the other workers of this process.
///
/// `[::]` takes IPv4 as well; where the system has no IPv6, it means `0.0.0.0`. Accepted connections inherit
/// `TCP_NODELAY`.
///
/// # Errors
///
/// When the address cannot be bound.
pub fn listen(address: SocketAddr, backlog: u16) -> io::Result<TcpListener> {
    let socket = bind(address, Port::Shared)?;
    socket.listen(i32::from(backlog))?;
    Ok(socket.into())
}

fn bind(address: SocketAddr, port: Port) -> io::Result<Socket> {
    let bound = bind_exactly(address, port);
    let wildcard = address.ip() == Ipv6Addr::UNSPECIFIED;
    match bound {
        Err(error) if wildcard && lacks_ipv6(&error) => {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            bind_exactly(address, port)
        }
        bound => bound,
    }
}

fn bind_exactly(address: SocketAddr, port: Port) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    // Lets a restarted proxy bind while connections of its predecessor linger in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(port == Port::Shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(address.ip() != Ipv6Addr::UNSPECIFIED)?;
    }
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// What Linux answers where IPv6 is not built in, or is switched off.
fn lacks_ipv6(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(EAFNOSUPPORT)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn workers_share_a_port() {
        let first = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 16).unwrap();
        let second = listen(first.local_addr().unwrap(), 16).unwrap();
        assert_eq!(first.local_addr().unwrap(), second.local_addr().unwrap());
    }

    #[test]
    fn probe_refuses_a_port_that_somebody_listens_on() {
        let first = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 16).unwrap();
        let address = first.local_addr().unwrap();
        let error = probe(address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        probe(address).unwrap();
    }

    #[test]
    fn wildcard_accepts_ipv4_and_accepted_sockets_do_not_delay() {
        let listener = listen(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)), 16).unwrap();
        let port = listener.local_addr().unwrap().port();
        let _client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        listener.set_nonblocking(false).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert!(accepted.nodelay().unwrap(), "inherited from the listener");
    }
}
