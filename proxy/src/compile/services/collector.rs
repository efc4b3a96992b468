//! Inputs and results of collecting services, independent of the kind of resource that describes them.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::{HostEntry, PodInfo, Read, Services as Catalog, Slices, View};
use config_loader::resource::core::{EndpointSlice, TrafficDistribution};
use config_loader::resource::{Age, HealthChecked, Line, Object, Spec};
use ipnet::IpNet;

use crate::compile::members::Members;
use crate::compile::service::Service;
use crate::compile::service::Written;
use crate::compile::service::selections::{Selection, Selections};
use crate::compile::service::workload::Workloads;
use crate::compile::services::reads::{DESCRIBED, MEMBERS};
use crate::compile::services::vips::Claim;
use crate::identity::Identity;

/// State that follows the resources from one compile to the next.
pub(in crate::compile) struct Followed<'a> {
    pub catalog: &'a Catalog,
    pub members: &'a Members,
    pub slices: &'a Slices,
    pub selections: &'a RefCell<Selections>,
}

/// Sources and results of collecting services. It records every read.
pub(in crate::compile) struct Collector<'a> {
    pub view: View<'a>,
    pub identity: &'a Identity,
    catalog: &'a Catalog,
    members: &'a Members,
    slices: &'a Slices,
    selections: &'a RefCell<Selections>,
    pub by_host: HashMap<Arc<str>, Draft>,
    claims: Vec<Claim>,
}

impl<'a> Collector<'a> {
    pub(in crate::compile) fn new(
        view: View<'a>,
        identity: &'a Identity,
        followed: Followed<'a>,
    ) -> Self {
        let Followed {
            catalog,
            members,
            slices,
            selections,
        } = followed;
        Self {
            view,
            identity,
            catalog,
            members,
            slices,
            selections,
            by_host: HashMap::new(),
            claims: Vec::new(),
        }
    }

    /// Returns the resources about exactly this host.
    pub(in crate::compile) fn described(&self, host: &str) -> Option<&'a HostEntry> {
        let entry = self.catalog.get(host);
        let count = || entry.map_or(0, |entry| entry.sources().len() as u64);
        self.view.read(Read::Index(DESCRIBED, host, ""), count);
        entry
    }

    /// Returns the clusters that services are distributed over.
    pub(in crate::compile) fn members(&self) -> &'a Members {
        self.view.read(MEMBERS, || self.members.fingerprint);
        self.members
    }

    /// Returns the EndpointSlices of a service.
    pub(in crate::compile) fn slices(
        &self,
        namespace: &str,
        name: &str,
    ) -> &'a [Arc<Object<EndpointSlice>>] {
        self.slices.of(self.view, namespace, name)
    }

    /// Returns the WorkloadEntries of a namespace that a selector matches.
    pub(in crate::compile) fn selection(
        &self,
        namespace: &Arc<str>,
        labels: &BTreeMap<String, String>,
    ) -> Arc<Selection> {
        let mut selections = self.selections.borrow_mut();
        selections.of(self.view, namespace, labels)
    }

    /// Adds a service unless its host is described already; returns whether it was added.
    pub(in crate::compile) fn add(&mut self, draft: Draft) -> bool {
        match self.by_host.entry(Arc::clone(&draft.service.host)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(draft);
                true
            }
        }
    }

    /// Claims an address, or a block of addresses, for a host. `position` is that of the host in its resource.
    pub(in crate::compile) fn claim(
        &mut self,
        age: Age<'_>,
        position: usize,
        net: IpNet,
        host: &Arc<str>,
    ) {
        self.claims.push(Claim::new(age, position, net, host));
    }

    /// Removes and returns the draft of a host, to be added again with more.
    pub(in crate::compile) fn take(&mut self, host: &str) -> Option<Draft> {
        self.by_host.remove(host)
    }

    /// Returns the drafts of services, and the claims of addresses.
    pub(in crate::compile) fn finish(self) -> (Vec<Draft>, Vec<Claim>) {
        (self.by_host.into_values().collect(), self.claims)
    }
}

