//! Services outside of all clusters: hosts that ServiceEntries or Destinations describe, and no cluster serves.

use std::sync::Arc;

use config_loader::catalog::{HostEntry, Seen, Services as Catalog, Source};
use config_loader::resource::Age;
use config_loader::resource::gloo::Backing;
use ipnet::IpNet;

use crate::compile::services::collector::{Collector, Draft};
use crate::compile::services::{entry, gloo};

/// A service outside of all clusters.
pub(in crate::compile) struct Outside<'a> {
    /// The age of the resource that decides.
    age: Age<'a>,
    /// Which of its hosts it is.
    position: usize,
    pub draft: Draft,
    /// The addresses that represent it, each with the age of the resource that says so.
    pub addresses: Vec<(Age<'a>, IpNet)>,
}

/// Adds every host that no service of a cluster has.
pub(in crate::compile) fn collect<'a>(collector: &mut Collector<'a>, catalog: &'a Catalog) {
    let hosts = catalog
        .iter()
        .filter(|(host, _)| !collector.by_host.contains_key(&***host));
    let all = hosts.filter_map(|(host, entry)| of_host(collector, host, entry));
    let mut all: Vec<Outside<'a>> = all.collect();
    // of several hosts with one address the first of the oldest resource has it
    all.sort_by_key(|one| (one.age, one.position));
    for one in all {
        let host = Arc::clone(&one.draft.service.host);
        collector.add(one.draft);
        for (age, net) in one.addresses {
            collector.claim(age, net, &host);
        }
    }
}

/// What the proxy's namespace sees of a host outside of all clusters; `None` if it sees a service of a cluster, or nothing.
pub(in crate::compile) fn of_host<'a>(
    collector: &Collector<'_>,
    host: &str,
    entry: &'a HostEntry,
) -> Option<Outside<'a>> {
    let Seen::Outside(sources) = entry.seen_from(&collector.identity.namespace) else {
        return None;
    };
    match sources.first()? {
        Source::Entry(first) => {
            let entries: Vec<_> = sources.iter().filter_map(|source| source.entry()).collect();
            let named = |name: &str| name.eq_ignore_ascii_case(host);
            let mut hosts = first.spec.hosts.iter();
            let addresses = first.spec.addresses.iter();
            let addresses = addresses.map(|net| (first.age(), *net));
            Some(Outside {
                age: first.age(),
                position: hosts.position(|host| named(&host.value)).unwrap_or(0),
                addresses: addresses.collect(),
                draft: entry::outside(collector, host, &entries)?,
            })
        }
        Source::External(object) => {
            let Backing::External(external) = &object.spec.backing else {
                return None;
            };
            let mut hosts = external.hosts.iter();
            let addresses = external.addresses.iter();
            Some(Outside {
                age: object.age(),
                position: hosts
                    .position(|name| name.eq_ignore_ascii_case(host))
                    .unwrap_or(0),
                addresses: addresses.map(|net| (object.age(), *net)).collect(),
                draft: gloo::external(host, object)?,
            })
        }
        Source::Service(_) | Source::Import(_) | Source::Destination(_) | Source::Exposure(_) => {
            None
        }
    }
}
