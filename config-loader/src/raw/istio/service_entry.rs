//! ServiceEntry as written.

use serde::Deserialize;

use super::{WorkloadEntry, WorkloadSelector};
use crate::raw::Field;

/// ServiceEntry as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceEntry {
    /// `hosts`
    pub hosts: Field<Vec<Field<String>>>,
    /// `addresses`
    pub addresses: Field<Vec<Field<String>>>,
    /// `ports`
    pub ports: Field<Vec<Field<ServicePort>>>,
    /// `location`
    pub location: Field<String>,
    /// `resolution`
    pub resolution: Field<String>,
    /// `endpoints`
    pub endpoints: Field<Vec<Field<WorkloadEntry>>>,
    /// `workloadSelector`
    pub workload_selector: Field<WorkloadSelector>,
    /// `exportTo`
    pub export_to: Field<Vec<Field<String>>>,
    /// `subjectAltNames`
    pub subject_alt_names: Field<Vec<Field<String>>>,
}

/// An entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// `number`
    pub number: Field<i64>,
    /// `protocol`
    pub protocol: Field<String>,
    /// `name`
    pub name: Field<String>,
    /// `targetPort`
    pub target_port: Field<i64>,
}
