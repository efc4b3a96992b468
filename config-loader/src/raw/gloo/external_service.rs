//! Service outside the mesh, as written.

use serde::Deserialize;

use crate::raw::{Field, Map};

/// `externalService` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalService {
    /// `name`
    pub name: Field<String>,
    /// `hosts`
    pub hosts: Field<Vec<Field<String>>>,
    /// `addresses`
    pub addresses: Field<Vec<Field<String>>>,
    /// `ports`
    pub ports: Field<Vec<Field<ExternalServicePort>>>,
    /// `endpoints`
    pub endpoints: Field<Vec<Field<ExternalEndpoint>>>,
}

/// An entry of `ports` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalServicePort {
    /// `number`
    pub number: Field<i64>,
    /// `name`
    pub name: Field<String>,
    /// `protocol`
    pub protocol: Field<String>,
}

/// An entry of `endpoints` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalEndpoint {
    /// `address`
    pub address: Field<String>,
    /// `ports`
    pub ports: Field<Map<i64>>,
}
