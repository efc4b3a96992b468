//! Routes without a port number, and the port that they use.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::location;
use crate::catalog::hostname;
use crate::diagnostic::Location;
use crate::resource::Object;
use crate::resource::istio::{Destination, VirtualService};

/// Routes without a port number: the first one to each host and subset.
#[derive(Default)]
pub(super) struct ImplicitPorts {
    /// Routes to services with several ports.
    pub(super) of_several: ByHost,
    /// Routes to services with one port, which they use.
    pub(super) of_one: ByHost,
}

/// Locations by host and subset.
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

/// Returns the number of distinct port numbers.
pub(super) fn count(ports: &[(u16, &str)]) -> usize {
    let numbers: BTreeSet<u16> = ports.iter().map(|(number, _)| *number).collect();
    numbers.len()
}

impl ByHost {
    /// Returns the first route to `subset`, if given, of a host that a rule for `pattern` covers.
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
