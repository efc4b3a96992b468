//! Certificates in files, in Secrets and of servers: reads, checks and watches them, and reports their errors.
//!
//! Files are read again every few seconds and when something changes in their directory; the store compares their
//! contents. `tls::Store` decides which version stays in effect.

mod authorities;

mod delivered;

mod file;

mod findings;

mod mesh_files;

mod state;

pub(super) mod system;

mod watch;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use config_loader::resource::core::{ConfigMap, Secret};
use config_loader::{Diagnostic, Location, Name, ResourceSet};

pub(super) use authorities::append;
use authorities::of_mesh_config;
pub use delivered::{Delivered, Material};
pub(super) use file::file;
pub(crate) use findings::{findings, of_another_workload};
pub use mesh_files::{find as find_mesh_files, located};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
pub use state::{expired_identity, own_state, states};
pub use watch::Directories;

use crate::compile::certificates::{Scope, Use, mesh, uses, workload};
use crate::compile::policies::client_tls::{self, ClientUse};
use crate::identity::{Identity, IdentityKind};
use crate::tls::material::UnixSeconds;
use crate::tls::spiffe::Workload;
use crate::tls::store::{AuthorityBytes, IdentityBytes, MaterialContent, NamedContent};
use crate::tls::{AuthoritySource, IdentitySource, Problem, ProblemKind, ReferredObject, Store};

/// Keys of a Secret that may hold the value; the first existing key is used.
const CHAIN_KEYS: [&str; 2] = ["cert", Secret::TLS_CERTIFICATE];
const KEY_KEYS: [&str; 2] = ["key", Secret::TLS_KEY];
const AUTHORITY_KEYS: [&str; 2] = ["cacert", "ca.crt"];
const REVOKED_KEYS: [&str; 2] = ["crl", "ca.crl"];

/// Suffix of the name of the Secret that holds the authorities of another Secret.
const AUTHORITY_SUFFIX: &str = "-cacert";

/// Returns the current time in the unit of certificates.
pub fn now() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs();
    UnixSeconds::try_from(seconds).unwrap_or(UnixSeconds::MAX)
}

/// Reads the certificates of authorities in a file, or those of the operating system.
///
/// # Errors
///
/// Returns a message if the file cannot be read, or has none.
pub fn root_store(path: Option<&Path>) -> Result<RootCertStore, String> {
    let (place, pem): (Arc<str>, _) = match path {
        Some(path) => {
            let place = path.display().to_string();
            let pem = std::fs::read(path).map_err(|error| format!("{place}: {error}"))?;
            (place.into(), pem)
        }
        None => system::authorities().map_err(|problem| problem.to_string())?,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).flatten());
    if roots.is_empty() {
        return Err(format!("{place}: no certificate of an authority in it"));
    }
    Ok(roots)
}

/// Result of reading all certificates.
pub struct Look {
    /// Whether a certificate in effect has changed.
    pub changed: bool,
    /// Problems found.
    pub findings: Vec<Diagnostic>,
    /// Directories to watch for changes.
    pub directories: BTreeSet<PathBuf>,
}

/// Reads into the store all certificates that resources and the gateways of remote clusters use, and the identity that
/// a server has delivered.
pub fn look(
    store: &Store,
    resources: &ResourceSet,
    delivered: &Delivered,
    scope: Scope<'_>,
    now: UnixSeconds,
) -> Look {
    let uses = uses(resources, scope);
    let mut client_uses = client_tls::uses(resources, scope);
    client_uses.extend(client_tls::uses_of_policies(resources, scope));
    client_uses.extend(client_tls::uses_of_members(&scope.identity().members));
    let mut wanted = Wanted::of(&uses, &client_uses);
    if let Some(identity) = scope.mesh()
        && has_mesh_identity(identity, store)
    {
        let (own, root) = mesh(identity);
        wanted.own = Some(own.clone());
        wanted.identities.insert(own);
        wanted.authorities.insert(root);
    }
    let reader = Reader {
        resources,
        delivered,
        scope,
        own: scope
            .mesh()
            .map(|identity| (mesh(identity).0, workload(identity))),
        root: scope.mesh().map(|identity| mesh(identity).1),
    };
    let changed = store.update(reader.read(&wanted), now);
    let mut findings = findings(&uses, store);
    findings.extend(findings::of_clients(&client_uses, store));
    if let Some(identity) = scope.mesh() {
        let more = findings::of_workload(identity, store, &findings);
        findings.extend(more);
    }
    // Certificate and authorities may be in one Secret, which would repeat a finding.
    let mut told = HashSet::new();
    findings.retain(|one| {
        let Location { file, line, .. } = &one.location;
        told.insert((
            Arc::clone(file),
            *line,
            one.field.clone(),
            one.message.clone(),
        ))
    });
    Look {
        changed,
        findings,
        directories: directories(&wanted),
    }
}

