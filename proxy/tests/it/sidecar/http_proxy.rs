//! Sidecar as the HTTP proxy of clients with `http_proxy`, without capture.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;

use http_body_util::BodyExt;
use hyper::Request;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Greeter, answering, policy, service};
use crate::support::client::{Client, Front};
use crate::support::dns::{Dns, at};
use crate::support::eventually;
use crate::support::mesh::documents;
use crate::support::origin::empty;
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{Raw, Reply};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

mod tunnels;

/// Sidecar without capture, and the address at which clients use it as an HTTP proxy.
struct HttpProxy {
    proxy: Proxy,
    address: SocketAddr,
}

impl HttpProxy {
    fn start(arguments: &[&str], resources: impl IntoIterator<Item = String>) -> Self {
        Self::start_at(free_address(), arguments, resources)
    }

    fn start_at(
        address: SocketAddr,
        arguments: &[&str],
        resources: impl IntoIterator<Item = String>,
    ) -> Self {
        let proxy = Start::new()
            .args(["--mode", "sidecar"])
            .args(["--outbound-listener", "off", "--inbound-listener", "off"])
            .args(["--http-proxy-listener", &address.to_string()])
            .args(arguments.iter().copied())
            .file("mesh.yaml", documents(resources))
            .start();
        Self { proxy, address }
    }

    /// Sends a request for this URL, with a different Host header, and returns the reply.
    fn get(&self, url: &str) -> Reply {
        let request = format!("GET {url} HTTP/1.1\r\nHost: wrong.test\r\n\r\n");
        Raw::connect(self.address).send(request).reply()
    }

    /// Sends a CONNECT request, and returns the connection and the reply.
    fn connect(&self, authority: &str) -> (Raw, Reply) {
        let mut connection = Raw::connect(self.address);
        let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        let reply = connection.send(request).reply();
        (connection, reply)
    }

    /// Returns the access log line of the CONNECT request for this authority.
    fn logged(&self, authority: &str) -> serde_json::Value {
        let mut found = None;
        eventually("the access log has the line", || {
            let mut lines = self.proxy.access_log().into_iter();
            found =
                lines.find(|line| line["method"] == "CONNECT" && line["authority"] == authority);
            found.is_some()
        });
        found.unwrap()
    }
}

#[test]
fn absolute_form_requests_are_routed_by_host_and_port_of_their_target() {
    let (one, two) = (answering(), answering());
    let rule = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: r}\nspec:\n  hosts: [reviews]\n  \
                http:\n  - match: [{port: 9080, uri: {prefix: /two}}]\n    route: [{destination: {host: two, port: {number: \
                9080}}}]\n  - route: [{destination: {host: reviews, port: {number: 9080}}}]\n";
    let proxy = HttpProxy::start(
        &[],
        [
            service("reviews", "10.96.0.1", ("http", 9080), one.address),
            service("two", "10.96.0.2", ("http", 9080), two.address),
            rule.to_owned(),
        ],
    );
    for host in ["reviews", "reviews.default", "10.96.0.1"] {
        let reply = proxy.get(&format!("http://{host}:9080/"));
        assert_eq!(reply.status, 200, "{host}");
    }
    assert_eq!(one.seen()[1].host(), "reviews.default:9080");
    assert_eq!(proxy.get("http://Reviews:9080/two").status, 200);
    assert_eq!((one.seen().len(), two.seen().len()), (3, 1));
    let logged = proxy.proxy.logged("/two");
    let cluster = "outbound|9080||two.default.svc.cluster.local";
    assert_eq!(logged["upstream_cluster"], cluster);
    // TLS is the client's own matter, in a tunnel
    let reply = proxy.get("https://reviews:9080/");
    assert_eq!(reply.status, 400);
    assert!(reply.body.ends_with(b"by CONNECT"));
}

#[test]
fn malformed_requests_are_told_what_to_send() {
    let proxy = HttpProxy::start(&[], []);
    for (line, host, text) in [
        ("CONNECT a.test", "a.test", "CONNECT needs HOST:PORT"),
        ("CONNECT a.test:0", "a.test:0", "CONNECT needs HOST:PORT"),
        ("CONNECT u@a.test:443", "a.test:443", "has a user name"),
        ("CONNECT a.test:443", "b.test:443", "differ"),
        ("GET http://u:p@a.test/", "a.test", "has a user name"),
        ("GET ftp://a.test/", "a.test", "takes http URLs only"),
        ("GET http://a.test:0/", "a.test", "http://HOST:PORT/PATH"),
        (
            "GET http://a.test:70000/",
            "a.test",
            "http://HOST:PORT/PATH",
        ),
        ("GET http://:80/", "a.test", "http://HOST:PORT/PATH"),
        ("GET /", "a b", "http://HOST:PORT/PATH"),
        ("GET *", "a.test", "http://HOST:PORT/PATH"),
    ] {
        let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let reply = Raw::connect(proxy.address).send(request).reply();
        assert_eq!(reply.status, 400, "{line}");
        let body = String::from_utf8(reply.body).unwrap();
        assert!(body.contains(text), "{line}: {body}");
    }
}

