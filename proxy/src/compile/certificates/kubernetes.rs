//! Certificates of listeners of the Gateway API.

use std::sync::Arc;

use config_loader::catalog::View;
use config_loader::catalog::gateway_api::{CONTROLLER, Gateways, ServedListener};
use config_loader::resource::Object;
use config_loader::resource::gateway_api::{Listener, ListenerProtocol};
use config_loader::{ObjectRef, ResourceSet};

use crate::tls::{Alpn, IdentitySource, ProtocolSettings, ServerSettings, Version};

/// Returns the TLS settings of a listener.
pub(in crate::compile) fn settings(served: &ServedListener<'_>) -> ServerSettings {
    let secrets = served.certificates.iter().flatten();
    let identities = secrets.map(|secret| IdentitySource::Referred {
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

/// Listener that terminates TLS.
pub(super) struct Terminating {
    pub object: ObjectRef,
    pub file: Arc<str>,
    pub line: u32,
    pub listener: Arc<str>,
    pub hostname: Option<Arc<str>>,
    pub settings: ServerSettings,
}

/// Returns every listener that terminates TLS.
pub(super) fn terminating(resources: &ResourceSet) -> Vec<Terminating> {
    if resources.kubernetes_gateways.is_empty() {
        return Vec::new();
    }
    let gateways = Gateways::of(View::from(resources), CONTROLLER);
    let listeners = gateways.iter().flat_map(|gateway| {
        let listeners = gateway.listeners.iter();
        let listeners = listeners.filter(|one| one.is_served());
        let https =
            |one: &&ServedListener<'_>| matches!(one.listener.protocol, ListenerProtocol::Https(_));
        listeners.filter(https).map(|served| {
            let listener = served.listener;
            let (file, line) = match served.set {
                None => place(gateway.object, listener),
                Some(set) => place(gateway.sets[set].object, listener),
            };
            Terminating {
                object: gateway.owner(served).clone(),
                file,
                line,
                listener: Arc::clone(&listener.name),
                hostname: listener.hostname.clone(),
                settings: settings(served),
            }
        })
    });
    listeners.collect()
}

fn place<T>(object: &Object<T>, listener: &Listener) -> (Arc<str>, u32) {
    let file = Arc::clone(&object.provenance.file);
    (file, object.line_of(listener.line))
}
