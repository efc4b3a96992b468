//! Certificates of workloads: what a request has to be, and what is signed. Pure: the time is passed in.
//!
//! Invariant: of a request, only its public key gets into a certificate.

use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber, SubjectPublicKeyInfo,
};
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::{OID_EC_P256, OID_NIST_EC_P384, OID_SIG_ED25519, Oid};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509;

use super::values::{pem, time};

/// Maximum size of a request, in bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Time before the issue from which on a certificate is valid, for clocks that are late.
const EARLIER: i64 = 60;

/// Sizes of RSA keys that are signed, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;

/// Extension with the join of a workload, by which its certificate is renewed: an OID of the arc for UUIDs.
const JOIN_OID: [u64; 3] = [2, 25, 6_149_508_832_147_203_911];

/// Join of a workload outside Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Join {
    /// Time of the join, in seconds since 1970.
    pub(crate) at: u64,
    /// Name of the join token.
    pub(crate) token: String,
}

/// Request whose key can be signed.
#[derive(Debug)]
pub(crate) struct CheckedRequest(SubjectPublicKeyInfo);

impl CheckedRequest {
    /// Reads a request in PEM (PKCS #10), and verifies its signature.
    ///
    /// # Errors
    /// If it is too long, damaged or not signed by its own key, or if its key is too weak or of another kind.
    pub(crate) fn read(pem: &str) -> Result<Self, String> {
        if pem.len() > REQUEST_BYTES_MAX {
            let length = pem.len();
            return Err(format!(
                "the request has {length} bytes; expected at most {REQUEST_BYTES_MAX}"
            ));
        }
        let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|error| format!("the request is no PEM of PKCS #10: {error}"))?;
        let (rest, request) = X509CertificationRequest::from_der(&der)
            .map_err(|error| format!("the request is no PKCS #10: {error}"))?;
        if !rest.is_empty() {
            return Err("the request has bytes after its end".to_owned());
        }
        let key = &request.certification_request_info.subject_pki;
        check_key(key)?;
        let is_signed = request.verify_signature();
        is_signed.map_err(|error| format!("the request is not signed by its key: {error}"))?;
        let key = SubjectPublicKeyInfo::from_der(key.raw);
        key.map(Self)
            .map_err(|error| format!("the key of the request: {error}"))
    }
}

fn check_key(key: &x509::SubjectPublicKeyInfo<'_>) -> Result<(), String> {
    let curve = key.algorithm.parameters.as_ref();
    let curve = curve.and_then(|parameters| parameters.as_oid().ok());
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) if RSA_BITS.contains(&rsa.key_size()) => Ok(()),
        Ok(PublicKey::RSA(rsa)) => Err(format!(
            "the RSA key of the request has {} bits; expected {} to {}",
            rsa.key_size(),
            RSA_BITS.start(),
            RSA_BITS.end()
        )),
        Ok(PublicKey::EC(_)) if [Some(OID_EC_P256), Some(OID_NIST_EC_P384)].contains(&curve) => {
            Ok(())
        }
        _ if key.algorithm.algorithm == OID_SIG_ED25519 => Ok(()),
        _ => Err(
            "the key of the request is of another kind; expected P-256, P-384, Ed25519 or RSA"
                .to_owned(),
        ),
    }
}

/// Key that signs, with its certificates.
pub(crate) struct Signer {
    issuer: Issuer<'static, KeyPair>,
    /// Last second at which the certificate of the issuer and those above it are valid.
    not_after: i64,
    /// Certificates between that of a workload and the root, each in PEM.
    chain: Vec<String>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

/// Certificate that was issued.
#[derive(Debug)]
pub(crate) struct Issued {
    /// Certificate in PEM.
    pub(crate) certificate: String,
    /// Serial number, in hexadecimal.
    pub(crate) serial: String,
    /// Last second at which it is valid.
    pub(crate) not_after: i64,
}

impl Signer {
    /// Reads the chain of a CA, its own certificate first, and its key, in PEM.
    ///
    /// # Errors
    /// If they are damaged, do not belong together, or are no CA.
    pub(crate) fn read(chain: &[String], key: &str) -> Result<Self, String> {
        let own = chain.first().ok_or("the CA has no certificate")?;
        let key = KeyPair::from_pem(key).map_err(|error| format!("key of the CA: {error}"))?;
        let mut not_after = i64::MAX;
        for (at, text) in chain.iter().enumerate() {
            let der = pem(text)?;
            let (_, parsed) = X509Certificate::from_der(&der)
                .map_err(|error| format!("certificate of the CA: {error}"))?;
            if !parsed.is_ca() {
                return Err("the certificate of the CA is no certificate of a CA".to_owned());
            }
            use rcgen::PublicKeyData;
            if at == 0 && *parsed.public_key().raw != *key.subject_public_key_info() {
                return Err("the key does not belong to the certificate of the CA".to_owned());
            }
            not_after = not_after.min(parsed.validity().not_after.timestamp());
        }
        let issuer = Issuer::from_ca_cert_pem(own, key);
        Ok(Self {
            issuer: issuer.map_err(|error| format!("certificate of the CA: {error}"))?,
            not_after,
            chain: chain.to_vec(),
        })
    }

