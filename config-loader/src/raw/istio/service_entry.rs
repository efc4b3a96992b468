//! ServiceEntry as written.

use serde::Deserialize;

use super::{WorkloadEntry, WorkloadSelector};
use crate::raw::Field;

/// ServiceEntry as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceEntry {
    /// Host names of the service, exact or wildcard; at least one.
    pub hosts: Field<Vec<Field<String>>>,
    /// Virtual IP addresses or CIDR blocks that clients dial.
    pub addresses: Field<Vec<Field<String>>>,
    /// Ports of the service, with unique names and numbers.
    pub ports: Field<Vec<Field<ServicePort>>>,
    /// Location: `MESH_EXTERNAL` (default) or `MESH_INTERNAL`.
    pub location: Field<String>,
    /// Discovery of the endpoints: `NONE` (default), `STATIC`, `DNS`, `DNS_ROUND_ROBIN` or `DYNAMIC_DNS`.
    pub resolution: Field<String>,
    /// Endpoints of the service; not together with `workloadSelector`.
    pub endpoints: Field<Vec<Field<WorkloadEntry>>>,
    /// Pods and WorkloadEntries in the entry's namespace that are endpoints.
    pub workload_selector: Field<WorkloadSelector>,
    /// Namespaces that may use the service: `*`, `.` (its own) or names. Default: all.
    pub export_to: Field<Vec<Field<String>>>,
    /// Names that the service's certificates may have.
    pub subject_alt_names: Field<Vec<Field<String>>>,
}

/// Port of a service: an entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Port number that clients use, 1 to 65535; required.
    pub number: Field<i64>,
    /// Application protocol, such as `HTTP`, `HTTPS`, `GRPC`, `TLS` or `TCP`. Default: detected.
    pub protocol: Field<String>,
    /// Name of the port, by which endpoints map it; required.
    pub name: Field<String>,
    /// Port number of the endpoints. Default: `number`.
    pub target_port: Field<i64>,
}
