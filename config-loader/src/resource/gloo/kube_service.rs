//! Service of a Kubernetes cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::object_ref::ClusterRef;
use crate::resource::core::Host;
use crate::span::Line;

/// Content of `kubeService`.
#[derive(Clone, Debug, Default)]
pub struct KubeService {
    /// Reference of the service and its cluster.
    pub service: ClusterRef,
    /// Labels of the pods.
    pub selector: BTreeMap<String, String>,
    /// Labels of the service; not used to select endpoints.
    pub labels: BTreeMap<String, String>,
    /// Ports of the service.
    pub ports: Vec<KubePort>,
    /// Label keys with several values among the workloads, and these values. For information.
    pub subsets: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Region of all endpoints; empty if unknown.
    pub region: Arc<str>,
    /// Groups of endpoints.
    pub endpoint_subsets: Vec<EndpointSubset>,
    /// Addresses at which clients outside of the cluster reach the service.
    pub external_addresses: Vec<Host>,
    /// Type of the service.
    pub service_type: KubeServiceType,
    /// Source line within the document.
    pub line: Line,
}

impl KubeService {
    /// Returns the endpoint port that serves `port`: the target port by name or number. If no target port is set, the
    /// port with the same name, otherwise the one with the same number.
    pub fn endpoint_port<'s>(
        &self,
        port: &KubePort,
        subset: &'s EndpointSubset,
    ) -> Option<&'s EndpointPort> {
        let named = |name: &str| subset.ports.iter().find(|found| &*found.name == name);
        let numbered = |number| subset.ports.iter().find(|found| found.port == number);
        match &port.target {
            KubeTargetPort::Name(name) => named(name),
            KubeTargetPort::Number(number) => numbered(*number),
            KubeTargetPort::Same => named(&port.name).or_else(|| numbered(port.port)),
        }
    }
}

/// Port of a service.
#[derive(Clone, Debug)]
pub struct KubePort {
    /// Port number that clients use.
    pub port: u16,
    /// Name of the port; the protocol if the name is empty.
    pub name: Arc<str>,
    /// Protocol as written, such as `TCP` or `HTTP`.
    pub protocol: Arc<str>,
    /// Application protocol (`appProtocol`), if set.
    pub app_protocol: Option<Arc<str>>,
    /// Target port of the endpoints.
    pub target: KubeTargetPort,
    /// Port number on every node, for the types that have one.
    pub node_port: Option<u16>,
    /// Source line within the document.
    pub line: Line,
}

/// Target port of the endpoints for a port of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeTargetPort {
    /// Endpoint port by name.
    Name(Arc<str>),
    /// Endpoint port by number.
    Number(u16),
    /// Endpoint port with the same name, otherwise the same number.
    Same,
}

/// Group of endpoints, each of which serves each of the ports.
#[derive(Clone, Debug, Default)]
pub struct EndpointSubset {
    /// Endpoints of the group.
    pub endpoints: Vec<KubeEndpoint>,
    /// Ports of the endpoints.
    pub ports: Vec<EndpointPort>,
}

/// Workload of a service.
#[derive(Clone, Debug)]
pub struct KubeEndpoint {
    /// IP address of the workload.
    pub ip: IpAddr,
    /// Labels of the workload, by which subsets select it.
    pub labels: BTreeMap<String, String>,
    /// Zone of the workload; empty if unknown.
    pub zone: Arc<str>,
    /// Sub-zone of the workload; empty if unknown.
    pub sub_zone: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Port of a group of endpoints.
#[derive(Clone, Debug)]
pub struct EndpointPort {
    /// Port number.
    pub port: u16,
    /// Name of the port; may be empty.
    pub name: Arc<str>,
    /// Protocol as written.
    pub protocol: Arc<str>,
    /// Application protocol (`appProtocol`), if set.
    pub app_protocol: Option<Arc<str>>,
    /// Source line within the document.
    pub line: Line,
}

/// Type of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KubeServiceType {
    /// `CLUSTER_IP`
    #[default]
    ClusterIp,
    /// `EXTERNAL_NAME`
    ExternalName,
    /// `LOAD_BALANCER`
    LoadBalancer,
    /// `NODE_PORT`
    NodePort,
}
