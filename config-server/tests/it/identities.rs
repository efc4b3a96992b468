//! CA of workloads: join tokens, renewal by certificate, rotation and limits, with a client of Istio's service.

mod client;
mod cluster;
mod rotation;

use std::time::{Duration, Instant};

use config_server::IssueIdentities;
use config_server::identities::Times;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::TestServer;
use client::{Proof, Workload, request};

const HOUR: u64 = 3_600;

/// Returns the settings of a CA whose certificates live so long.
pub fn issue(life_max: Duration) -> IssueIdentities {
    IssueIdentities {
        trust_domain: "cluster.local".to_owned(),
        allows_unbound: false,
        files: None,
        times: Times {
            life_max,
            interval: Duration::from_millis(50),
            margin: Duration::from_secs(1),
            ..Times::default()
        },
    }
}

async fn start(change: impl FnOnce(&mut IssueIdentities)) -> TestServer {
    let mut issue = issue(Duration::from_secs(HOUR));
    change(&mut issue);
    let server = TestServer::start_with(|settings| {
        settings.writes_status = false;
        settings.identities = Some(issue);
    })
    .await;
    until_ready(&server).await;
    server
}

/// Waits until the CA has its keys.
pub async fn until_ready(server: &TestServer) {
    let mut client = server.client(None).await;
    while client.get("/strait/ca").await.code != 200 {
        tokio::task::yield_now().await;
    }
}

/// Runs a command about the CA, as an admin.
pub async fn command(server: &TestServer, command: Value) -> Value {
    let answer = server
        .admin()
        .await
        .post("/strait/identity", &command)
        .await;
    assert_eq!(answer.code, 200, "{answer:?}");
    answer.body
}

/// Creates a join token for `shop/ACCOUNT`.
pub async fn join_token(server: &TestServer, account: &str, uses: u32, expires_in: u64) -> String {
    let new = json!({
        "namespace": "shop", "service_account": account, "uses": uses, "expires_in": expires_in,
    });
    let created = command(server, json!({"createToken": new})).await;
    created["token"].as_str().unwrap().to_owned()
}

