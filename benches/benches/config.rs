//! Loading configuration, compiling it, and compiling it again after one change.

use std::fmt::Write;
use std::hint::black_box;

use config_loader::{Diagnostics, ResourceSet, load_bytes};
use criterion::{Criterion, criterion_group, criterion_main};
use proxy::compile::{Inputs, compile};
use proxy::identity::Identity;
use proxy::registry::Registry;
use proxy::snapshot::Snapshot;
use proxy::telemetry::StatsRegistry;

/// A gateway, one service, and this many VirtualServices of one host and one rule each; `path` marks the first.
fn mesh(services: usize, path: &str) -> String {
    let mut text = String::from(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: edge}\nspec:\n  servers:\n  - port: \
         {number: 8080, name: http, protocol: HTTP}\n    hosts: ['*']\n---\napiVersion: networking.istio.io/v1\nkind: \
         ServiceEntry\nmetadata: {name: s}\nspec:\n  hosts: [s.example]\n  resolution: STATIC\n  ports: [{number: \
         80, name: http, protocol: HTTP}]\n  endpoints: [{address: 127.0.0.1}]\n",
    );
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

fn load(text: &str) -> ResourceSet {
    load_bytes("mesh.yaml", text.as_bytes(), &mut Diagnostics::default())
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("config");
    group.sample_size(20);
    for services in [100, 5_000] {
        let text = mesh(services, "/");
        group.bench_function(format!("load/{services}_routes"), |bencher| {
            bencher.iter(|| black_box(load(black_box(&text))));
        });
        let (registry, stats, identity) = (
            Registry::default(),
            StatsRegistry::new(1),
            Identity::default(),
        );
        let (before, after) = (load(&text), load(&mesh(services, "/other")));
        let snapshot = |resources: &ResourceSet, previous: &Snapshot| {
            let inputs = Inputs {
                resources,
                identity: &identity,
                registry: &registry,
                stats: &stats,
            };
            compile(&inputs, previous)
        };
        group.bench_function(format!("compile/{services}_routes"), |bencher| {
            bencher.iter(|| black_box(snapshot(&before, &Snapshot::default())));
        });
        let previous = snapshot(&before, &Snapshot::default());
        group.bench_function(
            format!("compile/one_of_{services}_routes_changed"),
            |bencher| {
                bencher.iter(|| black_box(snapshot(&after, &previous)));
            },
        );
    }
    group.finish();
}

criterion_group!(groups, benches);
criterion_main!(groups);
