//! TCP proxying, on live sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use serde_json::Value;

use crate::support::mesh::documents;
use crate::support::origin::RawOrigin;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::{DEADLINE, eventually};

/// Returns a Gateway with one TCP server, and a VirtualService with these routes.
pub(crate) fn mesh(edge: SocketAddr, routes: &str) -> String {
    let (ip, port) = (edge.ip(), edge.port());
    documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
             - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
        ),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: tcp}}\nspec:\n  \
             hosts: ['*']\n  gateways: [tcp]\n  tcp:\n  - route: [{routes}]\n"
        ),
    ])
}

pub(crate) fn to(host: &str, weight: u32) -> String {
    format!("{{destination: {{host: {host}, port: {{number: 1}}}}, weight: {weight}}}")
}

/// Returns a service with these endpoints on its port 1.
pub(crate) fn service(host: &str, endpoints: &[SocketAddr]) -> String {
    let endpoints: Vec<String> = endpoints
        .iter()
        .map(|at| format!("{{address: {}, ports: {{tcp: {}}}}}", at.ip(), at.port()))
        .collect();
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {}}}\nspec:\n  \
         hosts: [{host}]\n  resolution: STATIC\n  ports: [{{number: 1, name: tcp, protocol: TCP}}]\n  \
         endpoints: [{}]\n",
        host.replace('.', "-"),
        endpoints.join(", ")
    )
}

/// Starts a proxy in front of these endpoints of one service.
fn before(endpoints: &[SocketAddr]) -> Proxy {
    Proxy::with(|edge| documents([mesh(edge, &to("a.test", 1)), service("a.test", endpoints)]))
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.edge).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

pub(crate) fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

/// Returns the access log lines, once there are this many.
pub(crate) fn lines(proxy: &Proxy, count: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    eventually("connections are logged", || {
        lines = proxy.access_log();
        lines.len() >= count
    });
    lines
}

/// Starts an origin that echoes until the client ends its direction, then sends `bye`.
pub(crate) fn echo() -> RawOrigin {
    RawOrigin::start(|_, mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..read]).is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"bye");
    })
}

#[test]
fn server_may_speak_first() {
    let origin = RawOrigin::start(|_, mut stream| {
        stream.write_all(b"220 ready\r\n").unwrap();
        let mut name = [0; 4];
        stream.read_exact(&mut name).unwrap();
        stream.write_all(&name).unwrap();
    });
    let proxy = before(&[origin.address]);
    let mut client = connect(&proxy);
    let mut banner = [0; 11];
    client.read_exact(&mut banner).unwrap();
    assert_eq!(&banner, b"220 ready\r\n");
    client.write_all(b"QUIT").unwrap();
    assert_eq!(read_all(&mut client), b"QUIT");
}

#[test]
fn client_half_close_keeps_the_server_side_open() {
    let origin = echo();
    let proxy = before(&[origin.address]);
    let mut client = connect(&proxy);
    client.write_all(b"hello ").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut client), b"hello bye");
    let logged = lines(&proxy, 1).remove(0);
    assert_eq!(logged["bytes_received"], 6);
    assert_eq!(logged["bytes_sent"], 9);
    assert_eq!(logged["response_flags"], "-");
    assert_eq!(logged["response_code"], 0);
    assert_eq!(logged["method"], Value::Null);
    assert_eq!(logged["upstream_cluster"], "outbound|1||a.test");
    assert_eq!(logged["upstream_host"], origin.address.to_string());
    assert_eq!(logged["downstream_local_address"], proxy.edge.to_string());
    let labels = [
        ("destination_service", "a.test"),
        ("request_protocol", "tcp"),
    ];
    for (name, expected) in [
        ("istio_tcp_connections_opened_total", 1.0),
        ("istio_tcp_connections_closed_total", 1.0),
        ("istio_tcp_received_bytes_total", 6.0),
        ("istio_tcp_sent_bytes_total", 9.0),
    ] {
        assert_eq!(proxy.metric(name, &labels), expected, "{name}");
    }
}

#[test]
fn server_half_close_keeps_the_client_side_open() {
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let origin = RawOrigin::start(move |_, mut stream| {
        stream.write_all(b"over").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let all = read_all(&mut stream);
        tell.lock().unwrap().send(all).unwrap();
    });
    let proxy = before(&[origin.address]);
    let mut client = connect(&proxy);
    assert_eq!(read_all(&mut client), b"over");
    client.write_all(b"and out").unwrap();
    drop(client);
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), b"and out");
}

