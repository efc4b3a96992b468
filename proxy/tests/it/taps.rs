//! `strait tap` and the page `/tap` of a running proxy.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use hyper::Request;
use proxy::telemetry::TappedRequest;
use regex::Regex;

use crate::support::client::{Client, Front, get};
use crate::support::mesh::{documents, everything_to, gateway, routes, service, with_policy};
use crate::support::origin::{Back, Origin, empty};
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start};
use crate::support::tls::{self, Edge};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::support::{DEADLINE, eventually, until};

/// Running `strait tap`, killed on drop.
pub struct Tap {
    child: Child,
    lines: Receiver<String>,
}

impl Tap {
    /// Starts `strait tap`, and waits until the tap is open.
    pub fn open(proxy: &Proxy, arguments: &[&str]) -> Self {
        let before = open_taps(proxy);
        let tap = Self::start(proxy, arguments);
        eventually("the tap is open", || open_taps(proxy) > before);
        tap
    }

    fn start(proxy: &Proxy, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["tap", "--admin", &proxy.admin.to_string()])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            output
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    pub fn line(&mut self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a line in time")
    }

    /// Reads a line of `-o json`.
    pub fn request(&mut self) -> TappedRequest {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Waits for the end; returns exit status and standard error.
    fn end(mut self) -> (ExitStatus, String) {
        let end = self.lines.recv_timeout(DEADLINE);
        assert_eq!(end, Err(RecvTimeoutError::Disconnected), "all is read");
        let mut error = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut stderr, &mut error).unwrap();
        (self.child.wait().unwrap(), error)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open_taps(proxy: &Proxy) -> f64 {
    proxy.metric("strait_taps_open", &[])
}

fn shown(proxy: &Proxy, result: &str) -> f64 {
    proxy.metric("strait_tap_requests_total", &[("result", result)])
}

#[tokio::test]
async fn request_is_shown_with_rule_way_and_phases_while_tracing_is_off() {
    let ca = Authority::new("ca");
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["web.test"])));
    let policy = "{tls: {mode: SIMPLE, insecureSkipVerify: true}}";
    let proxy = Proxy::with(|edge| with_policy(edge, origin.address, policy));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    // a request that has ended before the tap is opened is not shown
    assert_eq!(client.get("/before").await.status, 200);
    let mut tap = Tap::open(&proxy, &["-o", "json", "--max", "2"]);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let request = Request::get("http://a.test/x?a=1&access_token=s3cret&sig=s3cret")
        .header("x-request-id", "id-1")
        .header("authorization", "Bearer s3cret");
    client.call(request.body(empty()).unwrap()).await;
    client.get("/y").await;
    let text = tap.line();
    assert!(!text.contains("s3cret"), "{text}");
    let first: TappedRequest = serde_json::from_str(&text).unwrap();
    assert_eq!(first.path, "/x?a=1&access_token=REDACTED&sig=REDACTED");
    assert_eq!(
        (&*first.method, &*first.scheme, &*first.host),
        ("GET", "http", "a.test")
    );
    assert_eq!((first.status, &*first.flags), (200, "-"));
    assert_eq!(first.details, "via_upstream");
    assert_eq!(first.direction, "gateway");
    assert_eq!(first.listener, proxy.edge.to_string());
    assert_eq!(
        (first.protocol.as_str(), first.trace_id),
        ("HTTP/1.1", None)
    );
    let rule = first.rule.unwrap();
    assert!(
        rule.object.starts_with("VirtualService/default/"),
        "{rule:?}"
    );
    assert!(
        rule.file.ends_with("mesh.yaml") && rule.line > 1,
        "{rule:?}"
    );
    let destination = first.destination.unwrap();
    assert_eq!(
        (&*destination.host, destination.port, destination.subset),
        ("web.test", Some(80), None)
    );
    let endpoint = origin.address.to_string();
    assert_eq!(first.endpoint.as_ref(), Some(&endpoint));
    assert_eq!(first.client_tls_ms, None);
    assert_eq!((first.attempts_total, first.attempts.len()), (1, 1));
    let attempt = &first.attempts[0];
    assert_eq!((&attempt.endpoint, attempt.status), (&endpoint, Some(200)));
    assert!(attempt.opened && attempt.tls_ms > 0.0);
    assert!(attempt.first_byte_ms.unwrap() > 0.0);
    assert!(attempt.total_ms <= first.timing.last_byte_ms);
    assert!(first.timing.first_byte_ms.unwrap() <= first.timing.last_byte_ms);

    let second = tap.request();
    assert_eq!((&*second.path, second.attempts.len()), ("/y", 1));
    let (status, error) = tap.end();
    assert!(status.success(), "{error}");
    until("the tap is closed", async || open_taps(&proxy) == 0.0).await;
    client.get("/after").await;
    assert_eq!(shown(&proxy, "sent"), 2.0);
}