#[test]
fn hosts_of_no_service_are_dialed_by_address_or_by_name() {
    let outside = answering();
    let port = outside.address.port();
    let dns = Dns::start();
    dns.set("outside.test", &[(3600, at("127.0.0.1"))]);
    let server = dns.address.to_string();
    let proxy = HttpProxy::start(&["--dns-server", &server], []);
    assert_eq!(
        proxy.get(&format!("http://{}/", outside.address)).status,
        200
    );
    for _ in 0..2 {
        let reply = proxy.get(&format!("http://outside.test:{port}/"));
        assert_eq!(reply.status, 200);
    }
    assert_eq!(outside.seen().len(), 3);
    assert_eq!(outside.seen()[2].host(), format!("outside.test:{port}"));
    let reply = proxy.get(&format!("http://unknown.test:{port}/lost"));
    assert_eq!(reply.status, 503);
    assert_eq!(proxy.proxy.logged("/lost")["response_flags"], "DF");
    // tunnels to hosts of no service go the same way
    let greeter = Greeter::start();
    for host in ["127.0.0.1", "outside.test"] {
        let authority = format!("{host}:{}", greeter.address.port());
        let (mut tunnel, reply) = proxy.connect(&authority);
        assert_eq!(reply.status, 200, "{authority}");
        assert_eq!(tunnel.read(9), b"greeting\n");
    }
    // and none of them leads back
    let own = proxy.address;
    let mapped = format!("[::ffff:{}]", own.ip());
    dns.set("self.test", &[(3600, at(&own.ip().to_string()))]);
    for host in [&own.ip().to_string(), "0.0.0.0", "self.test", &mapped] {
        let authority = format!("{host}:{}", own.port());
        let reply = proxy.get(&format!("http://{authority}/"));
        assert_eq!(reply.status, 508, "{host}");
        let (mut closed, reply) = proxy.connect(&authority);
        assert_eq!(reply.status, 508, "{host}");
        assert!(closed.is_closed(), "{host}");
    }
}

#[test]
fn registry_only_refuses_hosts_of_no_service() {
    let outside = answering();
    let proxy = HttpProxy::start(&[], [policy("REGISTRY_ONLY")]);
    let url = format!("http://{}/", outside.address);
    let refused = proxy.get(&url);
    assert_eq!((refused.status, refused.body.len()), (502, 0));
    let authority = outside.address.to_string();
    let (_, refused) = proxy.connect(&authority);
    assert_eq!(refused.status, 502);
    assert!(refused.body.ends_with(b"REGISTRY_ONLY"));
    let logged = proxy.logged(&authority);
    assert_eq!(logged["response_code"], 502);
    assert_eq!(logged["response_flags"], "UH");
    assert_eq!(logged["upstream_cluster"], "BlackHoleCluster");
    assert_eq!(outside.seen().len(), 0);
}

#[test]
fn requests_never_come_back_to_the_proxy() {
    let address = free_address();
    let looping = service("loop", "10.96.0.9", ("http", 80), address);
    let proxy = HttpProxy::start_at(address, &[], [looping]);
    assert_eq!(proxy.get("http://loop/").status, 503);
    assert_eq!(proxy.connect("loop:80").1.status, 503);
    eventually("both are in the access log", || {
        proxy.proxy.access_log().len() == 2
    });
}

/// Returns the address of this machine for other machines, if it has one.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // nothing is sent
    socket.connect("203.0.113.1:9").ok()?;
    let own = socket.local_addr().unwrap().ip();
    (!own.is_loopback()).then_some(own)
}

#[test]
fn open_proxy_is_warned_of_and_does_not_reach_itself_by_the_machines_address() {
    let Some(own) = own_address() else {
        return eprintln!("skipped: this machine has no address but the loopback one");
    };
    let port = port_of_all_addresses();
    let looping = service("loop", "10.96.0.9", ("http", 80), (own, port).into());
    let any = SocketAddr::from(([0, 0, 0, 0], port));
    let proxy = HttpProxy::start_at(any, &[], [looping]);
    proxy
        .proxy
        .has_logged("the HTTP proxy is open to every client");
    for host in ["loop", &format!("{own}:{port}")] {
        let reply = proxy.get(&format!("http://{host}/"));
        assert_eq!(reply.status, 508, "{host}");
    }
    assert_eq!(proxy.connect("loop:80").1.status, 508);
    // each once
    eventually("all are in the access log", || {
        proxy.proxy.access_log().len() == 3
    });
}

