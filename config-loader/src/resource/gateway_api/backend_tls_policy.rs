//! BackendTLSPolicy, checked.

use std::sync::Arc;

use super::ObjectReference;
use crate::span::Line;

/// Checked BackendTLSPolicy.
#[derive(Clone, Debug, Default)]
pub struct BackendTLSPolicy {
    /// Services of the policy's namespace. Empty only for a [`BackendVerification::Denied`], whose services could not be
    /// read: it applies to every Service of its namespace.
    pub targets: Vec<PolicyService>,
    /// Verification of the backends.
    pub verification: BackendVerification,
}

impl BackendTLSPolicy {
    /// Whether the object stands in for a rejected one.
    pub(crate) fn is_stand_in(&self) -> bool {
        matches!(self.verification, BackendVerification::Denied)
    }

    /// Returns the content that applies while the object has never been valid: nothing is sent to its services, because
    /// it could be sent in plain text, or to a server that was not verified.
    pub(crate) fn stand_in(&self) -> Option<Self> {
        Some(Self {
            targets: self.targets.clone(),
            verification: BackendVerification::Denied,
        })
    }
}

/// Service that a policy is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyService {
    /// Service or ServiceImport. Other kinds are unresolved references.
    pub object: ObjectReference,
    /// Name of a port; `None` for all of them.
    pub section: Option<Arc<str>>,
}

/// Verification of backends.
#[derive(Clone, Debug, Default)]
pub enum BackendVerification {
    /// Policy that was never valid: requests get a response with status 500.
    #[default]
    Denied,
    /// TLS to a server with a certificate.
    Tls {
        /// CA certificates.
        authorities: Authorities,
        /// Server name (SNI), which the certificate must have if there are no `subject_alt_names`.
        hostname: Arc<str>,
        /// Names of which the certificate must have one.
        subject_alt_names: Vec<SubjectAltName>,
        /// Source line of `validation`.
        line: Line,
    },
}

/// CA certificates of backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorities {
    /// ConfigMaps and Secrets with CA certificates. Never empty. Other kinds are unresolved references.
    Objects(Vec<ObjectReference>),
    /// CA certificates of the system.
    System,
}

/// Name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectAltName {
    /// DNS name, of which the first label may be `*`.
    Dns(Arc<str>),
    /// URI.
    Uri(Arc<str>),
}