#[test]
fn reset_of_one_side_resets_the_other() {
    let origin = RawOrigin::start(|_, mut stream| {
        let mut byte = [0; 1];
        stream.read_exact(&mut byte).unwrap();
        // Closing with bytes unread is a reset.
    });
    let proxy = before(&[origin.address]);
    let mut client = connect(&proxy);
    client.write_all(&[7; 100]).unwrap();
    let mut rest = Vec::new();
    let error = client.read_to_end(&mut rest).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let logged = lines(&proxy, 1).remove(0);
    assert_eq!(logged["response_flags"], "UC");
}

#[test]
fn large_transfers_arrive_whole_and_slow_readers_apply_back_pressure() {
    const BYTES: usize = 24 << 20;
    let origin = RawOrigin::start(|_, mut stream| {
        let piece = vec![0; 1 << 16];
        for _ in 0..BYTES / piece.len() {
            stream.write_all(&piece).unwrap();
        }
    });
    let proxy = before(&[origin.address]);
    let mut client = connect(&proxy);
    let mut first = [0; 1];
    client.read_exact(&mut first).unwrap();
    // What the sockets' buffers do not take is not in the proxy either.
    let memory = proxy.metric("process_resident_memory_bytes", &[]);
    assert_eq!(read_all(&mut client).len(), BYTES - 1);
    assert!(memory < 200e6, "{memory}");
    drop(client);
    let logged = lines(&proxy, 1).remove(0);
    assert_eq!(logged["bytes_sent"], BYTES);
}

#[test]
fn failed_connect_moves_on_to_another_endpoint() {
    let origin = echo();
    let dead = free_address();
    let proxy = before(&[dead, origin.address]);
    // the endpoint is drawn for each connection
    eventually("the endpoint that refuses is tried", || {
        let mut client = connect(&proxy);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&mut client), b"bye");
        proxy.metric("strait_upstream_connect_failures_total", &[]) >= 1.0
    });
}

#[test]
fn connection_without_an_endpoint_is_closed_and_logs_the_reason() {
    for (services, flags, details) in [
        (service("a.test", &[free_address()]), "UF,URX", Value::Null),
        (
            service("b.test", &[]),
            "NC",
            Value::from("cluster_not_found"),
        ),
    ] {
        let proxy = Proxy::with(|edge| documents([mesh(edge, &to("a.test", 1)), services.clone()]));
        let mut client = connect(&proxy);
        assert_eq!(read_all(&mut client), b"");
        let logged = lines(&proxy, 1).remove(0);
        assert_eq!(logged["response_flags"], flags);
        assert_eq!(logged["response_code_details"], details);
    }
    let proxy = Proxy::with(|edge| {
        let text = mesh(edge, &to("a.test", 1));
        text.replace("gateways: [tcp]", "gateways: [other]")
    });
    assert_eq!(read_all(&mut connect(&proxy)), b"");
    let logged = lines(&proxy, 1).remove(0);
    assert_eq!(logged["response_flags"], "NR");
    assert_eq!(logged["response_code_details"], "filter_chain_not_found");
}

#[test]
fn connection_without_a_route_has_no_line_where_the_mesh_says_so() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        config.path(),
        "accessLogFile: /dev/stdout\ndisableEnvoyListenerLog: true\n",
    )
    .unwrap();
    let start = Start::new().args(["--mesh-config", config.path().to_str().unwrap()]);
    let text = mesh(start.edge(), &to("a.test", 1));
    let text = text.replace("gateways: [tcp]", "gateways: [other]");
    let proxy = start.file("mesh.yaml", text).start();
    assert_eq!(read_all(&mut connect(&proxy)), b"");
    let closed = "istio_tcp_connections_closed_total";
    eventually("it has ended", || proxy.metric(closed, &[]) == 1.0);
    assert_eq!(proxy.metric("strait_access_log_lines_total", &[]), 0.0);
}

#[test]
fn t148_weights_count_per_connection() {
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let counting = |index: usize| {
        let counts = Arc::clone(&counts);
        RawOrigin::start(move |_, _| {
            counts[index].fetch_add(1, Ordering::Relaxed);
        })
    };
    let (one, two) = (counting(0), counting(1));
    let proxy = Proxy::with(|edge| {
        documents([
            mesh(edge, &format!("{}, {}", to("a.test", 3), to("b.test", 1))),
            service("a.test", &[one.address]),
            service("b.test", &[two.address]),
        ])
    });
    for _ in 0..1000 {
        read_all(&mut connect(&proxy));
    }
    let [a, b] = [0, 1].map(|index: usize| counts[index].load(Ordering::Relaxed));
    assert_eq!(a + b, 1000);
    // five standard deviations of a binomial(1000, 0.25) are 68
    assert!(b.abs_diff(250) < 68, "{a} {b}");
}

