//! Identity that a server has delivered: certificate, key, and the bundles of trust domains.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::authorities::{append, of_mesh_config};
use crate::identity::Identity;
use crate::tls::spiffe::Workload;
use crate::tls::store::{AuthorityBytes, IdentityBytes};
use crate::tls::{AuthoritySource, IdentitySource, Problem, ProblemKind};

/// Newest identity of a source.
#[derive(Clone, Default)]
pub struct Delivered {
    pub(in crate::control) material: Option<Arc<Material>>,
    /// Problem of the last request; `None` if it succeeded.
    pub(in crate::control) problem: Option<Problem>,
}

impl Delivered {
    /// Whether no identity has been delivered yet.
    pub fn is_awaited(&self) -> bool {
        self.material.is_none()
    }

    /// Returns certificate and key, which must identify `workload`.
    ///
    /// # Errors
    ///
    /// Reason that there is none yet.
    pub(in crate::control) fn identity(
        &self,
        source: &IdentitySource,
        workload: Option<Workload>,
    ) -> Result<IdentityBytes, Problem> {
        let place: Arc<str> = source.to_string().into();
        let material = self.material(&place)?;
        Ok(IdentityBytes {
            chain: (Arc::clone(&place), material.chain.clone()),
            key: (place, material.key.clone()),
            workload,
            problem: self.problem.clone(),
        })
    }

    /// Returns the bundles of all trust domains. Aliases of the proxy's own have its bundle, and authorities of the mesh
    /// configuration count for all trust domains of the mesh.
    ///
    /// # Errors
    ///
    /// Reason that there are none yet.
    pub(in crate::control) fn authorities(
        &self,
        source: &AuthoritySource,
        identity: &Identity,
    ) -> Result<AuthorityBytes, Problem> {
        let place: Arc<str> = source.to_string().into();
        let material = self.material(&place)?;
        let mut bundles = material.bundles.clone();
        let mut own = identity.workload.trust_domains();
        let own_bundle = own.find_map(|domain| bundles.get(domain)).cloned();
        for domain in identity.workload.trust_domains() {
            if let Some(bundle) = &own_bundle {
                let entry = bundles.entry(domain.into());
                entry.or_insert_with(|| bundle.clone());
            }
        }
        let others = of_mesh_config(identity);
        if !others.trim_ascii().is_empty() {
            for domain in identity.trust_domains() {
                append(bundles.entry(domain.into()).or_default(), &others);
            }
        }
        let mut all = Vec::new();
        bundles.values().for_each(|bundle| append(&mut all, bundle));
        let revoked = material.revoked.clone();
        Ok(AuthorityBytes {
            authorities: (Arc::clone(&place), all),
            bundles,
            revoked: revoked.map(|lists| (place, lists)),
            is_lenient: false,
        })
    }

    fn material(&self, place: &Arc<str>) -> Result<&Material, Problem> {
        self.material.as_deref().ok_or_else(|| {
            let problem = self.problem.clone();
            let awaited = || {
                let text = "no certificate has been issued yet";
                Problem::new(ProblemKind::NotYetIssued, Arc::clone(place), text)
            };
            problem.unwrap_or_else(awaited)
        })
    }
}

/// Identity that a source has delivered, as PEM. The key is in memory only.
pub struct Material {
    /// Certificate chain, the workload's own first.
    pub chain: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
    /// CA certificates by trust domain.
    pub bundles: BTreeMap<Arc<str>, Vec<u8>>,
    /// Revocation lists.
    pub revoked: Option<Vec<u8>>,
}
