//! Client certificates: acceptance, and headers that the origin receives.

use hyper::Request;

use crate::support::client::Front;
use crate::support::eventually;
use crate::support::origin::empty;
use crate::support::pki::{Authority, Leaf, Pair};
use crate::support::proxy::Proxy;
use crate::support::tls::{Edge, Visitor, credential, files, secret, server};

/// Gateway that verifies client certificates, and the certificates of its clients.
struct Clients {
    edge: Edge,
    clients: Authority,
    known: Pair,
    other: Pair,
    stranger: Pair,
}

fn spiffe(ca: &Authority, name: &str) -> Pair {
    let uri = format!("spiffe://cluster.local/ns/default/sa/{name}");
    ca.issue(Leaf {
        subject: name,
        names: &[&uri, &format!("{name}.clients.example")],
        ..Leaf::default()
    })
}

/// Starts a server with these TLS settings, which depend on the clients' certificates.
fn clients(tls: impl FnOnce(&Pair, &Pair) -> String) -> Clients {
    clients_with(tls, |clients, _| vec![("ca.crt", clients.pem())])
}

fn clients_with(
    tls: impl FnOnce(&Pair, &Pair) -> String,
    values: impl FnOnce(&Authority, &Pair) -> Vec<(&'static str, String)>,
) -> Clients {
    let (ca, clients) = (Authority::new("ca"), Authority::new("clients"));
    let (known, other) = (spiffe(&clients, "known"), spiffe(&clients, "other"));
    let stranger = spiffe(&Authority::new("elsewhere"), "known");
    let pair = ca.server(&["a.example"]);
    let tls = format!("{{credentialName: cred, {}}}", tls(&known, &other));
    let own = [("tls.crt", pair.chain), ("tls.key", pair.key)];
    let values: Vec<_> = own.into_iter().chain(values(&clients, &other)).collect();
    let values: Vec<_> = values
        .iter()
        .map(|(key, text)| (*key, text.as_str()))
        .collect();
    let edge = Edge::start(ca, &[secret("cred", &values)], |edge| {
        vec![server(edge, "https", "['*']", &tls)]
    });
    Clients {
        edge,
        clients,
        known,
        other,
        stranger,
    }
}

impl Clients {
    fn visitor(&self) -> Visitor {
        self.edge.visitor()
    }

    /// Returns the status of requests with no certificate, with `known`, with `other`, and with `stranger`.
    async fn statuses(&self) -> [u16; 4] {
        let one = async |visitor: Visitor| visitor.status("a.example").await;
        [
            one(self.visitor()).await,
            one(self.visitor().with(&self.known)).await,
            one(self.visitor().with(&self.other)).await,
            one(self.visitor().with(&self.stranger)).await,
        ]
    }
}

#[tokio::test]
async fn mutual_accepts_certificates_of_the_authority() {
    let clients = clients(|_, _| "mode: MUTUAL".to_owned());
    assert_eq!(clients.statuses().await, [0, 200, 200, 0]);
    clients.edge.turns_away("client_certificate_missing", 1.0);
    clients.edge.turns_away("client_certificate_rejected", 1.0);
    let failed = [("result", "failed")];
    let name = "strait_downstream_tls_handshakes_total";
    eventually("both count", || {
        clients.edge.proxy.metric(name, &failed) == 2.0
    });
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let visitor = clients.visitor().speaking(version);
        assert_eq!(
            visitor
                .clone()
                .with(&clients.known)
                .status("a.example")
                .await,
            200
        );
        assert_eq!(visitor.with(&clients.stranger).status("a.example").await, 0);
    }
}

#[tokio::test]
async fn optional_mutual_accepts_clients_without_a_certificate() {
    let clients = clients(|_, _| "mode: OPTIONAL_MUTUAL".to_owned());
    assert_eq!(clients.statuses().await, [200, 200, 200, 0]);
}

#[tokio::test]
async fn simple_requests_no_client_certificate() {
    let clients = clients(|_, _| "mode: SIMPLE".to_owned());
    assert_eq!(clients.statuses().await, [200; 4]);
}

#[tokio::test]
async fn subject_alt_names_limit_the_accepted_certificates() {
    for name in [
        "known.clients.example",
        "KNOWN.clients.example",
        "spiffe://cluster.local/ns/default/sa/known",
    ] {
        let clients = clients(|_, _| format!("mode: MUTUAL, subjectAltNames: ['{name}', unknown]"));
        assert_eq!(clients.statuses().await, [0, 200, 0, 0], "{name}");
    }
}

