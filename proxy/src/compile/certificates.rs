//! Which certificates the servers of Gateways and Sidecars want, and how they are to be used. Names only: bytes are in `tls::Store`.
//! Those towards endpoints are `client_tls`' matter.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config_loader::catalog::sidecars::sidecar_of;
use config_loader::resource::Object;
use config_loader::resource::istio::{
    Certificates, Gateway, IngressListener, Protocol, Server, ServerTls, ServerTlsMode, Sidecar,
    TlsVersion,
};
use config_loader::{ObjectRef, ResourceSet};

use crate::compile::applies::{selects, workload as workload_of};
use crate::identity::{Identity, Mode};
use crate::tls::{
    Alpn, AuthoritySource, ClientCertRequirements, IdentitySource, ServerSettings, Version,
    digest::Sha256, spiffe::Workload,
};

/// How many of several certificates are used.
const CERTIFICATES_MAX: usize = 2;

/// Forms of a secret's name that say where it is.
const SCHEMES: [&str; 2] = ["kubernetes://", "kubernetes-gateway://"];

/// Whose certificates are looked for.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Those of every Gateway and DestinationRule, as if this proxy used them all; if it has labels, those of its own.
    /// For checking: its mesh identity, which only its machine has, counts only if it was told where that is.
    Any(&'a Identity),
    /// The certificates that this proxy serves with.
    Proxy(&'a Identity),
}

impl<'a> Scope<'a> {
    /// The proxy that they are for.
    pub fn identity(self) -> &'a Identity {
        match self {
            Scope::Any(identity) | Scope::Proxy(identity) => identity,
        }
    }

    /// The namespace that secrets are in: that of the proxy, as Istio has it.
    pub fn namespace(self) -> &'a str {
        &self.identity().namespace
    }

    /// Whether every Gateway and DestinationRule counts, whatever workload it selects.
    pub(in crate::compile) fn is_of_all(self) -> bool {
        matches!(self, Scope::Any(identity) if identity.labels.is_empty())
    }

    /// The proxy whose mesh identity is looked for.
    pub fn mesh(self) -> Option<&'a Identity> {
        match self {
            Scope::Any(identity) => Some(identity).filter(|one| one.is_told_mesh_certificates()),
            Scope::Proxy(identity) => Some(identity),
        }
    }
}

/// A server that terminates TLS, and with what.
#[derive(Clone, Debug)]
pub struct Use {
    /// Its Gateway or Sidecar.
    pub object: ObjectRef,
    /// The file that it was written in.
    pub file: Arc<str>,
    /// Where its `tls` and the fields of that are.
    pub fields: Fields,
    /// The hosts that it serves.
    pub hosts: Vec<Arc<str>>,
    /// How it terminates TLS.
    pub settings: ServerSettings,
    /// Whether it is a mode that verifies clients.
    pub mode: &'static str,
}

/// The fields of a `tls`, for findings about what they name.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// The path of the `tls`, such as `spec.servers[0].tls`.
    pub tls: String,
    /// Its line in the file.
    pub line: u32,
    /// The fields with a value, by their paths below `tls`, each with its line in the file.
    pub lines: Vec<(Arc<str>, u32)>,
    /// For each certificate that is used: the paths of what names its chain and its key.
    pub identities: Vec<[String; 2]>,
    /// The path of the field that names the authorities that the certificate of the other side must come from.
    pub authorities: String,
}

impl Fields {
    /// Those of the `tls` at this path of an object.
    fn new<T>(object: &Object<T>, path: String, tls: &ServerTls) -> Self {
        let lines = tls.places.iter();
        let lines = lines.map(|place| (Arc::clone(&place.value), object.line_of(place.line)));
        Self {
            tls: path,
            line: object.line_of(tls.line),
            lines: lines.collect(),
            identities: identity_fields(tls),
            authorities: authority_field(tls),
        }
    }

    /// The whole path and the line of a field of `tls`; those of `tls` itself if that field was not written.
    pub fn find(&self, path: &str) -> (String, u32) {
        match self.lines.iter().find(|(known, _)| **known == *path) {
            Some((path, line)) => (format!("{}.{path}", self.tls), *line),
            None => (self.tls.clone(), self.line),
        }
    }

    /// The field of the chain of a certificate, or of its key.
    pub fn identity(&self, index: usize, key: bool) -> (String, u32) {
        let paths = self.identities.get(index);
        self.find(paths.map_or("mode", |paths| &paths[usize::from(key)]))
    }
}

