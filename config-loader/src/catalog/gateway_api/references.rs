//! References to Secrets and ConfigMaps.

use std::sync::Arc;

use super::grants::Referrer;
use crate::catalog::View;
use crate::kind::Name;
use crate::resource::Object;
use crate::resource::core::{ConfigMap, Secret};
use crate::resource::gateway_api::ObjectReference;

/// Reason that a reference does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceProblem {
    /// Group or kind is not a possible one.
    InvalidKind,
    /// The object does not exist, or lacks what is needed of it.
    NotFound(String),
    /// The object is of another namespace, and no ReferenceGrant permits the reference.
    NotPermitted,
}

fn name_of(target: &ObjectReference) -> Name {
    Name {
        namespace: Arc::clone(&target.namespace),
        name: Arc::clone(&target.name),
    }
}

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
    let secret = view.get::<Secret>(&name_of(target)).ok_or_else(missing)?;
    for key in [Secret::TLS_CERTIFICATE, Secret::TLS_KEY] {
        if secret.spec.get(key).is_none_or(<[u8]>::is_empty) {
            let message = format!("Secret {namespace}/{name} has no `{key}`");
            return Err(ReferenceProblem::NotFound(message));
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
    let name = name_of(target);
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
    pem.ok_or_else(|| {
        ReferenceProblem::NotFound(match exists {
            true => format!("{kind} {name} has no certificate in `{key}`"),
            false => format!("{kind} {name} does not exist"),
        })
    })
}

fn has_certificate(pem: &[u8]) -> bool {
    let text = std::str::from_utf8(pem);
    text.is_ok_and(|text| text.contains("-----BEGIN CERTIFICATE-----"))
}