/// Service that is being collected, with the hash of all its inputs.
pub(in crate::compile) struct Draft {
    pub service: Service,
    pub hasher: DefaultHasher,
    /// Addresses in memory of the objects that were recorded.
    pub seen: HashSet<usize>,
}

impl Draft {
    pub(in crate::compile) fn new(host: &str, name: &str, namespace: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (host, name, namespace).hash(&mut hasher);
        Self {
            service: Service {
                host: host.to_ascii_lowercase().into(),
                name: name.into(),
                namespace: namespace.into(),
                addresses: Vec::new(),
                is_headless: false,
                ports: Vec::new(),
                endpoints: Workloads::default(),
                alias_of: None,
                affinity: None,
                external: false,
                is_outside: false,
                health_check: HealthChecked::Unsaid,
                distribution: TrafficDistribution::Any,
                subject_alt_names: Vec::new(),
                imported_account: None,
                is_cluster_set: false,
                stands_for: None,
                sharing: None,
                exposure: None,
                is_exportable: false,
                export: None,
                shifts: Vec::new(),
                subsets: BTreeMap::new(),
                provenance: Arc::default(),
                fingerprint: 0,
            },
            hasher,
            seen: HashSet::new(),
        }
    }

    /// Records an object that adds to the service.
    pub(in crate::compile) fn saw<T: Spec>(&mut self, object: &Object<T>) {
        object.fingerprint.hash(&mut self.hasher);
        if self.seen.insert(std::ptr::from_ref(object).addr()) {
            let line = object.line_of(Line(0));
            let (object, file) = (object.id.clone(), &object.provenance.file);
            (file, line).hash(&mut self.hasher);
            self.wrote(Written::Object {
                object,
                file: Arc::clone(file),
                line,
            });
        }
    }

    /// Records the workloads that a selector matches; a service may come across them several times.
    pub(in crate::compile) fn saw_selection(&mut self, selection: &Arc<Selection>) {
        selection.fingerprint.hash(&mut self.hasher);
        if self.seen.insert(Arc::as_ptr(selection).addr()) {
            self.wrote(Written::Selection(Arc::clone(selection)));
        }
    }

    fn wrote(&mut self, written: Written) {
        Arc::make_mut(&mut self.service.provenance).push(written);
    }

    /// Records a slice, which adds to a service only once.
    pub(in crate::compile) fn saw_slice(&mut self, slice: &Arc<Object<EndpointSlice>>) {
        let (place, line) = (&slice.provenance, slice.line_of(Line(0)));
        (slice.fingerprint, &place.file, line).hash(&mut self.hasher);
        self.wrote(Written::Slice(Arc::clone(slice)));
    }

    /// Records the pod, node and namespace behind an endpoint.
    pub(in crate::compile) fn saw_pod(&mut self, info: &PodInfo) {
        let pod = info.pod.as_ref().map(|pod| pod.fingerprint);
        let node = info.node.as_ref().map(|node| node.fingerprint);
        let namespace = info.namespace.as_ref().map(|found| found.fingerprint);
        (pod, node, namespace).hash(&mut self.hasher);
    }

    /// Returns the same service under another host, by which several clusters serve it.
    pub(in crate::compile) fn under(&self, host: &str) -> Draft {
        let mut draft = Draft::new(host, &self.service.name, &self.service.namespace);
        self.hasher.finish().hash(&mut draft.hasher);
        draft.service = Service {
            host: Arc::clone(&draft.service.host),
            is_cluster_set: true,
            shifts: Vec::new(),
            ..self.service.clone()
        };
        draft
    }

    pub(in crate::compile) fn finish(self) -> Service {
        let mut service = self.service;
        service.fingerprint = self.hasher.finish();
        service
    }
}
