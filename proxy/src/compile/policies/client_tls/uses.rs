//! Certificates and authorities that TLS settings for endpoints name, with their locations.

use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::istio::{ClientTls, ClientTlsMode, DestinationRule, TrafficPolicy};
use config_loader::{ObjectRef, ResourceSet};

use super::sources::{RuleTls, gateway_sources};
use crate::compile::applies::workload;
use crate::compile::certificates::{Fields, Scope};
use crate::identity::MemberSettings;
use crate::tls::{AuthoritySource, IdentitySource};

/// TLS settings of a DestinationRule, or of the gateway of a remote cluster, that name certificates.
#[derive(Clone, Debug)]
pub struct ClientUse {
    /// DestinationRule of the settings; `None` for the remote clusters file.
    pub object: Option<ObjectRef>,
    /// File of the settings.
    pub file: Arc<str>,
    /// Locations of the settings and their fields.
    pub fields: Fields,
    /// Source of the certificate to present.
    pub identity: Option<IdentitySource>,
    /// Source of the trusted authorities.
    pub authorities: Option<AuthoritySource>,
    /// Reason that every connection with these settings fails.
    pub refused: Option<&'static str>,
}

/// Returns the TLS settings of every DestinationRule that applies to a proxy.
pub fn uses(resources: &ResourceSet, scope: Scope<'_>) -> Vec<ClientUse> {
    let rules = resources.destination_rules.values();
    let counting =
        rules.filter(|rule| scope.is_of_all() || rule.counts_for(workload(scope.identity())));
    counting.flat_map(|rule| of_rule(rule, scope)).collect()
}

/// Returns the TLS settings for the gateways of remote clusters, from the remote clusters file.
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