#[tokio::test]
async fn first_request_of_a_connection_has_the_time_of_its_handshake() {
    let edge = Edge::simple(&["a.example"]);
    let mut tap = Tap::open(&edge.proxy, &["-o", "json", "--max", "2"]);
    let mut client = edge.visitor().client(Front::H1, "a.example").await.unwrap();
    for _ in 0..2 {
        client.call(tls::get("a.example", "/")).await;
    }
    let (first, second) = (tap.request(), tap.request());
    assert!(first.client_tls_ms.unwrap() > 0.0, "{first:?}");
    assert_eq!((second.client_tls_ms, &*second.scheme), (None, "https"));
}

#[tokio::test]
async fn only_requests_that_match_are_shown_up_to_the_rate() {
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new();
    let rules = "- match: [{uri: {prefix: /web}}]\n  route: [{destination: {host: web.test}}]";
    let mesh = documents([
        gateway(&[start.edge()]),
        routes("all", "[\"*\"]", rules),
        service("web", Back::H1, &[(origin.address, "v1")]),
    ]);
    let proxy = start.file("mesh.yaml", mesh).start();
    let mut failed = Tap::open(&proxy, &["status=4xx", "-o", "json"]);
    let port = proxy.edge.port();
    let listener = format!("listener={port}");
    let both = ["path=/web*", "header:x-user=u7", &listener, "--rate", "1/m"];
    let mut some = Tap::open(&proxy, &both);
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    for path in ["/web", "/none", "/web?a=1", "/web/2"] {
        let mut request = get(path);
        request
            .headers_mut()
            .insert("x-user", "u7".parse().unwrap());
        client.call(request).await;
    }
    client.get("/web/other").await;
    let none = failed.request();
    assert_eq!(
        (&*none.path, none.status, &*none.flags),
        ("/none", 404, "NR")
    );
    assert_eq!(
        (none.rule, none.destination, none.attempts.len()),
        (None, None, 0)
    );
    let line = some.line();
    let endpoint = origin.address;
    assert!(
        line.contains("GET http://a.test/web  VirtualService/default/all ("),
        "{line}"
    );
    assert!(line.contains("-> web.test:80  "), "{line}");
    assert!(line.contains(&endpoint.to_string()), "{line}");
    assert!(
        !line.contains('\u{1b}'),
        "no colors without a terminal: {line:?}"
    );
    assert_eq!(
        (shown(&proxy, "sent"), shown(&proxy, "over_rate")),
        (2.0, 2.0)
    );
}

#[tokio::test]
async fn attempts_have_their_reasons() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = dead.local_addr().unwrap();
    drop(dead);
    let proxy = Proxy::with(|edge| with_policy(edge, address, "{}"));
    let mut tap = Tap::open(&proxy, &["flag=UF,URX", "-o", "json"]);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 503);
    let request = tap.request();
    assert_eq!((request.attempts_total, request.attempts.len()), (3, 3));
    let reasons: Vec<_> = request
        .attempts
        .iter()
        .map(|one| one.reason.as_deref())
        .collect();
    assert_eq!(
        reasons,
        [None, Some("connect_failure"), Some("connect_failure")]
    );
    for attempt in &request.attempts {
        assert_eq!(attempt.error.as_deref(), Some("connect_failed"));
        assert!(!attempt.failover && attempt.status.is_none());
    }
    let begins = request.attempts.iter().map(|one| one.begin_ms);
    assert!(begins.is_sorted(), "{request:?}");
}

