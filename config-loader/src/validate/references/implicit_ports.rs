//! Routes that name no port, and the port that they mean.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::location;
use crate::catalog::hostname;
use crate::diagnostic::Location;
use crate::resource::Object;
use crate::resource::istio::{Destination, VirtualService};

/// Routes that name no port: the first to each host and subset.
#[derive(Default)]
pub(super) struct ImplicitPorts {
    /// Those to services of several ports.
    pub(super) of_several: ByHost,
    /// Those to services of one port, which is then the one.
    pub(super) of_one: ByHost,
}

/// Places by host and subset.
#[derive(Default)]
pub(super) struct ByHost(BTreeMap<String, BTreeMap<Option<String>, Location>>);

impl ImplicitPorts {
    pub(super) fn add(
        &mut self,
        object: &Object<VirtualService>,
        destination: &Destination,
        host: &str,
        ports: &[(u16, &str)],
    ) {
        let by_host = match count(ports) > 1 {
            true => &mut self.of_several.0,
            false => &mut self.of_one.0,
        };
        let of_host = by_host.entry(host.to_owned()).or_default();
        let subset = destination.subset.as_deref().map(str::to_owned);
        of_host
            .entry(subset)
            .or_insert_with(|| location(object, destination.line));
    }
}

/// How many different ports these are.
pub(super) fn count(ports: &[(u16, &str)]) -> usize {
    let numbers: BTreeSet<u16> = ports.iter().map(|(number, _)| *number).collect();
    numbers.len()
}

impl ByHost {
    /// The first route to a host that a rule for `pattern` covers, and to `subset` if there is one.
    pub(super) fn first(&self, pattern: &str, subset: Option<&str>) -> Option<&Location> {
        let mut covered = self
            .0
            .iter()
            .filter(|(host, _)| hostname::is_subset(host, pattern));
        covered.find_map(|(_, routes)| match subset {
            None => routes.values().next(),
            Some(subset) => routes.get(&Some(subset.to_owned())),
        })
    }
}
