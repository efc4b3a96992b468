//! Virtual hosts, each that of the snapshot before unless something that it was made from has changed.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::compile::clusters::Clusters;
use crate::compile::rules::Compiled;
use crate::compile::update::host_reads::{HostReads, PartKey};
use crate::snapshot::{Route, VirtualHost};
use traffic::route::{Rule, Table};

/// Virtual hosts of some servers, kept from one compile to the next.
pub(in crate::compile) struct KeptHosts {
    servers: String,
    reads: HostReads,
    /// Virtual hosts that the change rebuilds, each with the resource that caused it.
    touched: HashMap<PartKey, Arc<str>>,
    /// Resource whose change rebuilds the list of virtual hosts.
    cause: Option<Arc<str>>,
    /// Virtual hosts of this compile so far: a sidecar may serve one as a service and for its route source.
    now: HashMap<PartKey, Option<Arc<VirtualHost>>>,
}

/// Virtual host that is kept or made.
pub(in crate::compile) struct HostPart<'a> {
    pub name: Arc<str>,
    pub is_grpc_web: bool,
    /// Hash of everything else that the routes are made from, apart from reads.
    pub inputs: u64,
    /// Virtual host of this name in the snapshot before.
    pub before: Option<&'a Arc<VirtualHost>>,
}

impl KeptHosts {
    /// Takes the virtual hosts of the servers with this name.
    pub(in crate::compile) fn take(servers: String, clusters: &mut Clusters<'_>) -> Self {
        let reads = clusters.host_reads.take(&servers);
        Self {
            servers,
            touched: reads.hosts.touched(clusters.changes()),
            reads,
            cause: None,
            now: HashMap::new(),
        }
    }

    /// Whether the list of virtual hosts is as it was, for servers with this hash.
    pub(in crate::compile) fn is_list_kept(
        &mut self,
        servers: u64,
        clusters: &Clusters<'_>,
    ) -> bool {
        let Some((before, reads)) = &self.reads.list else {
            return false;
        };
        self.cause = clusters.changes().cause_for(reads).cloned();
        self.cause.is_none() && *before == servers
    }

    /// Makes the list of virtual hosts for servers with this hash.
    pub(in crate::compile) fn list<T>(
        &mut self,
        servers: u64,
        clusters: &Clusters<'_>,
        make: impl FnOnce() -> T,
    ) -> T {
        let (list, reads) = clusters.tape().part(make);
        self.reads.list = Some((servers, reads));
        list
    }

    /// Returns the names of the virtual hosts that the change rebuilds.
    pub(in crate::compile) fn touched(&self) -> BTreeSet<Arc<str>> {
        let names = self.touched.keys().map(|part| &part.name);
        names.cloned().collect()
    }

    /// Returns a virtual host; `None` if `make` finds no routes. One that is made from equal inputs and reads stays the
    /// one of before.
    pub(in crate::compile) fn virtual_host(
        &mut self,
        host: HostPart<'_>,
        clusters: &mut Clusters<'_>,
        make: impl FnOnce(&mut Clusters<'_>) -> Option<Vec<Compiled>>,
    ) -> Option<Arc<VirtualHost>> {
        let inputs = clusters.inputs((host.inputs, &host.name, host.is_grpc_web));
        let part = PartKey {
            name: Arc::clone(&host.name),
            inputs,
        };
        if let Some(known) = self.now.get(&part) {
            return known.clone();
        }
        let now = self.kept_or_made(&part, host, clusters, make);
        self.now.insert(part, now.clone());
        now
    }

    fn kept_or_made(
        &mut self,
        part: &PartKey,
        host: HostPart<'_>,
        clusters: &mut Clusters<'_>,
        make: impl FnOnce(&mut Clusters<'_>) -> Option<Vec<Compiled>>,
    ) -> Option<Arc<VirtualHost>> {
        let cause = self.touched.get(part);
        if let (Some(before), None, true) = (host.before, cause, self.reads.hosts.has(part)) {
            need_again(before, clusters);
            return Some(Arc::clone(before));
        }
        let tape = clusters.tape();
        let (compiled, reads) = tape.part(|| make(clusters));
        let mut hasher = DefaultHasher::new();
        (part.inputs, reads.answers()).hash(&mut hasher);
        let fingerprint = hasher.finish();
        self.reads.hosts.insert(part.clone(), reads);
        let compiled = compiled?;
        if let Some(before) = host.before.filter(|one| one.fingerprint == fingerprint) {
            return Some(Arc::clone(before));
        }
        let (rules, routes): (Vec<Rule>, Vec<Route>) = compiled.into_iter().unzip();
        Some(Arc::new(VirtualHost {
            name: host.name,
            table: Table::compile(rules),
            routes: routes.into_boxed_slice(),
            is_grpc_web: host.is_grpc_web,
            cause: cause.or(self.cause.as_ref()).cloned(),
            fingerprint,
        }))
    }

    /// Keeps the reads for the next compile: those of all virtual hosts, or of those that were asked for.
    pub(in crate::compile) fn put(mut self, all: bool, clusters: &mut Clusters<'_>) {
        if !all {
            self.reads.hosts.retain(|part| self.now.contains_key(part));
        }
        clusters.host_reads.put(self.servers, self.reads);
    }
}

/// Keeps the clusters that an unchanged virtual host leads to.
pub(in crate::compile) fn need_again(host: &VirtualHost, clusters: &mut Clusters<'_>) {
    for destination in host.routes.iter().flat_map(Route::destinations) {
        clusters.need_again(destination);
    }
}
