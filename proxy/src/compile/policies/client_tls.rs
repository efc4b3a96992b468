//! What DestinationRules want of TLS towards endpoints: which certificates, and which authorities to trust. Names only:
//! bytes are in `tls::Store`.

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::istio::{ClientTls, ClientTlsMode, DestinationRule, TrafficPolicy};
use config_loader::{ObjectRef, ResourceSet};

use crate::cluster::EndpointTls;
use crate::compile::applies::counts;
use crate::compile::certificates::Fields;
use crate::compile::certificates::Scope;
use crate::compile::certificates::mesh;
use crate::compile::certificates::secret;
use crate::compile::service::Service;
use crate::compile::service::port::Port;
use crate::compile::service::workload::Behind;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Origin;
use crate::compile::service::workload::Workload;
use crate::identity::{GatewayTls, Identity, MemberSettings, Mode};
use crate::tls::{
    AuthoritySource, ClientMode, ClientSettings, ClientTls as Tls, IdentitySource, Naming, Store,
};

/// What `caCertificates` says where those of the operating system are meant.
const SYSTEM: &str = "system";

/// The label of an endpoint that says whether it speaks the mesh's TLS.
const TLS_MODE_LABEL: &str = "security.istio.io/tlsMode";

/// Why a credential of a rule that selects no workload is not used.
const NO_SELECTOR: &str = "at a sidecar, credentialName needs a rule with workloadSelector";

/// A `tls` of a DestinationRule, or of the gateway of a cluster, that wants certificates.
#[derive(Clone, Debug)]
pub struct ClientUse {
    /// Its DestinationRule; none in the file of what is known of clusters.
    pub object: Option<ObjectRef>,
    /// The file that it was written in.
    pub file: Arc<str>,
    /// Where it and its fields are.
    pub fields: Fields,
    /// The certificate that it shows.
    pub identity: Option<IdentitySource>,
    /// The authorities that it trusts.
    pub authorities: Option<AuthoritySource>,
    /// Why it has no effect but that connections fail.
    pub refused: Option<&'static str>,
}

/// Every `tls` of every DestinationRule that counts for a proxy.
pub fn uses(resources: &ResourceSet, scope: Scope<'_>) -> Vec<ClientUse> {
    let rules = resources.destination_rules.values();
    let counting = rules.filter(|rule| scope.is_of_all() || counts(rule, scope.identity()));
    counting.flat_map(|rule| of_rule(rule, scope)).collect()
}

/// TLS settings for the gateways of clusters, from the remote clusters file.
pub fn uses_of_members(members: &[MemberSettings]) -> Vec<ClientUse> {
    let told = members
        .iter()
        .filter_map(|member| member.gateway.as_ref()?.tls.as_ref());
    let uses = told.map(|tls| {
        let (identity, authorities) = gateway_sources(tls);
        let place = &tls.place;
        let of_authorities = match &tls.authorities {
            Some(_) => "caCertificates",
            None => "mode",
        };
        ClientUse {
            object: None,
            file: Arc::clone(&place.file),
            fields: Fields {
                tls: place.path.to_string(),
                line: place.line,
                lines: place.fields.clone(),
                identities: vec![["clientCertificate", "privateKey"].map(str::to_owned)],
                authorities: of_authorities.to_owned(),
            },
            identity,
            authorities: Some(authorities),
            refused: None,
        }
    });
    uses.collect()
}

fn of_rule(rule: &Object<DestinationRule>, scope: Scope<'_>) -> Vec<ClientUse> {
    let mut found = Vec::new();
    let mut policy = |policy: &TrafficPolicy, path: &str| {
        let own = policy
            .tls
            .as_deref()
            .map(|tls| (tls, format!("{path}.tls")));
        let ports = policy.ports.iter().enumerate().filter_map(|(index, port)| {
            let tls = port.tls.as_deref()?;
            Some((tls, format!("{path}.portLevelSettings[{index}].tls")))
        });
        let each = own.into_iter().chain(ports);
        found.extend(each.filter_map(|(tls, path)| one_use(rule, tls, path, scope)));
    };
    policy(&rule.spec.traffic_policy, "spec.trafficPolicy");
    for (index, subset) in rule.spec.subsets.iter().enumerate() {
        let path = format!("spec.subsets[{index}].trafficPolicy");
        policy(&subset.traffic_policy, &path);
    }
    found
}