#[test]
fn source_subnet_is_matched_only_with_its_flag() {
    let says = |word: &'static [u8]| {
        RawOrigin::start(move |_, mut stream| stream.write_all(word).unwrap())
    };
    let (far, near) = (says(b"far"), says(b"near"));
    let mesh = |edge| {
        let rules = format!(
            "  - match: [{{sourceSubnet: 10.0.0.0/8}}]\n    route: [{}]\n  \
             - match: [{{sourceSubnet: 127.0.0.0/8}}]\n    route: [{}]\n",
            to("far.test", 1),
            to("near.test", 1)
        );
        let text = mesh(edge, "");
        documents([
            text.replace("  - route: []\n", &rules),
            service("far.test", &[far.address]),
            service("near.test", &[near.address]),
        ])
    };
    for (arguments, word) in [(&[][..], "far"), (&["--enforce-source-subnet"][..], "near")] {
        let builder = Start::new();
        let text = mesh(builder.edge());
        let arguments = arguments.iter().copied();
        let proxy = builder.args(arguments).file("mesh.yaml", text).start();
        assert_eq!(read_all(&mut connect(&proxy)), word.as_bytes());
    }
}

#[test]
fn open_connections_survive_a_reload_and_new_ones_use_it() {
    let (old, new) = (
        echo(),
        RawOrigin::start(|_, mut stream| stream.write_all(b"new").unwrap()),
    );
    let proxy = before(&[old.address]);
    let mut client = connect(&proxy);
    client.write_all(b"a").unwrap();
    let mut byte = [0; 1];
    client.read_exact(&mut byte).unwrap();
    let changed = documents([
        mesh(proxy.edge, &to("a.test", 1)),
        service("a.test", &[new.address]),
    ]);
    proxy.write("mesh.yaml", changed);
    eventually("the new endpoint serves", || {
        let mut fresh = connect(&proxy);
        fresh.shutdown(Shutdown::Write).unwrap();
        read_all(&mut fresh) == b"new"
    });
    client.write_all(b"b").unwrap();
    client.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"b");
}

#[test]
fn drain_lets_open_connections_finish() {
    let origin = echo();
    let mut proxy = before(&[origin.address]);
    let mut client = connect(&proxy);
    client.write_all(b"a").unwrap();
    let mut byte = [0; 1];
    client.read_exact(&mut byte).unwrap();
    proxy.signal("TERM");
    eventually("nothing new is taken", || {
        TcpStream::connect(proxy.edge).is_err()
    });
    client.write_all(b"b").unwrap();
    client.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"b");
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut client), b"bye");
    assert!(proxy.wait().success());
}

#[test]
fn connection_past_its_idle_timeout_is_reset_on_both_sides() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let origin = RawOrigin::start(move |_, mut stream| {
        let read = stream.read_to_end(&mut Vec::new());
        let ended = read.map(drop).map_err(|error| error.kind());
        tell.lock().unwrap().send(ended).unwrap();
    });
    let proxy = Proxy::with(|edge| {
        documents([
            mesh(edge, &to("a.test", 1)),
            service("a.test", &[origin.address]),
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec:\n  \
             host: a.test\n  trafficPolicy: {connectionPool: {tcp: {idleTimeout: 500ms}}}\n"
                .to_owned(),
        ])
    });
    let mut client = connect(&proxy);
    client.write_all(b"hello").unwrap();
    let read = client.read_to_end(&mut Vec::new());
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let ended = told.recv_timeout(DEADLINE).unwrap();
    assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    let logged = lines(&proxy, 1).remove(0);
    assert_eq!(logged["response_flags"], "SI");
    assert_eq!(logged["bytes_received"], 5);
}

#[test]
fn listener_opens_and_closes_with_its_server() {
    let origin = echo();
    let proxy = before(&[origin.address]);
    assert!(proxy.page("/listeners").contains("::protocol::TCP"));
    proxy.write("mesh.yaml", service("a.test", &[origin.address]));
    eventually("the port is free", || TcpListener::bind(proxy.edge).is_ok());
}
