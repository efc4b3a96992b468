//! flomesh: ServiceImports, which name the endpoints of a service in other clusters. ServiceImports of the upstream API
//! leave that to EndpointSlices.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use config_loader::Name;
use config_loader::catalog::PodInfo;
use config_loader::kinds::MCS_API;
use config_loader::resource::Object;
use config_loader::resource::core::{
    EndpointSlice, Protocol, Service as Kube, TrafficDistribution,
};
use config_loader::resource::flomesh::{
    ImportEndpoint, ImportPort, ImportType, ServiceAccount, ServiceImport,
};
use config_loader::resource::karmada::MultiClusterService;
use http::HeaderValue;

use crate::compile::service::Service;
use crate::compile::service::Written;
use crate::compile::service::affinity;
use crate::compile::service::federation::Viewer;
use crate::compile::service::port::Carries;
use crate::compile::service::port::Port;
use crate::compile::service::port::carries_paths;
use crate::compile::service::port::protocol;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Origin;
use crate::compile::service::workload::Workload;
use crate::compile::service::workload::WorkloadHost;
use crate::compile::service::workload::Workloads;
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;
use crate::compile::services::policies;
use crate::compile::services::slices::{SliceOf, Whereabouts, add_slices, host, member};
use config_loader::catalog::hostname::CLUSTER_SET;
use traffic::cluster::RemoteGateway;

/// Adds the endpoints of every ServiceImport to the Service of its name, which is created if there is none, and both
/// together under `<name>.<namespace>.svc.clusterset.local`. That host exists only in clusters that may use the
/// service.
pub(in crate::compile) fn collect(collector: &mut Collector<'_>) {
    let imports = collector.view.all::<ServiceImport>();
    let mut by_age: Vec<_> = imports.values().collect();
    by_age.sort_by(|a, b| a.age().cmp(&b.age()));
    for object in by_age {
        add_import(collector, object);
    }
    for name in collector.view.names::<MultiClusterService>() {
        add_exposed(collector, name);
    }
}

/// Does the same as [`collect`] for the service of one name.
pub(in crate::compile) fn collect_named(collector: &mut Collector<'_>, name: &Name) {
    if let Some(object) = collector.view.get::<ServiceImport>(name) {
        add_import(collector, object);
    }
    add_exposed(collector, name);
}

fn add_import(collector: &mut Collector<'_>, object: &Arc<Object<ServiceImport>>) {
    let key = &object.id.to_name();
    let (name, namespace) = (&object.id.name, &object.id.namespace);
    let native = format!("{name}.{namespace}.svc.{}", collector.identity.domain);
    let mut draft = collector.take(&native).unwrap_or_else(|| {
        let mut draft = Draft::new(&native, name, namespace);
        policies::attach(collector, &mut draft);
        draft
    });
    if collector.view.get::<Kube>(key).is_none() {
        draft.service.affinity = affinity_of(object);
        draft.service.distribution = object.spec.traffic_distribution;
        // without a Service there are no endpoints of the local cluster
        let slices = collector.slices(namespace, name).iter();
        let of_others = slices.filter(|slice| slice.source_cluster().is_some());
        add_slices(of_others, collector, &mut draft);
    }
    draft.service.imported_account = account(object);
    add(collector, &mut draft, object);
    for other in collector.view.get_in_other_groups::<ServiceImport>(key) {
        add(collector, &mut draft, other);
    }
    let viewer = Viewer::new(&collector.members().own, collector.identity);
    let exposure = draft.service.exposure.as_ref();
    if exposure.is_none_or(|exposure| exposure.includes(viewer)) {
        let together = format!("{name}.{namespace}{CLUSTER_SET}");
        let mut together = draft.under(&together);
        together.service.affinity = affinity_of(object);
        if object.spec.traffic_distribution != TrafficDistribution::Any {
            together.service.distribution = object.spec.traffic_distribution;
        }
        match object.spec.import_type {
            ImportType::ClusterSetIp => {
                let ruling = [object].into_iter();
                let others = collector
                    .view
                    .get_in_other_groups::<ServiceImport>(key)
                    .iter()
                    .filter(|other| adds_address(other));
                for import in ruling.chain(others) {
                    for vip in &import.spec.vips {
                        let host = &together.service.host;
                        collector.claim(object.age(), 0, (*vip).into(), host);
                    }
                }
            }
            ImportType::Headless => {
                let slices = collector.slices(namespace, name);
                add_named(collector, &together, slices);
                add_single(collector, &together, object);
            }
        }
        collector.add(together);
    }
    collector.add(draft);
}

