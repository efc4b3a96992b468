//! TLS of the mesh: authorities (`caCertificates`), and defaults (`meshMTLS`, `tlsDefaults`).

use std::sync::Arc;

use crate::diagnostic::codes::istio::MC101;
use crate::raw::Field;
use crate::raw::istio::{CertificateData, TlsConfig};
use crate::resource::istio::{CURVES, TlsDefaults, TlsVersion};
use crate::validate::istio::authorities::authority;
use crate::validate::istio::gateway::cipher_suites;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Supported versions by name.
const VERSIONS: [(&str, TlsVersion); 3] = [
    ("TLS_AUTO", TlsVersion::Auto),
    ("TLSV1_2", TlsVersion::V1_2),
    ("TLSV1_3", TlsVersion::V1_3),
];

/// Returns all certificates of authorities.
pub(super) fn authorities(
    field: &Field<Vec<Field<CertificateData>>>,
    check: &mut Check<'_>,
) -> Arc<str> {
    let mut all = String::new();
    for (_, data) in scalar::items(field, check) {
        for (name, other) in [
            ("certSigners", &data.cert_signers),
            ("spiffeBundleUrl", &data.spiffe_bundle_url),
            ("trustDomains", &data.trust_domains),
        ] {
            if other.is_set() {
                let message =
                    format!("`{name}` has no effect: `pem` is trusted for the whole mesh");
                let found = check.warning(MC101, other.span(), message);
                found.help(
                    "write certificates as `pem`, of authorities that may sign for any workload",
                );
            }
        }
        let Some(pem) = shared::text(&data.pem) else {
            continue;
        };
        authority(pem, data.pem.span(), &mut all, check);
    }
    all.into()
}

/// Returns the settings of TLS that the proxy supports.
pub(super) fn defaults(field: &Field<TlsConfig>, check: &mut Check<'_>) -> TlsDefaults {
    let Some(raw) = field.get() else {
        return TlsDefaults::default();
    };
    let mut ecdh_curves = Vec::new();
    for (entry, name) in scalar::items(&raw.ecdh_curves, check) {
        if CURVES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            ecdh_curves.push(name.as_str().into());
        } else {
            let message = format!("curve `{name}` has no effect: it is not offered");
            let found = check.warning(MC101, entry.span(), message);
            found.help("remove it; without `ecdhCurves` all that are safe are offered");
        }
    }
    TlsDefaults {
        version_min: scalar::enum_of(&raw.min_protocol_version, &VERSIONS, check)
            .unwrap_or_default(),
        cipher_suites: cipher_suites(&raw.cipher_suites, check),
        ecdh_curves,
    }
}