fn audit(server: &TestServer) -> Vec<Value> {
    let text = std::fs::read_to_string(server.data.path().join("audit.log")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["verb"] == "issue")
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_joins_by_token_and_renews_by_certificate() {
    let server = start(|_| ()).await;
    let token = join_token(&server, "cart", 1, HOUR).await;
    let first = Workload::join(&server, &token).await.unwrap();
    assert_eq!(first.id(), "spiffe://cluster.local/ns/shop/sa/cart");
    assert_eq!(first.chain.len(), 2, "leaf and intermediate");
    let published = server.client(None).await.get("/strait/ca").await;
    assert_eq!(published.body, first.roots.as_str());
    let second = first.renew(&server).await.unwrap();
    assert_eq!(second.id(), first.id());
    assert_ne!(second.chain[0], first.chain[0]);
    let third = second.renew(&server).await.unwrap();
    third.accepts(&first).unwrap();
    first.accepts(&third).unwrap();

    let lines = audit(&server);
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in &lines {
        assert_eq!(line["identity"], first.id(), "{line}");
        assert_eq!(line["address"], "127.0.0.1", "{line}");
        for field in ["time", "serial", "not_after", "join_token"] {
            assert!(line[field].is_string(), "{field}: {line}");
        }
        assert!(!line.to_string().contains(&token));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn join_token_is_refused_when_used_up_expired_revoked_or_unknown() {
    let server = start(|_| ()).await;
    let once = join_token(&server, "cart", 1, HOUR).await;
    let workload = Workload::join(&server, &once).await.unwrap();
    let revoked = join_token(&server, "cart", 9, HOUR).await;
    let joined = Workload::join(&server, &revoked).await.unwrap();
    let tokens = command(&server, json!("listTokens")).await;
    let mut tokens = tokens.as_array().unwrap().iter();
    let is_left = |token: &&Value| token["uses_left"] == 8;
    let name = &tokens.find(is_left).unwrap()["name"];
    command(&server, json!({"revokeToken": name})).await;
    let short = join_token(&server, "cart", 9, 1).await;
    tokio::time::sleep(Duration::from_secs(2)).await; // the life of the token, in whole seconds
    let user = server.token("admin");
    for (token, message) in [
        (&*once, "used up"),
        (&*revoked, "unknown, or was revoked"),
        (&*short, "expired"),
        (&*user, "unknown"),
        ("", "unknown"),
    ] {
        let status = Workload::join(&server, token).await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
        assert!(status.message().contains(message), "{status:?}");
    }
    let none = request(&server, &Proof::None, &client::csr().0, 0).await;
    assert_eq!(none.unwrap_err().code(), Code::Unauthenticated);
    // what joined by the revoked token ends with its certificate, and the other workload goes on
    let status = joined.renew(&server).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    workload.renew(&server).await.unwrap();
    let lines = audit(&server);
    let refused: Vec<_> = lines
        .iter()
        .filter(|line| line["refused"].is_string())
        .collect();
    assert_eq!(refused.len(), 7, "{refused:?}");
    assert!(!format!("{refused:?}").contains(&once));
}

#[tokio::test(flavor = "multi_thread")]
async fn renewal_by_certificate_ends_some_time_after_the_join() {
    let server = start(|issue| issue.times.renewal_chain_max = Duration::from_secs(2)).await;
    let token = join_token(&server, "cart", 1, HOUR).await;
    let mut workload = Workload::join(&server, &token).await.unwrap();
    let joined = Instant::now();
    let status = loop {
        match workload.renew(&server).await {
            Ok(renewed) => workload = renewed,
            Err(status) => break status,
        }
        tokio::time::sleep(Duration::from_millis(500)).await; // below the limit of renewals a minute
    };
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    assert!(status.message().contains("--max-renewal-chain"));
    assert!(joined.elapsed() > Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_of_a_workload_makes_no_user_and_that_of_a_user_no_workload() {
    let server = start(|_| ()).await;
    let token = join_token(&server, "cart", 1, HOUR).await;
    let workload = Workload::join(&server, &token).await.unwrap();
    assert_eq!(workload.get(&server, "/api/v1/services").await, 401);
    let mut user = server.with_certificate("ops", "strait:admin").await;
    assert_eq!(user.get("/api/v1/services").await.code, 200);
    let own = server.client(Some(&server.token("proxy"))).await;
    let answer = { own }.post("/strait/identity", &json!("status")).await;
    assert_eq!(answer.code, 403, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn request_decides_about_its_key_alone() {
    let server = start(|_| ()).await;
    let token = join_token(&server, "cart", 3, HOUR).await;
    let proof = Proof::Token(token.clone());
    let alien = client::csr_for(&["spiffe://cluster.local/ns/bank/sa/admin", "bank.test"]);
    let issued = request(&server, &proof, &alien.0, 60).await.unwrap();
    let workload = Workload::new(issued, alien.1);
    assert_eq!(workload.id(), "spiffe://cluster.local/ns/shop/sa/cart");
    assert!((58..=60).contains(&workload.seconds_left()));
    let long = request(&server, &proof, &client::csr().0, i64::MAX).await;
    let long = Workload::new(long.unwrap(), client::csr().1);
    assert!(
        (3_598..=3_600).contains(&long.seconds_left()),
        "the maximum"
    );
    let huge = "x".repeat(64 << 10);
    for (csr, code) in [
        ("", Code::InvalidArgument),
        ("-----BEGIN CERTIFICATE REQUEST-----", Code::InvalidArgument),
        (&"x".repeat(17 << 10), Code::InvalidArgument),
        (&huge, Code::OutOfRange),
    ] {
        let status = request(&server, &proof, csr, 60).await.unwrap_err();
        assert_eq!(status.code(), code, "{status:?}");
    }
    // damaged requests use up no token
    Workload::join(&server, &token).await.unwrap();
    let status = Workload::join(&server, &token).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_a_minute_are_limited_for_an_identity() {
    let server = start(|_| ()).await;
    let token = join_token(&server, "cart", 20, HOUR).await;
    for _ in 0..10 {
        Workload::join(&server, &token).await.unwrap();
    }
    let status = Workload::join(&server, &token).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let other = join_token(&server, "other", 1, HOUR).await;
    Workload::join(&server, &other).await.unwrap();
    // what is refused by a limit is counted, and fills no log
    let refused = || {
        let lines = audit(&server).into_iter();
        lines.filter(|line| line["refused"].is_string()).count()
    };
    assert_eq!(refused(), 0);
    for _ in 0..60 {
        Workload::join(&server, "unknown").await.unwrap_err();
    }
    assert!((10..60).contains(&refused()), "{} lines", refused());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_queue_are_refused_and_all_are_served_by_retries() {
    let server = start(|_| ()).await;
    let tokens = join_all((0..1_300).map(|at| {
        let (server, account) = (&server, format!("a{at}"));
        async move { client::create_token(server, &account).await }
    }))
    .await;
    let channel = client::channel(&server, &Proof::None);
    let csr = client::csr().0;
    let start = Instant::now();
    let calls = tokens.into_iter().map(async |token| {
        let mut refused = 0;
        loop {
            let proof = Proof::Token(token.clone());
            match client::call(channel.clone(), &proof, &csr, 60).await {
                Ok(_) => return refused,
                Err(status) if status.code() == Code::ResourceExhausted => refused += 1,
                Err(status) => panic!("{status:?}"),
            }
            tokio::time::sleep(Duration::from_secs(1).mul_f64(1.0 + rand::random::<f64>())).await;
        }
    });
    let refused: u32 = join_all(calls).await.into_iter().sum();
    let took = start.elapsed();
    println!("{refused} refusals, all served after {took:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(
        took > Duration::from_secs(5),
        "no more than 200 a second: {took:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_join_tokens_are_in_a_backup() {
    let server = start(|_| ()).await;
    let token = join_token(&server, "cart", 2, HOUR).await;
    let first = Workload::join(&server, &token).await.unwrap();
    let stopped = server.stop().await;
    let backup = config_server::transfer::backup::Backup::of(&stopped.open().await).await;
    let bytes = backup.unwrap().to_bytes().unwrap();
    let backup = config_server::transfer::backup::Backup::read(&bytes).unwrap();
    let data = tempfile::tempdir().unwrap();
    let location = config_server::transfer::Location {
        data: data.path().to_owned(),
        etcd: None,
    };
    config_server::transfer::restore::restore(&backup, &location)
        .await
        .unwrap();
    let server = TestServer::start_in(data, |settings| {
        settings.identities = Some(issue(Duration::from_secs(HOUR)));
    })
    .await;
    until_ready(&server).await;
    let renewed = first.renew(&server).await.unwrap();
    assert_eq!(renewed.roots, first.roots);
    Workload::join(&server, &token).await.unwrap();
    Workload::join(&server, &token).await.unwrap_err();
}

/// Writes a root, and an intermediate CA below it with its key, to a directory. Returns the root.
fn write_ca(directory: &std::path::Path, has_key: bool) -> String {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let params = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let (root_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let root = params("company").self_signed(&root_key).unwrap().pem();
    let issuer = Issuer::from_ca_cert_pem(&root, root_key).unwrap();
    let own = params("mesh").signed_by(&key, &issuer).unwrap().pem();
    std::fs::write(directory.join("root.pem"), &root).unwrap();
    std::fs::write(directory.join("ca.pem"), own).unwrap();
    if has_key {
        std::fs::write(directory.join("ca.key"), key.serialize_pem()).unwrap();
    }
    root
}

#[tokio::test(flavor = "multi_thread")]
async fn ca_of_the_operator_is_followed_and_a_key_that_does_not_fit_changes_nothing() {
    let files = tempfile::tempdir().unwrap();
    let first = write_ca(files.path(), true);
    let server = start(|issue| {
        issue.files = Some(config_server::identities::CaFiles {
            certificate: files.path().join("ca.pem"),
            key: files.path().join("ca.key"),
            root: files.path().join("root.pem"),
        });
    })
    .await;
    let token = join_token(&server, "cart", 9, HOUR).await;
    let workload = Workload::join(&server, &token).await.unwrap();
    assert_eq!(workload.roots, first);
    workload.accepts(&workload).unwrap();
    let status = server
        .admin()
        .await
        .post("/strait/identity", &json!("status"))
        .await;
    assert_eq!(status.code, 400, "{status:?}");
    write_ca(files.path(), false);
    let kept = workload.renew(&server).await.unwrap();
    assert_eq!(kept.roots, first, "the last good one");
    let second = write_ca(files.path(), true);
    let mut client = server.client(None).await;
    while client.get("/strait/ca").await.body != second.as_str() {
        tokio::task::yield_now().await;
    }
    let renewed = Workload::join(&server, &token).await.unwrap();
    assert_eq!(renewed.roots, second);
    renewed.accepts(&renewed).unwrap();
}