/// Whether the addresses of an import apply although it does not take precedence: imports of the upstream API get their
/// addresses from another controller.
fn adds_address(import: &Object<ServiceImport>) -> bool {
    import.id.group == MCS_API && import.spec.import_type == ImportType::ClusterSetIp
}

/// Adds the cluster set host that a Service has by a MultiClusterService alone, in clusters that may use it.
fn add_exposed(collector: &mut Collector<'_>, name: &Name) {
    let Name { namespace, name } = name;
    let host = format!("{name}.{namespace}{CLUSTER_SET}");
    let native = format!("{name}.{namespace}.svc.{}", collector.identity.domain);
    if collector.by_host.contains_key(&*host) {
        return;
    }
    let exposed = collector.by_host.get(&*native).filter(|draft| {
        let viewer = || Viewer::new(&collector.members().own, collector.identity);
        let exposure = draft.service.exposure.as_ref();
        exposure.is_some_and(|exposure| exposure.includes(viewer()))
    });
    if let Some(draft) = exposed.filter(|_| {
        let name = Name::new(Arc::clone(namespace), Arc::clone(name));
        collector.view.get::<MultiClusterService>(&name).is_some()
    }) {
        let together = draft.under(&host);
        collector.add(together);
    }
}

/// Returns the lifetime of session affinity by client address; `None` for a Headless import.
fn affinity_of(import: &Object<ServiceImport>) -> Option<Duration> {
    match import.spec.import_type {
        ImportType::ClusterSetIp => affinity(import.spec.session_affinity),
        ImportType::Headless => None,
    }
}

/// Returns the identity of the workloads behind an import, if it names one.
fn account(import: &Object<ServiceImport>) -> Option<Arc<str>> {
    match import.spec.service_account.as_ref()? {
        ServiceAccount::Any => None,
        ServiceAccount::Named(name) => Some(format!("ns/{}/sa/{name}", import.id.namespace).into()),
    }
}

/// Adds every endpoint of a Headless import's slices that has a hostname as a service of its own,
/// `<hostname>.<cluster>.<host>`, joined over all slices.
fn add_named(collector: &mut Collector<'_>, whole: &Draft, slices: &[Arc<Object<EndpointSlice>>]) {
    let own = Whereabouts::own(collector);
    let mut singles: BTreeMap<String, Draft> = BTreeMap::new();
    for slice in slices {
        let Some(member) = member(slice, collector) else {
            continue;
        };
        let of = SliceOf::new(slice, member.as_ref(), &own);
        let cluster = member.as_ref().unwrap_or(&collector.members().own);
        let named = slice.spec.named();
        for (hostname, endpoint) in named.filter(|(_, endpoint)| endpoint.conditions.ready) {
            let own = format!("{hostname}.{}.{}", cluster.name, whole.service.host);
            let single = singles.entry(own).or_insert_with_key(|own| {
                let mut single = under(whole, own);
                let objects = |one: &Written| matches!(one, Written::Object { .. });
                Arc::make_mut(&mut single.service.provenance).retain(objects);
                single
            });
            let info = PodInfo::of_endpoint(collector.view, slice, endpoint);
            let pod = info.pod.as_ref();
            let labels = pod.map(|pod| Arc::new(pod.spec.labels.to_map()));
            let facts = of.facts(endpoint, &info, labels);
            let workload = Workload::new(host(&endpoint.address), facts);
            single.saw_pod(&info);
            single.service.endpoints.push(workload);
            single.saw_slice(slice);
        }
    }
    for single in singles.into_values() {
        collector.add(single);
    }
}

/// Returns a service under this host for one of the endpoints.
fn under(whole: &Draft, own: &str) -> Draft {
    let mut single = whole.under(own);
    single.service.sharing = None;
    single.service.affinity = None;
    single.service.endpoints = Workloads::default();
    single
}

