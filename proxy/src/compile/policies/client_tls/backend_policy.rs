//! TLS settings of BackendTLSPolicies, with the certificate that a Gateway shows to backends.

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::View;
use config_loader::catalog::gateway_api::{CONTROLLER, Gateways, TrustedAuthorities, trusted};
use config_loader::resource::Object;
use config_loader::resource::gateway_api::{
    BackendTLSPolicy, BackendVerification, ObjectReference, SubjectAltName,
};

use super::uses::ClientUse;
use crate::compile::certificates::{Fields, Scope, referred};
use crate::identity::Mode;
use crate::tls::{
    AuthoritySource, ClientMode, ClientSettings, IdentitySource, Naming, ProtocolSettings,
};

/// Returns the settings of connections by a policy; `None` if its backends cannot be verified. `identity` is the
/// certificate of the Gateway.
pub(in crate::compile) fn settings(
    view: View<'_>,
    policy: &Object<BackendTLSPolicy>,
    identity: Option<IdentitySource>,
) -> Option<ClientSettings> {
    let authorities = authorities(view, policy)?;
    let BackendVerification::Tls {
        hostname,
        subject_alt_names,
        ..
    } = &policy.spec.verification
    else {
        return None;
    };
    let names = subject_alt_names.iter().map(|name| match name {
        SubjectAltName::Dns(name) | SubjectAltName::Uri(name) => Arc::clone(name),
    });
    Some(ClientSettings {
        mode: match identity {
            Some(_) => ClientMode::Mutual,
            None => ClientMode::Simple,
        },
        identity,
        authorities: Some(authorities),
        names: names.collect(),
        trust_domains: Vec::new(),
        naming: Naming::Hostname(Arc::clone(hostname)),
        protocol: ProtocolSettings::default(),
        refused: None,
    })
}

fn authorities(view: View<'_>, policy: &Object<BackendTLSPolicy>) -> Option<AuthoritySource> {
    Some(match trusted(view, policy)? {
        TrustedAuthorities::System => AuthoritySource::System { revoked: None },
        TrustedAuthorities::Objects(all) => referred(all),
    })
}

/// Returns the source of the certificate that a Gateway shows to backends.
pub(in crate::compile) fn identity(secret: &ObjectReference) -> IdentitySource {
    IdentitySource::Referred {
        namespace: Arc::clone(&secret.namespace),
        name: Arc::clone(&secret.name),
    }
}

/// Returns the CA certificates of every BackendTLSPolicy, and the certificates that Gateways show to backends; none for a
/// sidecar.
pub fn uses(resources: &ResourceSet, scope: Scope<'_>) -> Vec<ClientUse> {
    if scope.identity().mode == Mode::Sidecar {
        return Vec::new();
    }
    let view = View::from(resources);
    let policies = resources.backend_tls_policies.values();
    let policies = policies.filter_map(move |policy| {
        let authorities = authorities(view, policy)?;
        let BackendVerification::Tls { line, .. } = policy.spec.verification else {
            return None;
        };
        Some(ClientUse {
            authorities: Some(authorities),
            ..a_use(policy, "spec.validation", policy.line_of(line))
        })
    });
    let gateways = Gateways::of(view, CONTROLLER);
    let gateways = gateways.iter().filter_map(|gateway| {
        let secret = gateway.client_secret()?;
        let field = "spec.tls.backend.clientCertificateRef";
        Some(ClientUse {
            identity: Some(identity(secret)),
            ..a_use(gateway.object, field, gateway.object.line_of(secret.line))
        })
    });
    policies.chain(gateways).collect()
}

fn a_use<T>(object: &Object<T>, field: &str, line: u32) -> ClientUse {
    ClientUse {
        object: Some(object.id.clone()),
        file: Arc::clone(&object.provenance.file),
        fields: Fields {
            tls: field.to_owned(),
            line,
            ..Fields::default()
        },
        identity: None,
        authorities: None,
        refused: None,
    }
}
