//! Replicas after the loss of etcd, of one member, of its history, or of another replica.

use std::fs;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config_server::store::etcd::EtcdSettings;
use config_server::{Settings, start};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::etcd::{Etcd, free_url, is_installed};
use crate::load::Load;
use crate::process::ServerProcess;
use crate::support::TestServer;

const GTPS: &str = "/apis/flomesh.io/v1alpha1/namespaces/ns1/globaltrafficpolicies";
const PATIENCE: Duration = Duration::from_secs(60);

fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
        "metadata": {"name": name}, "spec": {"lbType": "Locality"},
    })
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

/// Returns the path of a file in a directory, as an argument.
fn in_directory(directory: &Path, name: &str) -> String {
    directory.join(name).to_str().unwrap().to_owned()
}

/// Writes `ca.crt`, and the certificates `server` and `client` with their keys.
fn make_certificates(directory: &Path) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = params.self_signed(&key).unwrap();
    fs::write(directory.join("ca.crt"), ca.pem()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&ca.pem(), key).unwrap();
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = params.signed_by(&key, &issuer).unwrap();
        fs::write(directory.join(format!("{name}.crt")), certificate.pem()).unwrap();
        fs::write(directory.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_is_reached_with_a_client_certificate_only() {
    if !is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let file = |name: &str| in_directory(directory.path(), name);
    let (ca, certificate, key) = (file("ca.crt"), file("server.crt"), file("server.key"));
    let arguments = [
        "--listen-peer-urls",
        "http://127.0.0.1:0",
        "--client-cert-auth",
        "--trusted-ca-file",
        &ca,
        "--cert-file",
        &certificate,
        "--key-file",
        &key,
    ];
    let etcd = Etcd::start_with("https://127.0.0.1:0", &arguments);
    let with_certificate = EtcdSettings {
        ca: Some(ca.into()),
        certificate: Some(file("client.crt").into()),
        key: Some(file("client.key").into()),
        ..etcd.settings()
    };
    let without = EtcdSettings {
        certificate: None,
        key: None,
        ..with_certificate.clone()
    };
    let server = TestServer::on(with_certificate).await;
    let created = server.admin().await.post(GTPS, &policy("a")).await;
    assert_eq!(created.code, 201, "{:?}", created.body);
    let path = format!("{GTPS}?watch=1");
    let mut lines = server.admin().await.watch(&path).await;
    assert_eq!(lines.step().await, "ADDED a");

    let data = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(data.path().to_owned(), "127.0.0.1:0".parse().unwrap());
    settings.etcd = Some(without);
    let error = start(&settings).await.err().unwrap();
    assert!(error.starts_with(&etcd.url), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_and_watches_survive_kill_9_of_etcd() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    let server = TestServer::on(etcd.settings()).await;
    let load = Load::start(server.address, server.data.path().to_owned(), true).await;
    for _ in 0..5 {
        load.writes(30).await;
        etcd.kill();
        etcd.run().recv().unwrap();
        load.writes(1).await;
        load.resume().await;
    }
    load.finish().await;
}

/// Starts an etcd on a known port, which its JSON gateway requires.
fn with_gateway() -> Etcd {
    Etcd::start_with(&free_url(), &["--listen-peer-urls", "http://127.0.0.1:0"])
}

/// Sends a request to the JSON gateway of etcd.
async fn ask(etcd: &Etcd, path: &str, body: &Value) -> String {
    let address = etcd.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: etcd\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// Compacts the history of etcd up to a revision, as another user of it may do.
async fn compact(etcd: &Etcd, revision: u64) {
    let body = json!({"revision": revision.to_string()});
    ask(etcd, "/v3/kv/compaction", &body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_that_was_compacted_is_410_and_a_list_goes_on() {
    if !is_installed() {
        return;
    }
    let mut etcd = with_gateway();
    let settings = etcd.settings();
    let server = TestServer::on(settings.clone()).await;
    let mut client = server.admin().await;
    let first = revision(&client.post(GTPS, &policy("a")).await.body);
    client.post(GTPS, &policy("b")).await;
    let page = client.get(&format!("{GTPS}?limit=1")).await.body;
    let token = page["metadata"]["continue"].as_str().unwrap().to_owned();
    let last = revision(&client.post(GTPS, &policy("c")).await.body);
    compact(&etcd, last).await;

    // The old revision has expired. The error has a token that continues the list at the latest revision.
    let expired = client
        .get(&format!("{GTPS}?limit=1&continue={token}"))
        .await;
    assert_eq!(
        (expired.code, &expired.body["reason"]),
        (410, &json!("Expired"))
    );
    let next = expired.body["metadata"]["continue"].as_str().unwrap();
    let rest = client.get(&format!("{GTPS}?continue={next}")).await.body;
    assert_eq!(rest["items"].as_array().unwrap().len(), 2, "{rest}");

    // A replica that starts now has no earlier changes.
    let other = TestServer::on(settings).await;
    let mut lines = other
        .admin()
        .await
        .watch(&format!("{GTPS}?watch=1&resourceVersion={first}"))
        .await;
    let event = lines.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    assert_eq!(lines.next().await, None);
    let list = other.admin().await.get(GTPS).await.body;
    let listed = revision(&list);
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    let path = format!("{GTPS}?watch=1&resourceVersion={listed}");
    let mut lines = other.admin().await.watch(&path).await;
    client.post(GTPS, &policy("d")).await;
    assert_eq!(lines.step().await, "ADDED d");

    // Watches continue after etcd was temporarily down.
    etcd.kill();
    etcd.run().recv().unwrap();
    client.post(GTPS, &policy("e")).await;
    assert_eq!(lines.step().await, "ADDED e");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_replicas_serve_on_and_lead_after_kill_9_of_one() {
    if !is_installed() {
        return;
    }
    let etcd = with_gateway();
    let settings = etcd.settings();
    let mut first = ServerProcess::new(Some(settings.clone()));
    first.spawn();
    first.until_ready().await;
    // The first server becomes the leader before the others start.
    let led = async {
        while !has_leader(&etcd, &settings).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, led)
        .await
        .expect("the first replica leads");
    let others = [
        TestServer::on(settings.clone()).await,
        TestServer::on(settings).await,
    ];
    let path = format!("{GTPS}?watch=1");
    let mut lines = others[1].admin().await.watch(&path).await;
    let mut client = first.client().await.unwrap();
    assert_eq!(client.post(GTPS, &policy("before")).await.code, 201);
    assert_eq!(lines.step().await, "ADDED before");
    assert!(!others.iter().any(|other| other.store.is_leader()));
    first.kill();
    let mut client = others[0].admin().await;
    let created = client.post(GTPS, &policy("after")).await;
    assert_eq!(created.code, 201, "{:?}", created.body);
    assert_eq!(lines.step().await, "ADDED after");
    let moved = async {
        while !others.iter().any(|other| other.store.is_leader()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, moved)
        .await
        .expect("another replica leads");
    assert!(!others.iter().all(|other| other.store.is_leader()));
    // The killed replica rejoins as a follower.
    first.spawn();
    first.until_ready().await;
    let read = first
        .client()
        .await
        .unwrap()
        .get(&format!("{GTPS}/after"))
        .await;
    assert_eq!(read.body, created.body);
}

/// Whether a replica is the leader, according to the leader's key.
async fn has_leader(etcd: &Etcd, settings: &EtcdSettings) -> bool {
    let key = STANDARD.encode(format!("{}/leader", settings.prefix));
    let answer = ask(etcd, "/v3/kv/range", &json!({"key": key})).await;
    answer.contains("\"kvs\"")
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_go_on_without_one() {
    if !is_installed() {
        return;
    }
    let peers = [free_url(), free_url(), free_url()];
    let cluster: Vec<String> = peers
        .iter()
        .enumerate()
        .map(|(at, peer)| format!("m{at}={peer}"))
        .collect();
    let cluster = cluster.join(",");
    let start = |at: usize| {
        let (name, peer, cluster) = (format!("m{at}"), peers[at].clone(), cluster.clone());
        std::thread::spawn(move || {
            let arguments = [
                "--name",
                &name,
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
                "--initial-cluster",
                &cluster,
            ];
            Etcd::start_with(&free_url(), &arguments)
        })
    };
    let starting = [start(0), start(1), start(2)];
    let mut members = starting.map(|member| member.join().unwrap());
    let settings = EtcdSettings {
        urls: members.iter().map(|member| member.url.clone()).collect(),
        ..members[0].settings()
    };
    let server = TestServer::on(settings).await;
    let load = Load::start(server.address, server.data.path().to_owned(), true).await;
    for member in &mut members {
        load.writes(20).await;
        member.kill();
        load.writes(20).await;
        member.run().recv().unwrap();
    }
    load.writes(20).await;
    load.resume().await;
    load.finish().await;
}