/// Returns a port that is free on every address, outside of the range of ephemeral ports, since another test could take
/// an ephemeral port on one address meanwhile.
fn port_of_all_addresses() -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let mut ports = first..30_000;
    let free = ports.find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok());
    free.expect("a free port")
}

/// The admin server trusts every client that can connect to it.
#[test]
fn admin_server_is_not_reached_through_the_proxy() {
    let proxy = HttpProxy::start(&[], []);
    let admin = proxy.proxy.admin;
    assert_eq!(
        proxy.get(&format!("http://{admin}/quitquitquit")).status,
        508
    );
    assert_eq!(proxy.connect(&admin.to_string()).1.status, 508);
}

#[test]
fn credentials_for_the_proxy_stay_with_it() {
    let api = answering();
    let service = service("api", "10.96.0.1", ("http", 80), api.address);
    let proxy = HttpProxy::start(&[], [service]);
    let request = "GET http://api/ HTTP/1.1\r\nHost: api\r\nProxy-Authorization: Basic eDp5\r\nAuthorization: Basic eDp6\r\n\r\n";
    assert_eq!(
        Raw::connect(proxy.address).send(request).reply().status,
        200
    );
    let headers = api.only().headers;
    assert!(!headers.contains_key("proxy-authorization"), "{headers:?}");
    assert!(headers.contains_key("authorization"), "{headers:?}");
}

#[test]
fn connect_opens_a_tunnel_by_the_tcp_rules_of_the_mesh() {
    let (blue, green) = (Greeter::start(), Greeter::start());
    let db = |name, ip, greeter: &Greeter| service(name, ip, ("tcp-db", 3306), greeter.address);
    let rule = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: r}\nspec:\n  hosts: [blue]\n  \
                tcp:\n  - match: [{port: 3306, destinationSubnets: [10.96.0.0/24]}]\n    route: [{destination: {host: green, \
                port: {number: 3306}}}]\n";
    let proxy = HttpProxy::start(
        &[],
        [
            db("blue", "10.96.0.1", &blue),
            db("green", "10.96.0.2", &green),
            rule.to_owned(),
        ],
    );
    let cluster = "outbound|3306||green.default.svc.cluster.local";
    for host in [
        "blue",
        "blue.default.svc.cluster.local",
        "10.96.0.1",
        "green",
    ] {
        let authority = format!("{host}:3306");
        let (mut tunnel, reply) = proxy.connect(&authority);
        assert_eq!(reply.status, 200, "{host}");
        assert_eq!(tunnel.read(9), b"greeting\n");
        tunnel.send("query\n");
        assert_eq!(tunnel.read(6), b"query\n");
        tunnel.finish();
        assert!(tunnel.is_closed(), "{host}");
        let logged = proxy.logged(&authority);
        assert_eq!(logged["upstream_cluster"], cluster, "{host}");
        assert_eq!(logged["response_code"], 200);
        assert_eq!(logged["protocol"], "HTTP/1.1");
        assert_eq!(
            (&logged["bytes_received"], &logged["bytes_sent"]),
            (&6.into(), &15.into())
        );
    }
    let service = [("destination_service", "green.default.svc.cluster.local")];
    let metric = |name| proxy.proxy.metric(name, &service);
    assert_eq!(metric("istio_tcp_connections_opened_total"), 4.0);
    assert_eq!(metric("istio_tcp_sent_bytes_total"), 60.0);
}

#[test]
fn connect_that_leads_nowhere_says_why() {
    let nobody = free_address();
    let proxy = HttpProxy::start(&[], [service("db", "10.96.0.1", ("tcp-db", 3306), nobody)]);
    let (mut connection, reply) = proxy.connect("db:3306");
    assert_eq!(reply.status, 503);
    assert!(connection.is_closed());
    let logged = proxy.logged("db:3306");
    assert_eq!(logged["response_flags"], "UF,URX");
    for authority in ["db:0", "db:"] {
        let (_, reply) = proxy.connect(authority);
        assert_eq!(reply.status, 400, "{authority}");
    }
}

