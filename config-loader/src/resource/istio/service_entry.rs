//! ServiceEntry, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::{Lined, Protocol, WorkloadEntry};
use crate::resource::{ExportTo, HealthChecked};
use crate::span::Line;

/// A checked ServiceEntry.
#[derive(Clone, Debug, Default)]
pub struct ServiceEntry {
    /// Its names. Never empty.
    pub hosts: Vec<Lined<Arc<str>>>,
    /// The addresses that clients dial.
    pub addresses: Vec<IpNet>,
    /// Its ports. Names and numbers are unique.
    pub ports: Vec<ServiceEntryPort>,
    /// Whether it is part of the mesh.
    pub location: Location,
    /// How its endpoints are found.
    pub resolution: Resolution,
    /// Its endpoints. Empty with `workload_selector`. The next version shares unchanged endpoints.
    pub endpoints: Vec<Arc<WorkloadEntry>>,
    /// Labels of the workloads of the resource's own namespace that are its endpoints; none if they are not found by
    /// labels.
    pub workload_selector: Option<BTreeMap<String, String>>,
    /// Who may use it.
    pub export_to: ExportTo,
    /// Names that its certificates may carry.
    pub subject_alt_names: Vec<Arc<str>>,
    /// Whether and how its endpoints are health-checked.
    pub health_check: HealthChecked,
}

impl ServiceEntry {
    /// The port of that number.
    pub fn port(&self, number: u16) -> Option<&ServiceEntryPort> {
        self.ports.iter().find(|port| port.number == number)
    }
}

/// An entry of `ports`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceEntryPort {
    /// The port that clients use.
    pub number: u16,
    /// Its name, by which endpoints map it.
    pub name: Arc<str>,
    /// What it speaks.
    pub protocol: Protocol,
    /// The endpoints' port, where they do not say; none for the same number.
    pub target_port: Option<u16>,
    /// Where it was written.
    pub line: Line,
}

/// Whether a service is part of the mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// It is not: no mesh identity is expected.
    #[default]
    MeshExternal,
    /// It is.
    MeshInternal,
}

/// How a service's endpoints are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// By DNS; all addresses are endpoints.
    Dns,
    /// By DNS; each new connection goes to the first address.
    DnsRoundRobin,
    /// By DNS, with the host of each request.
    DynamicDns,
    /// Where the client dialled.
    #[default]
    None,
    /// They are written.
    Static,
}

impl Resolution {
    /// The name, as it is written.
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
