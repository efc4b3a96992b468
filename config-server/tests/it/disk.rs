//! Full or damaged disks, and data directories in use.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use config_server::store::embedded::EmbeddedStore;
use config_server::store::history::HistoryLimits;
use config_server::store::{Scan, Store};
use config_server::{Settings, start};
use serde_json::{Value, json};
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::support::TestServer;

const GTPS: &str = "/apis/flomesh.io/v1alpha1/namespaces/ns1/globaltrafficpolicies";

fn policy(name: &str, size: usize) -> Value {
    json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
        "metadata": {"name": name, "annotations": {"long": "x".repeat(size)}}, "spec": {"lbType": "Locality"},
    })
}

/// Returns a data directory that a server has written to.
async fn used_data() -> TempDir {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    for at in 0..40 {
        let created = client.post(GTPS, &policy(&format!("p{at}"), 1_000)).await;
        assert_eq!(created.code, 201, "{:?}", created.body);
    }
    drop(client);
    let stopped = server.stop().await;
    drop(stopped.open().await);
    stopped.data
}

async fn error_of_start(data: &Path) -> String {
    let settings = Settings::new(data.to_owned(), "127.0.0.1:0".parse().unwrap());
    start(&settings)
        .await
        .expect_err("the server does not start")
}

/// Returns all entries of a store file.
async fn contents(path: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let store = EmbeddedStore::open(path, HistoryLimits::default())?;
    let page = store.scan(Scan::default()).await.unwrap();
    let entries = page.entries.into_iter();
    Ok(entries
        .map(|entry| (entry.key.to_string(), entry.value.to_vec()))
        .collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_store_is_refused_with_the_way_out() {
    let data = used_data().await;
    let path = data.path().join("store.redb");
    let good = fs::read(&path).unwrap();
    let complete = contents(&path).await.unwrap();
    for length in [1, 100, 4096, good.len() / 2, good.len() - 4096] {
        fs::write(&path, &good[..length]).unwrap();
        let error = error_of_start(data.path()).await;
        let says = |text: &str| assert!(error.contains(text), "{length} bytes: {error}");
        says("store.redb is damaged");
        says("strait control restore");
    }
    fs::write(&path, "").unwrap();
    let error = error_of_start(data.path()).await;
    assert!(
        error.contains("store.redb is empty") && error.contains("strait control restore"),
        "{error}"
    );
    fs::remove_file(&path).unwrap();
    let error = error_of_start(data.path()).await;
    assert!(error.contains("store.redb is missing"), "{error}");

    // A changed byte is detected unless it belongs to an unused page.
    let mut found = 0;
    for at in (0..good.len()).step_by(good.len() / 150) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        fs::write(&path, &bad).unwrap();
        match contents(&path).await {
            Ok(read) => assert_eq!(read, complete, "byte {at}"),
            Err(error) => {
                assert!(error.contains("is damaged"), "byte {at}: {error}");
                found += 1;
            }
        }
    }
    assert!(found > 0);
    fs::write(&path, &good).unwrap();
    assert_eq!(contents(&path).await.unwrap(), complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_tokens_and_a_lost_ca_are_refused_with_the_way_out() {
    let data = used_data().await;
    for (name, way_out) in [
        ("tokens.json", "remove it and the kubeconfigs"),
        ("ca.crt", "remove both for a new CA"),
        ("ca.key", "remove both for a new CA"),
    ] {
        let path = data.path().join(name);
        let good = fs::read(&path).unwrap();
        for (torn, what) in [(Some(&good[..50]), "is damaged"), (None, "is missing")] {
            match torn {
                Some(torn) => fs::write(&path, torn).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let error = error_of_start(data.path()).await;
            for text in [name, what, way_out, "strait control restore"] {
                assert!(error.contains(text), "{error}");
            }
        }
        fs::write(&path, good).unwrap();
    }
    for name in [
        "tokens.json",
        "ca.crt",
        "ca.key",
        "admin.kubeconfig",
        "proxy.kubeconfig",
    ] {
        fs::remove_file(data.path().join(name)).unwrap();
    }
    let server = TestServer::start_in(data, |_| {}).await;
    assert_eq!(server.admin().await.get("/version").await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_directory_of_another_server_and_odd_lock_are_refused() {
    let server = TestServer::embedded().await;
    let error = error_of_start(server.data.path()).await;
    assert!(
        error.contains("is in use by another server") && error.contains("--data"),
        "{error}"
    );
    let data = tempfile::tempdir().unwrap();
    fs::create_dir(data.path().join("lock")).unwrap();
    let error = error_of_start(data.path()).await;
    assert!(error.contains("lock cannot be locked"), "{error}");
}

/// Small in-memory file system, unmounted on drop.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts the file system; `None` without permission.
    fn mount(size: &str) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        let mounted = mount.arg(directory.path()).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            println!("skipped: this user may not mount a file system");
            return None;
        }
        Some(SmallDisk(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// Number of errors logged about a full disk.
static LOGGED_FULL: AtomicUsize = AtomicUsize::new(0);

/// Log of the whole test process that counts errors about a full disk.
struct Log;

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        if text.0.contains("is full") {
            LOGGED_FULL.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// All fields of an event.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        write!(self.0, "{value:?} ").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_refuses_writes_and_nothing_else_until_there_is_space() {
    let Some(disk) = SmallDisk::mount("12m") else {
        return;
    };
    let filler = disk.0.path().join("filler");
    fs::write(&filler, vec![1; 2 << 20]).unwrap();
    tracing::subscriber::set_global_default(Log).unwrap();
    let data = tempfile::tempdir_in(disk.0.path()).unwrap();
    let server = TestServer::start_in(data, |settings| settings.writes_status = false).await;
    let mut client = server.admin().await;
    let mut lines = server.admin().await.watch(&format!("{GTPS}?watch=1")).await;
    let mut acknowledged = BTreeMap::new();
    let mut at = 0;
    let refused = loop {
        at += 1;
        assert!(at < 10_000, "the disk is not full");
        let name = format!("p{at}");
        let answer = client.post(GTPS, &policy(&name, 50_000)).await;
        match answer.code {
            201 => _ = acknowledged.insert(name, answer.body),
            _ => break answer,
        }
    };
    assert!(acknowledged.len() > 10, "{refused:?}");
    assert_eq!(refused.code, 507, "{:?}", refused.body);
    assert_eq!(refused.body["kind"], "Status");
    assert_eq!(refused.headers["retry-after"], "1");
    let message = refused.body["message"].as_str().unwrap();
    assert!(
        message.contains("is full") && message.contains("free space"),
        "{message}"
    );

    // Reads and watches continue while writes fail.
    for _ in 0..20 {
        let answer = client.post(GTPS, &policy("more", 200_000)).await;
        assert_eq!(answer.code, 507, "{:?}", answer.body);
        let list = client.get(GTPS).await;
        assert_eq!(list.code, 200, "{:?}", list.body);
        assert_eq!(
            list.body["items"].as_array().unwrap().len(),
            acknowledged.len()
        );
    }
    for _ in 0..acknowledged.len() {
        assert!(lines.step().await.starts_with("ADDED p"));
    }

    fs::remove_file(&filler).unwrap();
    let again = async {
        loop {
            let answer = client.post(GTPS, &policy("later", 10)).await;
            match answer.code {
                201 => return answer.body,
                code => assert_eq!(code, 507, "{:?}", answer.body),
            }
            tokio::task::yield_now().await;
        }
    };
    let later = tokio::time::timeout(Duration::from_secs(30), again).await;
    acknowledged.insert("later".to_owned(), later.expect("the server writes again"));
    assert_eq!(lines.step().await, "ADDED later");
    assert_eq!(LOGGED_FULL.load(Ordering::Relaxed), 1);
    drop((client, lines));
    let server = server.restart().await;
    let mut client = server.admin().await;
    for (name, object) in &acknowledged {
        assert_eq!(&client.get(&format!("{GTPS}/{name}")).await.body, object);
    }
}
