//! BackendTLSPolicy as written.

use serde::Deserialize;

use super::LocalReference;
use crate::raw::{Field, Map};

/// BackendTLSPolicy as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendTlsPolicy {
    /// Services of the policy's namespace that it is attached to.
    pub target_refs: Field<Vec<Field<PolicyTarget>>>,
    /// Verification of the backends.
    pub validation: Field<BackendValidation>,
    /// Further settings by key.
    pub options: Field<Map<String>>,
}

/// Service that a policy is attached to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyTarget {
    /// API group; empty for the core group.
    pub group: Field<String>,
    /// Kind.
    pub kind: Field<String>,
    /// Name.
    pub name: Field<String>,
    /// Name of a port. Default: all ports.
    pub section_name: Field<String>,
}

/// Verification of backends.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendValidation {
    /// ConfigMaps or Secrets with CA certificates.
    pub ca_certificate_refs: Field<Vec<Field<LocalReference>>>,
    /// `System` for the CA certificates of the system.
    #[serde(rename = "wellKnownCACertificates")]
    pub well_known_ca_certificates: Field<String>,
    /// Server name (SNI), and name in the certificate without `subjectAltNames`.
    pub hostname: Field<String>,
    /// Names of which the certificate must have one.
    pub subject_alt_names: Field<Vec<Field<SubjectAltName>>>,
}

/// Name in a certificate. `type` names the field that is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubjectAltName {
    /// `Hostname` or `URI`.
    #[serde(rename = "type")]
    pub name_type: Field<String>,
    /// DNS name.
    pub hostname: Field<String>,
    /// URI.
    pub uri: Field<String>,
}
