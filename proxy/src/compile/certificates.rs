//! Certificates that the servers of Gateways and Sidecars name, and the settings that they are used with. Names only:
//! the certificates themselves are in `tls::Store`. Certificates for connections to endpoints are in `client_tls`.

mod fields;
pub(in crate::compile) mod kubernetes;

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config_loader::ResourceSet;
use config_loader::catalog::sidecars::sidecar_of;
use config_loader::resource::Object;
use config_loader::resource::istio::{
    Certificates, Gateway, IngressListener, Protocol, Server, ServerTls, ServerTlsMode, Sidecar,
};

use self::fields::{CERTIFICATES_MAX, names, version};
pub use self::fields::{FieldPlace, Fields, Use};
pub(in crate::compile) use self::kubernetes::referred;
use crate::compile::applies::{selects, workload as workload_of};
use crate::identity::{Identity, Mode};
use crate::tls::{
    Alpn, AuthoritySource, ClientCertRequirements, IdentitySource, ProtocolSettings,
    ServerSettings, Version, digest::Sha256, spiffe::Workload,
};

/// Prefixes of a secret's name that give its source.
const SCHEMES: [&str; 2] = ["kubernetes://", "kubernetes-gateway://"];

/// Selection of the resources whose certificates are collected.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Certificates of every Gateway and DestinationRule, or, if the identity has labels, of those that select it. For
    /// `check`: the mesh identity, which only the proxy's machine has, is included only if its location was given.
    Any(&'a Identity),
    /// Certificates that this proxy uses.
    Proxy(&'a Identity),
}

impl<'a> Scope<'a> {
    /// Returns the identity of the proxy.
    pub fn identity(self) -> &'a Identity {
        match self {
            Scope::Any(identity) | Scope::Proxy(identity) => identity,
        }
    }

    /// Returns the namespace of the secrets: that of the proxy, as in Istio.
    pub fn namespace(self) -> &'a str {
        &self.identity().namespace
    }

    /// Whether every Gateway and DestinationRule is included, whatever workload it selects.
    pub(in crate::compile) fn is_of_all(self) -> bool {
        matches!(self, Scope::Any(identity) if identity.labels.is_empty())
    }

    /// Returns the identity whose mesh certificate is included.
    pub fn mesh(self) -> Option<&'a Identity> {
        match self {
            Scope::Any(identity) => Some(identity).filter(|one| one.is_told_mesh_certificates()),
            Scope::Proxy(identity) => Some(identity),
        }
    }
}

/// Returns every server that terminates TLS.
pub fn uses(resources: &ResourceSet, scope: Scope<'_>) -> Vec<Use> {
    let gateways = resources.gateways.values();
    let selected =
        gateways.filter(|gateway| scope.is_of_all() || selects(gateway, scope.identity()));
    let servers = selected.flat_map(|gateway| {
        let servers = gateway.spec.servers.iter().enumerate();
        servers.filter_map(move |(index, server)| one_use(gateway, index, server, scope))
    });
    let own = sidecar_of(resources, workload_of(scope.identity()));
    let sidecars = resources.sidecars.values().filter(|sidecar| {
        let is_own = own.is_some_and(|own| own.id == sidecar.id);
        scope.is_of_all() || (is_own && scope.identity().mode == Mode::Sidecar)
    });
    let entries = sidecars.flat_map(|sidecar| {
        let entries = sidecar.spec.ingress.iter().enumerate();
        entries.filter_map(move |(index, entry)| ingress_use(sidecar, index, entry, scope))
    });
    servers
        .chain(entries)
        .chain(kubernetes::uses(resources))
        .collect()
}

fn ingress_use(
    sidecar: &Arc<Object<Sidecar>>,
    index: usize,
    entry: &IngressListener,
    scope: Scope<'_>,
) -> Option<Use> {
    let settings = ingress_settings(entry, scope)?;
    let tls = entry.tls.as_deref()?;
    Some(Use {
        object: sidecar.id.clone(),
        file: Arc::clone(&sidecar.provenance.file),
        fields: Fields::new(sidecar, format!("spec.ingress[{index}].tls"), tls),
        hosts: Vec::new(),
        settings,
        mode: tls.mode.as_str(),
    })
}

