//! Versions, cipher suites and key exchange groups of TLS.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

use super::ciphers;

/// Versions, cipher suites and key exchange groups that are offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProtocolSettings {
    /// Oldest version.
    pub version_min: Version,
    /// Cipher suites up to TLS 1.2, by OpenSSL's names; empty for all supported ones.
    pub cipher_suites: Vec<Arc<str>>,
    /// Key exchange groups, by name; empty for the library's defaults.
    pub groups: Vec<Arc<str>>,
}

/// A supported version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// 1.2
    #[default]
    Tls12,
    /// 1.3
    Tls13,
}

impl ProtocolSettings {
    /// Returns the versions up to the newest one that is offered.
    pub(super) fn versions(&self, max: Version) -> Vec<&'static SupportedProtocolVersion> {
        let mut versions = Vec::with_capacity(2);
        if self.version_min == Version::Tls12 {
            versions.push(&TLS12);
        }
        if max == Version::Tls13 {
            versions.push(&TLS13);
        }
        versions
    }

    /// Returns the library's provider, restricted to these suites and groups.
    pub(super) fn provider(&self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        let named: Vec<SupportedCipherSuite> = self
            .cipher_suites
            .iter()
            .filter_map(|name| ciphers::cipher_suite(name))
            .collect();
        if !named.is_empty() {
            provider
                .cipher_suites
                .retain(|suite| suite.tls13().is_some());
            provider.cipher_suites.extend(named);
        }
        let groups: Vec<_> = self
            .groups
            .iter()
            .filter_map(|name| ciphers::group(name))
            .collect();
        if !groups.is_empty() {
            provider.kx_groups = groups;
        }
        provider
    }

    /// Returns the groups that are not supported.
    pub fn unknown_groups(&self) -> impl Iterator<Item = &Arc<str>> {
        let known = |name: &&Arc<str>| ciphers::group(name).is_none();
        self.groups.iter().filter(known)
    }
}