fn one_use(
    rule: &Object<DestinationRule>,
    tls: &ClientTls,
    path: String,
    scope: Scope<'_>,
) -> Option<ClientUse> {
    let of_mesh = tls.mode == ClientTlsMode::IstioMutual;
    if tls.mode == ClientTlsMode::Disable || (of_mesh && scope.mesh().is_none()) {
        return None;
    }
    let asked = RuleTls::new(tls, rule);
    let refused = asked.refused(scope);
    let (identity, authorities) = match refused {
        Some(_) => (None, None),
        None => asked.sources(scope),
    };
    Some(ClientUse {
        object: Some(rule.id.clone()),
        file: Arc::clone(&rule.provenance.file),
        fields: fields(rule, tls, path),
        identity,
        authorities,
        refused,
    })
}

fn fields(rule: &Object<DestinationRule>, tls: &ClientTls, path: String) -> Fields {
    let lines = tls.places.iter();
    let lines = lines.map(|place| (Arc::clone(&place.value), rule.line_of(place.line)));
    let of_mesh = tls.mode == ClientTlsMode::IstioMutual;
    let pair = match tls.credential_name {
        _ if of_mesh => ["mode", "mode"],
        Some(_) => ["credentialName", "credentialName"],
        None => ["clientCertificate", "privateKey"],
    };
    let authorities = match (&tls.credential_name, &tls.ca_certificates) {
        _ if of_mesh => "mode",
        (Some(_), _) => "credentialName",
        (None, Some(_)) => "caCertificates",
        (None, None) => "mode",
    };
    Fields {
        tls: path,
        line: rule.line_of(tls.line),
        lines: lines.collect(),
        identities: vec![pair.map(str::to_owned)],
        authorities: authorities.to_owned(),
    }
}

/// A `tls` with what of its rule has a say.
#[derive(Clone, Debug)]
pub(in crate::compile) struct RuleTls {
    tls: ClientTls,
    selects: bool,
}

impl RuleTls {
    /// Whether it is the mesh's own.
    pub(in crate::compile) fn is_of_mesh(&self) -> bool {
        self.tls.mode == ClientTlsMode::IstioMutual
    }

    pub(in crate::compile) fn new(tls: &ClientTls, rule: &Object<DestinationRule>) -> Self {
        Self {
            tls: tls.clone(),
            selects: rule.spec.workload_selector.is_some(),
        }
    }

    /// Why nothing but failures comes of it, if so.
    fn refused(&self, scope: Scope<'_>) -> Option<&'static str> {
        let of_mesh = self.tls.mode == ClientTlsMode::IstioMutual;
        let at_sidecar = scope.identity().mode == Mode::Sidecar;
        let has_credential = self.tls.credential_name.is_some() && !of_mesh;
        (has_credential && at_sidecar && !self.selects).then_some(NO_SELECTOR)
    }

    /// The certificate that is shown, and which authorities to trust.
    fn sources(&self, scope: Scope<'_>) -> (Option<IdentitySource>, Option<AuthoritySource>) {
        let tls = &self.tls;
        if tls.mode == ClientTlsMode::IstioMutual {
            let sources = scope.mesh().map(mesh);
            return sources.unzip();
        }
        let home = scope.namespace();
        let credential = tls.credential_name.as_ref().map(|name| secret(name, home));
        let shows = tls.mode == ClientTlsMode::Mutual;
        let own = match (&credential, &tls.client_certificate, &tls.private_key) {
            _ if !shows => None,
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

/// TLS settings for the gateway of an import.
enum ToGateway {
    OfCluster,
    Own(ClientSettings),
    Plain,
}

/// The settings of `--clusters` for the gateway of a cluster; `host` is what it is called where no other name is told.
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
        naming: Naming::Fixed(name),
        refused: None,
    }
}

/// The certificate that is shown to the gateway of a cluster, and the authorities that must have signed its own.
fn gateway_sources(told: &GatewayTls) -> (Option<IdentitySource>, AuthoritySource) {
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

/// What the TLS of one cluster is for.
pub(in crate::compile) struct Purpose<'a> {
    pub identity: &'a Identity,
    pub service: &'a Service,
    /// Name of the cluster, `outbound|PORT|SUBSET|HOST`.
    pub cluster: &'a str,
    pub members: &'a [&'a Workload],
}

impl Purpose<'_> {
    /// What connections handshake with, by what a rule says or, where no rule says anything, on account of the mesh.
    pub(in crate::compile) fn tls(
        &self,
        asked: Option<&RuleTls>,
        store: &Store,
    ) -> Option<Arc<Tls>> {
        let settings = match asked {
            Some(asked) => self.settings(asked)?,
            None => self.automatic(store)?,
        };
        Some(store.client(&settings))
    }

