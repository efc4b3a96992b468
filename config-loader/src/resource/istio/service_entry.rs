//! ServiceEntry, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::{Lined, Protocol, WorkloadEntry};
use crate::resource::{ExportTo, HealthChecked};
use crate::span::Line;

/// Checked ServiceEntry.
#[derive(Clone, Debug, Default)]
pub struct ServiceEntry {
    /// Host names of the service. Never empty.
    pub hosts: Vec<Lined<Arc<str>>>,
    /// Addresses that clients dial.
    pub addresses: Vec<IpNet>,
    /// Ports of the service. Names and numbers are unique.
    pub ports: Vec<ServiceEntryPort>,
    /// Location: whether the service is part of the mesh.
    pub location: Location,
    /// Resolution: discovery of the endpoints.
    pub resolution: Resolution,
    /// Endpoints. Empty with `workload_selector`. Unchanged endpoints are shared with the next version.
    pub endpoints: Vec<Arc<WorkloadEntry>>,
    /// Labels of the endpoints' workloads in the resource's own namespace; `None` if endpoints are not selected by
    /// labels.
    pub workload_selector: Option<BTreeMap<String, String>>,
    /// Namespaces that may use the resource (`exportTo`).
    pub export_to: ExportTo,
    /// Subject alternative names that the service's certificates may have.
    pub subject_alt_names: Vec<Arc<str>>,
    /// Active health checking of the endpoints.
    pub health_check: HealthChecked,
}

impl ServiceEntry {
    /// Returns the port with this number.
    pub fn port(&self, number: u16) -> Option<&ServiceEntryPort> {
        self.ports.iter().find(|port| port.number == number)
    }
}

/// Port of a service: an entry of `ports`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceEntryPort {
    /// Port number that clients use.
    pub number: u16,
    /// Name of the port, by which endpoints map it.
    pub name: Arc<str>,
    /// Application protocol of the port.
    pub protocol: Protocol,
    /// Default port number of the endpoints; `None` for the same number.
    pub target_port: Option<u16>,
    /// Source line within the document.
    pub line: Line,
}

/// Location of a service: whether it is part of the mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// Outside the mesh: no mesh identity is expected.
    #[default]
    MeshExternal,
    /// Part of the mesh.
    MeshInternal,
}

/// Discovery of a service's endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// DNS; every address is an endpoint.
    Dns,
    /// DNS; each new connection goes to the first address.
    DnsRoundRobin,
    /// DNS of the host of each request.
    DynamicDns,
    /// No discovery: the address that the client dialed.
    #[default]
    None,
    /// Static list of endpoints.
    Static,
}

impl Resolution {
    /// Returns the name as written in YAML.
    pub fn as_str(self) -> &'static str {
        match self {
            Resolution::Dns => "DNS",
            Resolution::DnsRoundRobin => "DNS_ROUND_ROBIN",
            Resolution::DynamicDns => "DYNAMIC_DNS",
            Resolution::None => "NONE",
            Resolution::Static => "STATIC",
        }
    }
}
