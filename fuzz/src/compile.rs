//! Fuzz target: arbitrary bytes as a configuration file. Compiling never panics, an update reuses unchanged parts, and
//! the updated snapshot equals one that is compiled from scratch.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::{Diagnostics, ResourceSet, load_bytes};
use proxy::compile::{Inputs, compile};
use proxy::identity::Identity;
use proxy::snapshot::{HttpHosts, Service, Snapshot};
use proxy::telemetry::StatsRegistry;
use proxy::tls::Store;
use traffic::registry::{Moment, Registry};

/// Loads all documents, and the first half of them, and compiles both.
pub fn run(bytes: &[u8]) {
    let whole = load(bytes);
    let part = load(first_half(bytes));
    let identity = Identity {
        labels: BTreeMap::from([("istio".to_owned(), "ingressgateway".to_owned())]),
        ..Identity::default()
    };
    let (registry, stats) = (Registry::default(), StatsRegistry::new(1));
    let certificates = Store::default();
    let build = |resources: &ResourceSet, previous: &Snapshot| {
        compile(
            &Inputs {
                resources,
                identity: &identity,
                registry: &registry,
                stats: &stats,
                certificates: &certificates,
                now: Moment(1),
            },
            previous,
        )
    };
    let before = build(&part, &Snapshot::default());
    let updated = build(&whole, &before);
    let fresh = build(&whole, &Snapshot::default());
    check(&updated);
    assert_eq!(
        outline(&updated),
        outline(&fresh),
        "an update ends where a fresh start does"
    );

    let again = build(&whole, &updated);
    let shared = |(old, new)| Arc::ptr_eq(old, new);
    let clusters = |snapshot: &Snapshot| {
        snapshot
            .clusters
            .iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert!(
        clusters(&updated).iter().zip(&clusters(&again)).all(shared),
        "clusters are kept"
    );
    for (old, new) in updated.listeners.values().zip(again.listeners.values()) {
        assert!(Arc::ptr_eq(old, new), "listeners are kept");
    }
}

fn load(bytes: &[u8]) -> ResourceSet {
    load_bytes("fuzz.yaml", bytes, &mut Diagnostics::default())
}

/// Returns the documents up to the separator in the middle; the rest is the update.
fn first_half(bytes: &[u8]) -> &[u8] {
    let separator = b"\n---";
    let middle = bytes.len() / 2;
    let found = bytes[middle..]
        .windows(separator.len())
        .position(|window| window == separator);
    found.map_or(bytes, |at| &bytes[..middle + at])
}

/// Checks the invariants of every snapshot.
fn check(snapshot: &Snapshot) {
    for (number, cluster) in snapshot.clusters.iter().enumerate() {
        let Some(cluster) = cluster else { continue };
        assert_eq!(
            cluster.id().0 as usize,
            number,
            "a cluster stands at its number"
        );
        let total: f64 = cluster.shares().iter().sum();
        assert!(
            cluster.endpoints().is_empty() || (total - 1.0).abs() < 1e-6,
            "shares add up: {total}"
        );
    }
    for (key, listener) in &snapshot.listeners {
        assert_eq!(*key, *listener.key, "a listener stands at its address");
        for hosts in listener.all_http() {
            check_hosts(hosts);
        }
    }
}

fn check_hosts(hosts: &HttpHosts) {
    for (pattern, number) in hosts.hosts.iter() {
        let host = hosts.virtual_hosts.get(*number as usize);
        assert!(host.is_some(), "host {pattern} has routes");
    }
    for host in &hosts.virtual_hosts {
        assert_eq!(
            host.table.rules().len(),
            host.routes.len(),
            "every rule of {} does something",
            host.name
        );
    }
}

/// Returns the parts of a snapshot that a request can observe, as text.
fn outline(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, listener) in &snapshot.listeners {
        let tables = listener.all_http().flat_map(|hosts| &hosts.virtual_hosts);
        for host in tables {
            let routes: Vec<_> = host
                .routes
                .iter()
                .map(|route| (&route.name, &route.provenance))
                .collect();
            lines.push(format!(
                "{} {} {:x} {routes:?}",
                key.address, host.name, host.fingerprint
            ));
        }
        if !matches!(listener.service, Service::Http(_)) {
            lines.push(format!("{listener:?}"));
        }
    }
    for cluster in snapshot.clusters.iter().flatten() {
        lines.push(format!(
            "{} {:x} {}",
            cluster.name(),
            cluster.fingerprint,
            cluster.endpoints().len()
        ));
    }
    lines
}