    /// What is spoken to endpoints of which this is known: what the whole cluster is spoken, or something of their own.
    ///
    /// The mesh's TLS ends at workloads. A gateway that answers for them ends its own, with the certificates that the
    /// remote clusters file or a rule names; a gateway that passes TLS through gets the mesh name of the workloads as
    /// SNI.
    pub(in crate::compile) fn of(
        &self,
        facts: &Facts,
        (asked, of_cluster): (Option<&RuleTls>, Option<&Arc<Tls>>),
        port: &Port,
        store: &Store,
    ) -> EndpointTls {
        if let Some(behind) = &facts.behind {
            return EndpointTls::Own(store.client(&self.through((facts, behind), asked, port)));
        }
        if facts.origin == Origin::Import {
            return match self.to_gateway(facts, asked) {
                ToGateway::Own(settings) => EndpointTls::Own(store.client(&settings)),
                ToGateway::OfCluster => EndpointTls::OfCluster,
                ToGateway::Plain => EndpointTls::Plain,
            };
        }
        let is_automatic = of_cluster.is_some_and(|tls| tls.settings.mode == ClientMode::Automatic);
        if is_automatic && !facts.speaks_mesh_tls() {
            return EndpointTls::Plain;
        }
        let of_mesh = of_cluster.filter(|tls| tls.settings.mode.is_mesh());
        match (of_mesh, self.imported_name(facts, asked)) {
            (Some(tls), Some(name)) => EndpointTls::Own(store.client(&ClientSettings {
                names: vec![name],
                ..tls.settings.clone()
            })),
            _ => EndpointTls::OfCluster,
        }
    }

    /// The name in the certificate of a workload of another cluster, where an import says whose it is and nothing says
    /// more: a rule, the service, or the workload itself.
    fn imported_name(&self, facts: &Facts, asked: Option<&RuleTls>) -> Option<Arc<str>> {
        facts.member.as_ref()?;
        let is_said = asked.is_some_and(|asked| !asked.tls.subject_alt_names.is_empty());
        if is_said || !self.service.subject_alt_names.is_empty() || facts.account.is_some() {
            return None;
        }
        let account = self.service.imported_account.as_ref()?;
        Some(self.mesh_identity(account))
    }

    /// An identity within the mesh, as certificates have it.
    fn mesh_identity(&self, account: &str) -> Arc<str> {
        format!("spiffe://{}/{account}", self.identity.domain).into()
    }

