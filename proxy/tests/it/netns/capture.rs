//! Captured connections at the ports of the proxy, and their original destinations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use proxy::runtime::interception::{InboundSource, original_destination};

use super::lab::{Lab, Node, PROXY, WORKLOAD, arrival};

const OUTBOUND: u16 = 15_001;
const INBOUND: u16 = 15_006;

/// Listening sockets of a node.
struct Ports {
    outbound: TcpListener,
    inbound: TcpListener,
    workload: TcpListener,
    port: u16,
}

/// Listening socket at which a connection arrived, with its original destination.
#[derive(Debug, PartialEq, Eq)]
enum Arrived {
    Outbound { to: Option<SocketAddr> },
    Inbound { to: Option<SocketAddr> },
    Workload,
}

impl Ports {
    fn new(node: &Node, port: u16) -> Self {
        Self {
            outbound: node.listen(OUTBOUND),
            inbound: node.listen(INBOUND),
            workload: node.listen(port),
            port,
        }
    }

    /// Returns the arrival of the next connection, and the address of its client.
    #[track_caller]
    fn next(&self) -> (Arrived, IpAddr) {
        let (index, stream, from) = arrival(&[&self.outbound, &self.inbound, &self.workload]);
        let arrived = match index {
            0 => Arrived::Outbound {
                to: original_destination(&stream, OUTBOUND),
            },
            1 => Arrived::Inbound {
                to: original_destination(&stream, INBOUND),
            },
            _ => {
                assert_eq!(original_destination(&stream, self.port), None);
                Arrived::Workload
            }
        };
        (arrived, from.ip())
    }

    /// Returns the arrival of the connection that `act` opens.
    #[track_caller]
    fn after(&self, act: impl FnOnce() -> std::io::Result<TcpStream>) -> Arrived {
        let client = act().unwrap();
        let (arrived, _) = self.next();
        drop(client);
        arrived
    }
}

fn outbound(to: SocketAddr) -> Arrived {
    Arrived::Outbound { to: Some(to) }
}

fn inbound(to: SocketAddr) -> Arrived {
    Arrived::Inbound { to: Some(to) }
}

#[test]
fn outbound_connections_arrive_with_their_original_destination() {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        client.install(&format!("{backend} "));
        let ports = Ports::new(client, 8080);
        let vip = ["198.51.100.7:80", "[2001:db8::7]:80"].map(|text| text.parse().unwrap());
        for to in server.addresses(8080).into_iter().chain(vip) {
            assert_eq!(ports.after(|| client.connect(WORKLOAD, to)), outbound(to));
            assert_eq!(ports.after(|| client.connect(0, to)), outbound(to), "root");
        }
    });
}

#[test]
fn inbound_connections_arrive_with_their_original_destination() {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        server.install(&format!("{backend} "));
        let ports = Ports::new(server, 8080);
        for to in server.addresses(8080) {
            let connected = client.connect(WORKLOAD, to).unwrap();
            let (arrived, from) = ports.next();
            assert_eq!((arrived, from), (inbound(to), client.ip_like(to)));
            drop(connected);
        }
    });
}

#[test]
fn connections_of_the_proxy_are_not_captured() {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        let there = Ports::new(server, 8080);
        client.install(&format!("{backend} "));
        for to in server.addresses(8080) {
            assert_eq!(there.after(|| client.connect(PROXY, to)), Arrived::Workload);
        }
        client.install(&format!("{backend} --proxy-uid 1 --proxy-gid 4242"));
        for to in server.addresses(8080) {
            let connected = there.after(|| client.connect(WORKLOAD, to));
            assert_eq!(connected, Arrived::Workload, "by its group");
            let here = Ports::new(client, 8080);
            assert_eq!(here.after(|| client.connect(PROXY, to)), outbound(to));
        }
    });
}

/// Capture within a pod, where all traffic uses the loopback interface.
#[test]
fn loopback_is_captured_only_from_the_proxy_to_the_address_of_the_workload() {
    Lab::with_each_backend(1, |lab, backend| {
        let [node] = lab.nodes();
        node.install(&format!("{backend} --exclude-inbound-ports 9090"));
        let ports = Ports::new(node, 8080);
        let loopback = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, 8080)),
        ];
        for to in loopback {
            for user in [PROXY, WORKLOAD] {
                assert_eq!(ports.after(|| node.connect(user, to)), Arrived::Workload);
            }
        }
        for to in node.addresses(8080) {
            // a workload that calls itself by its own address
            assert_eq!(
                ports.after(|| node.connect(WORKLOAD, to)),
                Arrived::Workload
            );
            // one that calls itself through a service: the outbound side of the proxy connects
            assert_eq!(ports.after(|| node.connect(PROXY, to)), inbound(to));
            // the inbound side of the proxy, of which the workload must get its connection
            let from_inbound = || node.inside_as(PROXY, || connect_from(InboundSource::Proxy, to));
            assert_eq!(ports.after(from_inbound), Arrived::Workload);
        }
        let excluded = Ports {
            workload: node.listen(9090),
            port: 9090,
            ..ports
        };
        for to in node.addresses(9090) {
            let own = excluded.after(|| node.connect(PROXY, to));
            assert_eq!(
                own,
                Arrived::Workload,
                "excluded ports are so for calls to itself"
            );
        }
    });
}

/// Connects from the source address that the inbound side of the proxy uses.
fn connect_from(source: InboundSource, to: SocketAddr) -> std::io::Result<TcpStream> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(async {
        let stream = source.socket(to)?.connect(to).await?;
        stream.into_std()
    })
}

