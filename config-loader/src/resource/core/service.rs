//! Service, checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::{Condition, Host, Ingress, Protocol, SessionAffinity};
use crate::resource::Object;
use crate::span::Line;

/// A checked Service.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// How the service is exposed.
    pub service_type: ServiceType,
    /// Its ports, in the order in which they were written. Names are unique, and so are (protocol, number) pairs.
    pub ports: Vec<ServicePort>,
    /// The labels of the pods behind it; empty if its endpoints are made by hand.
    pub selector: BTreeMap<String, String>,
    /// Its own addresses, the primary one first. Empty if it is headless or has none yet.
    pub cluster_ips: Vec<IpAddr>,
    /// Whether it has no address of its own on purpose: `clusterIP: None`.
    pub headless: bool,
    /// Addresses at which nodes also accept its traffic.
    pub external_ips: Vec<IpAddr>,
    /// Whether requests of one client stay with one endpoint.
    pub session_affinity: SessionAffinity,
    /// Which endpoints are preferred.
    pub traffic_distribution: TrafficDistribution,
    /// Which endpoints traffic from inside the cluster may use.
    pub internal_traffic_policy: TrafficPolicy,
    /// Which endpoints traffic from outside the cluster may use.
    pub external_traffic_policy: TrafficPolicy,
    /// Whether endpoints that are not ready are used too.
    pub publish_not_ready_addresses: bool,
    /// `status.loadBalancer.ingress`: where a load balancer accepts its traffic.
    pub ingress: Vec<Ingress>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

/// The annotation of a Service that names the namespaces that may use it.
const EXPORT_TO: &str = "networking.istio.io/exportTo";

impl Object<Service> {
    /// Whether a proxy or a resource in `namespace` may use it. `*` goes before `~`, and that before names.
    pub fn is_exported_to(&self, namespace: &str) -> bool {
        let written = self.annotations.get(EXPORT_TO);
        let entries = || {
            let written = written.map_or("", String::as_str).split(',');
            written.map(str::trim).filter(|entry| !entry.is_empty())
        };
        let is_named = |entry| match entry {
            "." => *self.id.namespace == *namespace,
            name => name == namespace,
        };
        entries().next().is_none()
            || entries().any(|entry| entry == "*")
            || (entries().all(|entry| entry != "~") && entries().any(is_named))
    }
}

impl Service {
    /// The port of that number; TCP before others.
    pub fn port(&self, number: u16) -> Option<&ServicePort> {
        let mut found = self.ports.iter().filter(|port| port.port == number);
        let first = found.next()?;
        if first.protocol == Protocol::Tcp {
            return Some(first);
        }
        found
            .find(|port| port.protocol == Protocol::Tcp)
            .or(Some(first))
    }

    /// The port of that name.
    pub fn port_named(&self, name: &str) -> Option<&ServicePort> {
        self.ports.iter().find(|port| &*port.name == name)
    }

    /// Where requests for the service go in place of its endpoints, if its type is ExternalName.
    pub fn external_name(&self) -> Option<&ExternalAddress> {
        match &self.service_type {
            ServiceType::ExternalName(address) => Some(address),
            ServiceType::ClusterIp | ServiceType::LoadBalancer | ServiceType::NodePort => None,
        }
    }
}

/// How a service is exposed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServiceType {
    /// Inside its cluster.
    #[default]
    ClusterIp,
    /// As another name for something elsewhere.
    ExternalName(ExternalAddress),
    /// By a load balancer, on every node, and inside its cluster.
    LoadBalancer,
    /// On every node, and inside its cluster.
    NodePort,
}

/// What an ExternalName service represents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAddress {
    /// Where it is; Kubernetes only has names here, we also take an address as one.
    pub host: Host,
    /// Where it was written.
    pub line: Line,
}

/// A port of a service.
#[derive(Clone, Debug)]
pub struct ServicePort {
    /// Its name; empty if the only port has none.
    pub name: Arc<str>,
    /// The port that clients use.
    pub port: u16,
    /// The port of the pods.
    pub target: TargetPort,
    /// The transport protocol.
    pub protocol: Protocol,
    /// What the port speaks, when that was written; otherwise the name's prefix tells.
    pub app_protocol: Option<Arc<str>>,
    /// The port on every node, for the types that have one.
    pub node_port: Option<u16>,
    /// Where it was written.
    pub line: Line,
}

/// The port of the pods behind a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPort {
    /// The pods' port of that name.
    Name(Arc<str>),
    /// That port.
    Number(u16),
}

/// Which endpoints of a service are preferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrafficDistribution {
    /// All are equal.
    #[default]
    Any,
    /// Those on the local node, then those in the local zone.
    PreferSameNode,
    /// Those in the local zone. `PreferClose` is its older name.
    PreferSameZone,
}

/// Which endpoints of a service traffic may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrafficPolicy {
    /// All.
    #[default]
    Cluster,
    /// Those on the local node.
    Local,
}
