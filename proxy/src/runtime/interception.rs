//! Sockets of intercepted connections: the address that a client dialed, and connections to the workload in the
//! client's place.
//!
//! `strait iptables` makes the kernel redirect connections to the proxy. The marks and source addresses here exclude
//! the proxy's own packets from those rules; both the rules and the sockets use these constants.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpSocket;

/// Mark of packets of a transparently intercepted connection, and of the proxy's own connection to the workload that
/// keeps the client's address. The same as Istio's.
pub const TRANSPARENT_MARK: u32 = 1337;

/// Source of the proxy's connections to its workload over IPv4, which are not intercepted. The same as Istio's.
pub const INBOUND_SOURCE_V4: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);

/// Source of those connections over IPv6; `strait iptables install` adds it to the loopback interface. The same as
/// Istio's.
pub const INBOUND_SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 6);

/// Returns the address that the client dialed, if the kernel handed its connection to the listener on `port`.
///
/// `None` for a connection that was made to the listener itself. A redirected connection has the address in the
/// kernel's connection table; on a transparently intercepted one, it is the local address of the socket.
pub fn original_destination(socket: &impl AsFd, port: u16) -> Option<SocketAddr> {
    let socket = SockRef::from(socket);
    let local = canonical(socket.local_addr().ok()?.as_socket()?);
    let dialed = match local {
        SocketAddr::V4(_) => socket.original_dst_v4(),
        SocketAddr::V6(_) => socket.original_dst_v6(),
    };
    let dialed = dialed.ok().and_then(|address| address.as_socket());
    match dialed.map(canonical) {
        Some(dialed) if dialed != local => Some(dialed),
        _ => (local.port() != port).then_some(local),
    }
}

/// Converts an IPv4-mapped address (`::ffff:192.0.2.1`), as dual-stack sockets report it, to IPv4, and removes the
/// scope.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Lets a listening socket accept connections to addresses that are not local (`--interception-mode TPROXY`).
///
/// # Errors
///
/// Fails without the capability CAP_NET_ADMIN.
pub fn accept_any_destination(listener: &impl AsFd) -> io::Result<()> {
    let socket = SockRef::from(listener);
    let domain = socket.domain()?;
    set_transparent(&socket, domain)
}

/// Sets the transparent option. Both options set one flag of the kernel's socket, so the IPv6 one covers IPv4 on a
/// dual-stack socket.
fn set_transparent(socket: &Socket, domain: Domain) -> io::Result<()> {
    if domain == Domain::IPV6 {
        socket.set_ip_transparent_v6(true)
    } else {
        socket.set_ip_transparent_v4(true)
    }
}

/// Source address of a connection to the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InboundSource {
    /// The client's own address, for transparently intercepted connections. Needs CAP_NET_ADMIN.
    Client(IpAddr),
    /// [`INBOUND_SOURCE_V4`] or [`INBOUND_SOURCE_V6`].
    Proxy,
}

impl InboundSource {
    /// Makes a socket that connects to `remote` from this source, without being intercepted again.
    ///
    /// The source is not bound if `remote` is of the other IP version. The proxy's source is not bound either for a
    /// loopback address, which no rule intercepts.
    ///
    /// # Errors
    ///
    /// Fails when a right is missing, or the loopback interface lacks [`INBOUND_SOURCE_V6`]; the error says so.
    pub fn socket(self, remote: SocketAddr) -> io::Result<TcpSocket> {
        let remote = canonical(remote);
        let domain = Domain::for_address(remote);
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(domain, kind, Some(Protocol::TCP))?;
        self.bind(&socket, remote, domain)?;
        Ok(TcpSocket::from_std_stream(socket.into()))
    }