/// Returns the SHA-256 of a certificate as configured, computed by the documented command.
fn sha256(bytes: &[u8]) -> Vec<u8> {
    let digest = proxy::tls::digest::sha256(bytes);
    digest.to_vec()
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    digits.join(":")
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[tokio::test]
async fn certificate_in_either_pin_list_is_accepted() {
    let by_hash = clients(|known, _| {
        format!(
            "mode: MUTUAL, verifyCertificateHash: ['{}']",
            hex(&sha256(&known.der))
        )
    });
    assert_eq!(by_hash.statuses().await, [0, 200, 0, 0]);
    let by_key = clients(|_, other| {
        format!(
            "mode: MUTUAL, verifyCertificateSpki: ['{}']",
            base64(&sha256(&other.spki))
        )
    });
    assert_eq!(by_key.statuses().await, [0, 0, 200, 0]);
    let by_either = clients(|known, other| {
        format!(
            "mode: MUTUAL, verifyCertificateHash: ['{}'], verifyCertificateSpki: ['{}']",
            hex(&sha256(&known.der)),
            base64(&sha256(&other.spki))
        )
    });
    assert_eq!(by_either.statuses().await, [0, 200, 200, 0]);
}

#[tokio::test]
async fn insecure_skip_verify_accepts_any_certificate() {
    let clients = clients(|_, _| "mode: MUTUAL, insecureSkipVerify: true".to_owned());
    assert_eq!(clients.statuses().await, [0, 200, 200, 200]);
}

#[tokio::test]
async fn revoked_certificates_are_rejected() {
    let clients = clients_with(
        |_, _| "mode: MUTUAL".to_owned(),
        |clients, other| {
            vec![
                ("ca.crt", clients.pem()),
                ("ca.crl", clients.revoke(&[other])),
            ]
        },
    );
    assert_eq!(clients.statuses().await, [0, 200, 0, 0]);
}

#[tokio::test]
async fn ca_certificate_can_come_from_its_own_secret() {
    let (ca, clients) = (Authority::new("ca"), Authority::new("clients"));
    let pair = ca.server(&["a.example", "b.example"]);
    let known = spiffe(&clients, "known");
    let secrets = [
        secret("cred", &[("cert", &pair.chain), ("key", &pair.key)]),
        secret("cred-cacert", &[("cacert", &clients.pem())]),
        secret("apart", &[("ca.crt", &clients.pem())]),
    ];
    let edge = Edge::start(ca, &secrets, |edge| {
        vec![
            server(
                edge,
                "a",
                "[a.example]",
                "{mode: MUTUAL, credentialName: cred}",
            ),
            server(
                edge,
                "b",
                "[b.example]",
                "{mode: MUTUAL, credentialName: kubernetes://cred, caCertCredentialName: apart}",
            ),
        ]
    });
    for host in ["a.example", "b.example"] {
        assert_eq!(edge.visitor().status(host).await, 0, "{host}");
        assert_eq!(
            edge.visitor().with(&known).status(host).await,
            200,
            "{host}"
        );
    }
}

#[tokio::test]
async fn mutual_without_an_authority_rejects_all_and_reports_it() {
    let clients = clients_with(|_, _| "mode: MUTUAL".to_owned(), |_, _| Vec::new());
    assert_eq!(clients.statuses().await, [0; 4]);
    let log = clients.edge.proxy.has_logged("TLS007");
    assert!(log.contains("mesh.yaml:"), "{log}");
}

#[tokio::test]
async fn mesh_identity_is_read_from_a_directory() {
    let ca = Authority::new("mesh");
    let gateway = spiffe(&ca, "gateway");
    let client = spiffe(&ca, "client");
    let directory = tempfile::tempdir().unwrap();
    files(
        directory.path(),
        &[
            ("cert-chain.pem", &gateway.chain),
            ("key.pem", &gateway.key),
            ("root-cert.pem", &ca.pem()),
        ],
    );
    let path = directory.path().to_str().unwrap().to_owned();
    let edge = Edge::start_with(
        ca,
        &[],
        |edge| vec![server(edge, "https", "['*']", "{mode: ISTIO_MUTUAL}")],
        |start| start.args(["--mesh-certs".to_owned(), path]),
    );
    let host = "gateway.clients.example";
    assert_eq!(edge.visitor().status(host).await, 0);
    assert_eq!(edge.visitor().with(&client).status(host).await, 200);
    let seen = edge.origin.only();
    let element = seen.header("x-forwarded-client-cert").unwrap();
    assert!(
        element.starts_with("By=spiffe://cluster.local/ns/default/sa/gateway;Hash="),
        "{element}"
    );
}

fn claimed() -> Request<crate::support::origin::Body> {
    Request::get("https://a.example/")
        .header("x-forwarded-client-cert", "By=me;Hash=00")
        .header("x-forwarded-proto", "http")
        .body(empty())
        .unwrap()
}

#[tokio::test]
async fn upstream_request_has_the_verified_client_certificate() {
    let clients = clients(|_, _| "mode: OPTIONAL_MUTUAL".to_owned());
    for front in [Front::H1, Front::H2] {
        let visitor = clients.visitor().with(&clients.known);
        let mut client = visitor.client(front, "a.example").await.unwrap();
        assert_eq!(client.call(claimed()).await.status, 200);
        let mut client = clients.visitor().client(front, "a.example").await.unwrap();
        assert_eq!(client.call(claimed()).await.status, 200);
    }
    let hash = hex(&sha256(&clients.known.der))
        .replace(':', "")
        .to_lowercase();
    let seen = clients.edge.origin.seen();
    for request in [&seen[0], &seen[2]] {
        let element = request.header("x-forwarded-client-cert").unwrap();
        assert!(
            element.starts_with(&format!("Hash={hash};Cert=\"-----BEGIN%20")),
            "{element}"
        );
        assert!(
            element.ends_with(
                "Subject=\"CN=known\";URI=spiffe://cluster.local/ns/default/sa/known;DNS=known.clients.example"
            ),
            "{element}"
        );
        assert_eq!(request.header("x-forwarded-proto"), Some("https"));
    }
    for request in [&seen[1], &seen[3]] {
        assert_eq!(request.header("x-forwarded-client-cert"), None);
    }
    drop(clients.clients);
}

#[tokio::test]
async fn resumed_session_keeps_the_client_identity() {
    let clients = clients(|_, _| "mode: MUTUAL".to_owned());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let visitor = clients.visitor().with(&clients.known).speaking(version);
        let visitor = visitor.resuming();
        let before = resumed(&clients.edge.proxy);
        assert_eq!(visitor.status("a.example").await, 200);
        assert_eq!(visitor.status("a.example").await, 200);
        assert_eq!(resumed(&clients.edge.proxy) - before, 1.0, "{version:?}");
    }
    for request in clients.edge.origin.seen() {
        assert!(request.header("x-forwarded-client-cert").is_some());
    }
}

