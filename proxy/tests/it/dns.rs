//! Endpoint addresses from DNS: TTLs, aliases, address families, failures.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use hyper::Response;

use crate::support::dns::{Data, Dns, NXDOMAIN, SERVFAIL, at};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{GET, Raw};

/// Starts an origin that answers with its name; on `/close` it closes the connection.
fn named(listener: TcpListener, name: &'static str) -> Origin {
    Origin::start_on(listener, Back::H1, move |request| {
        let closes = request.uri().path() == "/close";
        async move {
            let mut response = Response::new(full(name));
            if closes {
                let close = "close".parse().unwrap();
                response.headers_mut().insert("connection", close);
            }
            response
        }
    })
}

/// Starts two origins, `one` and `two`, on the same port of two addresses.
fn pair() -> [Origin; 2] {
    loop {
        let first = free_address();
        let second = SocketAddr::new(free_address().ip(), first.port());
        if let (Ok(one), Ok(two)) = (TcpListener::bind(first), TcpListener::bind(second)) {
            return [named(one, "one"), named(two, "two")];
        }
    }
}

fn address(origin: &Origin) -> Data {
    Data::Address(origin.address.ip())
}

/// Returns a ServiceEntry for a DNS name with this port.
fn entry(name: &str, resolution: &str, port: u16) -> String {
    let object = name.replace('.', "-");
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {object}}}\nspec:\n  hosts: [{name}]\n  \
         resolution: {resolution}\n  ports: [{{number: 80, name: http, protocol: HTTP, targetPort: {port}}}]\n"
    )
}

fn proxy(dns: &Dns, name: &str, resolution: &str, port: u16) -> Proxy {
    let start = Start::new();
    let rule = format!("- {{route: [{{destination: {{host: {name}}}}}]}}");
    let text = documents([
        gateway(&[start.edge()]),
        routes("all", "['*']", &rule),
        entry(name, resolution, port),
    ]);
    let server = dns.address.to_string();
    let start = start.args(["--dns-server", &server]);
    start.file("mesh.yaml", text).start()
}

/// Sends a request, and returns status and body.
fn ask(client: &mut Raw) -> (u16, String) {
    let reply = client.send(GET).reply();
    (reply.status, String::from_utf8(reply.body).unwrap())
}

fn is_answered_by(proxy: &Proxy, name: &str) -> bool {
    ask(&mut Raw::connect(proxy.edge)) == (200, name.to_owned())
}

#[test]
fn addresses_are_renewed_after_the_shortest_ttl() {
    let [one, two] = pair();
    let port = one.address.port();
    let dns = Dns::start();
    dns.set("svc.dns.test", &[(1, Data::Alias("edge.dns.test"))]);
    dns.set("edge.dns.test", &[(3600, Data::Alias("one.dns.test"))]);
    dns.set("one.dns.test", &[(3600, address(&one))]);
    dns.set("two.dns.test", &[(3600, address(&two))]);
    let proxy = proxy(&dns, "svc.dns.test", "DNS", port);
    eventually("the name is resolved", || is_answered_by(&proxy, "one"));
    // the alias lives for a second, though what it leads to lives for an hour
    dns.set("svc.dns.test", &[(1, Data::Alias("two.dns.test"))]);
    eventually("the other is found", || is_answered_by(&proxy, "two"));
    dns.set("svc.dns.test", &[(1, address(&one)), (1, address(&two))]);
    eventually("both are endpoints", || {
        let page = proxy.page("/clusters");
        page.contains(&one.address.to_string()) && page.contains(&two.address.to_string())
    });
}

#[test]
fn failed_lookup_keeps_the_last_addresses() {
    let [one, _two] = pair();
    let dns = Dns::start();
    dns.set("svc.dns.test", &[(1, address(&one))]);
    let proxy = proxy(&dns, "svc.dns.test", "DNS", one.address.port());
    eventually("the name is resolved", || is_answered_by(&proxy, "one"));
    for failure in [SERVFAIL, NXDOMAIN] {
        dns.fail(Some(failure));
        let before = dns.asked();
        eventually("it is asked again", || dns.asked() >= before + 3);
        assert!(is_answered_by(&proxy, "one"), "{failure}");
        dns.fail(None);
    }
    proxy.has_logged("the last addresses stay in use");
}

