//! TLS to endpoints: DestinationRule settings, and their effect as seen by an endpoint.

use std::path::Path;

use crate::support::client::{Client, Front};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::pki::{Authority, Leaf, Pair};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw, Reply};
use crate::support::tls::{files, secret};
use crate::support::tls_origin::{Caller, Speaks, Terms, TlsOrigin};

/// Returns a service on port 80 whose endpoint has another port.
pub fn service(origin: &TlsOrigin, protocol: &str, more: &str) -> String {
    let (ip, port) = (origin.address.ip(), origin.address.port());
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  \
         hosts: [a.test]\n  resolution: STATIC\n  {more}\n  \
         ports: [{{number: 80, name: web, protocol: {protocol}, targetPort: {port}}}]\n  \
         endpoints: [{{address: {ip}}}]\n"
    )
}

/// Returns a DestinationRule for `a.test` with this traffic policy in flow style.
pub fn rule(policy: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec:\n  \
         host: a.test\n  trafficPolicy: {policy}\n"
    )
}

/// Starts a gateway that routes every request to `a.test`.
pub fn start(documents_: &[String]) -> Proxy {
    started(documents_, |start| start)
}

pub fn started(more: &[String], with: impl FnOnce(Start) -> Start) -> Proxy {
    let start = Start::new();
    let text = documents([
        gateway(&[start.edge()]),
        routes(
            "a",
            "['*']",
            "- {name: a, route: [{destination: {host: a.test, port: {number: 80}}}]}",
        ),
    ]);
    with(
        start
            .file("mesh.yaml", text)
            .file("more.yaml", documents(more)),
    )
    .start()
}

pub fn get(proxy: &Proxy) -> Reply {
    Raw::connect(proxy.edge).send(GET).reply()
}

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

/// Certificates and keys as files of one directory.
pub struct Files {
    pub ca: Authority,
    pub other: Authority,
    pub client: Pair,
    directory: tempfile::TempDir,
}

impl Files {
    pub fn new() -> Self {
        let (ca, other) = (Authority::new("ca"), Authority::new("other"));
        let client = ca.issue(Leaf {
            names: &["spiffe://cluster.local/ns/default/sa/edge"],
            ..Leaf::default()
        });
        let directory = tempfile::tempdir().unwrap();
        files(
            directory.path(),
            &[
                ("ca.pem", &ca.pem()),
                ("other.pem", &other.pem()),
                ("client.pem", &client.chain),
                ("client.key", &client.key),
                ("broken.pem", "nonsense"),
            ],
        );
        Self {
            ca,
            other,
            client,
            directory,
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns `{tls: {TEXT}}` with each `@` in the text replaced by the path of the directory.
    pub fn tls(&self, text: &str) -> String {
        let path = self.path().display();
        let text = text.replace('@', &format!("{path}/"));
        format!("{{tls: {{{text}}}}}")
    }
}

const SIMPLE: &str = "mode: SIMPLE, caCertificates: '@ca.pem'";

#[test]
fn tls_origination_uses_the_host_as_sni() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["a.test"])));
    let proxy = start(&[service(&origin, "HTTP", ""), rule(&material.tls(SIMPLE))]);
    for _ in 0..2 {
        let reply = get(&proxy);
        assert_eq!((reply.status, &*text(&reply)), (200, "hello"));
    }
    let callers = origin.callers();
    let hosts: Vec<_> = callers.iter().flat_map(|caller| &caller.hosts).collect();
    assert_eq!(hosts, ["a.test", "a.test"]);
    for caller in &callers {
        assert_eq!(caller.sni.as_deref(), Some("a.test"));
        assert_eq!(caller.alpn, Vec::<String>::new());
        assert_eq!(caller.certificate, None);
    }
}

/// Row of the table: settings of the rule, certificate of the server, expected result.
struct Row<'a> {
    tls: &'a str,
    pair: &'a Pair,
    /// End of the response body; empty if a response is expected.
    told: &'a str,
}