    /// Returns the certificates between that of a workload and the root.
    pub(crate) fn chain(&self) -> &[String] {
        &self.chain
    }

    /// Signs the key of a request for an identity, from `now` on for a life in seconds, or until the CA itself ends.
    ///
    /// # Errors
    /// If the CA has expired, or the id is no URI.
    pub(crate) fn issue(
        &self,
        request: &CheckedRequest,
        id: &str,
        join: Option<&Join>,
        (now, life): (i64, i64),
    ) -> Result<Issued, String> {
        let not_after = now.saturating_add(life).min(self.not_after);
        if not_after <= now {
            return Err("the certificate of the CA has expired".to_owned());
        }
        let serial: [u8; 16] = rand::random();
        let said = |error: rcgen::Error| error.to_string();
        let mut params = CertificateParams::default();
        // without a subject, the names are critical (RFC 5280, section 4.2.1.6)
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = vec![SanType::URI(id.try_into().map_err(said)?)];
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.custom_extensions = join.map(extension).into_iter().collect();
        params.not_before = time(now - EARLIER).into();
        params.not_after = time(not_after).into();
        let certificate = params.signed_by(&request.0, &self.issuer).map_err(said)?;
        Ok(Issued {
            certificate: certificate.pem(),
            serial: serial.iter().map(|byte| format!("{byte:02x}")).collect(),
            not_after,
        })
    }
}

/// Returns the extension of a join: a UTF8String with time and token.
fn extension(join: &Join) -> CustomExtension {
    let text = format!("{} {}", join.at, join.token);
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    let mut content = vec![0x0c];
    if length > 0x7f {
        content.push(0x81);
    }
    content.push(length);
    content.extend_from_slice(&text.as_bytes()[..length.into()]);
    CustomExtension::from_oid_content(&JOIN_OID, content)
}

/// Returns the SPIFFE id and the join of a certificate that this CA signed; `None` without either.
pub(crate) fn joined(der: &[u8]) -> Option<(String, Join)> {
    let (_, parsed) = X509Certificate::from_der(der).ok()?;
    let names = parsed.subject_alternative_name().ok()??;
    let [GeneralName::URI(id)] = names.value.general_names[..] else {
        return None;
    };
    let oid = Oid::from(&JOIN_OID).ok()?;
    let extension = parsed.get_extension_unique(&oid).ok()??;
    let text = match extension.value {
        [0x0c, 0x81, _, text @ ..] | [0x0c, _, text @ ..] => std::str::from_utf8(text).ok()?,
        _ => return None,
    };
    let (at, token) = text.split_once(' ')?;
    let join = Join {
        at: at.parse().ok()?,
        token: token.to_owned(),
    };
    Some((id.to_owned(), join))
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
        PKCS_RSA_SHA256, RsaKeySize, SignatureAlgorithm,
    };
    use x509_parser::extensions::ParsedExtension;

    use super::super::authorities::Authorities;
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const ID: &str = "spiffe://cluster.local/ns/shop/sa/cart";

    fn key(algorithm: &'static SignatureAlgorithm) -> KeyPair {
        match algorithm == &PKCS_RSA_SHA256 {
            true => KeyPair::generate_rsa_for(algorithm, RsaKeySize::_2048).unwrap(),
            false => KeyPair::generate_for(algorithm).unwrap(),
        }
    }

    fn request(change: impl FnOnce(&mut CertificateParams)) -> String {
        let mut params = CertificateParams::default();
        change(&mut params);
        let request = params.serialize_request(&key(&PKCS_ECDSA_P256_SHA256));
        request.unwrap().pem().unwrap()
    }

    fn signer() -> Signer {
        Authorities::new(NOW, 86_400).unwrap().signer().unwrap()
    }

    fn issue(request: &str, life: i64) -> Issued {
        let request = CheckedRequest::read(request).unwrap();
        signer().issue(&request, ID, None, (NOW, life)).unwrap()
    }

