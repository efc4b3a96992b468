//! Sources of the certificate that the proxy presents to endpoints, and of the authorities that verify theirs.

use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::istio::{ClientTls, ClientTlsMode, DestinationRule};

use crate::compile::certificates::{Scope, mesh, secret};
use crate::identity::{GatewayTls, Mode};
use crate::tls::{AuthoritySource, ClientSettings, IdentitySource, ReferredObject};

/// Value of `caCertificates` for the certificate authorities of the operating system.
const SYSTEM: &str = "system";

/// Reason that a credential of a rule without a workload selector is not used.
const NO_SELECTOR: &str = "at a sidecar, credentialName needs a rule with workloadSelector";

/// TLS settings of a DestinationRule, with whether the rule selects workloads.
#[derive(Clone, Debug)]
pub(in crate::compile) struct RuleTls {
    pub(super) tls: ClientTls,
    selects: bool,
    /// Namespace whose Secrets the rule may name, since it comes from an Ingress there.
    of_ingress: Option<Arc<str>>,
    /// Settings of a BackendTLSPolicy, which replace those of the rule.
    pub(super) of_policy: Option<Box<ClientSettings>>,
}

impl From<ClientSettings> for RuleTls {
    fn from(of_policy: ClientSettings) -> Self {
        Self {
            tls: ClientTls::default(),
            selects: false,
            of_ingress: None,
            of_policy: Some(Box::new(of_policy)),
        }
    }
}

impl RuleTls {
    /// Whether the mode is `ISTIO_MUTUAL`.
    pub(in crate::compile) fn is_of_mesh(&self) -> bool {
        self.tls.mode == ClientTlsMode::IstioMutual
    }

    pub(in crate::compile) fn new(tls: &ClientTls, rule: &Object<DestinationRule>) -> Self {
        Self {
            tls: tls.clone(),
            selects: rule.spec.workload_selector.is_some(),
            of_ingress: (rule.provenance.written_as.as_ref())
                .map(|_| Arc::clone(&rule.id.namespace)),
            of_policy: None,
        }
    }

    /// Returns the reason that every connection with these settings fails, if there is one.
    pub(super) fn refused(&self, scope: Scope<'_>) -> Option<&'static str> {
        let of_mesh = self.tls.mode == ClientTlsMode::IstioMutual;
        let at_sidecar = scope.identity().mode == Mode::Sidecar;
        let has_credential = self.tls.credential_name.is_some() && !of_mesh;
        (has_credential && at_sidecar && !self.selects).then_some(NO_SELECTOR)
    }

    /// Returns the sources of the certificate to present and of the trusted authorities.
    pub(super) fn sources(
        &self,
        scope: Scope<'_>,
    ) -> (Option<IdentitySource>, Option<AuthoritySource>) {
        let tls = &self.tls;
        if tls.mode == ClientTlsMode::IstioMutual {
            let sources = scope.mesh().map(mesh);
            return sources.unzip();
        }
        let home = scope.namespace();
        let credential = tls.credential_name.as_ref().map(|name| secret(name, home));
        let of_ingress = self.of_ingress.as_ref();
        let is_referred = |namespace: &Arc<str>| of_ingress == Some(namespace);
        let shows = tls.mode == ClientTlsMode::Mutual;
        let own = match (&credential, &tls.client_certificate, &tls.private_key) {
            _ if !shows => None,
            (Some((namespace, name)), _, _) if is_referred(namespace) => {
                Some(IdentitySource::Referred {
                    namespace: Arc::clone(namespace),
                    name: Arc::clone(name),
                })
            }
            (Some((namespace, name)), _, _) => Some(IdentitySource::Secret {
                namespace: Arc::clone(namespace),
                name: Arc::clone(name),
            }),
            (None, Some(chain), Some(key)) => Some(IdentitySource::Files {
                chain: Arc::clone(chain),
                key: Arc::clone(key),
            }),
            (None, _, _) => None,
        };
        let revoked = tls.ca_crl.clone();
        let believed = match (credential, &tls.ca_certificates) {
            _ if tls.insecure_skip_verify => None,
            (Some((namespace, name)), _) if is_referred(&namespace) => {
                let object = ReferredObject {
                    is_config_map: false,
                    namespace,
                    name,
                };
                Some(AuthoritySource::Referred {
                    objects: [object].into(),
                })
            }
            (Some((namespace, name)), _) => Some(AuthoritySource::Secret { namespace, name }),
            (None, Some(path)) if **path != *SYSTEM => Some(AuthoritySource::Files {
                authorities: Arc::clone(path),
                revoked,
            }),
            (None, _) => Some(AuthoritySource::System { revoked }),
        };
        (own, believed)
    }
}

/// Returns the sources of the certificate to present to a cluster's gateway, and of the authorities for the gateway's
/// own.
pub(super) fn gateway_sources(told: &GatewayTls) -> (Option<IdentitySource>, AuthoritySource) {
    let shows = told.shows.as_ref();
    let identity = shows.map(|(chain, key)| IdentitySource::Files {
        chain: Arc::clone(chain),
        key: Arc::clone(key),
    });
    let authorities = match &told.authorities {
        Some(path) => AuthoritySource::Files {
            authorities: Arc::clone(path),
            revoked: None,
        },
        None => AuthoritySource::System { revoked: None },
    };
    (identity, authorities)
}
