//! Certificate authorities for tests: issued and revoked certificates. Uses only rcgen.

#![allow(dead_code, reason = "not every test binary uses all of it")]

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams,
    CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RevokedCertParams,
    RsaKeySize, SanType, SerialNumber, date_time_ymd,
};

/// Certificate authority.
pub(crate) struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// Properties of a certificate to issue.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'a> {
    /// Common name of the subject.
    pub subject: &'a str,
    /// Subject alternative names: DNS names, URIs and IP addresses.
    pub names: &'a [&'a str],
    /// Whether the key is RSA; otherwise it is ECDSA.
    pub rsa: bool,
    /// First and last year of the validity.
    pub years: (i32, i32),
}

impl Default for Leaf<'_> {
    fn default() -> Self {
        Self {
            subject: "leaf",
            names: &[],
            rsa: false,
            years: (2020, 4000),
        }
    }
}

/// Certificate and private key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub chain: String,
    pub key: String,
    pub der: Vec<u8>,
    /// SubjectPublicKeyInfo, as DER.
    pub spki: Vec<u8>,
    pub serial: Vec<u8>,
}

impl Authority {
    /// Creates an authority.
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    /// Returns the authority's certificate, as PEM.
    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// Returns the authority's certificate, as DER.
    pub(crate) fn der(&self) -> Vec<u8> {
        self.certificate.der().to_vec()
    }

    /// Issues a certificate.
    pub(crate) fn issue(&self, leaf: Leaf<'_>) -> Pair {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, leaf.subject);
        params.subject_alt_names = leaf.names.iter().map(|name| name_of(name)).collect();
        params.not_before = date_time_ymd(leaf.years.0, 1, 1);
        params.not_after = date_time_ymd(leaf.years.1, 12, 31);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let serial: [u8; 12] = std::array::from_fn(|index| {
            rand::random::<u8>() >> u8::from(index == 0) | u8::from(index == 0)
        });
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let key = if leaf.rsa {
            KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap()
        } else {
            KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
        };
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair {
            chain: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().to_vec(),
            spki: rcgen::PublicKeyData::subject_public_key_info(&key),
            serial: serial.to_vec(),
        }
    }

    /// Signs a request (PKCS #10, PEM), for this SPIFFE ID whatever it asks for, until this time since 1970; returns the
    /// certificate as PEM.
    pub(crate) fn sign(&self, request: &str, id: &str, until: std::time::Duration) -> String {
        let mut request = CertificateSigningRequestParams::from_pem(request).unwrap();
        request.params.subject_alt_names = vec![name_of(id)];
        request.params.not_before = date_time_ymd(2020, 1, 1);
        request.params.not_after =
            date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(until.as_secs());
        request.params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        request.signed_by(&self.issuer).unwrap().pem()
    }

    /// Issues a server certificate for these names.
    pub(crate) fn server(&self, names: &[&str]) -> Pair {
        self.issue(Leaf {
            names,
            ..Leaf::default()
        })
    }

    /// Returns a certificate revocation list with a distant next update.
    pub(crate) fn revoke(&self, pairs: &[&Pair]) -> String {
        self.revoke_until(pairs, 4000)
    }

    /// Returns a certificate revocation list whose next update is due in `year`.
    pub(crate) fn revoke_until(&self, pairs: &[&Pair], year: i32) -> String {
        let revoked = pairs.iter().map(|pair| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&pair.serial),
            revocation_time: date_time_ymd(2021, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2021, 1, 1),
            next_update: date_time_ymd(year, 1, 1),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

fn name_of(name: &str) -> SanType {
    if let Ok(ip) = name.parse() {
        SanType::IpAddress(ip)
    } else if name.contains("://") {
        SanType::URI(name.try_into().unwrap())
    } else {
        SanType::DnsName(name.try_into().unwrap())
    }
}