    #[test]
    fn names_and_extensions_of_a_request_do_not_get_into_the_certificate() {
        let wish = request(|params| {
            params.subject_alt_names = vec![
                SanType::URI(
                    "spiffe://cluster.local/ns/bank/sa/admin"
                        .try_into()
                        .unwrap(),
                ),
                SanType::DnsName("bank.example".try_into().unwrap()),
            ];
            params.is_ca = IsCa::NoCa;
            params.custom_extensions = vec![extension(&Join {
                at: 1,
                token: "mine".to_owned(),
            })];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        });
        let issued = issue(&wish, 3_600);
        let der = pem(&issued.certificate).unwrap();
        assert_eq!(joined(&der), None, "no join");
        let (_, parsed) = X509Certificate::from_der(&der).unwrap();
        assert_eq!(parsed.subject().iter().count(), 0);
        let names = parsed.subject_alternative_name().unwrap().unwrap();
        assert!(names.critical);
        assert_eq!(names.value.general_names, [GeneralName::URI(ID)]);
        assert!(!parsed.is_ca());
        let usage = parsed.key_usage().unwrap().unwrap().value;
        assert!(usage.digital_signature() && !usage.key_cert_sign() && !usage.crl_sign());
        let extended = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(extended.server_auth && extended.client_auth && !extended.code_signing);
        let validity = parsed.validity();
        assert_eq!(validity.not_before.timestamp(), NOW - 60);
        assert_eq!(validity.not_after.timestamp(), NOW + 3_600);
        assert_eq!(parsed.raw_serial_as_string().replace(':', ""), {
            let serial = &issued.serial;
            let sign = u8::from_str_radix(&serial[..2], 16).unwrap() & 0x80 != 0;
            format!("{}{serial}", if sign { "00" } else { "" })
        });
        let has = |found: &ParsedExtension<'_>| {
            matches!(found, ParsedExtension::AuthorityKeyIdentifier(_))
        };
        let mut extensions = parsed.extensions().iter();
        assert!(extensions.any(|one| has(one.parsed_extension())));
        assert_ne!(issue(&wish, 3_600).serial, issued.serial);
    }

    #[test]
    fn keys_of_the_known_kinds_are_signed() {
        for algorithm in [
            &PKCS_ECDSA_P256_SHA256,
            &PKCS_ECDSA_P384_SHA384,
            &PKCS_ED25519,
            &PKCS_RSA_SHA256,
        ] {
            let key = key(algorithm);
            let request = CertificateParams::default().serialize_request(&key);
            let issued = issue(&request.unwrap().pem().unwrap(), 60);
            let der = pem(&issued.certificate).unwrap();
            let (_, parsed) = X509Certificate::from_der(&der).unwrap();
            use rcgen::PublicKeyData;
            assert_eq!(
                parsed.public_key().raw,
                key.subject_public_key_info(),
                "{algorithm:?}"
            );
        }
    }

    #[test]
    fn weak_damaged_and_alien_requests_are_refused() {
        let good = request(|_| ());
        let mut der = CertificateSigningRequestDer::from_pem_slice(good.as_bytes())
            .unwrap()
            .to_vec();
        let last = der.len() - 1;
        der[last] ^= 1;
        let broken = crate::access::pki::encoded("CERTIFICATE REQUEST", &der);
        for (wrong, reason) in [
            (String::new(), "no PEM"),
            (good.replace("REQUEST", "X"), "no PEM"),
            (format!("{good}{}", " ".repeat(REQUEST_BYTES_MAX)), "bytes"),
            (broken, "not signed by its key"),
            (RSA_1024.to_owned(), "1024 bits; expected 2048"),
            (P521.to_owned(), "of another kind"),
        ] {
            let error = CheckedRequest::read(&wrong).unwrap_err();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }

    #[test]
    fn certificate_ends_with_its_ca() {
        let signer = signer();
        let request = CheckedRequest::read(&request(|_| ())).unwrap();
        let late = signer.not_after - 100;
        let issued = signer.issue(&request, ID, None, (late, 3_600)).unwrap();
        assert_eq!(issued.not_after, signer.not_after);
        let after = signer.issue(&request, ID, None, (signer.not_after, 3_600));
        assert!(after.unwrap_err().contains("has expired"));
    }

    #[test]
    fn join_is_read_back() {
        let request = CheckedRequest::read(&request(|_| ())).unwrap();
        for length in [3, 100, 120] {
            let join = Join {
                at: 1_800_000_000,
                token: "x".repeat(length),
            };
            let issued = signer().issue(&request, ID, Some(&join), (NOW, 60));
            let der = pem(&issued.unwrap().certificate).unwrap();
            assert_eq!(joined(&der), Some((ID.to_owned(), join)));
        }
    }

    #[test]
    fn ca_is_a_ca_with_its_own_key() {
        let (ca, other) = (
            Authorities::new(NOW, 60).unwrap(),
            Authorities::new(NOW, 60).unwrap(),
        );
        let (chain, key) = ca.signing().parts();
        assert!(Signer::read(&chain, key).is_ok());
        let wrong = Signer::read(&chain, other.signing().parts().1).unwrap_err();
        assert!(wrong.contains("does not belong"), "{wrong}");
        let mut leaf = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        let pair = KeyPair::generate().unwrap();
        let read = |params: &CertificateParams| {
            let certificate = params.self_signed(&pair).unwrap().pem();
            Signer::read(&[certificate], &pair.serialize_pem()).map(|_| ())
        };
        assert!(read(&leaf).unwrap_err().contains("no certificate of a CA"));
        leaf.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        assert_eq!(read(&leaf), Ok(()));
    }

    /// Request of an RSA key of 1,024 bits.
    const RSA_1024: &str = include_str!("../../testdata/identities/rsa-1024.csr");
    /// Request of a key on P-521.
    const P521: &str = include_str!("../../testdata/identities/p-521.csr");
}
