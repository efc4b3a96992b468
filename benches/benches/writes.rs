//! Writes per second of the config server's stores. A write counts once it is synced to disk.
//!
//! Prints a table: `cargo bench -p benches --bench writes`. The data is below the target directory, since `/tmp` may be
//! in memory.
//! etcd is skipped if it is not installed.

// A bench prints, and may fail by a panic.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use config_server::store::embedded::EmbeddedStore;
use config_server::store::etcd::{EtcdSettings, EtcdStore};
use config_server::store::history::HistoryLimits;
use config_server::store::{Expected, Store, Written};
use tempfile::TempDir;

/// Duration of each measurement.
const TIME: Duration = Duration::from_secs(3);
/// Number of runs of each measurement; their spread shows the noise of the machine.
const ROUNDS: usize = 5;
/// Bytes of a value: a VirtualService with a few routes.
const VALUE: usize = 2_000;

/// Result of one round.
struct Round {
    per_second: f64,
    latencies: Vec<Duration>,
}

/// Runs `writers` concurrent writers for [`TIME`], each of which writes new keys.
async fn measure(store: &Arc<dyn Store>, writers: usize, round: usize) -> Round {
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while start.elapsed() < TIME {
                    let key = format!("/bench/{writers}-{round}/{writer}/{}", latencies.len());
                    let value = vec![b'x'; VALUE].into();
                    let begin = Instant::now();
                    let written = store.write(key, Expected::Absent, Some(value)).await;
                    assert!(matches!(written, Ok(Written::Done(_))), "{written:?}");
                    latencies.push(begin.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    let per_second = latencies.len() as f64 / start.elapsed().as_secs_f64();
    latencies.sort_unstable();
    Round {
        per_second,
        latencies,
    }
}

async fn table(name: &str, store: Arc<dyn Store>) {
    for writers in [1, 16, 64] {
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            rounds.push(measure(&store, writers, round).await);
        }
        rounds.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        let middle = &rounds[ROUNDS / 2];
        let at = |share: usize| {
            let all = &middle.latencies;
            all[(all.len() * share / 100).min(all.len() - 1)].as_secs_f64() * 1e3
        };
        println!(
            "| {name} | {writers} | {:.0} | {:.0} to {:.0} | {:.2} ms | {:.2} ms |",
            middle.per_second,
            rounds[0].per_second,
            rounds[ROUNDS - 1].per_second,
            at(50),
            at(99),
        );
    }
}

/// Prints the number of one-page syncs per second: the limit of the disk.
fn syncs(directory: &TempDir) {
    let path = directory.path().join("page");
    let mut file = File::create(&path).unwrap();
    file.write_all(&[0; 4096]).unwrap();
    let mut found: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let start = Instant::now();
            let mut count = 0_u32;
            while start.elapsed() < Duration::from_secs(1) {
                file.write_all_at(&[u8::try_from(round).unwrap(); 4096], 0)
                    .unwrap();
                file.sync_data().unwrap();
                count += 1;
            }
            f64::from(count) / start.elapsed().as_secs_f64()
        })
        .collect();
    found.sort_by(f64::total_cmp);
    println!(
        "| fdatasync of one page | 1 | {:.0} | {:.0} to {:.0} | | |",
        found[ROUNDS / 2],
        found[0],
        found[ROUNDS - 1]
    );
}

/// etcd process, killed on drop.
struct Etcd {
    child: Child,
    url: String,
}

impl Etcd {
    fn start(directory: &TempDir) -> Option<Etcd> {
        let any = "http://127.0.0.1:0";
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(directory.path().join("etcd"))
            .args(["--listen-client-urls", any, "--listen-peer-urls", any])
            .args(["--advertise-client-urls", any, "--logger", "zap"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            println!("etcd is left out: it is not installed");
            return None;
        };
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let line: serde_json::Value = serde_json::from_str(&line).ok()?;
            let message = line["msg"].as_str()?;
            let is_it = message.starts_with("serving") && message.contains("client");
            is_it.then(|| format!("http://{}", line["address"].as_str().unwrap_or("")))
        });
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.expect("etcd tells where it serves");
        Some(Etcd { child, url })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../target");
    std::fs::create_dir_all(base).unwrap();
    let directory = tempfile::tempdir_in(base).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    println!("| store | writers | writes per second | rounds | p50 | p99 |");
    println!("|---|---:|---:|---|---:|---:|");
    syncs(&directory);
    runtime.block_on(async {
        let path = directory.path().join("store.redb");
        let store = EmbeddedStore::open(&path, HistoryLimits::default()).unwrap();
        table("redb", Arc::new(store)).await;
        let start = Instant::now();
        drop(EmbeddedStore::open(&path, HistoryLimits::default()).unwrap());
        let (took, bytes) = (start.elapsed(), path.metadata().unwrap().len());
        println!(
            "| redb, opened with a check of all {} MB | | | | {} ms | |",
            bytes >> 20,
            took.as_millis()
        );
        if let Some(etcd) = Etcd::start(&directory) {
            let settings = EtcdSettings {
                urls: vec![etcd.url.clone()],
                prefix: "/bench".to_owned(),
                ..EtcdSettings::default()
            };
            let store = EtcdStore::open_for_command(&settings).await.unwrap();
            table("etcd, one member", Arc::new(store)).await;
        }
    });
    syncs(&directory);
}