#[test]
fn tunnel_has_the_tls_and_the_idle_timeout_of_the_destination_rule() {
    let ca = Authority::new("ca");
    let origin = TlsOrigin::start(Speaks::Echo, &Terms::new(&ca.server(&["db.test"])));
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: db}\nspec:\n  host: db\n  \
                trafficPolicy:\n    tls: {mode: SIMPLE, sni: db.test, insecureSkipVerify: true}\n    connectionPool: {tcp: \
                {idleTimeout: 100ms}}\n";
    let db = service("db", "10.96.0.1", ("tcp-db", 3306), origin.address);
    let proxy = HttpProxy::start(&[], [db, rule.to_owned()]);
    let (mut tunnel, reply) = proxy.connect("db:3306");
    assert_eq!(reply.status, 200);
    assert_eq!(tunnel.read(8), b"welcome\n");
    assert_eq!(origin.only().sni.as_deref(), Some("db.test"));
    assert!(tunnel.is_closed());
    let logged = proxy.logged("db:3306");
    assert_eq!(logged["response_flags"], "SI");
}

#[tokio::test]
async fn http2_clients_open_tunnels_too() {
    let db = Greeter::start();
    let resources = [service("db", "10.96.0.1", ("tcp-db", 3306), db.address)];
    let proxy = HttpProxy::start(&[], resources);
    let client = Client::connect(Front::H2, proxy.address).await;
    let mut sender = client.http2_handle().unwrap();
    let mut connect = async |authority: &str| {
        let request = Request::connect(authority).body(empty()).unwrap();
        sender.ready().await.unwrap();
        sender.send_request(request).await.unwrap()
    };
    assert_eq!(connect("db:0").await.status(), 400);
    let refused = connect("u@db:3306").await;
    assert_eq!(refused.status(), 400);
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"the target of CONNECT has a user name"));
    let response = connect("db:3306").await;
    assert_eq!(response.status(), 200);
    let mut tunnel = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    let mut greeting = [0; 9];
    tunnel.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"greeting\n");
    tunnel.write_all(b"query\n").await.unwrap();
    tunnel.read_exact(&mut greeting[..6]).await.unwrap();
    assert_eq!(&greeting[..6], b"query\n");
}

#[test]
fn curl_reaches_services_by_its_proxy_settings() {
    let api = answering();
    let resources = [service("reviews", "10.96.0.1", ("http", 9080), api.address)];
    let proxy = HttpProxy::start(&[], resources);
    let at = format!("http://{}", proxy.address);
    let curl = |arguments: &[&str], environment: Option<&str>| {
        let mut command = Command::new("curl");
        command.env_clear().args(["--silent", "--show-error"]);
        command.args([
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code} %{http_connect}",
        ]);
        command.args(arguments).arg("http://reviews.default:9080/");
        command.envs(environment.map(|name| (name, &at)));
        let output = command
            .output()
            .expect("curl is installed: .ci/run sees to it");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(curl(&["--proxy", &at], None), "200 000");
    assert_eq!(curl(&[], Some("http_proxy")), "200 000");
    assert_eq!(curl(&["--proxy", &at, "--proxytunnel"], None), "200 200");
    assert_eq!(api.seen().len(), 3);
    let proxy_headers = api
        .seen()
        .iter()
        .filter_map(|seen| seen.header("proxy-connection").map(str::to_owned))
        .count();
    assert_eq!(proxy_headers, 0);
}

#[test]
fn explain_shows_what_the_http_proxy_does() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = "127.0.0.1:9080".parse().unwrap();
    let resources = [
        service("reviews", "10.96.0.1", ("http", 9080), endpoint),
        service("db", "10.96.0.2", ("tcp-db", 3306), endpoint),
    ];
    std::fs::write(directory.path().join("mesh.yaml"), documents(resources)).unwrap();
    let explain = |method: &str, url: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command.args(["explain", "--mode", "sidecar", "--outbound-listener", "off"]);
        command.args([
            "--inbound-listener",
            "off",
            "--http-proxy-listener",
            "127.0.0.1:15007",
        ]);
        command.args(["--listener", "15007", "--config"]);
        let output = command
            .arg(directory.path())
            .args([method, url])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for (method, url, cluster) in [
        (
            "GET",
            "http://reviews.default:9080/",
            "outbound|9080||reviews.default",
        ),
        ("CONNECT", "tcp://db:3306", "outbound|3306||db.default"),
        (
            "CONNECT",
            "tcp://10.96.0.2:3306",
            "outbound|3306||db.default",
        ),
        ("CONNECT", "tcp://elsewhere.test:3306", "PassthroughCluster"),
    ] {
        let text = explain(method, url);
        assert!(text.contains(cluster), "{method} {url}\n{text}");
        assert!(
            text.contains("http_proxy 0.0.0.0:"),
            "{method} {url}\n{text}"
        );
    }
}