fn one_use(
    gateway: &Arc<Object<Gateway>>,
    index: usize,
    server: &Server,
    scope: Scope<'_>,
) -> Option<Use> {
    let settings = settings(server, scope)?;
    let tls = server.tls.as_deref()?;
    Some(Use {
        object: gateway.id.clone(),
        file: Arc::clone(&gateway.provenance.file),
        fields: Fields::new(gateway, format!("spec.servers[{index}].tls"), tls),
        hosts: server
            .hosts
            .iter()
            .map(|host| Arc::clone(&host.host))
            .collect(),
        settings,
        mode: tls.mode.as_str(),
    })
}

/// Returns the TLS settings of a server; `None` if it does not terminate TLS, or if only the proxy has its identity.
pub fn settings(server: &Server, scope: Scope<'_>) -> Option<ServerSettings> {
    of_tls(server.tls.as_deref()?, server.protocol, scope)
}

/// Returns the TLS settings of an ingress listener of a Sidecar; `None` if it does not terminate TLS.
pub fn ingress_settings(entry: &IngressListener, scope: Scope<'_>) -> Option<ServerSettings> {
    of_tls(entry.tls.as_deref()?, entry.port.protocol, scope)
}

fn of_tls(tls: &ServerTls, protocol: Protocol, scope: Scope<'_>) -> Option<ServerSettings> {
    if !tls.mode.terminates() {
        return None;
    }
    let namespace = scope.namespace();
    let (identities, authorities) = if tls.mode == ServerTlsMode::IstioMutual {
        let (own, root) = mesh(scope.mesh()?);
        (vec![own], Some(root))
    } else {
        (identities(tls, namespace), authorities(tls, namespace))
    };
    let mut clients = clients(tls, authorities);
    if let Some(clients) = &mut clients
        && tls.mode == ServerTlsMode::IstioMutual
        && !clients.skip_verify
    {
        let domains = scope.identity().trust_domains();
        clients.mesh_domains = domains.map(Arc::from).collect();
    }
    let version_max = version(tls.version_max, Version::Tls13);
    let defaults = self::protocol(scope.identity(), tls.mode == ServerTlsMode::IstioMutual);
    Some(ServerSettings {
        identities,
        clients: clients.map(Box::new),
        protocol: ProtocolSettings {
            version_min: version(tls.version_min, defaults.version_min.min(version_max)),
            cipher_suites: match &*tls.cipher_suites {
                [] => defaults.cipher_suites,
                own => names(own),
            },
            groups: match &*tls.ecdh_curves {
                [] => defaults.groups,
                own => own.to_vec(),
            },
        },
        version_max,
        alpn: match protocol {
            Protocol::Https => Alpn::Http,
            _ => Alpn::None,
        },
    })
}

/// Returns versions, cipher suites and groups that the mesh has for mutual TLS within it, or for other TLS.
pub(in crate::compile) fn protocol(identity: &Identity, is_mesh: bool) -> ProtocolSettings {
    let told = match is_mesh {
        true => &identity.mesh_config.mesh_tls,
        false => &identity.mesh_config.tls,
    };
    ProtocolSettings {
        version_min: version(told.version_min, Version::Tls12),
        cipher_suites: names(&told.cipher_suites),
        groups: told.ecdh_curves.clone(),
    }
}

/// Returns the mesh identity of a proxy, and the certificate authority of the mesh.
pub fn mesh(identity: &Identity) -> (IdentitySource, AuthoritySource) {
    let file = |named: &Option<String>, name: &str| -> Arc<str> {
        match named {
            Some(path) => path.as_str().into(),
            None => {
                let path = Path::new(&identity.mesh_certs).join(name);
                path.to_string_lossy().into()
            }
        }
    };
    let workload = &identity.workload;
    let kind = workload.kind;
    if kind.is_remote() {
        return (
            IdentitySource::Workload(kind.as_str()),
            AuthoritySource::Workload(kind.as_str()),
        );
    }
    let [chain, key, root] = workload.file_set.names();
    let own = IdentitySource::Files {
        chain: file(&workload.certificate, chain),
        key: file(&workload.key, key),
    };
    let root = AuthoritySource::Files {
        authorities: file(&workload.authorities, root),
        revoked: None,
    };
    (own, root)
}

/// Returns the identity that the certificate of a proxy's workload must have.
pub fn workload(identity: &Identity) -> Workload {
    let told = &identity.workload;
    Workload {
        trust_domains: told.trust_domains().map(Arc::from).collect(),
        namespace: identity.namespace.as_str().into(),
        service_account: told.service_account.as_deref().map(Arc::from),
        has_any_path: told.has_any_path,
    }
}

