//! Requirements of a server for client certificates.

use std::sync::Arc;

use super::AuthoritySource;
use super::digest::Sha256;

/// Requirements for client certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientCertRequirements {
    /// Whether a client without a certificate is rejected.
    pub required: bool,
    /// Authorities that must have signed the certificates.
    pub authorities: Option<AuthoritySource>,
    /// Accepted names, of which a certificate must carry one; empty for any.
    pub names: Vec<Arc<str>>,
    /// Trust domains, of which a certificate must have a SPIFFE id; empty for any certificate.
    pub trust_domains: Vec<Arc<str>>,
    /// Trust domains of the mesh, if the authorities are those of the mesh; empty for others, which prove no identity of it.
    pub mesh_domains: Vec<Arc<str>>,
    /// SHA-256 hashes of accepted public keys.
    pub spki: Vec<Sha256>,
    /// SHA-256 hashes of accepted certificates, in addition to certificates with such a key.
    pub hashes: Vec<Sha256>,
    /// Whether chain and names are not verified.
    pub skip_verify: bool,
    /// Whether a client with an invalid certificate is served, as one without a certificate.
    pub serves_invalid: bool,
}