#[tokio::test]
async fn request_that_the_codec_refuses_is_shown() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut tap = Tap::open(&proxy, &["status=400", "-o", "json"]);
    let mut raw = crate::support::raw::Raw::connect(proxy.edge);
    raw.send("GET /bad HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n");
    assert_eq!(raw.reply().status, 400);
    let request = tap.request();
    assert_eq!((&*request.path, request.attempts_total), ("/bad", 0));
    assert_ne!(request.details, "");
}

#[tokio::test]
async fn slow_reader_costs_counted_drops_only() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut slow = TcpStream::connect(proxy.admin).unwrap();
    let target = "/tap?all&rate=10000/s&format=json";
    let ask = format!("GET {target} HTTP/1.0\r\nHost: {}\r\n\r\n", proxy.admin);
    std::io::Write::write_all(&mut slow, ask.as_bytes()).unwrap();
    eventually("the tap is open", || open_taps(&proxy) > 0.0);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let path = format!("/{}", "x".repeat(7000));
    // beyond the queue and the buffers of the socket
    while shown(&proxy, "dropped") == 0.0 {
        for _ in 0..200 {
            assert_eq!(client.get(&path).await.status, 200);
        }
    }
    drop(slow);
    eventually("the tap is closed", || open_taps(&proxy) == 0.0);
    assert_eq!(client.get("/").await.status, 200);
}

#[test]
fn wrong_use_and_unreachable_proxies_are_told_apart() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .arg("tap")
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    for (argument, part) in [
        ("hots=a", "filters are host, path"),
        ("status=6xx", "is no status"),
        ("header:cookie=a", "holds credentials"),
    ] {
        let (code, text) = run(&[argument]);
        assert_eq!(code, Some(2), "{argument}: {text}");
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(run(&["--rate", "fast"]).0, Some(2));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let (code, text) = run(&["--admin", &address]);
    assert_eq!(code, Some(1));
    assert!(text.contains(&address), "{text}");
}

#[test]
fn tap_fails_when_the_proxy_ends() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let tap = Tap::open(&proxy, &[]);
    drop(proxy);
    let (status, error) = tap.end();
    assert_eq!(status.code(), Some(1), "{error}");
    assert!(error.contains("has ended the tap"), "{error}");
}

/// Replaces times, and leaves out phases, of which a fast one is not shown.
fn without_times(line: &str) -> String {
    let phases = Regex::new(r" +\[[^]]*\]").unwrap().replace_all(line, "");
    let times = Regex::new(r"^[0-9:.]+| +[0-9.]+ms").unwrap();
    times.replace_all(&phases, "").into_owned()
}

#[tokio::test]
async fn page_shows_what_tap_prints() {
    let page = include_str!("../../../docs/tap.md");
    let block = |begin: &str| {
        let rest = page.split_once(begin).unwrap().1;
        rest.split_once("\n```").unwrap().0.to_owned()
    };
    let origin = Origin::named(Back::H1, "cart");
    let start = Start::new();
    let (edge, (ip, port)) = (start.edge(), (origin.address.ip(), origin.address.port()));
    let mesh = block("```yaml\n")
        .replace(
            "port: {number: 8080",
            &format!("bind: {}\n    port: {{number: {}", edge.ip(), edge.port()),
        )
        .replace("10.0.0.2", &ip.to_string())
        .replace("8081", &port.to_string());
    let proxy = start.file("mesh.yaml", mesh).start();
    let shown = block("```text\n");
    let (command, expected) = shown.split_once('\n').unwrap();
    let arguments: Vec<&str> = command.split(' ').skip(3).collect();
    let mut tap = Tap::open(&proxy, &arguments);
    let mut client = Client::connect(Front::H1, edge).await;
    for path in ["/cart?page=2", "/other"] {
        let request = Request::get(path).header("host", "shop.example:8080");
        client.call(request.body(empty()).unwrap()).await;
    }
    // the page leaves the directory out, and its YAML has no line for an address of the listener
    let place = Regex::new(r"\([^ ]*mesh.yaml:(\d+)\)").unwrap();
    let number = Regex::new(r":\d+\)").unwrap();
    for expected in expected.lines() {
        let line = tap
            .line()
            .replace(&origin.address.to_string(), "10.0.0.2:8081");
        let line = place.replace(&line, "(mesh.yaml)");
        let expected = number.replace(expected, ")");
        assert_eq!(without_times(&line), without_times(&expected));
    }
}
