//! Selects a certificate that the client can verify: one for the server name that it requests, if there is one.

use std::fmt;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};

use super::Identity;

/// Certificates of one server, the cheaper ones first.
pub(crate) struct CertificateSelector {
    identities: Vec<Arc<Identity>>,
    speaks_tls13: bool,
}

impl CertificateSelector {
    /// Returns a selection among these; `speaks_tls13` if the server supports TLS 1.3.
    pub(crate) fn new(identities: &[Arc<Identity>], speaks_tls13: bool) -> Self {
        let mut identities = identities.to_vec();
        // An ECDSA signature costs a tenth of an RSA signature.
        identities.sort_by_key(|one| one.certified.key.algorithm() == SignatureAlgorithm::RSA);
        Self {
            identities,
            speaks_tls13,
        }
    }
}

impl fmt::Debug for CertificateSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice")
            .field("certificates", &self.identities.len())
            .finish_non_exhaustive()
    }
}

impl ResolvesServerCert for CertificateSelector {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if let [only] = self.identities.as_slice() {
            return Some(Arc::clone(&only.certified));
        }
        let fits = |one: &&Arc<Identity>| {
            let key = &one.certified.key;
            let signs = key.choose_scheme(hello.signature_schemes()).is_some();
            signs && self.has_suite(hello.cipher_suites(), key.algorithm())
        };
        let mut fitting = self.identities.iter().filter(fits);
        let is_named = |one: &&Arc<Identity>| {
            let name = hello.server_name();
            name.is_some_and(|name| one.facts.covers(name))
        };
        let named = fitting.clone().find(is_named);
        // Without a suitable one, rustls chooses the alert.
        let found = named.or_else(|| fitting.next()).or(self.identities.first());
        found.map(|found| Arc::clone(&found.certified))
    }
}

impl CertificateSelector {
    /// Whether a client with these suites supports a key of this kind. Suites of TLS 1.3 support any key.
    fn has_suite(&self, suites: &[CipherSuite], key: SignatureAlgorithm) -> bool {
        suites.iter().any(|suite| match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256
            | CipherSuite::TLS13_AES_256_GCM_SHA384
            | CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => self.speaks_tls13,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
                key != SignatureAlgorithm::RSA
            }
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
            | CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
                key == SignatureAlgorithm::RSA
            }
            _ => false,
        })
    }
}
