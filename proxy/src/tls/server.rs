//! Settings and material to what one server handshakes with.
//!
//! Invariant: the same settings and the same material are the same [`ServerTls`], see [`super::Store::server`], so that
//! sessions can be resumed across reloads; anything else has ticket keys of its own, so that a session never outlives
//! the authorities that let it in.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};

use super::select::Choice;
use super::verify::Verifier;
use super::{Authorities, Clients, Identity, IdentitySource, ciphers};

/// How a server terminates TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerSettings {
    /// Its certificates; a client gets one that it can verify.
    pub identities: Vec<IdentitySource>,
    /// Requirements for client certificates; `None` if none are requested.
    pub clients: Option<Box<Clients>>,
    /// The oldest version.
    pub version_min: Version,
    /// The newest version.
    pub version_max: Version,
    /// OpenSSL's names of the cipher suites up to TLS 1.2; empty for all that are spoken.
    pub cipher_suites: Vec<Arc<str>>,
    /// Names of groups of the key exchange; empty for the library's.
    pub groups: Vec<Arc<str>>,
    /// The protocol inside TLS.
    pub alpn: Alpn,
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

/// The application protocols that a server offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alpn {
    /// HTTP/2 and HTTP/1.1.
    #[default]
    Http,
    /// Nothing; what a client offers is ignored.
    None,
}

/// Protocols that are spoken inside TLS, the preferred one first.
const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What one server handshakes with.
pub struct ServerTls {
    config: Arc<ServerConfig>,
    /// For clients with which no protocol is shared.
    without_alpn: Arc<ServerConfig>,
    /// Its certificates, for pages.
    pub identities: Vec<Arc<Identity>>,
    /// The authorities of its clients, for pages.
    pub authorities: Option<Arc<Authorities>>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Makes it, with new ticket keys. `identities` are the usable ones, at least one.
    ///
    /// # Errors
    ///
    /// Why settings and material do not go together.
    pub fn new(
        settings: &ServerSettings,
        identities: Vec<Arc<Identity>>,
        authorities: Option<Arc<Authorities>>,
    ) -> Result<Self, String> {
        let provider = Arc::new(provider(settings));
        let versions = versions(settings);
        let speaks_tls13 = settings.version_max == Version::Tls13;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?;
        let verifier = match &settings.clients {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(clients) => Arc::new(Verifier::new(clients, authorities.as_deref(), &provider)?),
        };
        let mut config = builder
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(Choice::new(&identities, speaks_tls13)));
        // Tickets are with the client, and good on every worker.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| error.to_string())?;
        // One of the client's choice is what makes the lists of both differ: with a list of our own ours counts.
        config.ignore_client_order = !settings.cipher_suites.is_empty();
        let without_alpn = Arc::new(config.clone());
        if settings.alpn == Alpn::Http {
            config.alpn_protocols = HTTP.iter().map(|name| name.to_vec()).collect();
        }
        Ok(Self {
            config: Arc::new(config),
            without_alpn,
            identities,
            authorities,
        })
    }

    /// What to handshake with, given the protocols that the client offers by ALPN.
    ///
    /// rustls would end a handshake without a protocol in common; a client of HTTP gets HTTP/1.1 instead.
    pub fn config<'a>(&self, offered: impl IntoIterator<Item = &'a [u8]>) -> &Arc<ServerConfig> {
        let mut shared = offered.into_iter();
        let shared = shared.any(|name| self.config.alpn_protocols.iter().any(|own| **own == *name));
        if shared {
            &self.config
        } else {
            &self.without_alpn
        }
    }
}

fn versions(settings: &ServerSettings) -> Vec<&'static SupportedProtocolVersion> {
    let mut versions = Vec::with_capacity(2);
    if settings.version_min == Version::Tls12 {
        versions.push(&TLS12);
    }
    if settings.version_max == Version::Tls13 {
        versions.push(&TLS13);
    }
    versions
}

/// The library's provider, cut to what the settings name.
fn provider(settings: &ServerSettings) -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    let named: Vec<SupportedCipherSuite> = settings
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
    let groups: Vec<_> = settings
        .groups
        .iter()
        .filter_map(|name| ciphers::group(name))
        .collect();
    if !groups.is_empty() {
        provider.kx_groups = groups;
    }
    provider
}

impl ServerSettings {
    /// Names of groups that are not offered.
    pub fn unknown_groups(&self) -> impl Iterator<Item = &Arc<str>> {
        let known = |name: &&Arc<str>| ciphers::group(name).is_none();
        self.groups.iter().filter(known)
    }
}