    fn bind(self, socket: &Socket, remote: SocketAddr, domain: Domain) -> io::Result<()> {
        let bind = |ip: IpAddr| socket.bind(&SocketAddr::new(ip, 0).into());
        match (self, remote.ip()) {
            (Self::Client(client), ip) => {
                let client = client.to_canonical();
                if client.is_ipv4() != ip.is_ipv4() {
                    return Ok(());
                }
                let marked = socket.set_mark(TRANSPARENT_MARK);
                let transparent = marked.and_then(|()| set_transparent(socket, domain));
                transparent.map_err(|error| explained(&error, "it needs CAP_NET_ADMIN"))?;
                bind(client)
            }
            (Self::Proxy, ip) if ip.is_loopback() => Ok(()),
            (Self::Proxy, IpAddr::V4(_)) => bind(INBOUND_SOURCE_V4.into()),
            (Self::Proxy, IpAddr::V6(_)) => {
                let bound = bind(INBOUND_SOURCE_V6.into());
                let reason = "`strait iptables install` adds it to the loopback interface";
                bound.map_err(|error| explained(&error, reason))
            }
        }
    }
}

fn explained(error: &io::Error, reason: &str) -> io::Error {
    let text =
        format!("cannot set the source address of a connection to the workload: {error}; {reason}");
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const DIRECT: [(IpAddr, IpAddr); 3] = [
        (
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V4(Ipv4Addr::LOCALHOST),
        ),
        (
            IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ),
        (
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            IpAddr::V4(Ipv4Addr::LOCALHOST),
        ),
    ];

    #[test]
    fn direct_connection_has_no_original_destination() {
        for (bound, dialed) in DIRECT {
            let listener = TcpListener::bind((bound, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let _client = TcpStream::connect((dialed, port)).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            assert_eq!(original_destination(&accepted, port), None, "{bound}");
        }
    }

    /// Only TPROXY makes the kernel hand such a socket to a listener on another port.
    #[test]
    fn local_address_of_another_port_is_the_original_destination() {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let _client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let dialed = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        assert_eq!(original_destination(&accepted, port ^ 1), Some(dialed));
    }

    /// Returns whether the process may intercept connections; prints the reason if not.
    fn may_intercept() -> bool {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let result = accept_any_destination(&listener);
        if let Err(error) = &result {
            println!("skipped: CAP_NET_ADMIN is missing: {error}");
        }
        result.is_ok()
    }

    #[test]
    fn socket_binds_the_address_of_the_client() {
        if !may_intercept() {
            return;
        }
        for (client, remote) in [
            ("192.0.2.7", "192.0.2.1:80"),
            ("2001:db8::7", "[2001:db8::1]:80"),
        ] {
            let client: IpAddr = client.parse().unwrap();
            let socket = InboundSource::Client(client);
            let socket = socket.socket(remote.parse().unwrap()).unwrap();
            assert_eq!(socket.local_addr().unwrap().ip(), client);
            assert_eq!(SockRef::from(&socket).mark().unwrap(), TRANSPARENT_MARK);
        }
    }

    #[test]
    fn dual_stack_listener_becomes_transparent() {
        if !may_intercept() {
            return;
        }
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
        accept_any_destination(&listener).unwrap();
        let socket = SockRef::from(&listener);
        assert!(socket.ip_transparent_v6().unwrap());
        assert!(socket.ip_transparent_v4().unwrap(), "one flag for both");
    }

    #[test]
    fn source_is_not_bound_where_it_does_not_fit() {
        let free = |source: InboundSource, remote: &str| {
            let socket = source.socket(remote.parse().unwrap()).unwrap();
            assert!(socket.local_addr().unwrap().ip().is_unspecified());
        };
        free(InboundSource::Proxy, "127.0.0.1:80");
        free(InboundSource::Proxy, "[::1]:80");
        let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        free(InboundSource::Client(client), "[::1]:80");
    }

    #[test]
    fn proxy_source_is_bound_for_the_address_of_the_workload() {
        let source = InboundSource::Proxy;
        let socket = source.socket("192.0.2.1:80".parse().unwrap()).unwrap();
        assert_eq!(socket.local_addr().unwrap().ip(), INBOUND_SOURCE_V4);
        // the test's machine may have this address
        if let Err(error) = source.socket("[2001:db8::1]:80".parse().unwrap()) {
            assert!(
                error.to_string().contains("strait iptables install"),
                "{error}"
            );
        }
    }
}
