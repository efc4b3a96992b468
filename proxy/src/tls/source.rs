//! Sources of certificates: files, secrets or servers, by name. A source identifies certificates across reloads.

use std::fmt;
use std::sync::Arc;

/// Source of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdentitySource {
    /// Two PEM files.
    Files {
        /// Certificate chain, the certificate first.
        chain: Arc<str>,
        /// Private key.
        key: Arc<str>,
    },
    /// A Kubernetes Secret that a reference of the Gateway API permits, whatever its namespace.
    Referred {
        /// Namespace of the Secret.
        namespace: Arc<str>,
        /// Name of the Secret.
        name: Arc<str>,
    },
    /// A Kubernetes Secret.
    Secret {
        /// Namespace of the Secret.
        namespace: Arc<str>,
        /// Name of the Secret.
        name: Arc<str>,
    },
    /// Server that issues the identity of the workload, by the value of `--identity`.
    Workload(&'static str),
}

impl fmt::Display for IdentitySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentitySource::Files { chain, .. } => write!(f, "file {chain}"),
            IdentitySource::Referred { namespace, name }
            | IdentitySource::Secret { namespace, name } => write!(f, "secret {namespace}/{name}"),
            IdentitySource::Workload(source) => write!(f, "--identity {source}"),
        }
    }
}

/// Source of authorities for the peer's certificates, with revocation lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AuthoritySource {
    /// PEM files.
    Files {
        /// Authorities.
        authorities: Arc<str>,
        /// Revocation lists.
        revoked: Option<Arc<str>>,
    },
    /// ConfigMaps and Secrets that references of the Gateway API permit, whatever their namespace: the certificates of all.
    Referred {
        /// Objects.
        objects: Vec<ReferredObject>,
    },
    /// A Kubernetes Secret, or the one with this name and the suffix `-cacert`.
    Secret {
        /// Namespace of the Secret.
        namespace: Arc<str>,
        /// Name of the Secret.
        name: Arc<str>,
    },
    /// Authorities that the operating system trusts.
    System {
        /// Revocation lists.
        revoked: Option<Arc<str>>,
    },
    /// Server that issues the identity of the workload, by the value of `--identity`: a bundle for each trust domain.
    Workload(&'static str),
}

impl fmt::Display for AuthoritySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthoritySource::Files { authorities, .. } => write!(f, "file {authorities}"),
            AuthoritySource::Referred { objects } => {
                for (index, object) in objects.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{object}")?;
                }
                Ok(())
            }
            AuthoritySource::Secret { namespace, name } => write!(f, "secret {namespace}/{name}"),
            AuthoritySource::System { .. } => f.write_str("the operating system's CAs"),
            AuthoritySource::Workload(source) => write!(f, "--identity {source}"),
        }
    }
}

/// ConfigMap or Secret with authorities.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReferredObject {
    /// Whether it is a ConfigMap.
    pub is_config_map: bool,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl fmt::Display for ReferredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_config_map {
            "config map"
        } else {
            "secret"
        };
        write!(f, "{kind} {}/{}", self.namespace, self.name)
    }
}
