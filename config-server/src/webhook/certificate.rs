//! Certificate of the webhook, by a CA of its own, and when both are renewed.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::access::pki;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Life of the CA: ten years.
const AUTHORITY_LIFE: i64 = 3_652 * DAY;
/// Life of the certificate.
const LEAF_LIFE: i64 = 90 * DAY;
/// Time before the issue at which a certificate is valid, for clocks that are late.
const EARLIER: i64 = 3_600;

/// CA and certificate, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Material {
    /// CA, and before its last renewal is over, the one before it.
    pub authorities: String,
    /// Key of the CA.
    pub authority_key: String,
    /// Certificate of the server.
    pub certificate: String,
    /// Key of the certificate.
    pub key: String,
}

type Outcome<T> = Result<T, String>;

impl Material {
    /// Makes a CA and a certificate.
    ///
    /// # Errors
    /// If the names cannot be in a certificate.
    pub fn new(now: i64, names: &[String]) -> Outcome<Self> {
        let (authorities, authority_key) = authority(now)?;
        let (certificate, key) = leaf(now, names, &authorities, &authority_key)?;
        Ok(Self {
            authorities,
            authority_key,
            certificate,
            key,
        })
    }

    /// Returns what takes the place of this material now; `None` while it is good.
    ///
    /// A new CA signs from the next certificate on, and the one before it is trusted until the certificate after that, so
    /// that servers and clients that lag behind agree. Names stay, since other replicas may need them.
    ///
    /// # Errors
    /// If the material is damaged, or the names cannot be in a certificate.
    pub fn renewed(&self, now: i64, names: &[String]) -> Outcome<Option<Self>> {
        let authorities = split(&self.authorities)?;
        let newest = authorities.first().ok_or("ca.crt has no certificate")?;
        let der = pem(&self.certificate)?;
        let (_, parsed) =
            X509Certificate::from_der(&der).map_err(|error| format!("tls.crt: {error}"))?;
        if is_due(newest, now)? {
            let (certificate, key) = authority(now)?;
            let authorities = format!("{certificate}{}", pki::encoded("CERTIFICATE", newest));
            return Ok(Some(Self {
                authorities,
                authority_key: key,
                ..self.clone()
            }));
        }
        let known = names_of(&parsed);
        let names: BTreeSet<String> = known.iter().chain(names).cloned().collect();
        if !is_due(&der, now)? && names == known {
            return Ok(None);
        }
        let names: Vec<String> = names.into_iter().collect();
        let (certificate, key) = leaf(
            now,
            &names,
            &pki::encoded("CERTIFICATE", newest),
            &self.authority_key,
        )?;
        let (_, newest_parsed) =
            X509Certificate::from_der(newest).map_err(|error| format!("ca.crt: {error}"))?;
        let is_of_newest = parsed
            .verify_signature(Some(newest_parsed.public_key()))
            .is_ok();
        let authorities = match is_of_newest {
            true => pki::encoded("CERTIFICATE", newest),
            false => self.authorities.clone(),
        };
        Ok(Some(Self {
            authorities,
            authority_key: self.authority_key.clone(),
            certificate,
            key,
        }))
    }
}

/// Returns whether two thirds of the life of a certificate are over.
fn is_due(der: &CertificateDer<'_>, now: i64) -> Outcome<bool> {
    let (_, parsed) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
    let (start, end) = (
        parsed.validity().not_before.timestamp(),
        parsed.validity().not_after.timestamp(),
    );
    Ok(now >= start + (end - start) / 3 * 2)
}

fn names_of(parsed: &X509Certificate<'_>) -> BTreeSet<String> {
    let found = parsed.subject_alternative_name().ok().flatten();
    let found = found.iter().flat_map(|found| &found.value.general_names);
    let found = found.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(v4) => Some(IpAddr::from(v4).to_string()),
            Err(_) => Some(IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
        },
        _ => None,
    });
    found.collect()
}

fn pem(text: &str) -> Outcome<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(text.as_bytes()).map_err(|error| error.to_string())
}

