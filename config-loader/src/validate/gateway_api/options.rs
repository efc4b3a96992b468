//! Options of a listener's TLS, which the API leaves to implementations.

use std::sync::Arc;

use crate::diagnostic::codes::gateway_api::{GA031, GA137};
use crate::diagnostic::suggest;
use crate::raw::{Field, Map};
use crate::resource::gateway_api::{ClientCertificates, ObjectReference, TlsOptions};
use crate::resource::istio::{CipherSuite, TlsVersion};
use crate::validate::{Check, scalar};

const MODE: &str = "gateway.istio.io/tls-terminate-mode";
const CLIENT_CA: &str = "strait.io/client-ca-secret";
const CIPHER_SUITES: &str = "strait.io/cipher-suites";
const VERSION_MAX: &str = "strait.io/max-protocol-version";
const VERSION_MIN: &str = "strait.io/min-protocol-version";

/// Options that have an effect.
const OPTIONS: [&str; 5] = [MODE, CIPHER_SUITES, CLIENT_CA, VERSION_MAX, VERSION_MIN];

/// Returns the options.
pub(super) fn options(field: &Field<Map<String>>, check: &mut Check<'_>) -> TlsOptions {
    let mut options = TlsOptions::default();
    for (key, key_field, value) in field.get().into_iter().flat_map(Map::iter) {
        let text = value.get().map_or("", String::as_str);
        let fix = match key {
            MODE => clients(text, &mut options.clients),
            CIPHER_SUITES => cipher_suites(text, &mut options.cipher_suites),
            CLIENT_CA if !scalar::is_object_name(text) => {
                Some("write the name of a Secret".to_owned())
            }
            CLIENT_CA => {
                options.client_authorities = vec![ObjectReference {
                    group: Arc::from(""),
                    kind: Arc::from("Secret"),
                    namespace: Arc::from(check.namespace()),
                    name: Arc::from(text),
                    line: check.line(value.span()),
                }];
                None
            }
            VERSION_MAX => version(text, &mut options.version_max),
            VERSION_MIN => version(text, &mut options.version_min),
            _ => {
                let message = format!("the option `{key}` has no effect");
                let found = check.warning(GA031, key_field.span(), message);
                found.help(match suggest::nearest(key, OPTIONS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the options are {}", OPTIONS.join(", ")),
                });
                None
            }
        };
        if let Some(fix) = fix {
            let message = format!("`{text}` is no value of the option `{key}`");
            check.error(GA137, value.span(), message).help(fix);
        }
    }
    let (min, max) = (options.version_min, options.version_max);
    if min == TlsVersion::V1_3 && max == TlsVersion::V1_2 {
        let message = "the oldest version of TLS is newer than the newest";
        let found = check.error(GA137, field.span(), message);
        found.help("write a newest version of `1.3`, or remove it");
    }
    options
}

/// Reads a mode; returns the fix of one that is unknown.
fn clients(text: &str, clients: &mut ClientCertificates) -> Option<String> {
    *clients = match text {
        "MUTUAL" => ClientCertificates::Required,
        "OPTIONAL_MUTUAL" => ClientCertificates::Optional,
        "SIMPLE" => ClientCertificates::None,
        _ => return Some("write `SIMPLE`, `MUTUAL` or `OPTIONAL_MUTUAL`".to_owned()),
    };
    None
}

/// Reads a version; returns the fix of one that is unknown.
fn version(text: &str, version: &mut TlsVersion) -> Option<String> {
    *version = match text {
        "1.2" => TlsVersion::V1_2,
        "1.3" => TlsVersion::V1_3,
        _ => return Some("write \"1.2\" or \"1.3\"".to_owned()),
    };
    None
}

/// Reads names between commas; returns the fix of one that is not offered.
fn cipher_suites(text: &str, suites: &mut Vec<CipherSuite>) -> Option<String> {
    let offered = |name: &str| CipherSuite::from_name(name).filter(|suite| suite.is_modern());
    let named: Option<Vec<CipherSuite>> =
        text.split(',').map(|name| offered(name.trim())).collect();
    match named {
        Some(named) => {
            *suites = named;
            None
        }
        None => {
            let known = CipherSuite::KNOWN.into_iter();
            let known = known
                .filter(|suite| suite.is_modern())
                .map(CipherSuite::as_str);
            let known: Vec<&str> = known.collect();
            Some(format!(
                "write names between commas; suites of TLS 1.2 are {}, and those of 1.3 are always offered",
                known.join(", ")
            ))
        }
    }
}