/// Returns whether the proxy should have an identity within the mesh: a server is its source, or its files are
/// configured, or exist at the default paths. An identity that is in effect stays when its files are removed.
fn has_mesh_identity(identity: &Identity, store: &Store) -> bool {
    match identity.workload.kind {
        IdentityKind::Files => {}
        IdentityKind::None => return false,
        IdentityKind::IstioCa | IdentityKind::StraitCa | IdentityKind::WorkloadApi => return true,
    }
    let (own, _) = mesh(identity);
    let is_there = || match &own {
        IdentitySource::Files { chain, .. } => Path::new(&**chain).exists(),
        _ => false,
    };
    identity.is_told_mesh_certificates() || store.identity(&own).is_some() || is_there()
}

/// Sources to read, each once.
#[derive(Default)]
struct Wanted {
    own: Option<IdentitySource>,
    identities: BTreeSet<IdentitySource>,
    authorities: BTreeSet<AuthoritySource>,
}

impl Wanted {
    fn of(uses: &[Use], client_uses: &[ClientUse]) -> Self {
        let mut wanted = Self::default();
        for settings in uses.iter().map(|one| &one.settings) {
            wanted
                .identities
                .extend(settings.identities.iter().cloned());
            let clients = settings.clients.as_ref();
            let authorities = clients.and_then(|clients| clients.authorities.clone());
            wanted.authorities.extend(authorities);
        }
        for one in client_uses {
            wanted.identities.extend(one.identity.clone());
            wanted.authorities.extend(one.authorities.clone());
        }
        wanted
    }
}

/// Reader of the sources.
struct Reader<'a> {
    resources: &'a ResourceSet,
    delivered: &'a Delivered,
    scope: Scope<'a>,
    /// Source of the workload's certificate, and the identity that it must contain.
    own: Option<(IdentitySource, Workload)>,
    /// Source of the authorities of the mesh, which those of the mesh configuration are added to.
    root: Option<AuthoritySource>,
}

impl Reader<'_> {
    fn read(&self, wanted: &Wanted) -> MaterialContent {
        let identities = wanted.identities.iter();
        let authorities = wanted.authorities.iter();
        MaterialContent {
            own: wanted.own.clone(),
            identities: identities
                .map(|source| (source.clone(), self.identity(source)))
                .collect(),
            authorities: authorities
                .map(|source| (source.clone(), self.authorities(source)))
                .collect(),
        }
    }

    fn identity(&self, source: &IdentitySource) -> Result<IdentityBytes, Problem> {
        let own = self.own.as_ref().filter(|(own, _)| own == source);
        let workload = own.map(|(_, workload)| workload.clone());
        match source {
            IdentitySource::Files { chain, key } => Ok(IdentityBytes {
                chain: file(chain)?,
                key: file(key)?,
                workload,
                problem: None,
            }),
            IdentitySource::Workload(_) => self.delivered.identity(source, workload),
            IdentitySource::Referred { namespace, name }
            | IdentitySource::Secret { namespace, name } => {
                let place = place(namespace, name);
                let secret = match source {
                    IdentitySource::Referred { .. } => self.known(namespace, name),
                    _ => None,
                };
                let secret = secret.map_or_else(|| self.secret(namespace, name), Ok)?;
                Ok(IdentityBytes {
                    chain: value(secret, &CHAIN_KEYS, &place, ProblemKind::Certificate)?,
                    key: value(secret, &KEY_KEYS, &place, ProblemKind::Key)?,
                    workload,
                    problem: None,
                })
            }
        }
    }

    fn authorities(&self, source: &AuthoritySource) -> Result<AuthorityBytes, Problem> {
        match source {
            AuthoritySource::Files {
                authorities,
                revoked,
            } => Ok(AuthorityBytes {
                authorities: self.with_others(source, file(authorities)?),
                revoked: revoked.as_ref().map(file).transpose()?,
                ..AuthorityBytes::default()
            }),
            AuthoritySource::System { revoked } => Ok(AuthorityBytes {
                authorities: system::authorities()?,
                revoked: revoked.as_ref().map(file).transpose()?,
                is_lenient: true,
                ..AuthorityBytes::default()
            }),
            AuthoritySource::Workload(_) => {
                let identity = self.scope.identity();
                self.delivered.authorities(source, identity)
            }
            AuthoritySource::Referred { objects } => self.referred(source, objects),
            AuthoritySource::Secret { namespace, name } => {
                let beside: Arc<str> = format!("{name}{AUTHORITY_SUFFIX}").into();
                let (name, secret) = match self.find(namespace, &beside) {
                    Some(secret) => (&beside, secret),
                    None => (name, self.secret(namespace, name)?),
                };
                let place = place(namespace, name);
                let authorities = value(secret, &AUTHORITY_KEYS, &place, ProblemKind::Authorities)?;
                let revoked = value(secret, &REVOKED_KEYS, &place, ProblemKind::Revoked);
                Ok(AuthorityBytes {
                    authorities,
                    revoked: revoked.ok(),
                    ..AuthorityBytes::default()
                })
            }
        }
    }

    /// Returns the authorities of objects that references permit. References to those without any do not hold.
    fn referred(
        &self,
        source: &AuthoritySource,
        objects: &[ReferredObject],
    ) -> Result<AuthorityBytes, Problem> {
        let mut content = Vec::new();
        for object in objects {
            let name = Name::new(Arc::clone(&object.namespace), Arc::clone(&object.name));
            let pem = if object.is_config_map {
                let map = self.resources.config_maps.get(&name);
                map.and_then(|map| Some(map.spec.ca_certificates.as_deref()?.as_bytes()))
            } else {
                let secret = self.resources.secrets.get(&name);
                secret.and_then(|secret| secret.spec.get(ConfigMap::CA_CERTIFICATES))
            };
            content.extend_from_slice(pem.unwrap_or_default());
            content.push(b'\n');
        }
        Ok(AuthorityBytes {
            authorities: (source.to_string().into(), content),
            ..AuthorityBytes::default()
        })
    }

    /// Adds the authorities of the mesh configuration to those of the mesh.
    fn with_others(&self, source: &AuthoritySource, mut content: NamedContent) -> NamedContent {
        if self.root.as_ref() == Some(source) {
            append(&mut content.1, &of_mesh_config(self.scope.identity()));
        }
        content
    }

    fn find(&self, namespace: &Arc<str>, name: &Arc<str>) -> Option<&Secret> {
        let may_use = self.may_use(namespace);
        self.known(namespace, name).filter(|_| may_use)
    }

    fn known(&self, namespace: &Arc<str>, name: &Arc<str>) -> Option<&Secret> {
        let name = Name::new(Arc::clone(namespace), Arc::clone(name));
        self.resources
            .secrets
            .get(&name)
            .map(|object| &*object.spec)
    }

    fn may_use(&self, namespace: &str) -> bool {
        self.scope.namespace() == namespace
    }

    fn secret(&self, namespace: &Arc<str>, name: &Arc<str>) -> Result<&Secret, Problem> {
        let wrong = |kind, text: String, fix| {
            Err(Problem::new(kind, place(namespace, name), text).with_fix(fix))
        };
        if name.contains("://") {
            let text = "only secrets of Kubernetes are read".to_owned();
            return wrong(ProblemKind::Foreign, text, None);
        }
        let own = self.scope.namespace();
        if !self.may_use(namespace) {
            let text = format!(
                "a proxy uses secrets of its own namespace only, which is {own} (--namespace)"
            );
            let fix = self.namespace_fix(namespace, name);
            return wrong(ProblemKind::Foreign, text, Some(fix));
        }
        if let Some(secret) = self.find(namespace, name) {
            return Ok(secret);
        }
        match self.elsewhere(name) {
            Some(other) => {
                let text = format!("there is no such secret, but {}", place(other, name));
                let fix = self.namespace_fix(other, name);
                wrong(ProblemKind::Missing, text, Some(fix))
            }
            None => {
                let text = "there is no such secret, or it cannot be used".to_owned();
                wrong(ProblemKind::Missing, text, None)
            }
        }
    }

    /// Returns the first namespace that has a Secret of this name.
    fn elsewhere(&self, name: &str) -> Option<&Arc<str>> {
        let mut names = self.resources.secrets.keys();
        let found = names.find(|known| *known.name == *name);
        found.map(|known| &known.namespace)
    }

    /// Describes how to make a Secret of another namespace available to the proxy.
    fn namespace_fix(&self, namespace: &str, name: &str) -> String {
        let own = self.scope.namespace();
        format!("start with --namespace {namespace}, or put {name} into namespace {own}")
    }
}

