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
    let both = old.listeners.iter();
    both.filter_map(|(key, before)| Some([before, new.listeners.get(key)?]))
        .collect()
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
        let addresses = endpoints.map(|endpoint| endpoint.address.to_string());
        (&**cluster.name(), addresses.collect())
    });
    addresses.collect()
}
