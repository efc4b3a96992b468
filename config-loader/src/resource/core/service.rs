//! Service, checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::{Condition, Host, Ingress, Protocol, SessionAffinity};
use crate::resource::{DefaultExport, Object};
use crate::span::Line;

/// Checked Service.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// Type of the service (`type`).
    pub service_type: ServiceType,
    /// Ports in document order. Names are unique, and so are (protocol, number) pairs.
    pub ports: Vec<ServicePort>,
    /// Labels of the pods; empty if the endpoints are managed manually.
    pub selector: BTreeMap<String, String>,
    /// Cluster IPs, the primary one first. Empty if the service is headless or has none yet.
    pub cluster_ips: Vec<IpAddr>,
    /// Whether the service is headless: `clusterIP: None`.
    pub headless: bool,
    /// Additional addresses at which nodes accept its traffic.
    pub external_ips: Vec<IpAddr>,
    /// Session affinity: whether requests of one client go to one endpoint.
    pub session_affinity: SessionAffinity,
    /// Preference between endpoints.
    pub traffic_distribution: TrafficDistribution,
    /// Endpoints that traffic from inside the cluster may use.
    pub internal_traffic_policy: TrafficPolicy,
    /// Endpoints that traffic from outside the cluster may use.
    pub external_traffic_policy: TrafficPolicy,
    /// Whether endpoints that are not ready are used too.
    pub publish_not_ready_addresses: bool,
    /// Namespaces that may use it without an annotation.
    pub default_export: DefaultExport,
    /// Addresses of the load balancer (`status.loadBalancer.ingress`).
    pub ingress: Vec<Ingress>,
    /// Conditions (`status.conditions`).
    pub conditions: Vec<Condition>,
}

/// Annotation of a Service with the namespaces that may use it.
const EXPORT_TO: &str = "networking.istio.io/exportTo";

impl Object<Service> {
    /// Whether proxies and resources in `namespace` may use it. `*` takes precedence over `~`, and `~` over names.
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
        let default = || self.spec.default_export.of(&self.id.namespace);
        (entries().next().is_none() && default().includes(namespace))
            || entries().any(|entry| entry == "*")
            || (entries().all(|entry| entry != "~") && entries().any(is_named))
    }
}

impl Service {
    /// Returns the port with this number; TCP takes precedence over other protocols.
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

    /// Returns the port with this name.
    pub fn port_named(&self, name: &str) -> Option<&ServicePort> {
        self.ports.iter().find(|port| &*port.name == name)
    }

    /// Returns the external address of the service, if its type is ExternalName.
    pub fn external_name(&self) -> Option<&ExternalAddress> {
        match &self.service_type {
            ServiceType::ExternalName(address) => Some(address),
            ServiceType::ClusterIp | ServiceType::LoadBalancer | ServiceType::NodePort => None,
        }
    }
}

/// Type of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServiceType {
    /// `ClusterIP`: reachable inside its cluster.
    #[default]
    ClusterIp,
    /// `ExternalName`: an alias of an external address.
    ExternalName(ExternalAddress),
    /// `LoadBalancer`: reachable through a load balancer, on every node, and inside its cluster.
    LoadBalancer,
    /// `NodePort`: reachable on every node and inside its cluster.
    NodePort,
}

/// External address of an ExternalName service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAddress {
    /// Host name. Strait also accepts an IP address, unlike Kubernetes.
    pub host: Host,
    /// Source line within the document.
    pub line: Line,
}

/// Port of a service.
#[derive(Clone, Debug)]
pub struct ServicePort {
    /// Name of the port; empty if the only port has no name.
    pub name: Arc<str>,
    /// Port number that clients use.
    pub port: u16,
    /// Target port of the pods.
    pub target: TargetPort,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Application protocol (`appProtocol`), if set; otherwise the prefix of the port's name decides.
    pub app_protocol: Option<Arc<str>>,
    /// Port number on every node, for the types that have one.
    pub node_port: Option<u16>,
    /// Source line within the document.
    pub line: Line,
}

/// Target port of the pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPort {
    /// Container port by name.
    Name(Arc<str>),
    /// Container port by number.
    Number(u16),
}

/// Preference between endpoints of a service (`trafficDistribution`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrafficDistribution {
    /// No preference.
    #[default]
    Any,
    /// Endpoints on the local node first, then endpoints in the local zone.
    PreferSameNode,
    /// Endpoints in the local zone first. Older name: `PreferClose`.
    PreferSameZone,
}

/// Endpoints of a service that traffic may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrafficPolicy {
    /// All endpoints.
    #[default]
    Cluster,
    /// Endpoints on the local node.
    Local,
}
