//! Sources of the workload's identity that are servers: what they have delivered, and the task that asks them.
//!
//! Invariants: a key is made in this process or received by it, and is in memory only. What is delivered has been checked,
//! and is replaced as a whole. A source that fails takes nothing away that is still valid.

mod answer;
mod istio_ca;
mod request;
mod schedule;
mod workload_api;

use std::error::Error;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tonic::Status;

use self::answer::Material;
use self::istio_ca::IstioCa;
pub use self::istio_ca::IstioCaSettings;
pub use self::request::KeyKind;
use self::workload_api::WorkloadApi;
pub use self::workload_api::{AgentEndpoint, WorkloadApiSettings};
use super::certificates::{append, of_mesh_config};
use crate::compile::certificates::workload;
use crate::identity::Identity;
use crate::telemetry::Telemetry;
use crate::tls::spiffe::Workload;
use crate::tls::store::{AuthorityBytes, IdentityBytes};
use crate::tls::{AuthoritySource, IdentitySource, Problem, ProblemKind};

/// Settings of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySettings {
    /// CA of an Istio mesh.
    IstioCa(IstioCaSettings),
    /// SPIFFE Workload API.
    WorkloadApi(WorkloadApiSettings),
}

/// Newest identity of a source.
#[derive(Clone, Default)]
pub struct Delivered {
    material: Option<Arc<Material>>,
    /// Problem of the last request; `None` if it succeeded.
    problem: Option<Problem>,
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
    pub(super) fn identity(
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
    pub(super) fn authorities(
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

/// Starts the task that gets the identity of a proxy, if a server is its source.
pub fn start(
    settings: Option<&IdentitySettings>,
    identity: &Identity,
    telemetry: &Arc<Telemetry>,
) -> watch::Receiver<Delivered> {
    let (deliver, delivered) = watch::channel(Delivered::default());
    let delivery = Delivery {
        deliver,
        telemetry: Arc::clone(telemetry),
        source: identity.workload.kind.as_str(),
        workload: workload(identity),
    };
    match settings {
        Some(IdentitySettings::IstioCa(settings)) => {
            tokio::spawn(IstioCa::new(settings.clone(), delivery).run());
        }
        Some(IdentitySettings::WorkloadApi(settings)) => {
            tokio::spawn(WorkloadApi::new(settings.clone(), delivery).run());
        }
        None => {}
    }
    delivered
}

/// Waits until a source has delivered something; forever if files are the source.
pub async fn changed(delivered: &mut watch::Receiver<Delivered>) {
    if delivered.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Way of a source to deliver an identity.
struct Delivery {
    deliver: watch::Sender<Delivered>,
    telemetry: Arc<Telemetry>,
    /// Value of the flag `--identity`.
    source: &'static str,
    workload: Workload,
}

impl Delivery {
    /// Delivers an identity that was checked.
    fn deliver(&self, material: Material) {
        self.count("succeeded");
        self.deliver.send_replace(Delivered {
            material: Some(Arc::new(material)),
            problem: None,
        });
    }

    /// Replaces the bundles of the identity in effect.
    fn deliver_bundle(&self, bundle: &[u8]) {
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
                revoked: material.revoked.clone(),
            }));
            true
        });
    }

    /// Reports that no newer identity was delivered. The one in effect stays until it expires.
    fn fail(&self, problem: Problem, result: &'static str) {
        self.count(result);
        self.deliver
            .send_modify(|delivered| delivered.problem = Some(problem));
    }

    /// Takes the identity away, which the workload must not use any more.
    fn withdraw(&self, problem: Problem) {
        self.count("denied");
        self.deliver.send_replace(Delivered {
            material: None,
            problem: Some(problem),
        });
    }

    /// Lets the identity be looked at again, since it has expired.
    fn expired(&self) {
        self.deliver.send_modify(|_| ());
    }

    fn count(&self, result: &'static str) {
        self.telemetry
            .control
            .identity_requested(self.source, result);
    }

    fn place(&self) -> String {
        IdentitySource::Workload(self.source).to_string()
    }
}

/// Time since 1970.
fn now() -> schedule::Time {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns the message of the innermost cause of an error.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<Status>() {
        Some(status) => status.message().to_owned(),
        None => innermost.to_string(),
    }
}