/// What [`identities`] are named by.
fn identity_fields(tls: &ServerTls) -> Vec<[String; 2]> {
    let used = |count: usize| 0..count.min(CERTIFICATES_MAX);
    match &tls.certificates {
        _ if tls.mode == ServerTlsMode::IstioMutual => Vec::new(),
        Certificates::None => Vec::new(),
        Certificates::Files(_) if tls.has("serverCertificate") && tls.has("privateKey") => {
            vec![["serverCertificate".to_owned(), "privateKey".to_owned()]]
        }
        Certificates::Files(files) => used(files.len())
            .map(|index| {
                ["serverCertificate", "privateKey"]
                    .map(|name| format!("tlsCertificates[{index}].{name}"))
            })
            .collect(),
        Certificates::Secrets(_) if tls.has("credentialName") => {
            vec![["credentialName".to_owned(), "credentialName".to_owned()]]
        }
        Certificates::Secrets(names) => used(names.len())
            .map(|index| [(); 2].map(|()| format!("credentialNames[{index}]")))
            .collect(),
    }
}

/// What [`authorities`] are named by.
fn authority_field(tls: &ServerTls) -> String {
    if tls.mode == ServerTlsMode::IstioMutual {
        return "mode".to_owned();
    }
    let mut paths = vec![
        "caCertCredentialName".to_owned(),
        "caCertificates".to_owned(),
    ];
    if let Certificates::Files(files) = &tls.certificates {
        let of = |index| format!("tlsCertificates[{index}].caCertificates");
        paths.extend((0..files.len()).map(of));
    }
    paths.extend(["credentialName".to_owned(), "credentialNames[0]".to_owned()]);
    let written = paths.into_iter().find(|path| tls.has(path));
    written.unwrap_or_else(|| "mode".to_owned())
}

/// Every server that terminates TLS.
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
    servers.chain(entries).collect()
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

/// How a server terminates TLS; `None` for one that does not, or whose identity only a proxy has.
pub fn settings(server: &Server, scope: Scope<'_>) -> Option<ServerSettings> {
    of_tls(server.tls.as_deref()?, server.protocol, scope)
}

/// How an ingress listener of a Sidecar terminates TLS; `None` for one that does not.
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
    Some(ServerSettings {
        identities,
        clients: clients(tls, authorities).map(Box::new),
        version_min: version(tls.version_min, Version::Tls12),
        version_max: version(tls.version_max, Version::Tls13),
        cipher_suites: tls
            .cipher_suites
            .iter()
            .map(|suite| suite.as_str().into())
            .collect(),
        groups: tls.ecdh_curves.clone(),
        alpn: match protocol {
            Protocol::Https => Alpn::Http,
            _ => Alpn::None,
        },
    })
}

/// The mesh identity of a proxy, and who signs such.
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
    let own = IdentitySource::Files {
        chain: file(&workload.certificate, "cert-chain.pem"),
        key: file(&workload.key, "key.pem"),
    };
    let root = AuthoritySource::Files {
        authorities: file(&workload.authorities, "root-cert.pem"),
        revoked: None,
    };
    (own, root)
}

/// What the certificate of a proxy's workload must name.
pub fn workload(identity: &Identity) -> Workload {
    let told = &identity.workload;
    Workload {
        trust_domains: told.trust_domains().map(Arc::from).collect(),
        namespace: identity.namespace.as_str().into(),
        service_account: told.service_account.as_deref().map(Arc::from),
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

/// Namespace and name of a secret: `NAME`, `NAMESPACE/NAME`, either with a scheme before it.
pub(in crate::compile) fn secret(written: &str, namespace: &str) -> (Arc<str>, Arc<str>) {
    let mut schemes = SCHEMES.iter();
    let plain = schemes.find_map(|scheme| written.strip_prefix(scheme));
    let plain = plain.unwrap_or(written);
    match plain.split_once('/') {
        // Another scheme, such as `sds://`: what it names is nowhere to be found.
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
        spki: spki.collect(),
        hashes: tls
            .verify_hash
            .iter()
            .filter_map(|text| from_hex(text))
            .collect(),
        skip_verify: tls.insecure_skip_verify,
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

/// A supported version: below 1.2 is 1.2.
fn version(written: TlsVersion, default: Version) -> Version {
    match written {
        TlsVersion::Auto => default,
        TlsVersion::V1_0 | TlsVersion::V1_1 | TlsVersion::V1_2 => Version::Tls12,
        TlsVersion::V1_3 => Version::Tls13,
    }
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
