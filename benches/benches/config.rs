//! Loading configuration, compiling it, recompiling after one change, and the whole path from a changed file.

use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use benches::changes::{Compiler, GATEWAY};
use config_loader::{Diagnostics, ResourceSet, WatchSettings, load_bytes, watch};
use criterion::{Criterion, criterion_group, criterion_main};
use proxy::snapshot::Snapshot;

/// Service that the routes lead to.
const SERVICE: &str = "apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s}
spec:
  hosts: [s.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1}]
";

/// Returns a gateway, one service, and `services` VirtualServices of one host and one rule each; `path` is the path of
/// the first.
fn mesh(services: usize, path: &str) -> String {
    let mut text = format!("{GATEWAY}---\n{SERVICE}");
    for index in 0..services {
        let path = if index == 0 { path } else { "/" };
        let _ = write!(
            text,
            "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: v{index}}}\nspec:\n  \
             hosts: [h{index}.example]\n  gateways: [edge]\n  http:\n  - match: [{{uri: {{prefix: {path}}}}}]\n    \
             route: [{{destination: {{host: s.example}}}}]\n"
        );
    }
    text
}

/// Returns the same configuration with one VirtualService of `rules` rules; `path` is the path of the middle rule.
fn one_object(rules: usize, path: &str) -> String {
    let mut text = format!(
        "{GATEWAY}---\n{SERVICE}---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata:\n  name: routes\nspec:\n  \
         hosts: [\"*\"]\n  gateways: [edge]\n  http:\n"
    );
    for index in 0..rules {
        let path = if index == rules / 2 { path } else { "route" };
        let _ = write!(
            text,
            "  - match:\n    - uri:\n        prefix: /{path}-{index:05}/\n    route:\n    - destination:\n        \
             host: s.example\n        port:\n          number: 80\n"
        );
    }
    text
}

fn load(text: &str) -> ResourceSet {
    load_bytes("mesh.yaml", text.as_bytes(), &mut Diagnostics::default())
}

/// Measures the time from the rename of a changed file until its snapshot is compiled, summed over `count` changes.
fn change(texts: [&str; 2], count: u64) -> Duration {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let elsewhere = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("mesh.yaml");
    let draft = elsewhere.path().join("mesh.yaml");
    fs::write(&file, texts[0]).expect("a file can be written");
    let compiler = Arc::new(Compiler::default());
    let (sender, receiver) = mpsc::channel();
    let roots = [directory.path().to_owned()];
    let first = config_loader::load_files(&roots, config_loader::LoadOptions::default()).set;
    let mut previous = compiler.snapshot(&first, &Snapshot::default());
    let watching = watch(&roots, WatchSettings::default(), move |update| {
        let snapshot = compiler.snapshot(&update.set, &previous);
        // The receiver is gone after the last change.
        let _ = sender.send(Instant::now());
        previous = snapshot;
    })
    .expect("a directory can be watched");
    let mut took = Duration::ZERO;
    for turn in 0..count {
        // The second look at a file that was read right after it changed is not part of the next change.
        std::thread::sleep(Duration::from_millis(150));
        fs::write(&draft, texts[1 - turn as usize % 2]).expect("a file can be written");
        let begin = Instant::now();
        fs::rename(&draft, &file).expect("a file can be renamed");
        let end = receiver.recv_timeout(Duration::from_secs(10));
        took += end.expect("a change is seen") - begin;
    }
    drop(watching);
    took
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("config");
    group.sample_size(20);
    for (what, before, after) in [
        ("100_objects", mesh(100, "/"), mesh(100, "/other")),
        ("5000_objects", mesh(5_000, "/"), mesh(5_000, "/other")),
        (
            "5000_rules_in_one",
            one_object(5_000, "route"),
            one_object(5_000, "other"),
        ),
    ] {
        group.bench_function(format!("load/{what}"), |bencher| {
            bencher.iter(|| black_box(load(black_box(&before))));
        });
        let compiler = Compiler::default();
        let (old, new) = (load(&before), load(&after));
        group.bench_function(format!("compile/{what}"), |bencher| {
            bencher.iter(|| black_box(compiler.snapshot(&old, &Snapshot::default())));
        });
        let previous = compiler.snapshot(&old, &Snapshot::default());
        group.bench_function(format!("compile_change/{what}"), |bencher| {
            bencher.iter(|| black_box(compiler.snapshot(&new, &previous)));
        });
        group.sample_size(10);
        group.bench_function(format!("change_in_force/{what}"), |bencher| {
            bencher.iter_custom(|count| change([&before, &after], count));
        });
        group.sample_size(20);
    }
    group.finish();
}

criterion_group!(groups, benches);
criterion_main!(groups);
