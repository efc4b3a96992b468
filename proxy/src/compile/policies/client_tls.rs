//! TLS settings of DestinationRules for connections to endpoints: the certificate to present, and the trusted
//! authorities. Names only: the certificates themselves are in `tls::Store`.

pub(in crate::compile) mod backend_policy;
mod sources;
mod uses;

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::resource::istio::ClientTlsMode;

use crate::compile::certificates::Scope;
use crate::compile::certificates::{mesh, protocol};
use crate::compile::service::Service;
use crate::compile::service::port::Port;
use crate::compile::service::workload::Behind;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Origin;
use crate::compile::service::workload::Workload;
use crate::identity::{GatewayTls, Identity};
use crate::tls::{
    ClientMode, ClientSettings, ClientTls as Tls, Naming, ProtocolSettings, Store, spiffe,
};
pub use backend_policy::uses as uses_of_policies;
pub(in crate::compile) use sources::RuleTls;
use sources::gateway_sources;
use traffic::cluster::{EndpointTls, LabelSource};
pub use uses::{ClientUse, uses, uses_of_members};

/// Label of an endpoint that says whether it accepts mesh mTLS.
const TLS_MODE_LABEL: &str = "security.istio.io/tlsMode";

/// TLS settings for the gateway of an import.
enum ToGateway {
    OfCluster,
    Own(Box<ClientSettings>),
    Plain,
}

/// Returns the TLS settings for the gateway of a remote cluster. `host` is the server name if none is configured.
fn gateway_settings(told: &GatewayTls, host: Arc<str>) -> ClientSettings {
    let (identity, authorities) = gateway_sources(told);
    let name = told.server_name.clone().unwrap_or(host);
    ClientSettings {
        mode: match identity {
            Some(_) => ClientMode::Mutual,
            None => ClientMode::Simple,
        },
        identity,
        authorities: Some(authorities),
        names: vec![Arc::clone(&name)],
        trust_domains: Vec::new(),
        naming: Naming::Fixed(name),
        protocol: ProtocolSettings::default(),
        refused: None,
    }
}

/// Inputs of the TLS settings of one cluster.
pub(in crate::compile) struct Purpose<'a> {
    pub identity: &'a Identity,
    pub service: &'a Service,
    /// Name of the cluster, `outbound|PORT|SUBSET|HOST`.
    pub cluster: &'a str,
    pub members: &'a [&'a Workload],
    /// TLS settings of the rule.
    pub asked: Option<&'a RuleTls>,
    pub store: &'a Store,
    /// Whether a PeerAuthentication disables mesh mTLS for workloads with these facts.
    pub takes_plain_text: &'a dyn Fn(&Facts) -> bool,
}