#[test]
fn server_certificate_is_verified_by_the_destination_rule() {
    let material = Files::new();
    let (ca, other) = (&material.ca, &material.other);
    let (good, foreign) = (ca.server(&["a.test"]), other.server(&["a.test"]));
    let (named, spiffe) = (ca.server(&["b.test"]), ca.server(&["spiffe://x/ns/y/sa/z"]));
    let years = |names, years| {
        let leaf = Leaf {
            names,
            years,
            ..Leaf::default()
        };
        ca.issue(leaf)
    };
    let (expired, early) = (
        years(&["a.test"], (2020, 2021)),
        years(&["a.test"], (3000, 3001)),
    );
    let crl = [
        ("crl.pem", &*ca.revoke(&[&good])),
        ("stale.pem", &*ca.revoke_until(&[], 2022)),
    ];
    files(material.path(), &crl);
    let rows = [
        (SIMPLE, &good, ""),
        (
            SIMPLE,
            &foreign,
            "TLS_error: unknown issuer: no CA that is trusted signed the certificate",
        ),
        (
            SIMPLE,
            &named,
            "TLS_error: name mismatch: the certificate is for b.test, not for a.test",
        ),
        (SIMPLE, &expired, "TLS_error: the certificate has expired"),
        (
            SIMPLE,
            &early,
            "TLS_error: the certificate is not valid yet",
        ),
        // with a name of its own, the chain alone counts
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', sni: a.test",
            &named,
            "",
        ),
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', sni: a.test",
            &foreign,
            "TLS_error: unknown issuer",
        ),
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', sni: x.test, subjectAltNames: [b.test]",
            &named,
            "",
        ),
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', subjectAltNames: ['spiffe://x/ns/y/sa/z']",
            &spiffe,
            "",
        ),
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', subjectAltNames: [c.test]",
            &good,
            "TLS_error: name mismatch: the certificate is for a.test, not for c.test",
        ),
        ("mode: SIMPLE, insecureSkipVerify: true", &foreign, ""),
        ("mode: SIMPLE, insecureSkipVerify: true", &expired, ""),
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', caCrl: '@crl.pem'",
            &good,
            "TLS_error: the certificate is revoked",
        ),
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', caCrl: '@crl.pem', sni: x.test",
            &named,
            "",
        ),
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', caCrl: '@stale.pem'",
            &good,
            "TLS_error: the list of revoked certificates is out of date",
        ),
        // what never was there is never replaced by plain text
        (
            "mode: SIMPLE, caCertificates: '@none.pem'",
            &good,
            "TLS_error: there are no usable CA certificates",
        ),
        (
            "mode: SIMPLE, caCertificates: '@broken.pem'",
            &good,
            "TLS_error: there are no usable CA certificates",
        ),
        (
            "mode: SIMPLE, caCertificates: system",
            &good,
            "TLS_error: unknown issuer",
        ),
        ("mode: SIMPLE", &good, "TLS_error: unknown issuer"),
        (
            "mode: SIMPLE, credentialName: nowhere",
            &good,
            "TLS_error: there are no usable CA certificates",
        ),
        (
            "mode: MUTUAL, clientCertificate: '@none.pem', privateKey: '@client.key', caCertificates: '@ca.pem'",
            &good,
            "TLS_error: there is no usable client certificate",
        ),
        ("mode: DISABLE", &good, "reset reason: protocol error"),
    ];
    let rows = rows.map(|(tls, pair, told)| Row { tls, pair, told });
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&good));
    let proxy = started(
        &[service(&origin, "HTTP", ""), rule(&material.tls(SIMPLE))],
        |start| {
            // whatever this machine trusts
            start.env(
                "SSL_CERT_FILE",
                material.path().join("other.pem").to_str().unwrap(),
            )
        },
    );
    for (number, Row { tls, pair, told }) in rows.iter().enumerate() {
        origin.change(&Terms::new(pair));
        let before = proxy.metric("strait_config_generation", &[]);
        let policy = rule(&material.tls(tls));
        let named = format!("name: a, annotations: {{row: '{number}'}}}}");
        let changed = documents([service(&origin, "HTTP", ""), policy]);
        proxy.write("more.yaml", changed.replace("name: a}", &named));
        eventually("it is in effect", || {
            proxy.metric("strait_config_generation", &[]) > before
        });
        // no connection outlives its row
        let get = "GET /close HTTP/1.1\r\nHost: a.test\r\n\r\n";
        let reply = Raw::connect(proxy.edge).send(get).reply();
        if told.is_empty() {
            assert_eq!((reply.status, &*text(&reply)), (200, "hello"), "{tls}");
        } else {
            let body = text(&reply);
            assert_eq!(
                reply.status,
                if tls.contains("DISABLE") { 502 } else { 503 },
                "{tls}: {body}"
            );
            assert!(body.contains(told), "{tls}: {body}");
            assert!(!body.contains(material.path().to_str().unwrap()), "{body}");
            if told.starts_with("TLS_error") {
                let begins = "upstream connect error or disconnect/reset before headers. \
                              retried and the latest reset reason: remote connection failure, \
                              transport failure reason: TLS_error: ";
                assert!(body.starts_with(begins), "{tls}: {body}");
            }
        }
    }
    let failed = || {
        let mut lines = proxy.access_log().into_iter();
        lines.find(|line| line["response_code"] == 503)
    };
    eventually("it is logged", || failed().is_some());
    let line = failed().unwrap();
    assert_eq!(line["response_flags"], "UF,URX");
    let reason = line["upstream_transport_failure_reason"].as_str().unwrap();
    assert!(reason.starts_with("TLS_error: "), "{reason}");
}

