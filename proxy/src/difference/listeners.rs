//! Listeners and endpoints that are added or removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::report::{EndpointChange, Report};
use crate::snapshot::{Listener, Snapshot};

/// Returns the listeners that both have, and reports the others.
pub(super) fn common<'s>(
    old: &'s Snapshot,
    new: &'s Snapshot,
    report: &mut Report,
) -> Vec<[&'s Arc<Listener>; 2]> {
    let only = |these: &Snapshot, others: &Snapshot| {
        let keys = these.listeners.keys();
        let keys = keys.filter(|key| !others.listeners.contains_key(*key));
        keys.map(ToString::to_string).collect()
    };
    report.opened = only(new, old);
    report.closed = only(old, new);
    report.is_without_listeners = old.listeners.is_empty() && new.listeners.is_empty();
    let both = old.listeners.iter();
    both.filter_map(|(key, before)| Some([before, new.listeners.get(key)?]))
        .collect()
}

/// Reports clusters whose settings differ where they are not compared request by request.
pub(super) fn settings(old: &Snapshot, new: &Snapshot, report: &mut Report) {
    let old = old.clusters.iter().flatten();
    let old: BTreeMap<&str, _> = old.map(|one| (&**one.name(), one)).collect();
    for after in new.clusters.iter().flatten() {
        let Some(before) = old.get(&**after.name()) else {
            continue;
        };
        let others = [*before, after].map(|one| format!("{:?} {:?}", one.retry_limit, one.check));
        let parts = [
            ("balancing", before.balance != after.balance),
            ("connections", before.pool != after.pool),
            ("retries or health checks", others[0] != others[1]),
        ];
        let parts: Vec<&str> = parts
            .iter()
            .filter(|part| part.1)
            .map(|part| part.0)
            .collect();
        if !parts.is_empty() {
            let (name, parts) = (after.name(), parts.join(", "));
            report.note(format!("settings of {name} differ: {parts}"), false);
        }
    }
}

/// Reports the endpoints of clusters that are added or removed, in clusters that both have.
pub(super) fn endpoints(old: &Snapshot, new: &Snapshot, report: &mut Report) {
    let (old, new) = (addresses(old), addresses(new));
    for (name, before) in &old {
        let Some(after) = new.get(name) else { continue };
        if before == after {
            continue;
        }
        report.endpoints.push(EndpointChange {
            cluster: (*name).to_owned(),
            added: after.difference(before).cloned().collect(),
            removed: before.difference(after).cloned().collect(),
        });
    }
}

fn addresses(snapshot: &Snapshot) -> BTreeMap<&str, BTreeSet<String>> {
    let clusters = snapshot.clusters.iter().flatten();
    let addresses = clusters.map(|cluster| {
        let endpoints = cluster.endpoints().iter();
        let addresses = endpoints.map(|endpoint| match endpoint.weight {
            1 => endpoint.address.to_string(),
            weight => format!("{} (weight {weight})", endpoint.address),
        });
        (&**cluster.name(), addresses.collect())
    });
    addresses.collect()
}
