//! Index of hosts: the resources that describe each host, and their visibility and precedence for a namespace.
//!
//! `check`, the compiler of snapshots and explanations share this index. It is the same for every proxy; the view of
//! one proxy depends on its namespace ([`HostEntry::seen_from`]). A changed object updates only the entries of the
//! hosts that it describes ([`Services::update`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::describes::Describes;
use super::source::Source;
use super::{HostIndex, differences, hostname};
use crate::kind::ObjectRef;
use crate::resource::istio::{Resolution, ServiceEntry};
use crate::resource::{Object, Objects, ResourceSet};

/// Maximum length of a chain of aliases.
const ALIASES_MAX: usize = 8;

/// Index of every host that resources describe.
#[derive(Clone, Debug)]
pub struct Services {
    domain: Arc<str>,
    by_host: HostIndex<HostEntry>,
}

/// Changed hosts, each with a resource that caused the change.
pub(super) type Touched = BTreeMap<Arc<str>, ObjectRef>;

/// Resources that describe one host.
#[derive(Clone, Debug, Default)]
pub struct HostEntry {
    /// Resources by precedence: Kubernetes services before external hosts, then oldest first.
    sources: Vec<Source>,
}

/// View of a host from one namespace.
#[derive(Clone, Debug)]
pub enum Seen<'s> {
    /// Service of Kubernetes clusters. ServiceEntries for its host are ignored.
    Cluster(Vec<&'s Source>),
    /// Host outside of all clusters. The first source decides; the ports of all sources are merged, each with its
    /// endpoints.
    Outside(Vec<&'s Source>),
    /// Host that is not visible, because the object that describes it is not exported to the namespace.
    Hidden(&'s ObjectRef),
}

impl<'s> Seen<'s> {
    /// Returns the sources that are in effect for the namespace.
    pub fn sources(&self) -> &[&'s Source] {
        match self {
            Seen::Cluster(sources) | Seen::Outside(sources) => sources,
            Seen::Hidden(_) => &[],
        }
    }

    /// Returns the ports by number and name; a port can occur twice. Empty if the ports are unknown.
    pub fn ports(&self) -> Vec<(u16, &'s str)> {
        let sources = self.sources().iter();
        sources.flat_map(|source| source.ports()).collect()
    }

    /// Whether requests to a port (or to all ports) go to the address that the client dialed (`resolution: NONE`).
    pub fn has_dialled_address(&self, port: Option<u16>) -> bool {
        let Seen::Outside(sources) = self else {
            return false;
        };
        let entries = sources.iter().filter_map(|source| source.entry());
        let mut entries = entries.peekable();
        let is_none = |entry: &Object<ServiceEntry>| entry.spec.resolution == Resolution::None;
        let gives = |entry: &Object<ServiceEntry>, number| {
            let mut ports = entry.spec.ports.iter();
            ports.any(|port| port.number == number)
        };
        match port {
            Some(number) => entries
                .find(|entry| gives(entry, number))
                .is_some_and(|entry| is_none(entry)),
            None => entries.peek().is_some() && entries.all(|entry| is_none(entry)),
        }
    }

    /// Returns the target of the alias, if a Service of type ExternalName describes the host.
    fn alias_of(&self) -> Option<String> {
        match self.sources().first()? {
            Source::Service(service) => {
                let external = service.spec.external_name()?;
                Some(hostname::canonical(&external.host.to_string()).into_owned())
            }
            _ => None,
        }
    }
}

impl HostEntry {
    /// Returns every resource that describes the host, from any namespace.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Returns the view of the host from a namespace: a Kubernetes service, otherwise the ServiceEntries of the
    /// namespace (merged), otherwise the oldest resource.
    pub fn seen_from(&self, namespace: &str) -> Seen<'_> {
        let seen = || {
            self.sources
                .iter()
                .filter(|source| self.is_seen(source, namespace))
        };
        let cluster: Vec<_> = seen().filter(|source| source.is_of_cluster()).collect();
        if !cluster.is_empty() {
            return Seen::Cluster(cluster);
        }
        let is_near = |source: &&Source| {
            source
                .entry()
                .is_some_and(|entry| *entry.id.namespace == *namespace)
        };
        let Some(first) = seen().find(is_near).or_else(|| seen().next()) else {
            return self.hidden();
        };
        let Some(entry) = first.entry() else {
            return Seen::Outside(vec![first]);
        };
        let is_joined = |source: &&Source| {
            source
                .entry()
                .is_some_and(|other| other.id.namespace == entry.id.namespace)
        };
        Seen::Outside(seen().filter(is_joined).collect())
    }

    /// Whether a source is visible from a namespace. Of the ServiceEntries of one namespace the oldest decides.
    fn is_seen(&self, source: &Source, namespace: &str) -> bool {
        let mut entries = self.sources.iter().filter_map(Source::entry);
        match source {
            Source::Entry(entry) => entries
                .find(|other| other.id.namespace == entry.id.namespace)
                .is_some_and(|oldest| oldest.spec.export_to.includes(namespace)),
            source => source.is_seen_from(namespace),
        }
    }

    fn hidden(&self) -> Seen<'_> {
        match self.sources.first() {
            Some(source) => Seen::Hidden(source.id()),
            None => Seen::Outside(Vec::new()),
        }
    }

    /// Adds a source. An object that names the host twice is added once.
    fn add(&mut self, source: Source) {
        if self.sources.iter().any(|known| known.id() == source.id()) {
            return;
        }
        let at = self
            .sources
            .partition_point(|known| known.precedence() <= source.precedence());
        self.sources.insert(at, source);
    }
}

