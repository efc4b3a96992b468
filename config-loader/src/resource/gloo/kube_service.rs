//! A service of one of the clusters.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::object_ref::ClusterRef;
use crate::resource::core::Host;
use crate::span::Line;

/// `kubeService`.
#[derive(Clone, Debug, Default)]
pub struct KubeService {
    /// The service, and its cluster.
    pub service: ClusterRef,
    /// The labels of the pods behind it.
    pub selector: BTreeMap<String, String>,
    /// The labels of the service; not used to select endpoints.
    pub labels: BTreeMap<String, String>,
    /// Its ports.
    pub ports: Vec<KubePort>,
    /// Label keys that have several values among its workloads, and those values. For information.
    pub subsets: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// The region of all its endpoints; empty if unknown.
    pub region: Arc<str>,
    /// Where it is served.
    pub endpoint_subsets: Vec<EndpointSubset>,
    /// Where it is reached from outside its cluster.
    pub external_addresses: Vec<Host>,
    /// How it is exposed.
    pub service_type: KubeServiceType,
    /// Where it was written.
    pub line: Line,
}

impl KubeService {
    /// The port of a group of endpoints that serves `port`: by target name or number; if neither was written, the one
    /// of the same name, else the one of the same number.
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

/// A port of a service.
#[derive(Clone, Debug)]
pub struct KubePort {
    /// The port that clients use.
    pub port: u16,
    /// Its name; its protocol in place of an empty one.
    pub name: Arc<str>,
    /// As written, such as `TCP` or `HTTP`.
    pub protocol: Arc<str>,
    /// What the port speaks, when that was written.
    pub app_protocol: Option<Arc<str>>,
    /// Which port of the endpoints serves it.
    pub target: KubeTargetPort,
    /// The port on every node, for the types that have one.
    pub node_port: Option<u16>,
    /// Where it was written.
    pub line: Line,
}

/// Which port of the endpoints serves a service's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeTargetPort {
    /// The one of that name.
    Name(Arc<str>),
    /// The one of that number.
    Number(u16),
    /// The one of the same name, else of the same number.
    Same,
}

/// A group of endpoints: each of the endpoints at each of the ports.
#[derive(Clone, Debug, Default)]
pub struct EndpointSubset {
    /// The endpoints.
    pub endpoints: Vec<KubeEndpoint>,
    /// Their ports.
    pub ports: Vec<EndpointPort>,
}

/// A workload behind a service.
#[derive(Clone, Debug)]
pub struct KubeEndpoint {
    /// Its address.
    pub ip: IpAddr,
    /// Its labels, by which subsets select it.
    pub labels: BTreeMap<String, String>,
    /// Its zone; empty if unknown.
    pub zone: Arc<str>,
    /// The part of its zone; empty if unknown.
    pub sub_zone: Arc<str>,
    /// Where it was written.
    pub line: Line,
}

/// A port of a group of endpoints.
#[derive(Clone, Debug)]
pub struct EndpointPort {
    /// The port.
    pub port: u16,
    /// Its name; may be empty.
    pub name: Arc<str>,
    /// As written.
    pub protocol: Arc<str>,
    /// What the port speaks, when that was written.
    pub app_protocol: Option<Arc<str>>,
    /// Where it was written.
    pub line: Line,
}

/// How a service is exposed.
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
