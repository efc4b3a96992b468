//! OpenSSL's names of supported cipher suites and key exchange groups.

use rustls::SupportedCipherSuite;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{cipher_suite as suite, kx_group};

/// Returns the cipher suite with an OpenSSL name; `None` if it is not supported.
pub(crate) fn cipher_suite(name: &str) -> Option<SupportedCipherSuite> {
    Some(match name {
        "ECDHE-ECDSA-AES128-GCM-SHA256" => suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-ECDSA-AES256-GCM-SHA384" => suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-ECDSA-CHACHA20-POLY1305" => suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-RSA-AES128-GCM-SHA256" => suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-RSA-AES256-GCM-SHA384" => suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-RSA-CHACHA20-POLY1305" => suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        _ => return None,
    })
}

/// Returns OpenSSL's name of a cipher suite named by rustls; unknown names stay as they are.
pub(crate) fn openssl_name(suite: &'static str) -> &'static str {
    match suite {
        "TLS13_AES_128_GCM_SHA256" => "TLS_AES_128_GCM_SHA256",
        "TLS13_AES_256_GCM_SHA384" => "TLS_AES_256_GCM_SHA384",
        "TLS13_CHACHA20_POLY1305_SHA256" => "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" => "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" => "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256" => "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" => "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" => "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256" => "ECDHE-RSA-CHACHA20-POLY1305",
        other => other,
    }
}

/// Returns the group with a name of OpenSSL or BoringSSL; `None` if it is not supported.
pub(crate) fn group(name: &str) -> Option<&'static dyn SupportedKxGroup> {
    let is = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    Some(if is(&["X25519"]) {
        kx_group::X25519
    } else if is(&["P-256", "prime256v1", "secp256r1"]) {
        kx_group::SECP256R1
    } else if is(&["P-384", "secp384r1"]) {
        kx_group::SECP384R1
    } else if is(&["X25519MLKEM768"]) {
        kx_group::X25519MLKEM768
    } else if is(&["SecP256r1MLKEM768"]) {
        kx_group::SECP256R1MLKEM768
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use rustls::{CipherSuite, NamedGroup};

    use super::*;

    #[test]
    fn every_supported_suite_has_its_openssl_name() {
        for suite in rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES {
            let name = suite.suite().as_str().unwrap();
            let named = openssl_name(name);
            assert_ne!(named, name);
            match cipher_suite(named) {
                Some(found) => assert_eq!(found.suite(), suite.suite()),
                None => assert!(named.starts_with("TLS_"), "{named} is one of TLS 1.3"),
            }
        }
    }

    #[test]
    fn names_equal_the_openssl_names() {
        for (name, expected) in [
            (
                "ECDHE-RSA-AES128-GCM-SHA256",
                Some(CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
            ),
            (
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
            ),
            ("AES128-SHA", None),
            ("DES-CBC3-SHA", None),
        ] {
            let found = cipher_suite(name).map(|found| found.suite());
            assert_eq!(found, expected, "{name}");
        }
        for (name, expected) in [
            ("X25519", Some(NamedGroup::X25519)),
            ("p-256", Some(NamedGroup::secp256r1)),
            ("secp384r1", Some(NamedGroup::secp384r1)),
            ("X25519MLKEM768", Some(NamedGroup::X25519MLKEM768)),
            ("P-521", None),
        ] {
            assert_eq!(group(name).map(|group| group.name()), expected, "{name}");
        }
    }
}