fn identities(tls: &ServerTls, namespace: &str) -> Vec<IdentitySource> {
    match &tls.certificates {
        Certificates::Files(files) => files
            .iter()
            .take(CERTIFICATES_MAX)
            .map(|pair| IdentitySource::Files {
                chain: Arc::clone(&pair.certificate),
                key: Arc::clone(&pair.private_key),
            })
            .collect(),
        Certificates::None => Vec::new(),
        Certificates::Secrets(names) => names
            .iter()
            .take(CERTIFICATES_MAX)
            .map(|written| {
                let (namespace, name) = secret(written, namespace);
                IdentitySource::Secret { namespace, name }
            })
            .collect(),
    }
}

fn authorities(tls: &ServerTls, namespace: &str) -> Option<AuthoritySource> {
    let of_secret = |written: &Arc<str>| {
        let (namespace, name) = secret(written, namespace);
        AuthoritySource::Secret { namespace, name }
    };
    if let Some(name) = &tls.ca_credential_name {
        return Some(of_secret(name));
    }
    let files = |path: &Arc<str>| AuthoritySource::Files {
        authorities: Arc::clone(path),
        revoked: tls.ca_crl.clone(),
    };
    if let Some(path) = &tls.ca_certificates {
        return Some(files(path));
    }
    match &tls.certificates {
        Certificates::Files(pairs) => {
            let named = pairs.iter().find_map(|pair| pair.ca_certificates.as_ref());
            named.map(files)
        }
        Certificates::None => None,
        Certificates::Secrets(names) => names.first().map(of_secret),
    }
}

/// Returns namespace and name of a secret from `NAME` or `NAMESPACE/NAME`, with or without a scheme.
pub(in crate::compile) fn secret(written: &str, namespace: &str) -> (Arc<str>, Arc<str>) {
    let mut schemes = SCHEMES.iter();
    let plain = schemes.find_map(|scheme| written.strip_prefix(scheme));
    let plain = plain.unwrap_or(written);
    match plain.split_once('/') {
        // Secrets of another scheme, such as `sds://`, are never found.
        _ if plain.contains("://") => (namespace.into(), plain.into()),
        Some((namespace, name)) => (namespace.into(), name.into()),
        None => (namespace.into(), plain.into()),
    }
}

fn clients(
    tls: &ServerTls,
    authorities: Option<AuthoritySource>,
) -> Option<ClientCertRequirements> {
    let required = match tls.mode {
        ServerTlsMode::IstioMutual | ServerTlsMode::Mutual => true,
        ServerTlsMode::OptionalMutual => false,
        _ => return None,
    };
    let spki = tls.verify_spki.iter().filter_map(|text| {
        let bytes = STANDARD.decode(text.as_bytes()).ok()?;
        Sha256::try_from(bytes).ok()
    });
    Some(ClientCertRequirements {
        required,
        authorities: authorities.filter(|_| !tls.insecure_skip_verify),
        names: tls.subject_alt_names.clone(),
        trust_domains: Vec::new(),
        mesh_domains: Vec::new(),
        spki: spki.collect(),
        hashes: tls
            .verify_hash
            .iter()
            .filter_map(|text| from_hex(text))
            .collect(),
        skip_verify: tls.insecure_skip_verify,
        serves_invalid: false,
    })
}

fn from_hex(text: &str) -> Option<Sha256> {
    let mut bytes = Sha256::default();
    if text.len() != 2 * bytes.len() || !text.is_ascii() {
        return None;
    }
    for (byte, index) in bytes.iter_mut().zip((0..text.len()).step_by(2)) {
        *byte = u8::from_str_radix(&text[index..index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_named_like_in_istio() {
        for (written, namespace, name) in [
            ("cred", "edge", "cred"),
            ("kubernetes://cred", "edge", "cred"),
            ("kubernetes://other/cred", "other", "cred"),
            ("kubernetes-gateway://other/cred", "other", "cred"),
            ("other/cred", "other", "cred"),
            ("sds://cred", "edge", "sds://cred"),
        ] {
            let found = secret(written, "edge");
            assert_eq!((&*found.0, &*found.1), (namespace, name), "{written}");
        }
    }

    #[test]
    fn hashes_are_hexadecimal() {
        let text = "00ff".repeat(16);
        let hash = from_hex(&text).unwrap();
        assert_eq!((hash[0], hash[1]), (0, 255));
        assert_eq!(from_hex("00"), None);
        assert_eq!(from_hex(&"zz".repeat(32)), None);
    }
}
