//! Request for a certificate: a new key, and what it is signed for (PKCS #10).

use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256,
    RsaKeySize, SanType,
};

/// Kind of the key of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA on P-256.
    #[default]
    EcdsaP256,
    /// RSA of 2048 bits.
    Rsa2048,
}

/// Key and request, as PEM.
pub(super) struct CertificateRequest {
    pub(super) key: String,
    pub(super) request: String,
}

impl CertificateRequest {
    /// Makes a key, and a request with this SPIFFE id as its only name. Takes up to a second for RSA.
    ///
    /// # Errors
    ///
    /// If the id is no URI, or the library has no such key.
    pub(super) fn new(kind: KeyKind, id: &str) -> Result<Self, rcgen::Error> {
        let key = match kind {
            KeyKind::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
            KeyKind::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?,
        };
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = vec![SanType::URI(id.try_into()?)];
        Ok(Self {
            request: params.serialize_request(&key)?.pem()?,
            key: key.serialize_pem(),
        })
    }
}
