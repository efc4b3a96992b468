//! Services outside of all clusters: hosts that ServiceEntries or Destinations describe, and that no cluster serves.

use config_loader::catalog::{HostEntry, Seen, Source};
use config_loader::resource::gloo::Backing;

use crate::compile::services::collector::{Collector, Draft};
use crate::compile::services::{entry, gloo};

/// Adds a host as the proxy's namespace sees it, unless a cluster serves it or the host is not visible.
pub(in crate::compile) fn collect(collector: &mut Collector<'_>, host: &str) {
    let entry = collector.described(host);
    if let Some(draft) = entry.and_then(|entry| of_host(collector, host, entry)) {
        collector.add(draft);
    }
}

fn of_host(collector: &mut Collector<'_>, host: &str, entry: &HostEntry) -> Option<Draft> {
    let Seen::Outside(sources) = entry.seen_from(&collector.identity.namespace) else {
        return None;
    };
    let is_it = |name: &str| name.eq_ignore_ascii_case(host);
    let (age, position, addresses, draft) = match sources.first()? {
        Source::Entry(first) => {
            let entries: Vec<_> = sources.iter().filter_map(|source| source.entry()).collect();
            let draft = entry::outside(collector, host, &entries)?;
            let position = first.spec.hosts.iter().position(|host| is_it(&host.value));
            (first.age(), position, &first.spec.addresses, draft)
        }
        Source::External(object) => {
            let Backing::External(external) = &object.spec.backing else {
                return None;
            };
            let draft = gloo::external(host, object)?;
            let position = external.hosts.iter().position(|name| is_it(name));
            (object.age(), position, &external.addresses, draft)
        }
        Source::Service(_) | Source::Import(_) | Source::Destination(_) | Source::Exposure(_) => {
            return None;
        }
    };
    for net in addresses {
        // if several hosts claim one address, the first host of the oldest resource gets it
        collector.claim(age, position.unwrap_or(0), *net, &draft.service.host);
    }
    Some(draft)
}