/// Adds every endpoint of a Headless import as a service of its own, `<hostname>.<cluster>.<host>`. The hostname is the
/// first label of its target's `host`.
fn add_single(collector: &mut Collector<'_>, whole: &Draft, import: &Object<ServiceImport>) {
    let endpoints = import.spec.ports.iter().flat_map(|port| &port.endpoints);
    for endpoint in endpoints {
        let Some(member) = collector.members().by_key(endpoint.cluster.as_str()) else {
            continue;
        };
        let Some(hostname) = endpoint.target.server_name.as_deref() else {
            continue;
        };
        let hostname = hostname.split('.').next().unwrap_or_default();
        let own = format!("{hostname}.{}.{}", member.name, whole.service.host);
        let (at, is_own) = (
            host(&endpoint.target.address),
            member.key == collector.members().own.key,
        );
        let mut single = under(whole, &own);
        let of_import = whole.service.endpoints.listed().filter(|workload| {
            let of_member = workload.member.as_ref();
            workload.host == at && of_member.map_or(is_own, |of_member| of_member.key == member.key)
        });
        single.service.endpoints = of_import.cloned().collect();
        collector.add(single);
    }
}

fn add(collector: &Collector<'_>, draft: &mut Draft, import: &Arc<Object<ServiceImport>>) {
    draft.saw(import);
    for port in &import.spec.ports {
        add_port(collector, port, &mut draft.service);
    }
}

/// Adds a port of an import; a port that exists already, by name or else by number, only gets its endpoints.
fn add_port(collector: &Collector<'_>, import: &ImportPort, service: &mut Service) {
    if import.protocol != Protocol::Tcp {
        return;
    }
    let named = |port: &&Port| !import.name.is_empty() && *port.name == *import.name;
    let by_name = service.ports.iter().find(named);
    let known = by_name.or_else(|| service.listed_port(import.port));
    let name = known.map_or_else(|| import.name.to_string(), |port| port.name.clone());
    if known.is_none() {
        let app_protocol = import.app_protocol.as_deref();
        service.ports.push(Port {
            number: import.port,
            name: name.clone(),
            protocol: protocol(app_protocol, &import.name, "http"),
            target: import.port,
            carries_paths: carries_paths(app_protocol, &import.name, "http"),
            carries: Carries::of(app_protocol, &import.name, "http", import.port),
            original_destination: false,
        });
    }
    // an endpoint in imports of several API groups is listed once
    let mut known: HashMap<WorkloadHost, Vec<Arc<Facts>>> = HashMap::new();
    for workload in service.endpoints.listed() {
        let facts = Arc::clone(&workload.facts);
        known.entry(workload.host.clone()).or_default().push(facts);
    }
    let mut before: Option<(&ImportEndpoint, Arc<Facts>)> = None;
    for endpoint in &import.endpoints {
        let same = before.filter(|(other, _)| are_alike(endpoint, other));
        let facts = same.map(|(_, facts)| facts);
        let facts = facts.unwrap_or_else(|| Arc::new(facts_of(collector, &name, endpoint)));
        let workload = Workload::new(host(&endpoint.target.address), Arc::clone(&facts));
        before = Some((endpoint, facts));
        let same = |known: &Arc<Facts>| {
            (&known.ports, &known.hop, &known.member)
                == (&workload.ports, &workload.hop, &workload.member)
        };
        let there = known.entry(workload.host.clone()).or_default();
        if !there.iter().any(same) {
            there.push(Arc::clone(&workload.facts));
            service.endpoints.push(workload);
        }
    }
}

/// Whether two endpoints have the same facts, apart from the address.
fn are_alike(one: &ImportEndpoint, other: &ImportEndpoint) -> bool {
    let (a, b) = (&one.target, &other.target);
    one.cluster == other.cluster
        && (a.port, &a.path_prefix, &a.server_name) == (b.port, &b.path_prefix, &b.server_name)
}

fn facts_of(collector: &Collector<'_>, port: &str, endpoint: &ImportEndpoint) -> Facts {
    let target = &endpoint.target;
    let members = collector.members();
    let member = members.by_key(endpoint.cluster.as_str());
    Facts {
        ports: BTreeMap::from([(port.to_owned(), target.port)]),
        only_ports: true,
        locality: member.map_or_else(Default::default, |member| member.locality.clone()),
        member: member
            .filter(|member| member.key != members.own.key)
            .cloned(),
        network: member.map_or_else(Arc::default, |member| Arc::clone(&member.network)),
        origin: Origin::Import,
        hop: Some(Arc::new(RemoteGateway {
            path_prefix: Arc::clone(&target.path_prefix),
            server_name: target.server_name.clone(),
            from: HeaderValue::from_str(&members.own.key).ok(),
        })),
        ..Facts::default()
    }
}
