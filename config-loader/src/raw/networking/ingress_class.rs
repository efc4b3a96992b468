//! IngressClass as written.

use serde::Deserialize;

use crate::raw::Field;

/// `spec` of an IngressClass.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressClass {
    /// Name of the controller: a domain and a path.
    pub controller: Field<String>,
    /// Reference to parameters of the controller.
    pub parameters: Field<IngressParameters>,
}

/// Reference to parameters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressParameters {
    /// API group.
    pub api_group: Field<String>,
    /// Kind.
    pub kind: Field<String>,
    /// Name.
    pub name: Field<String>,
    /// Namespace.
    pub namespace: Field<String>,
    /// `Cluster` or `Namespace`.
    pub scope: Field<String>,
}
