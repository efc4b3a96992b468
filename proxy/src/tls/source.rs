//! Where certificates come from: files or secrets, by name. The identity of material across reloads.

use std::fmt;
use std::sync::Arc;

/// Where a certificate and its key come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdentitySource {
    /// Two PEM files.
    Files {
        /// The chain, the certificate first.
        chain: Arc<str>,
        /// The key.
        key: Arc<str>,
    },
    /// A secret.
    Secret {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
}

impl fmt::Display for IdentitySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentitySource::Files { chain, .. } => write!(f, "file {chain}"),
            IdentitySource::Secret { namespace, name } => write!(f, "secret {namespace}/{name}"),
        }
    }
}

/// Where the authorities of the other side's certificates come from, with the list of revoked certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AuthoritySource {
    /// PEM files.
    Files {
        /// The authorities.
        authorities: Arc<str>,
        /// What they have revoked.
        revoked: Option<Arc<str>>,
    },
    /// A secret, or one beside it with `-cacert` after its name.
    Secret {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
    /// The authorities that the operating system trusts.
    System {
        /// What they have revoked.
        revoked: Option<Arc<str>>,
    },
}

impl fmt::Display for AuthoritySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthoritySource::Files { authorities, .. } => write!(f, "file {authorities}"),
            AuthoritySource::Secret { namespace, name } => write!(f, "secret {namespace}/{name}"),
            AuthoritySource::System { .. } => f.write_str("the operating system's CAs"),
        }
    }
}
