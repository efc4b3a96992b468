//! Creates listening sockets: options, port sharing, and wildcard addresses for both IP versions.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;

use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};

use crate::runtime::interception::accept_any_destination;

/// Whether a socket shares its port with other sockets of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Exclusive,
    Shared,
}

/// Fails if another process listens on the address.
///
/// Sockets with port sharing do not conflict, so two proxies on one port would each get a part of the traffic. Binding
/// a socket without port sharing fails if another process listens; it is closed again at once.
///
/// # Errors
///
/// `AddrInUse` if another process listens there, or another error of binding.
pub fn probe(address: SocketAddr) -> io::Result<()> {
    bind(address, Port::Exclusive).map(drop)
}

/// Opens a listening socket on `address` that shares its port with the other workers of this process.
///
/// `[::]` includes IPv4; on a system without IPv6, it means `0.0.0.0`. Accepted connections inherit `TCP_NODELAY`.
///
/// # Errors
///
/// If the address cannot be bound.
pub fn listen(address: SocketAddr, backlog: u16) -> io::Result<TcpListener> {
    let socket = bind(address, Port::Shared)?;
    socket.listen(i32::from(backlog))?;
    Ok(socket.into())
}

/// The same for connections to any address, which the kernel redirects (TPROXY).
///
/// # Errors
///
/// If the address cannot be bound, or the process lacks the capability CAP_NET_ADMIN.
pub fn listen_to_all(address: SocketAddr, backlog: u16) -> io::Result<TcpListener> {
    let listener = listen(address, backlog)?;
    accept_any_destination(&listener).map_err(|error| {
        let text =
            format!("{error}: --interception-mode TPROXY needs the capability CAP_NET_ADMIN");
        io::Error::new(error.kind(), text)
    })?;
    Ok(listener)
}

/// Drops new handshakes on a listening socket; those in progress complete.
///
/// A dropped client repeats its SYN after a second, and reaches another process, if there is one. Without this,
/// connections that complete between the last accept and the close would be reset.
///
/// # Errors
///
/// If the system has no socket filters.
pub fn refuse_handshakes(listener: &impl AsFd) -> io::Result<()> {
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// Offset of the flags in a TCP header, and two flags (RFC 9293, section 3.1).
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
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
    // Permits a restarted proxy to bind while connections of its predecessor are in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(port == Port::Shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(address.ip() != Ipv6Addr::UNSPECIFIED)?;
    }
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// First port that needs no privilege by default.
const PRIVILEGED_END: u16 = 1_024;

/// Returns the error of binding an address, with the missing capability if that is the cause.
pub fn refusal(address: SocketAddr, error: &io::Error) -> String {
    let port = address.port();
    match error.kind() {
        io::ErrorKind::PermissionDenied if (1..PRIVILEGED_END).contains(&port) => format!(
            "{error}: ports below {PRIVILEGED_END} need the capability CAP_NET_BIND_SERVICE, or the sysctl \
             net.ipv4.ip_unprivileged_port_start={port}"
        ),
        _ => error.to_string(),
    }
}

/// Whether an error means that IPv6 is missing or disabled on Linux.
fn lacks_ipv6(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(EAFNOSUPPORT)
}

/// Listening socket of one worker.
#[derive(Debug)]
pub enum Listening {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket, which all workers share.
    Unix(UnixListener),
}

impl Listening {
    /// Duplicates the socket.
    ///
    /// # Errors
    ///
    /// If the process has no file descriptor left.
    pub fn share(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(tcp) => tcp.try_clone().map(Self::Tcp),
            Self::Unix(unix) => unix.try_clone().map(Self::Unix),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn privileged_port_error_names_the_missing_capability() {
        let refused = |port: u16, kind: io::ErrorKind| {
            refusal(
                SocketAddr::from(([0, 0, 0, 0], port)),
                &io::Error::from(kind),
            )
        };
        let text = refused(443, io::ErrorKind::PermissionDenied);
        assert!(text.contains("CAP_NET_BIND_SERVICE"), "{text}");
        assert!(
            text.ends_with("net.ipv4.ip_unprivileged_port_start=443"),
            "{text}"
        );
        for (port, kind) in [
            (8443, io::ErrorKind::PermissionDenied),
            (443, io::ErrorKind::AddrInUse),
        ] {
            assert_eq!(refused(port, kind), io::Error::from(kind).to_string());
        }
    }

    #[test]
    fn workers_bind_one_port() {
        let first = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 16).unwrap();
        let second = listen(first.local_addr().unwrap(), 16).unwrap();
        assert_eq!(first.local_addr().unwrap(), second.local_addr().unwrap());
    }

    #[test]
    fn probe_fails_for_a_port_in_use() {
        let first = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 16).unwrap();
        let address = first.local_addr().unwrap();
        let error = probe(address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        probe(address).unwrap();
    }

    #[test]
    fn socket_that_refuses_handshakes_serves_queued_connections_only() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 16).unwrap();
        let address = listener.local_addr().unwrap();
        let _queued = TcpStream::connect(address).unwrap();
        refuse_handshakes(&listener).unwrap();
        let late = TcpStream::connect_timeout(&address, Duration::from_millis(50));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        listener.accept().unwrap();
        assert!(listener.accept().is_err(), "no second connection");
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
