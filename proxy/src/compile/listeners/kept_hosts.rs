//! Virtual hosts, each that of the snapshot before unless something that it was made from has changed.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use config_loader::catalog::Reads;

use crate::compile::clusters::Clusters;
use crate::compile::rules::Compiled;
use crate::compile::update::host_reads::{HostReads, PartKey};
use crate::snapshot::{HttpHosts, Route, VirtualHost};
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
    /// Rules that were made so far, by the inputs of their virtual hosts; `None` if virtual hosts share none.
    shared: Option<HashMap<u64, MadeRules>>,
}

/// Rules that are indexed once a host needs them.
type LazyRules = LazyCell<IndexedRules, Box<dyn FnOnce() -> IndexedRules>>;

/// Rules that were made for a virtual host, and what they were made from.
#[derive(Clone)]
struct MadeRules {
    reads: Reads,
    /// Rules, indexed on first use; `None` for a virtual host without routes.
    rules: Option<Rc<LazyRules>>,
}

/// Rules with their index, and their routes.
struct IndexedRules {
    table: Table,
    routes: Arc<[Route]>,
}

impl MadeRules {
    fn new(compiled: Option<Vec<Compiled>>, reads: Reads) -> Self {
        let rules = compiled.map(|compiled| {
            let index: Box<dyn FnOnce() -> _> = Box::new(|| IndexedRules::of(compiled));
            Rc::new(LazyCell::new(index))
        });
        Self { reads, rules }
    }
}

impl IndexedRules {
    fn of(compiled: Vec<Compiled>) -> Self {
        let (rules, routes): (Vec<Rule>, Vec<Route>) = compiled.into_iter().unzip();
        Self {
            table: Table::compile(rules),
            routes: routes.into(),
        }
    }
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
            shared: None,
        }
    }

    /// Lets virtual hosts with equal inputs share their rules, which follow from nothing else.
    pub(in crate::compile) fn sharing(self) -> Self {
        let shared = Some(HashMap::new());
        Self { shared, ..self }
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
        let known = self.reads.hosts.get(part).filter(|_| cause.is_none());
        if let (Some(before), Some(reads)) = (host.before, known)
            // the other virtual host of the name, of a Service with routes and without them, is no version of this one
            && before.fingerprint == fingerprint(part, reads)
        {
            need_again(before, clusters);
            return Some(Arc::clone(before));
        }
        let shared = self.shared.as_ref();
        let known = shared.and_then(|shared| shared.get(&host.inputs));
        let made = known.cloned().unwrap_or_else(|| {
            let (compiled, reads) = clusters.tape().part(|| make(clusters));
            MadeRules::new(compiled, reads)
        });
        if let Some(shared) = &mut self.shared {
            shared.insert(host.inputs, made.clone());
        }
        let fingerprint = fingerprint(part, &made.reads);
        self.reads.hosts.insert(part.clone(), made.reads);
        let rules = made.rules?;
        if let Some(before) = host.before.filter(|one| one.fingerprint == fingerprint) {
            return Some(Arc::clone(before));
        }
        Some(Arc::new(VirtualHost {
            name: host.name,
            table: rules.table.clone(),
            routes: Arc::clone(&rules.routes),
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

/// Returns the hash of what a virtual host is made from.
fn fingerprint(part: &PartKey, reads: &Reads) -> u64 {
    let mut hasher = DefaultHasher::new();
    (part.inputs, reads.answers()).hash(&mut hasher);
    hasher.finish()
}

/// Returns virtual hosts with these in the places of those with their numbers.
pub(in crate::compile) fn patched(
    before: &Arc<HttpHosts>,
    mut made: BTreeMap<usize, Arc<VirtualHost>>,
    clusters: &mut Clusters<'_>,
) -> Arc<HttpHosts> {
    let hosts = before.virtual_hosts.iter().enumerate();
    for (_, host) in hosts.filter(|(number, _)| !made.contains_key(number)) {
        need_again(host, clusters);
    }
    made.retain(|number, host| !Arc::ptr_eq(&before.virtual_hosts[*number], host));
    if made.is_empty() {
        return Arc::clone(before);
    }
    let mut virtual_hosts = before.virtual_hosts.to_vec();
    for (number, host) in made {
        virtual_hosts[number] = host;
    }
    Arc::new(before.with_routes(virtual_hosts))
}

/// Keeps the clusters that an unchanged virtual host leads to.
fn need_again(host: &VirtualHost, clusters: &mut Clusters<'_>) {
    for (name, cluster) in host.routes.iter().flat_map(Route::clusters) {
        clusters.need_again(name, cluster);
    }
}