impl Purpose<'_> {
    /// Returns the TLS settings of the cluster: those of the rule, else automatic mesh mTLS.
    pub(in crate::compile) fn tls(&self) -> Option<Arc<Tls>> {
        let settings = match self.asked {
            Some(asked) => self.settings(asked)?,
            None => self.automatic()?,
        };
        Some(self.client(settings))
    }

    /// Returns the TLS of endpoints with these facts: that of the whole cluster, or their own.
    ///
    /// Mesh mTLS ends at workloads. A gateway that terminates TLS for them uses the certificates that the remote
    /// clusters file or a rule names; a gateway that passes TLS through gets the mesh name of the workloads as SNI.
    pub(in crate::compile) fn of(
        &self,
        facts: &Facts,
        of_cluster: Option<&Arc<Tls>>,
        port: &Port,
    ) -> EndpointTls {
        if let Some(behind) = &facts.behind {
            return EndpointTls::Own(self.client(self.through(facts, behind, port)));
        }
        if facts.origin == Origin::Import {
            return match self.to_gateway(facts) {
                ToGateway::Own(settings) => EndpointTls::Own(self.client(*settings)),
                ToGateway::OfCluster => EndpointTls::OfCluster,
                ToGateway::Plain => EndpointTls::Plain,
            };
        }
        let is_automatic = of_cluster.is_some_and(|tls| tls.settings.mode == ClientMode::Automatic);
        if is_automatic && (!facts.speaks_mesh_tls() || (self.takes_plain_text)(facts)) {
            return EndpointTls::Plain;
        }
        let of_mesh = of_cluster.filter(|tls| tls.settings.mode.is_mesh());
        match (of_mesh, self.imported_name(facts, self.asked)) {
            (Some(tls), Some(name)) => {
                let settings = ClientSettings {
                    names: vec![name],
                    ..tls.settings.clone()
                };
                EndpointTls::Own(self.client(settings))
            }
            _ => EndpointTls::OfCluster,
        }
    }

    /// Returns the TLS of connections with these settings. In the mesh, all names of the trust domain are equal.
    fn client(&self, mut settings: ClientSettings) -> Arc<Tls> {
        settings.protocol = protocol(self.identity, settings.mode.is_mesh());
        if settings.mode.is_mesh() {
            let domains: Vec<&str> = self.identity.workload.trust_domains().collect();
            settings.names = spiffe::equal_names(&settings.names, &domains);
            if settings.names.is_empty() {
                settings.trust_domains = domains.into_iter().map(Arc::from).collect();
            }
        }
        self.store.client(&settings)
    }

    /// Returns the name in the certificate of a remote workload, if an import names its service account and neither a
    /// rule, the service nor the workload itself gives a name.
    fn imported_name(&self, facts: &Facts, asked: Option<&RuleTls>) -> Option<Arc<str>> {
        facts.member.as_ref()?;
        let is_said = asked.is_some_and(|asked| !asked.tls.subject_alt_names.is_empty());
        if is_said || !self.service.subject_alt_names.is_empty() || facts.account.is_some() {
            return None;
        }
        let account = self.service.imported_account.as_ref()?;
        Some(self.mesh_identity(account))
    }

    /// Returns the SPIFFE ID of an account in the mesh.
    fn mesh_identity(&self, account: &str) -> Arc<str> {
        format!("spiffe://{}/{account}", self.identity.workload.trust_domain).into()
    }

    /// Returns the settings of mesh mTLS to workloads behind a gateway that passes TLS through.
    fn through(&self, facts: &Facts, behind: &Behind, port: &Port) -> ClientSettings {
        let (own, root) = mesh(self.identity);
        let subset = self.cluster.split('|').nth(2).unwrap_or_default();
        let name = || format!("outbound_.{}_.{subset}_.{}", behind.port(port), behind.host);
        let asked = self.asked.filter(|asked| asked.is_of_mesh());
        let tls = asked.map(|asked| &asked.tls);
        let names = tls.map_or(&[][..], |tls| &tls.subject_alt_names);
        ClientSettings {
            mode: ClientMode::IstioMutual,
            identity: Some(own),
            authorities: Some(root),
            names: match (names, self.imported_name(facts, asked)) {
                ([], Some(name)) => vec![name],
                ([], None) => self.service.subject_alt_names.clone(),
                (names, _) => names.to_vec(),
            },
            trust_domains: Vec::new(),
            naming: Naming::Fixed(match tls.and_then(|tls| tls.sni.as_ref()) {
                Some(sni) => Arc::clone(sni),
                None => name().into(),
            }),
            protocol: ProtocolSettings::default(),
            refused: None,
        }
    }

    /// Returns the TLS settings for the gateway of an import.
    fn to_gateway(&self, facts: &Facts) -> ToGateway {
        let host = facts.hop.as_ref().and_then(|hop| hop.server_name.clone());
        let member = facts.member.as_ref();
        let told = member.and_then(|member| member.gateway.as_ref());
        if let Some(told) = told
            && let Some(tls) = &told.tls
        {
            let host = host.unwrap_or_else(|| Arc::from(&*told.host));
            return ToGateway::Own(Box::new(gateway_settings(tls, host)));
        }
        let Some(asked) = self.asked.filter(|asked| !asked.is_of_mesh()) else {
            return ToGateway::Plain;
        };
        match (host, self.settings(asked)) {
            (Some(host), Some(settings)) if settings.naming == Naming::Host => {
                ToGateway::Own(Box::new(ClientSettings {
                    names: match (&*settings.names, &settings.authorities) {
                        ([], Some(_)) => vec![Arc::clone(&host)],
                        _ => settings.names,
                    },
                    naming: Naming::Fixed(host),
                    ..settings
                }))
            }
            _ => ToGateway::OfCluster,
        }
    }

    fn settings(&self, asked: &RuleTls) -> Option<ClientSettings> {
        if let Some(of_policy) = &asked.of_policy {
            return Some(ClientSettings::clone(of_policy));
        }
        let scope = Scope::Proxy(self.identity);
        let tls = &asked.tls;
        let mode = match tls.mode {
            ClientTlsMode::Disable => return None,
            ClientTlsMode::IstioMutual => ClientMode::IstioMutual,
            ClientTlsMode::Mutual => ClientMode::Mutual,
            ClientTlsMode::Simple => ClientMode::Simple,
        };
        let refused = asked.refused(scope);
        let (identity, authorities) = match refused {
            Some(_) => (None, None),
            None => asked.sources(scope),
        };
        Some(ClientSettings {
            names: match &*tls.subject_alt_names {
                _ if authorities.is_none() => Vec::new(),
                [] => self.names(mode),
                names => names.to_vec(),
            },
            trust_domains: Vec::new(),
            naming: match &tls.sni {
                Some(name) => Naming::Fixed(Arc::clone(name)),
                None if mode.is_mesh() => self.mesh_name(),
                None => Naming::Host,
            },
            mode,
            identity,
            authorities,
            protocol: ProtocolSettings::default(),
            refused: refused.map(Arc::from),
        })
    }

    /// Returns the settings of automatic mesh mTLS, if this proxy has an identity and some endpoint accepts it.
    fn automatic(&self) -> Option<ClientSettings> {
        let (own, root) = mesh(self.identity);
        let speaks = || self.members.iter().any(|member| member.speaks_mesh_tls());
        let is_off = self.identity.mesh_config.disables_auto_mtls;
        if is_off || self.service.external || self.store.identity(&own).is_none() || !speaks() {
            return None;
        }
        let mode = ClientMode::Automatic;
        Some(ClientSettings {
            mode,
            identity: Some(own),
            authorities: Some(root),
            names: self.names(mode),
            trust_domains: Vec::new(),
            naming: self.mesh_name(),
            protocol: ProtocolSettings::default(),
            refused: None,
        })
    }

    /// Returns the accepted names in server certificates if the rule has none: the names of the service, or in the mesh
    /// the identities of its endpoints, if all of them are known. Endpoints whose pods are not known yet are ignored.
    fn names(&self, mode: ClientMode) -> Vec<Arc<str>> {
        let said = &self.service.subject_alt_names;
        if !said.is_empty() || !mode.is_mesh() {
            return said.clone();
        }
        // identities of gateways do not count
        let speaking = self
            .members
            .iter()
            .filter(|member| member.remoteness() == 0);
        let speaking =
            speaking.filter(|member| mode == ClientMode::IstioMutual || member.speaks_mesh_tls());
        // an endpoint whose pod is not known yet is assumed to have one of the other accounts
        let known = speaking
            .filter(|member| member.account.is_some() || member.labels_from != LabelSource::Slice);
        let accounts: Option<BTreeSet<Arc<str>>> =
            known.map(|member| member.account.clone()).collect();
        let accounts = accounts.unwrap_or_default().into_iter();
        accounts
            .map(|account| self.mesh_identity(&account))
            .collect()
    }

    /// Returns `outbound_.PORT_.SUBSET_.HOST`, the SNI by which sidecars and gateways of the mesh know a cluster.
    fn mesh_name(&self) -> Naming {
        Naming::Fixed(self.cluster.replace('|', "_.").into())
    }
}

impl Facts {
    /// Whether the endpoint is known to accept mesh mTLS: by its label, else if it has an identity and is not a pod.
    pub(in crate::compile) fn speaks_mesh_tls(&self) -> bool {
        match self.labels.get(TLS_MODE_LABEL).map(String::as_str) {
            Some(mode) => mode == "istio",
            None => self.account.is_some() && self.labels_from != LabelSource::Pod,
        }
    }
}