fn split(text: &str) -> Outcome<Vec<CertificateDer<'static>>> {
    let all = CertificateDer::pem_slice_iter(text.as_bytes());
    all.collect::<Result<_, _>>()
        .map_err(|error| format!("ca.crt: {error}"))
}

fn authority(now: i64) -> Outcome<(String, String)> {
    let mut params = params(&[], "strait webhook CA", now, AUTHORITY_LIFE)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let certificate = params
        .self_signed(&key)
        .map_err(|error| error.to_string())?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn leaf(
    now: i64,
    names: &[String],
    authority: &str,
    authority_key: &str,
) -> Outcome<(String, String)> {
    let authority_key =
        KeyPair::from_pem(authority_key).map_err(|error| format!("ca.key: {error}"))?;
    let issuer = Issuer::from_ca_cert_pem(authority, authority_key)
        .map_err(|error| format!("ca.crt: {error}"))?;
    let mut params = params(names, "strait webhook", now, LEAF_LIFE)?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let certificate = params
        .signed_by(&key, &issuer)
        .map_err(|error| error.to_string())?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn params(names: &[String], name: &str, now: i64, life: i64) -> Outcome<CertificateParams> {
    let mut params = CertificateParams::new(names.to_vec()).map_err(|error| error.to_string())?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let time = |seconds: i64| {
        let since = u64::try_from(seconds).unwrap_or_default();
        (std::time::UNIX_EPOCH + std::time::Duration::from_secs(since)).into()
    };
    params.not_before = time(now - EARLIER);
    params.not_after = time(now + life);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn certificate_is_renewed_at_two_thirds_of_its_life() {
        let names = names(&["strait-control.strait-system.svc", "127.0.0.1"]);
        let first = Material::new(1_800_000_000, &names).unwrap();
        assert_eq!(first.renewed(1_800_000_000 + 59 * DAY, &names), Ok(None));
        let second = first
            .renewed(1_800_000_000 + 61 * DAY, &names)
            .unwrap()
            .unwrap();
        assert_eq!(second.authorities, first.authorities);
        assert_ne!(second.certificate, first.certificate);
        assert_eq!(second.renewed(1_800_000_000 + 61 * DAY, &names), Ok(None));
        let more = super::tests::names(&["strait-control.strait-system.svc", "127.0.0.2"]);
        let third = first.renewed(1_800_000_000, &more).unwrap().unwrap();
        for known in [&names, &more] {
            assert_eq!(
                third.renewed(1_800_000_000, known),
                Ok(None),
                "both are in it"
            );
        }
    }

    #[test]
    fn old_authority_is_trusted_until_no_certificate_is_of_it() {
        let names = names(&["a.svc"]);
        let first = Material::new(1_800_000_000, &names).unwrap();
        let late = 1_800_000_000 + AUTHORITY_LIFE / 3 * 2;
        let count = |material: &Material| split(&material.authorities).unwrap().len();
        let new_ca = first.renewed(late, &names).unwrap().unwrap();
        assert_eq!(
            (count(&new_ca), &new_ca.certificate),
            (2, &first.certificate)
        );
        let new_leaf = new_ca.renewed(late, &names).unwrap().unwrap();
        assert_eq!(count(&new_leaf), 2);
        assert_eq!(new_leaf.renewed(late + DAY, &names), Ok(None));
        let next_leaf = new_leaf.renewed(late + 61 * DAY, &names).unwrap().unwrap();
        assert_eq!(count(&next_leaf), 1);
    }

    #[test]
    fn damaged_material_is_an_error() {
        let material = Material::new(1_800_000_000, &names(&["a.svc"])).unwrap();
        for damaged in [
            Material {
                authorities: String::new(),
                ..material.clone()
            },
            Material {
                certificate: "x".to_owned(),
                ..material.clone()
            },
        ] {
            assert!(damaged.renewed(1_800_000_000, &[]).is_err());
        }
    }
}
