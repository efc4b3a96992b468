//! Certificates of listeners of the Gateway API.

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::View;
use config_loader::catalog::gateway_api::{CONTROLLER, Gateways, ServedGateway, ServedListener};
use config_loader::resource::gateway_api::ListenerProtocol;

use super::{Fields, Use};
use crate::tls::{Alpn, IdentitySource, ProtocolSettings, ServerSettings, Version};

/// Returns the TLS settings of a listener.
pub(in crate::compile) fn settings(served: &ServedListener<'_>) -> ServerSettings {
    let secrets = served.certificates.iter().flatten();
    let identities = secrets.map(|secret| IdentitySource::Secret {
        namespace: Arc::clone(&secret.id.namespace),
        name: Arc::clone(&secret.id.name),
    });
    ServerSettings {
        identities: identities.collect(),
        clients: None,
        protocol: ProtocolSettings::default(),
        version_max: Version::Tls13,
        alpn: Alpn::Http,
    }
}

/// Returns every listener that terminates TLS.
pub(super) fn uses(resources: &ResourceSet) -> Vec<Use> {
    if resources.kubernetes_gateways.is_empty() {
        return Vec::new();
    }
    let gateways = Gateways::of(View::from(resources), CONTROLLER);
    let listeners = gateways.iter().flat_map(|gateway| {
        let listeners = gateway.listeners.iter();
        let listeners = listeners.filter(|one| one.is_served());
        let https =
            |one: &&ServedListener<'_>| matches!(one.listener.protocol, ListenerProtocol::Https(_));
        listeners.filter(https).map(|one| one_use(gateway, one))
    });
    listeners.collect()
}

fn one_use(gateway: &ServedGateway<'_>, served: &ServedListener<'_>) -> Use {
    let listener = served.listener;
    let (file, line) = match served.set {
        None => {
            let object = gateway.object;
            (&object.provenance.file, object.line_of(listener.line))
        }
        Some(set) => {
            let object = gateway.sets[set].object;
            (&object.provenance.file, object.line_of(listener.line))
        }
    };
    Use {
        object: gateway.owner(served).clone(),
        file: Arc::clone(file),
        fields: Fields {
            tls: format!("spec.listeners[{}].tls", listener.name),
            line,
            ..Fields::default()
        },
        hosts: listener.hostname.iter().cloned().collect(),
        settings: settings(served),
        mode: "Terminate",
    }
}
