//! Kubernetes: Service with its EndpointSlices, and the WorkloadEntries that its selector matches.

use std::sync::Arc;

use config_loader::Name;
use config_loader::resource::Object;
use config_loader::resource::core::{
    EndpointSlice, Protocol, Service as Kube, ServicePort, TargetPort,
};

use ipnet::IpNet;

use crate::compile::service::affinity;
use crate::compile::service::port::Carries;
use crate::compile::service::port::Port;
use crate::compile::service::port::carries_paths;
use crate::compile::service::port::protocol;
use crate::compile::service::workload::Workload;
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;
use crate::compile::services::entry;
use crate::compile::services::policies;
use crate::compile::services::slices::{add_slices, host};

/// Adds every Service that this proxy may see under `<name>.<namespace>.svc.<domain>`.
pub(in crate::compile) fn collect(collector: &mut Collector<'_>) {
    let services = collector.view.all::<Kube>();
    services.values().for_each(|object| add(object, collector));
}

/// Adds the Service of a name, if this proxy may see it.
pub(in crate::compile) fn collect_named(collector: &mut Collector<'_>, name: &Name) {
    if let Some(object) = collector.view.get::<Kube>(name) {
        add(object, collector);
    }
}

fn add(object: &Arc<Object<Kube>>, collector: &mut Collector<'_>) {
    if object.is_exported_to(&collector.identity.namespace) {
        let slices = collector.slices(&object.id.namespace, &object.id.name);
        let service = service(object, slices, collector);
        collector.add(service);
    }
}

fn service(
    object: &Arc<Object<Kube>>,
    slices: &[Arc<Object<EndpointSlice>>],
    collector: &Collector<'_>,
) -> Draft {
    let (name, namespace) = (&object.id.name, &object.id.namespace);
    let mut draft = Draft::new(
        &format!("{name}.{namespace}.svc.{}", collector.identity.domain),
        name,
        namespace,
    );
    draft.saw(object);
    draft.service.distribution = object.spec.traffic_distribution;
    let own = object.spec.cluster_ips.iter().copied();
    draft.service.addresses = own.map(IpNet::from).collect();
    draft.service.is_headless = object.spec.headless;
    draft.service.affinity = affinity(object.spec.session_affinity);
    draft.service.ports = object
        .spec
        .ports
        .iter()
        .filter(|port| port.protocol == Protocol::Tcp)
        .map(port)
        .collect();
    add_slices(slices.iter(), collector, &mut draft);
    if let Some(external) = object.spec.external_name() {
        draft.service.alias_of = Some(external.host.to_string().to_ascii_lowercase().into());
        draft
            .service
            .endpoints
            .push(Workload::at(host(&external.host)));
    }
    if !object.spec.selector.is_empty() {
        entry::select_workloads(collector, namespace, &object.spec.selector, &mut draft);
    }
    draft.service.is_exportable = object.spec.external_name().is_none();
    policies::attach(collector, &mut draft);
    draft
}

fn port(port: &ServicePort) -> Port {
    Port {
        number: port.port,
        name: port.name.to_string(),
        protocol: protocol(port.app_protocol.as_deref(), &port.name, ""),
        target: match &port.target {
            TargetPort::Number(number) => *number,
            TargetPort::Name(_) => port.port,
        },
        carries_paths: carries_paths(port.app_protocol.as_deref(), &port.name, ""),
        carries: Carries::of(port.app_protocol.as_deref(), &port.name, "", port.port),
        original_destination: false,
    }
}
