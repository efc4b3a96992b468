//! What services are collected from and into, whatever kind of resource describes them.

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
        (view, identity): (View<'a>, &'a Identity),
        (catalog, members): (&'a Catalog, &'a Members),
        (slices, selections): (&'a Slices, &'a RefCell<Selections>),
    ) -> Self {
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

    /// Resources about this very host.
    pub(in crate::compile) fn described(&self, host: &str) -> Option<&'a HostEntry> {
        let entry = self.catalog.get(host);
        let count = || entry.map_or(0, |entry| entry.sources().len() as u64);
        self.view.read(Read::Index(DESCRIBED, host, ""), count);
        entry
    }

    /// The clusters that services are spread over.
    pub(in crate::compile) fn members(&self) -> &'a Members {
        self.view.read(MEMBERS, || self.members.fingerprint);
        self.members
    }

    /// The EndpointSlices of a service.
    pub(in crate::compile) fn slices(
        &self,
        namespace: &str,
        name: &str,
    ) -> &'a [Arc<Object<EndpointSlice>>] {
        self.slices.of(self.view, namespace, name)
    }

    /// The WorkloadEntries of a namespace that a selector takes in.
    pub(in crate::compile) fn selection(
        &self,
        namespace: &Arc<str>,
        labels: &BTreeMap<String, String>,
    ) -> Arc<Selection> {
        let mut selections = self.selections.borrow_mut();
        selections.of(self.view, namespace, labels)
    }

    /// Adds a service unless its host is described already; whether it was added.
    pub(in crate::compile) fn add(&mut self, draft: Draft) -> bool {
        match self.by_host.entry(Arc::clone(&draft.service.host)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(draft);
                true
            }
        }
    }

    /// Notes an address, or a block of them, that represents a host. `position` is that of the host in its resource.
    pub(in crate::compile) fn claim(
        &mut self,
        (age, position): (Age<'_>, usize),
        net: IpNet,
        host: &Arc<str>,
    ) {
        self.claims.push(Claim::new(age, position, net, host));
    }

    /// Takes out what is known of a host, to be added again with more.
    pub(in crate::compile) fn take(&mut self, host: &str) -> Option<Draft> {
        self.by_host.remove(host)
    }

    /// Drafts of services, and claims of addresses.
    pub(in crate::compile) fn finish(self) -> (Vec<Draft>, Vec<Claim>) {
        (self.by_host.into_values().collect(), self.claims)
    }
}

/// A service that is being put together, with the hash over everything that goes into it.
pub(in crate::compile) struct Draft {
    pub service: Service,
    pub hasher: DefaultHasher,
    /// Where the objects are that were noted.
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

    /// Notes an object that adds to the service.
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

    /// Notes the workloads that a selector takes in; a service may come across them several times.
    pub(in crate::compile) fn saw_selection(&mut self, selection: &Arc<Selection>) {
        selection.fingerprint.hash(&mut self.hasher);
        if self.seen.insert(Arc::as_ptr(selection).addr()) {
            self.wrote(Written::Selection(Arc::clone(selection)));
        }
    }

    fn wrote(&mut self, written: Written) {
        Arc::make_mut(&mut self.service.provenance).push(written);
    }

    /// Notes a slice, which adds to a service but once.
    pub(in crate::compile) fn saw_slice(&mut self, slice: &Arc<Object<EndpointSlice>>) {
        let (place, line) = (&slice.provenance, slice.line_of(Line(0)));
        (slice.fingerprint, &place.file, line).hash(&mut self.hasher);
        self.wrote(Written::Slice(Arc::clone(slice)));
    }

    /// Notes the pod, node and namespace behind an endpoint.
    pub(in crate::compile) fn saw_pod(&mut self, info: &PodInfo) {
        let pod = info.pod.as_ref().map(|pod| pod.fingerprint);
        let node = info.node.as_ref().map(|node| node.fingerprint);
        let namespace = info.namespace.as_ref().map(|found| found.fingerprint);
        (pod, node, namespace).hash(&mut self.hasher);
    }

    /// The same service under the host by which clusters serve it together.
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
