//! What services are collected from and into, whatever kind of resource describes them.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::{PodInfo, Slices};
use config_loader::resource::core::{EndpointSlice, TrafficDistribution};
use config_loader::resource::{Age, HealthChecked, Line, Object, Spec};
use ipnet::IpNet;

use crate::compile::members::Members;
use crate::compile::service::Service;
use crate::compile::service::Written;
use crate::compile::service::selections::{Selection, Selections};
use crate::compile::service::workload::Workloads;
use crate::compile::services::sources::ServiceResources;
use crate::compile::services::vips::Claim;
use crate::identity::Identity;

/// Namespaces and names of services.
pub(in crate::compile) type Names<'a> = BTreeSet<(&'a str, &'a str)>;

/// What services are collected from and into.
pub(in crate::compile) struct Collector<'a> {
    pub resources: &'a ServiceResources,
    pub identity: &'a Identity,
    pub domain: &'a str,
    pub members: Members,
    /// The EndpointSlices of services.
    pub slices: &'a Slices,
    /// What selectors take in, noted when a service asks for it.
    pub selections: RefCell<Selections>,
    /// The services that are wanted; all of them if it does not say.
    pub only: Option<&'a Names<'a>>,
    pub by_host: HashMap<Arc<str>, Draft>,
    pub claims: Vec<Claim<'a>>,
}

/// Whether a service is wanted; without a list, all are.
pub(in crate::compile) fn is_wanted(only: Option<&Names<'_>>, namespace: &str, name: &str) -> bool {
    only.is_none_or(|names| names.contains(&(namespace, name)))
}

impl<'a> Collector<'a> {
    /// Whether the service of this namespace and name is to be collected.
    pub(in crate::compile) fn wants(&self, namespace: &str, name: &str) -> bool {
        is_wanted(self.only, namespace, name)
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

    /// Notes an address, or a block of them, that represents a host.
    pub(in crate::compile) fn claim(&mut self, age: Age<'a>, net: IpNet, host: &Arc<str>) {
        self.claims.push(Claim {
            age,
            net,
            host: Arc::clone(host),
        });
    }

    /// Takes out what is known of a host, to be added again with more.
    pub(in crate::compile) fn take(&mut self, host: &str) -> Option<Draft> {
        self.by_host.remove(host)
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