fn resumed(proxy: &Proxy) -> f64 {
    proxy.metric(
        "strait_downstream_tls_handshakes_total",
        &[("result", "resumed")],
    )
}

#[tokio::test]
async fn credentials_with_several_secrets_have_one_authority() {
    let (ca, clients) = (Authority::new("ca"), Authority::new("clients"));
    let pair = ca.server(&["a.example"]);
    let edge = Edge::start(
        ca,
        &[
            credential("rsa", &pair),
            secret("rsa-cacert", &[("ca.crt", &clients.pem())]),
        ],
        |edge| {
            vec![server(
                edge,
                "a",
                "['*']",
                "{mode: MUTUAL, credentialNames: [rsa]}",
            )]
        },
    );
    let known = spiffe(&clients, "known");
    assert_eq!(edge.visitor().with(&known).status("a.example").await, 200);
    assert_eq!(edge.visitor().status("a.example").await, 0);
}

#[tokio::test]
async fn several_certificates_and_a_revocation_list_can_come_from_files() {
    let directory = tempfile::tempdir().unwrap();
    let clients = Authority::new("clients");
    let (known, other) = (spiffe(&clients, "known"), spiffe(&clients, "other"));
    let first = Authority::new("ca");
    let pair = first.server(&["a.example"]);
    let contents = [
        ("own.pem", &*pair.chain),
        ("own.key", &*pair.key),
        ("clients.pem", &*clients.pem()),
        ("clients.crl", &*clients.revoke(&[&other])),
    ];
    let paths = files(directory.path(), &contents);
    let [chain, key, authorities, crl] = [0, 1, 2, 3].map(|index| paths[index].display());
    let entry =
        format!("serverCertificate: {chain}, privateKey: {key}, caCertificates: {authorities}");
    // statuses without a certificate, with a known one, and with a revoked one
    for (tls, expected) in [
        (format!("tlsCertificates: [{{{entry}}}]"), [0, 200, 200]),
        (format!("{entry}, caCrl: {crl}"), [0, 200, 0]),
    ] {
        let tls = format!("{{mode: MUTUAL, {tls}}}");
        let edge = Edge::start(Authority::new("unused"), &[], |edge| {
            vec![server(edge, "https", "['*']", &tls)]
        });
        let visitor = Visitor::new(edge.proxy.edge, &first);
        let found = [
            visitor.status("a.example").await,
            visitor.clone().with(&known).status("a.example").await,
            visitor.with(&other).status("a.example").await,
        ];
        assert_eq!(found, expected, "{tls}");
    }
}
