//! Parses certificates.

use std::net::IpAddr;

use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::FromDer;
use x509_parser::x509::{RelativeDistinguishedName, X509Name};

use crate::runtime::dates;
use traffic::certificate::{Facts, Name, UnixSeconds};

/// Object identifiers of signatures over SHA-1: with RSA, DSA and ECDSA.
const SHA1: [&str; 3] = [
    "1.2.840.113549.1.1.5",
    "1.2.840.10040.4.3",
    "1.2.840.10045.4.1",
];

/// Parses a certificate.
///
/// # Errors
///
/// Reason that the certificate cannot be parsed.
pub(crate) fn read(certificate: &CertificateDer<'_>) -> Result<Facts, String> {
    let (rest, parsed) = X509Certificate::from_der(certificate)
        .map_err(|_| "a certificate cannot be read".to_owned())?;
    if !rest.is_empty() {
        return Err("bytes follow a certificate".to_owned());
    }
    let oid = parsed.signature_algorithm.algorithm.to_id_string();
    Ok(Facts {
        serial: parsed.raw_serial_as_string().replace(':', "").into(),
        subject: distinguished(parsed.subject()).into(),
        issuer: distinguished(parsed.issuer()).into(),
        names: names(&parsed)?,
        not_before: parsed.validity().not_before.timestamp(),
        not_after: parsed.validity().not_after.timestamp(),
        is_signed_with_sha1: SHA1.contains(&&*oid),
    })
}

fn names(certificate: &X509Certificate<'_>) -> Result<Vec<Name>, String> {
    let extension = certificate
        .subject_alternative_name()
        .map_err(|_| "the subjectAltName of a certificate cannot be read".to_owned())?;
    let names = extension
        .iter()
        .flat_map(|extension| &extension.value.general_names);
    Ok(names.filter_map(name).collect())
}

/// Returns the name if it is of a comparable kind.
fn name(name: &GeneralName<'_>) -> Option<Name> {
    match name {
        GeneralName::DNSName(name) => Some(Name::Dns((*name).into())),
        GeneralName::RFC822Name(name) => Some(Name::Email((*name).into())),
        GeneralName::URI(name) => Some(Name::Uri((*name).into())),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            v4.or_else(|_| v6()).ok().map(Name::Ip)
        }
        _ => None,
    }
}

/// Formats an X.500 name as in RFC 2253: the last part first.
fn distinguished(name: &X509Name<'_>) -> String {
    let parts: Vec<String> = name.iter_rdn().map(part).collect();
    let parts: Vec<&str> = parts.iter().rev().map(String::as_str).collect();
    parts.join(",")
}

fn part(part: &RelativeDistinguishedName<'_>) -> String {
    let pairs = part.iter().map(|pair| {
        let registry = oid_registry();
        let oid = pair.attr_type().to_id_string();
        let key = oid2abbrev(pair.attr_type(), registry).unwrap_or(&oid);
        format!("{key}={}", escape(pair.as_str().unwrap_or_default()))
    });
    pairs.collect::<Vec<_>>().join("+")
}

/// Escapes a value as RFC 2253 requires.
fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (index, character) in value.chars().enumerate() {
        let special = matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';');
        let outer =
            (index == 0 && matches!(character, ' ' | '#')) || (index == last && character == ' ');
        if special || outer {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Formats a time: `2024-01-01T00:00:00Z`.
pub fn date(time: UnixSeconds) -> String {
    // the range of four-digit years
    match time {
        -62_167_219_200..=253_402_300_799 => {
            let text = dates::date_and_time(time);
            format!("{}Z", String::from_utf8_lossy(&text))
        }
        other => other.to_string(),
    }
}