    /// The mesh's TLS to workloads behind a gateway that passes it on.
    fn through(
        &self,
        (facts, behind): (&Facts, &Behind),
        asked: Option<&RuleTls>,
        port: &Port,
    ) -> ClientSettings {
        let (own, root) = mesh(self.identity);
        let subset = self.cluster.split('|').nth(2).unwrap_or_default();
        let name = || format!("outbound_.{}_.{subset}_.{}", behind.port(port), behind.host);
        let asked = asked.filter(|asked| asked.is_of_mesh());
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
            naming: Naming::Fixed(match tls.and_then(|tls| tls.sni.as_ref()) {
                Some(sni) => Arc::clone(sni),
                None => name().into(),
            }),
            refused: None,
        }
    }

    /// TLS settings for the gateway of an import.
    fn to_gateway(&self, facts: &Facts, asked: Option<&RuleTls>) -> ToGateway {
        let host = facts.hop.as_ref().and_then(|hop| hop.server_name.clone());
        let member = facts.member.as_ref();
        let told = member.and_then(|member| member.gateway.as_ref());
        if let Some(told) = told
            && let Some(tls) = &told.tls
        {
            let host = host.unwrap_or_else(|| Arc::from(&*told.host));
            return ToGateway::Own(gateway_settings(tls, host));
        }
        let Some(asked) = asked.filter(|asked| !asked.is_of_mesh()) else {
            return ToGateway::Plain;
        };
        match (host, self.settings(asked)) {
            (Some(host), Some(settings)) if settings.naming == Naming::Host => {
                ToGateway::Own(ClientSettings {
                    names: match (&*settings.names, &settings.authorities) {
                        ([], Some(_)) => vec![Arc::clone(&host)],
                        _ => settings.names,
                    },
                    naming: Naming::Fixed(host),
                    ..settings
                })
            }
            _ => ToGateway::OfCluster,
        }
    }

    fn settings(&self, asked: &RuleTls) -> Option<ClientSettings> {
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
            naming: match &tls.sni {
                Some(name) => Naming::Fixed(Arc::clone(name)),
                None if mode.is_mesh() => self.mesh_name(),
                None => Naming::Host,
            },
            mode,
            identity,
            authorities,
            refused: refused.map(Arc::from),
        })
    }

    /// The mesh's TLS, if this proxy has an identity, and some endpoint speaks it.
    fn automatic(&self, store: &Store) -> Option<ClientSettings> {
        let (own, root) = mesh(self.identity);
        let speaks = || self.members.iter().any(|member| member.speaks_mesh_tls());
        if self.service.external || store.identity(&own).is_none() || !speaks() {
            return None;
        }
        let mode = ClientMode::Automatic;
        Some(ClientSettings {
            mode,
            identity: Some(own),
            authorities: Some(root),
            names: self.names(mode),
            naming: self.mesh_name(),
            refused: None,
        })
    }

    /// Accepted names in server certificates if the rule has none: the names of the service, and
    /// in the mesh the identities of its endpoints, if all of them are known.
    fn names(&self, mode: ClientMode) -> Vec<Arc<str>> {
        let said = &self.service.subject_alt_names;
        if !said.is_empty() || !mode.is_mesh() {
            return said.clone();
        }
        // gateways have no part in it
        let speaking = self
            .members
            .iter()
            .filter(|member| member.remoteness() == 0);
        let speaking =
            speaking.filter(|member| mode == ClientMode::IstioMutual || member.speaks_mesh_tls());
        let accounts: Option<BTreeSet<Arc<str>>> =
            speaking.map(|member| member.account.clone()).collect();
        let accounts = accounts.unwrap_or_default().into_iter();
        accounts
            .map(|account| self.mesh_identity(&account))
            .collect()
    }

    /// `outbound_.PORT_.SUBSET_.HOST`, by which sidecars and gateways of the mesh know a cluster.
    fn mesh_name(&self) -> Naming {
        Naming::Fixed(self.cluster.replace('|', "_.").into())
    }
}

impl Facts {
    /// Whether it is known to speak the mesh's TLS: its label says so, or else it has an identity.
    pub(in crate::compile) fn speaks_mesh_tls(&self) -> bool {
        match self.labels.get(TLS_MODE_LABEL).map(String::as_str) {
            Some(mode) => mode == "istio",
            None => self.account.is_some(),
        }
    }
}