fn place(namespace: &str, name: &str) -> String {
    format!("secret {namespace}/{name}")
}

/// Returns the value of a Secret under the first of these keys that it has.
fn value(
    secret: &Secret,
    keys: &[&str],
    place: &str,
    kind: ProblemKind,
) -> Result<NamedContent, Problem> {
    let found = keys.iter().find_map(|key| Some((key, secret.get(key)?)));
    match found {
        Some((key, bytes)) => Ok((format!("{place} ({key})").into(), bytes.to_vec())),
        None => {
            let text = format!("it has none of the keys {}", keys.join(", "));
            Err(Problem::new(kind, place, text))
        }
    }
}

/// Returns the directories of files, including the targets of symbolic links.
fn directories(wanted: &Wanted) -> BTreeSet<PathBuf> {
    let mut files: BTreeSet<&Arc<str>> = BTreeSet::new();
    for source in &wanted.identities {
        if let IdentitySource::Files { chain, key } = source {
            files.extend([chain, key]);
        }
    }
    for source in &wanted.authorities {
        match source {
            AuthoritySource::Files {
                authorities,
                revoked,
            } => {
                files.insert(authorities);
                files.extend(revoked);
            }
            AuthoritySource::System { revoked } => files.extend(revoked),
            AuthoritySource::Referred { .. }
            | AuthoritySource::Secret { .. }
            | AuthoritySource::Workload(_) => {}
        }
    }
    let mut directories = BTreeSet::new();
    for file in files {
        let path = Path::new(&**file);
        let real = path.canonicalize().ok();
        for path in [Some(path), real.as_deref()].into_iter().flatten() {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            directories.insert(parent.unwrap_or(Path::new(".")).to_owned());
        }
    }
    directories
}

#[cfg(test)]
mod tests;
