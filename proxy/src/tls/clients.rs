//! What a server asks of its clients.

use std::sync::Arc;

use super::AuthoritySource;
use super::digest::Sha256;

/// Requirements for client certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Clients {
    /// Whether a client without a certificate is refused.
    pub required: bool,
    /// The authorities that must have signed their certificates.
    pub authorities: Option<AuthoritySource>,
    /// Of these names a certificate must carry one; empty for any.
    pub names: Vec<Arc<str>>,
    /// Of these trust domains a certificate must have a SPIFFE id; empty for any certificate.
    pub trust_domains: Vec<Arc<str>>,
    /// SHA-256 of accepted keys.
    pub spki: Vec<Sha256>,
    /// SHA-256 of accepted certificates, in addition to certificates with such a key.
    pub hashes: Vec<Sha256>,
    /// Whether neither chain nor names are verified.
    pub skip_verify: bool,
}