#[test]
fn name_has_no_endpoint_until_it_first_resolves() {
    let [one, _two] = pair();
    let dns = Dns::start();
    let proxy = proxy(&dns, "svc.dns.test", "DNS", one.address.port());
    eventually("it was asked", || dns.asked() > 0);
    let reply = ask(&mut Raw::connect(proxy.edge));
    assert_eq!(reply, (503, "no healthy upstream".to_owned()));
    assert_eq!(proxy.logged("/")["response_flags"], "UH");
    let page = proxy.page("/clusters");
    assert!(page.contains("::unresolved_host::svc.dns.test:"), "{page}");
    let explained = proxy.page(&format!("/explain?url=http://{}/", proxy.edge));
    let says = "resolved at run time; until then requests get 503 UH";
    assert!(explained.contains(says), "{explained}");
    eventually("the log says so", || {
        proxy
            .stderr()
            .contains("DNS lookup failed; no address is known yet")
    });
    dns.set("svc.dns.test", &[(60, address(&one))]);
    eventually("the name is found", || is_answered_by(&proxy, "one"));
}

#[test]
fn ipv4_and_ipv6_addresses_are_endpoints() {
    let dns = Dns::start();
    dns.set("svc.dns.test", &[(60, at("127.0.0.9")), (60, at("::1"))]);
    let proxy = proxy(&dns, "svc.dns.test", "DNS", 9);
    eventually("both are endpoints", || {
        let page = proxy.page("/clusters");
        page.contains("::127.0.0.9:9::") && page.contains("::[::1]:9::")
    });
}

#[test]
fn failed_lookup_of_one_address_family_keeps_its_endpoints() {
    const AAAA: u16 = 28;
    let dns = Dns::start();
    dns.set("svc.dns.test", &[(1, at("127.0.0.9")), (1, at("::1"))]);
    let proxy = proxy(&dns, "svc.dns.test", "DNS", 9);
    let has = |v4: &str, v6: bool| {
        let page = proxy.page("/clusters");
        page.contains(v4) && page.contains("::[::1]:9::") == v6
    };
    eventually("both are endpoints", || has("::127.0.0.9:9::", true));
    dns.fail_for(AAAA, Some(SERVFAIL));
    dns.set("svc.dns.test", &[(1, at("127.0.0.8"))]);
    eventually("the other follows its answer", || {
        has("::127.0.0.8:9::", true)
    });
    proxy.has_logged("one address family failed");
    dns.fail_for(AAAA, None);
    eventually("none is an answer", || has("::127.0.0.8:9::", false));
}

#[test]
fn dns_round_robin_is_one_endpoint_and_keeps_its_connections() {
    let [one, two] = pair();
    let port = one.address.port();
    let dns = Dns::start();
    dns.set("svc.dns.test", &[(1, address(&one)), (1, address(&two))]);
    let proxy = proxy(&dns, "svc.dns.test", "DNS_ROUND_ROBIN", port);
    // one client connection is served by one worker, which has connections of its own
    let mut client = Raw::connect(proxy.edge);
    eventually("the name is resolved", || ask(&mut client).0 == 200);
    let page = proxy.page("/clusters");
    assert!(page.contains(&format!("::svc.dns.test:{port}::weight")));
    assert!(page.contains("::endpoints::1\n"), "{page}");
    dns.set("svc.dns.test", &[(1, address(&two))]);
    let before = dns.asked();
    eventually("the change is known", || dns.asked() >= before + 4);
    // a connection that is there stays; the next one goes to the address that is first now
    let connections = one.connections();
    assert_eq!(ask(&mut client), (200, "one".to_owned()));
    assert_eq!(one.connections(), connections);
    let close = "GET /close HTTP/1.1\r\nHost: a.test\r\n\r\n";
    eventually("new connections go to the other", || {
        let reply = Raw::connect(proxy.edge).send(close).reply();
        reply.body == b"two"
    });
    assert_eq!(one.connections(), connections);
}

#[test]
fn many_names_are_resolved_concurrently() {
    const NAMES: usize = 300;
    let dns = Dns::start();
    let start = Start::new();
    let mut rules = String::new();
    let mut all = vec![gateway(&[start.edge()])];
    for number in 0..NAMES {
        let name = format!("n{number}.dns.test");
        let [high, low] = (number as u16).to_be_bytes();
        let ip = IpAddr::V4(Ipv4Addr::new(127, 99, high, low));
        dns.set(&name, &[(60, Data::Address(ip))]);
        all.push(entry(&name, "DNS", 9));
        rules += &format!(
            "- {{match: [{{uri: {{exact: /{number}}}}}], route: [{{destination: {{host: {name}}}}}]}}\n"
        );
    }
    all.push(routes("all", "['*']", &rules));
    let server = dns.address.to_string();
    let start = start.args(["--dns-server", &server]);
    let proxy = start.file("mesh.yaml", documents(all)).start();
    eventually("all are resolved", || {
        let page = proxy.page("/clusters");
        page.matches("::weight::").count() == NAMES
    });
}