/// Flags, a port, and whether a connection from another node to that port is captured.
const INBOUND_PORTS: &[(&str, u16, bool)] = &[
    ("", 80, true),
    ("", 53, false),
    ("", 15_000, false),
    ("", 15_020, false),
    ("", 15_021, false),
    ("", 15_090, false),
    ("--exclude-inbound-ports 22,9000-9010", 22, false),
    ("--exclude-inbound-ports 22,9000-9010", 9000, false),
    ("--exclude-inbound-ports 22,9000-9010", 9010, false),
    ("--exclude-inbound-ports 22,9000-9010", 9011, true),
    ("--include-inbound-ports 80,8000-8999", 80, true),
    ("--include-inbound-ports 80,8000-8999", 8000, true),
    ("--include-inbound-ports 80,8000-8999", 8999, true),
    ("--include-inbound-ports 80,8000-8999", 9000, false),
    (
        "--include-inbound-ports 8000-8999 --exclude-inbound-ports 8080",
        8080,
        false,
    ),
    ("--include-inbound-ports=", 80, false),
    ("--exclude-interfaces eth0", 80, false),
    ("--exclude-interfaces eth1", 80, true),
];

fn inbound_ports(mode: &str) {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        let inbound_listener = server.listen(INBOUND);
        server.inside(|| {
            proxy::runtime::interception::accept_any_destination(&inbound_listener).unwrap()
        });
        for (flags, port, captured) in INBOUND_PORTS {
            server.install(&format!("{backend} -m {mode} {flags}"));
            let workload = server.listen(*port);
            for to in server.addresses(*port) {
                let connected = client.connect(WORKLOAD, to).unwrap();
                let (index, stream, _) = arrival(&[&inbound_listener, &workload]);
                assert_eq!(index == 0, *captured, "{mode} {flags}: {to}");
                let expected = captured.then_some(to);
                let listened = if *captured { INBOUND } else { *port };
                assert_eq!(
                    original_destination(&stream, listened),
                    expected,
                    "{mode} {flags}"
                );
                drop(connected);
            }
        }
    });
}

#[test]
fn inbound_ports_are_redirected_unless_excluded() {
    inbound_ports("REDIRECT");
}

#[test]
fn inbound_ports_are_intercepted_unless_excluded() {
    inbound_ports("TPROXY");
}

/// Flags, a port of the other node, and whether a connection to it is captured over IPv4 and over IPv6.
const OUTBOUND_DESTINATIONS: &[(&str, u16, [bool; 2])] = &[
    ("", 80, [true, true]),
    ("", 53, [false, false]),
    (
        "--exclude-outbound-ports 3306,9000-9010",
        3306,
        [false, false],
    ),
    (
        "--exclude-outbound-ports 3306,9000-9010",
        9010,
        [false, false],
    ),
    (
        "--exclude-outbound-ports 3306,9000-9010",
        9011,
        [true, true],
    ),
    ("--include-outbound-cidrs 10.77.0.0/16", 80, [true, false]),
    ("--include-outbound-cidrs fd00:77::/64", 80, [false, true]),
    ("--include-outbound-cidrs=", 80, [false, false]),
    (
        "--include-outbound-cidrs= --include-outbound-ports 80",
        80,
        [true, true],
    ),
    (
        "--include-outbound-cidrs= --include-outbound-ports 80",
        81,
        [false, false],
    ),
    ("--exclude-outbound-cidrs 10.77.0.2", 80, [false, true]),
    (
        "--exclude-outbound-cidrs 10.77.0.0/16,fd00::/8",
        80,
        [false, false],
    ),
    ("--exclude-interfaces eth0", 80, [false, false]),
];

#[test]
fn outbound_destinations_are_captured_unless_excluded() {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        let outbound_listener = client.listen(OUTBOUND);
        for (flags, port, captured) in OUTBOUND_DESTINATIONS {
            client.install(&format!("{backend} {flags}"));
            let there = server.listen(*port);
            for (to, captured) in server.addresses(*port).into_iter().zip(captured) {
                let connected = client.connect(WORKLOAD, to).unwrap();
                let (index, ..) = arrival(&[&outbound_listener, &there]);
                assert_eq!(index == 0, *captured, "{flags}: {to}");
                drop(connected);
            }
        }
    });
}

/// A direct connection must be distinguishable from a captured one, so that the proxy does not connect to itself.
#[test]
fn connections_to_the_proxys_own_ports_have_no_original_destination() {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        for mode in ["REDIRECT", "TPROXY"] {
            server.install(&format!("{backend} -m {mode}"));
            let ports = Ports::new(server, 8080);
            for to in server.addresses(INBOUND) {
                let arrived = ports.after(|| client.connect(WORKLOAD, to));
                assert_eq!(arrived, Arrived::Inbound { to: None });
            }
            for to in server.addresses(OUTBOUND) {
                let arrived = ports.after(|| client.connect(WORKLOAD, to));
                assert_eq!(arrived, Arrived::Outbound { to: None });
                let own = ports.after(|| server.connect(WORKLOAD, to));
                assert_eq!(own, Arrived::Outbound { to: None });
            }
        }
    });
}

#[test]
fn udp_and_icmp_are_left_alone() {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        client.install(&format!("{backend} "));
        server.install(&format!("{backend} "));
        for to in server.addresses(53) {
            let bind = SocketAddr::new(to.ip(), 53);
            let there = server.inside(|| std::net::UdpSocket::bind(bind).unwrap());
            there
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let any = SocketAddr::new(client.ip_like(to), 0);
            let here = client.inside_as(WORKLOAD, || std::net::UdpSocket::bind(any).unwrap());
            here.send_to(b"question", to).unwrap();
            let mut bytes = [0; 16];
            let (length, from) = there.recv_from(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"question");
            assert_eq!(from.ip(), client.ip_like(to));
        }
    });
}