#[test]
fn service_subject_alt_names_apply_when_the_rule_has_none() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["b.test"])));
    let proxy = start(&[
        service(&origin, "HTTP", "subjectAltNames: [b.test]"),
        rule(&material.tls(SIMPLE)),
    ]);
    assert_eq!(get(&proxy).status, 200);
    assert_eq!(origin.only().sni.as_deref(), Some("a.test"));
}

#[test]
fn ip_address_as_host_sends_no_sni() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["10.1.2.3"])));
    let proxy = start(&[service(&origin, "HTTP", ""), rule(&material.tls(SIMPLE))]);
    let get = "GET / HTTP/1.1\r\nHost: 10.1.2.3:99\r\n\r\n";
    assert_eq!(Raw::connect(proxy.edge).send(get).reply().status, 200);
    assert_eq!(origin.only().sni, None);
    let reply = Raw::connect(proxy.edge)
        .send("GET / HTTP/1.1\r\nHost: 10.1.2.4\r\n\r\n")
        .reply();
    assert!(text(&reply).contains("TLS_error: name mismatch"));
}

#[test]
fn connections_are_not_shared_between_hosts() {
    let material = Files::new();
    let pair = material.ca.server(&["a.test", "b.test"]);
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&pair));
    let proxy = started(
        &[service(&origin, "HTTP", ""), rule(&material.tls(SIMPLE))],
        |start| start.args(["--concurrency", "1"]),
    );
    for host in ["a.test", "b.test", "a.test", "b.test", "c.test"] {
        let get = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let reply = Raw::connect(proxy.edge).send(get).reply();
        assert_eq!(reply.status, if host == "c.test" { 503 } else { 200 });
    }
    let callers = origin.callers();
    let seen: Vec<_> = callers
        .iter()
        .map(|one| (one.sni.as_deref(), &*one.hosts))
        .collect();
    let hosts = |host: &str| vec![host.to_owned(); 2];
    assert_eq!(seen[0], (Some("a.test"), &*hosts("a.test")));
    assert_eq!(seen[1], (Some("b.test"), &*hosts("b.test")));
}

#[test]
fn client_certificates_come_from_files_and_secrets() {
    let material = Files::new();
    let server = material.ca.server(&["a.test"]);
    let terms = Terms::new(&server).for_clients_of(&material.ca);
    let in_files = "mode: MUTUAL, clientCertificate: '@client.pem', privateKey: '@client.key', caCertificates: '@ca.pem'";
    let pair = [
        ("tls.crt", &*material.client.chain),
        ("tls.key", &*material.client.key),
    ];
    let ca = material.ca.pem();
    let whole = [&pair[..], &[("ca.crt", &*ca)]].concat();
    let companion = secret("cred-cacert", &[("cacert", &*ca)]);
    for (tls, secrets) in [
        (in_files, Vec::new()),
        (
            "mode: MUTUAL, credentialName: cred",
            vec![secret("cred", &whole)],
        ),
        (
            "mode: MUTUAL, credentialName: cred",
            vec![secret("cred", &pair), companion],
        ),
    ] {
        let origin = TlsOrigin::start(Speaks::H1, &terms);
        let mut all = vec![service(&origin, "HTTP", ""), rule(&material.tls(tls))];
        all.extend(secrets);
        let proxy = start(&all);
        assert_eq!(get(&proxy).status, 200, "{tls}");
        assert_eq!(
            origin.only().certificate.as_deref(),
            Some(&*material.client.der)
        );
        let page = proxy.page("/certs");
        assert!(
            page.contains("spiffe://cluster.local/ns/default/sa/edge"),
            "{page}"
        );
        for page in ["/certs", "/config_dump", "/clusters"] {
            assert!(!proxy.page(page).contains("PRIVATE KEY"), "{page}");
        }
    }
}

