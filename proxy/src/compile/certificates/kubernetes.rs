//! Certificates of listeners of the Gateway API.

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::View;
use config_loader::catalog::gateway_api::{CONTROLLER, Gateways, ServedListener};
use config_loader::resource::Object;
use config_loader::resource::gateway_api::{
    ClientCertificates, Listener, ObjectReference, TlsOptions,
};

use super::fields::{Fields, Use, names, version};
use crate::tls::{
    Alpn, AuthoritySource, ClientCertRequirements, IdentitySource, ProtocolSettings,
    ReferredObject, ServerSettings, Version,
};

/// Returns the CA certificates of ConfigMaps and Secrets.
pub(in crate::compile) fn referred(all: Vec<&ObjectReference>) -> AuthoritySource {
    let objects = all.into_iter().map(|object| ReferredObject {
        is_config_map: &*object.kind == "ConfigMap",
        namespace: Arc::clone(&object.namespace),
        name: Arc::clone(&object.name),
    });
    AuthoritySource::Referred {
        objects: objects.collect(),
    }
}

/// Returns the TLS settings of a listener.
pub(in crate::compile) fn settings(served: &ServedListener<'_>) -> ServerSettings {
    let identities = served.secrets().map(|secret| IdentitySource::Referred {
        namespace: Arc::clone(&secret.namespace),
        name: Arc::clone(&secret.name),
    });
    let default = TlsOptions::default();
    let options = served.termination().map_or(&default, |tls| &tls.options);
    let clients = served.clients.as_ref();
    let clients = clients.map(|clients| ClientCertRequirements {
        required: clients.certificates == ClientCertificates::Required,
        authorities: Some(referred(clients.trusted())),
        serves_invalid: clients.certificates == ClientCertificates::Unverified,
        ..ClientCertRequirements::default()
    });
    ServerSettings {
        identities: identities.collect(),
        clients: clients.map(Box::new),
        protocol: ProtocolSettings {
            version_min: version(options.version_min, Version::Tls12),
            cipher_suites: names(&options.cipher_suites),
            groups: Vec::new(),
        },
        version_max: version(options.version_max, Version::Tls13),
        alpn: match served.is_https() {
            true => Alpn::Http,
            false => Alpn::None,
        },
    }
}

/// Returns every listener that terminates TLS.
pub(super) fn uses(resources: &ResourceSet) -> Vec<Use> {
    let gateways = Gateways::of(View::from(resources), CONTROLLER);
    let listeners = gateways.iter().flat_map(|gateway| {
        let listeners = gateway.listeners.iter().filter(|one| one.is_served());
        listeners
            .filter(|one| one.termination().is_some())
            .map(|served| {
                let listener = served.listener;
                let (file, line) = match served.set {
                    None => place(gateway.object, listener),
                    Some(set) => place(gateway.sets[set].object, listener),
                };
                Use {
                    object: gateway.owner(served).clone(),
                    file,
                    fields: Fields {
                        tls: format!("spec.listeners[{}].tls", listener.name),
                        line,
                        ..Fields::default()
                    },
                    hosts: listener.hostname.iter().cloned().collect(),
                    settings: settings(served),
                    mode: "Terminate",
                }
            })
    });
    listeners.collect()
}

fn place<T>(object: &Object<T>, listener: &Listener) -> (Arc<str>, u32) {
    let file = Arc::clone(&object.provenance.file);
    (file, object.line_of(listener.line))
}
