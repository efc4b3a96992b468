//! Delivery of an identity to the control task, and what all sources share.

use std::error::Error;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tonic::Status;

use super::schedule::Time;
use crate::control::certificates::{Delivered, Material};
use crate::telemetry::Telemetry;
use crate::tls::spiffe::Workload;
use crate::tls::{IdentitySource, Problem};

/// Way of a source to deliver an identity.
pub(super) struct Delivery {
    pub(super) deliver: watch::Sender<Delivered>,
    pub(super) telemetry: Arc<Telemetry>,
    /// Value of the flag `--identity`.
    pub(super) source: &'static str,
    pub(super) workload: Workload,
}

impl Delivery {
    /// Delivers an identity that was checked.
    pub(super) fn deliver(&self, material: Arc<Material>) {
        self.count("succeeded");
        self.deliver.send_replace(Delivered {
            material: Some(material),
            problem: None,
        });
    }

    /// Replaces bundles and revocation lists of the identity in effect.
    pub(super) fn deliver_bundle(&self, bundle: &[u8], revoked: Option<&[u8]>) {
        self.deliver.send_if_modified(|delivered| {
            let Some(material) = &delivered.material else {
                return false;
            };
            let domains = self.workload.trust_domains.iter();
            delivered.material = Some(Arc::new(Material {
                chain: material.chain.clone(),
                key: material.key.clone(),
                bundles: domains
                    .map(|domain| (Arc::clone(domain), bundle.to_vec()))
                    .collect(),
                revoked: revoked.map(<[u8]>::to_vec),
            }));
            true
        });
    }

    /// Reports that no newer identity was delivered. The one in effect stays until it expires.
    pub(super) fn fail(&self, problem: Problem, result: &'static str) {
        self.count(result);
        self.deliver
            .send_modify(|delivered| delivered.problem = Some(problem));
    }

    /// Takes the identity away, which the workload must not use any more.
    pub(super) fn withdraw(&self, problem: Problem) {
        self.count("denied");
        self.deliver.send_replace(Delivered {
            material: None,
            problem: Some(problem),
        });
    }

    /// Lets the identity be looked at again, since it has expired.
    pub(super) fn expired(&self) {
        self.deliver.send_modify(|_| ());
    }

    pub(super) fn count(&self, result: &'static str) {
        self.telemetry
            .control
            .identity_requested(self.source, result);
    }

    pub(super) fn place(&self) -> String {
        IdentitySource::Workload(self.source).to_string()
    }
}

/// Time since 1970.
pub(super) fn now() -> Time {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns the message of the innermost cause of an error.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<Status>() {
        Some(status) => status.message().to_owned(),
        None => innermost.to_string(),
    }
}
