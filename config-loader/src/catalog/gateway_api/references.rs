//! References to Secrets and ConfigMaps, and the problems of all references.

use std::fmt;
use std::sync::Arc;

use super::grants::Referrer;
use crate::catalog::View;
use crate::kind::ObjectRef;
use crate::resource::Object;
use crate::resource::core::{ConfigMap, Secret};
use crate::resource::gateway_api::ObjectReference;

/// Reason that a reference does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceProblem {
    /// Group or kind is not a possible one.
    InvalidKind,
    /// The object lacks what is needed of it. What it had before stays in use.
    Malformed(String),
    /// The object does not exist.
    NotFound(String),
    /// The object is of another namespace, and no ReferenceGrant permits the reference.
    NotPermitted,
    /// The `appProtocol` of a backend's port requires TLS, which neither a BackendTLSPolicy nor a DestinationRule sets up.
    UnsupportedProtocol(&'static str),
    /// This BackendTLSPolicy of a backend has no CA certificate, or was rejected.
    UnverifiableTls(ObjectRef),
}

impl ReferenceProblem {
    /// Whether a reference that once held stays in use.
    pub(super) fn is_of_content(&self) -> bool {
        matches!(self, ReferenceProblem::Malformed(_))
    }

    /// Describes the problem of a reference.
    pub fn describe(&self, target: &ObjectReference) -> String {
        let ObjectReference {
            kind,
            namespace,
            name,
            ..
        } = target;
        match self {
            ReferenceProblem::InvalidKind => format!("{kind} `{name}` cannot be referred to here"),
            ReferenceProblem::NotPermitted => {
                format!("no ReferenceGrant permits this reference to {kind} {namespace}/{name}")
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for ReferenceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceProblem::InvalidKind => f.write_str("this kind cannot be referred to here"),
            ReferenceProblem::Malformed(what) | ReferenceProblem::NotFound(what) => {
                f.write_str(what)
            }
            ReferenceProblem::NotPermitted => {
                f.write_str("no ReferenceGrant in its namespace permits the reference")
            }
            ReferenceProblem::UnsupportedProtocol(protocol) => {
                write!(f, "`{protocol}` needs a BackendTLSPolicy for the port")
            }
            ReferenceProblem::UnverifiableTls(policy) => {
                write!(f, "{policy} applies, which has no usable CA certificate")
            }
        }
    }
}

/// Beginning of a block of PEM.
const PEM: &[u8] = b"-----BEGIN ";

/// Returns the Secret with a certificate and its key.
pub(super) fn certificate<'a>(
    view: View<'a>,
    referrer: Referrer<'_>,
    target: &ObjectReference,
) -> Result<&'a Arc<Object<Secret>>, ReferenceProblem> {
    if !target.is("", "Secret") {
        return Err(ReferenceProblem::InvalidKind);
    }
    if !referrer.may_refer(view, target) {
        return Err(ReferenceProblem::NotPermitted);
    }
    let ObjectReference {
        namespace, name, ..
    } = target;
    let missing =
        || ReferenceProblem::NotFound(format!("Secret {namespace}/{name} does not exist"));
    let secret = view.get::<Secret>(&target.to_name()).ok_or_else(missing)?;
    for key in [Secret::TLS_CERTIFICATE, Secret::TLS_KEY] {
        let is_pem = |value: &[u8]| value.windows(PEM.len()).any(|part| part == PEM);
        if !secret.spec.get(key).is_some_and(is_pem) {
            let message = format!("Secret {namespace}/{name} has no PEM in `{key}`");
            return Err(ReferenceProblem::Malformed(message));
        }
    }
    Ok(secret)
}

/// Returns the CA certificates of a ConfigMap or Secret, as PEM.
pub(super) fn authorities<'a>(
    view: View<'a>,
    referrer: Referrer<'_>,
    target: &ObjectReference,
) -> Result<&'a [u8], ReferenceProblem> {
    let is_secret = target.is("", "Secret");
    if !is_secret && !target.is("", "ConfigMap") {
        return Err(ReferenceProblem::InvalidKind);
    }
    if !referrer.may_refer(view, target) {
        return Err(ReferenceProblem::NotPermitted);
    }
    let name = target.to_name();
    let key = ConfigMap::CA_CERTIFICATES;
    let (exists, pem) = if is_secret {
        let secret = view.get::<Secret>(&name);
        (secret.is_some(), secret.and_then(|one| one.spec.get(key)))
    } else {
        let map = view.get::<ConfigMap>(&name);
        let pem = map.and_then(|one| one.spec.ca_certificates.as_ref());
        (map.is_some(), pem.map(|pem| pem.as_bytes()))
    };
    let kind = &target.kind;
    let pem = pem.filter(|pem| has_certificate(pem));
    pem.ok_or_else(|| match exists {
        true => {
            let message = format!("{kind} {name} has no certificate in `{key}`");
            ReferenceProblem::Malformed(message)
        }
        false => ReferenceProblem::NotFound(format!("{kind} {name} does not exist")),
    })
}

fn has_certificate(pem: &[u8]) -> bool {
    let text = std::str::from_utf8(pem);
    text.is_ok_and(|text| text.contains("-----BEGIN CERTIFICATE-----"))
}