#[test]
fn missing_client_certificate_is_logged() {
    let material = Files::new();
    let server = material.ca.server(&["a.test"]);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let terms = Terms::new(&server)
            .for_clients_of(&material.ca)
            .speaking(version);
        let origin = TlsOrigin::start(Speaks::H1, &terms);
        let proxy = start(&[service(&origin, "HTTP", ""), rule(&material.tls(SIMPLE))]);
        let reply = get(&proxy);
        let body = text(&reply);
        assert_eq!(reply.status, 503);
        assert!(
            body.contains("TLS_error: handshake failed: the server sent the alert"),
            "{version:?} {body}"
        );
        let line = proxy.logged("/");
        assert_eq!(line["response_flags"], "UF,URX");
    }
}

#[test]
fn upstream_tls_1_2_and_1_3_work_and_sessions_are_resumed() {
    let material = Files::new();
    let server = material.ca.server(&["a.test"]);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&server).speaking(version));
        let policy =
            material
                .tls(SIMPLE)
                .replacen('{', "{connectionPool: {http: {idleTimeout: 1s}}, ", 1);
        let proxy = start(&[service(&origin, "HTTP", ""), rule(&policy)]);
        assert_eq!(get(&proxy).status, 200);
        let idle = || proxy.metric("strait_upstream_connections_closed_total", &[]);
        eventually("its connection is closed", || idle() >= 1.0);
        assert_eq!(get(&proxy).status, 200);
        let resumed: Vec<bool> = origin.callers().iter().map(|one| one.resumed).collect();
        assert_eq!(resumed, [false, true], "{version:?}");
        let count = |result| {
            proxy.metric(
                "strait_upstream_tls_handshakes_total",
                &[("result", result)],
            )
        };
        assert_eq!((count("full"), count("resumed")), (1.0, 1.0));
    }
}

#[test]
fn session_ticket_on_an_idle_connection_does_not_close_it() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["a.test"])));
    let proxy = started(
        &[service(&origin, "HTTP", ""), rule(&material.tls(SIMPLE))],
        |start| start.args(["--concurrency", "1"]),
    );
    let mut client = Raw::connect(proxy.edge);
    for _ in 0..20 {
        assert_eq!(client.send(GET).reply().status, 200);
    }
    assert_eq!(
        origin.only().hosts.len(),
        20,
        "one connection carries all of them"
    );
}

#[tokio::test]
async fn http2_is_negotiated_by_alpn() {
    let material = Files::new();
    let terms = Terms::new(&material.ca.server(&["a.test"]));
    for (speaks, status) in [(Speaks::H2, 200), (Speaks::SilentH2, 503)] {
        let origin = TlsOrigin::start(speaks, &terms);
        let proxy = start(&[service(&origin, "HTTP2", ""), rule(&material.tls(SIMPLE))]);
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        let answer = client.call(crate::support::client::get("/")).await;
        assert_eq!(answer.status, status);
        if status == 200 {
            let Caller {
                sni, alpn, hosts, ..
            } = origin.only();
            assert_eq!(alpn, ["h2"]);
            assert_eq!(sni.as_deref(), hosts.first().map(String::as_str));
        } else {
            assert!(
                answer
                    .text()
                    .ends_with("TLS_error: the server does not agree on HTTP/2 (ALPN h2)"),
                "{}",
                answer.text()
            );
        }
    }
}

#[test]
fn port_without_tls_settings_is_plain_text() {
    let material = Files::new();
    let policy = material.tls(SIMPLE);
    let policy = policy.replacen(
        '{',
        "{portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: RANDOM}}], ",
        1,
    );
    let origin = crate::support::origin::Origin::named(crate::support::origin::Back::H1, "plain");
    let at = origin.address.port();
    let entry = format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  hosts: [a.test]\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: web, protocol: HTTP, targetPort: {at}}}]\n  endpoints: [{{address: 127.0.0.1}}]\n"
    );
    let proxy = start(&[entry, rule(&policy)]);
    assert_eq!(text(&get(&proxy)), "plain");
}