impl Services {
    /// Indexes all resources that describe hosts, in a mesh with this domain.
    pub fn new(set: &ResourceSet, domain: &Arc<str>) -> Self {
        let mut services = Self {
            domain: Arc::clone(domain),
            by_host: HostIndex::new(),
        };
        services.update(&ResourceSet::default(), set);
        services
    }

    /// Applies a change of the indexed resources. Returns the hosts whose description changed, each with a resource
    /// that caused the change.
    pub fn update(&mut self, before: &ResourceSet, now: &ResourceSet) -> Touched {
        let mut touched = Touched::new();
        self.follow(&before.services, &now.services, &mut touched);
        self.follow(&before.service_entries, &now.service_entries, &mut touched);
        self.follow(&before.service_imports, &now.service_imports, &mut touched);
        self.follow(&before.destinations, &now.destinations, &mut touched);
        self.follow(
            &before.multi_cluster_services,
            &now.multi_cluster_services,
            &mut touched,
        );
        touched
    }

    fn follow<T: Describes>(
        &mut self,
        before: &Objects<T>,
        now: &Objects<T>,
        touched: &mut Touched,
    ) {
        let changes: Vec<_> = differences(before, now).collect();
        for (gone, came) in changes {
            if let Some(gone) = gone {
                self.remove(gone, touched);
            }
            if let Some(came) = came {
                self.add(came, touched);
            }
        }
        if before.same(now) {
            return;
        }
        for (_, gone) in before.all_in_other_groups() {
            self.remove(gone, touched);
        }
        for (_, came) in now.all_in_other_groups() {
            self.add(came, touched);
        }
    }

    fn add<T: Describes>(&mut self, object: &Arc<Object<T>>, touched: &mut Touched) {
        T::sources(object, &self.domain, &mut |host, source| {
            self.by_host.entry(host).add(source);
            touched.insert(host.into(), object.id.clone());
        });
    }

    fn remove<T: Describes>(&mut self, object: &Arc<Object<T>>, touched: &mut Touched) {
        T::sources(object, &self.domain, &mut |host, _| {
            touched.insert(host.into(), object.id.clone());
            let Some(entry) = self.by_host.get_mut(host) else {
                return;
            };
            entry.sources.retain(|source| *source.id() != object.id);
            if entry.sources.is_empty() {
                self.by_host.remove(host);
            }
        });
    }

    /// Returns the resources that describe this exact host or wildcard.
    pub fn get(&self, host: &str) -> Option<&HostEntry> {
        self.by_host.get(host)
    }

    /// Returns the resources that describe a host: the exact match, otherwise the longest wildcard that covers it.
    pub fn find(&self, host: &str) -> Option<&HostEntry> {
        self.by_host.find(host)
    }

    /// Returns the view of a host from a namespace: the exact match, otherwise the longest visible wildcard that covers
    /// it. `None` if no resource describes the host.
    pub fn find_from(&self, host: &str, namespace: &str) -> Option<Seen<'_>> {
        let mut hidden = None;
        for entry in self.by_host.covering(host) {
            match entry.seen_from(namespace) {
                Seen::Hidden(by) => {
                    hidden.get_or_insert(Seen::Hidden(by));
                }
                seen => return Some(seen),
            }
        }
        hidden
    }

    /// Follows a host from alias to alias (Services of type ExternalName), as a namespace sees them. Only the last name
    /// can be one that no resource describes. For a loop, the result has one name more than the maximum length of a
    /// chain.
    pub fn aliases(&self, host: &str, namespace: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        while names.len() <= ALIASES_MAX {
            let last = names.last().map_or(host, String::as_str);
            let entry = self.get(last).map(|entry| entry.seen_from(namespace));
            let target = entry.as_ref().and_then(Seen::alias_of);
            match target {
                Some(target) => names.push(target),
                None => break,
            }
        }
        names
    }

    /// Returns the last name in a chain of aliases that a resource describes. `None` if the host is no alias, its
    /// target is a DNS name that no resource describes, or the chain is too long.
    pub fn behind_alias(&self, host: &str, namespace: &str) -> Option<String> {
        let mut names = self.aliases(host, namespace);
        if names.len() > ALIASES_MAX {
            return None;
        }
        let last = names.pop()?;
        match self.find_from(&last, namespace) {
            None | Some(Seen::Hidden(_)) => names.pop(),
            Some(_) => Some(last),
        }
    }

    /// Whether the chain of aliases that starts at a host is too long.
    pub fn is_endless_alias(&self, host: &str, namespace: &str) -> bool {
        self.aliases(host, namespace).len() > ALIASES_MAX
    }

    /// Whether a resource that the namespace sees describes this exact host.
    pub fn has(&self, host: &str, namespace: &str) -> bool {
        self.get(host)
            .is_some_and(|entry| !matches!(entry.seen_from(namespace), Seen::Hidden(_)))
    }

    /// Iterates over every host and wildcard with its resources, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &HostEntry)> {
        self.by_host.iter()
    }
}

#[cfg(test)]
mod tests;
