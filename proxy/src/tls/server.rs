//! TLS server configurations, from settings and certificates.
//!
//! Invariant: equal settings and material give the same [`ServerTls`], see [`super::Store::server`], so that sessions
//! can be resumed across reloads; any other one has ticket keys of its own, so that no session outlives the authorities
//! with which it was verified.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};

use super::select::CertificateSelector;
use super::verify::Verifier;
use super::{Authorities, ClientCertRequirements, Identity, IdentitySource};
use super::{ProtocolSettings, Version};

/// Settings of TLS termination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerSettings {
    /// Certificates; a client gets one that it can verify.
    pub identities: Vec<IdentitySource>,
    /// Requirements for client certificates; `None` to request none.
    pub clients: Option<Box<ClientCertRequirements>>,
    /// Oldest version, cipher suites and groups.
    pub protocol: ProtocolSettings,
    /// Newest version.
    pub version_max: Version,
    /// Application protocols to offer.
    pub alpn: Alpn,
}

/// Application protocols that a server offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alpn {
    /// HTTP/2 and HTTP/1.1.
    #[default]
    Http,
    /// None; the client's offer is ignored.
    None,
}

/// Application protocols, the preferred one first.
const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// TLS configuration of one server.
pub struct ServerTls {
    config: Arc<ServerConfig>,
    /// Configuration for clients without a common application protocol.
    without_alpn: Arc<ServerConfig>,
    /// Verifier of clients that are also served with an invalid certificate.
    pub(crate) fallback: Option<Arc<Verifier>>,
    /// Requirements for client certificates; `None` to request none.
    clients: Option<Box<ClientCertRequirements>>,
    /// Certificates, for admin pages.
    pub identities: Vec<Arc<Identity>>,
    /// Authorities of client certificates, for admin pages.
    pub authorities: Option<Arc<Authorities>>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Returns a configuration with new ticket keys. `identities` are the usable certificates, at least one.
    ///
    /// # Errors
    ///
    /// Reason that settings and certificates do not fit together.
    pub fn new(
        settings: &ServerSettings,
        identities: Vec<Arc<Identity>>,
        authorities: Option<Arc<Authorities>>,
    ) -> Result<Self, String> {
        let provider = Arc::new(settings.protocol.provider());
        let versions = settings.protocol.versions(settings.version_max);
        let speaks_tls13 = settings.version_max == Version::Tls13;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?;
        let clients = settings.clients.as_deref();
        let verifier =
            clients.map(|clients| Verifier::new(clients, authorities.as_deref(), &provider));
        let verifier = verifier.transpose()?.map(Arc::new);
        let serves_invalid = clients.is_some_and(|clients| clients.serves_invalid);
        let fallback = verifier.clone().filter(|_| serves_invalid);
        let verifier = match verifier {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(verifier) => verifier,
        };
        let mut config = builder
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(CertificateSelector::new(
                &identities,
                speaks_tls13,
            )));
        // Clients keep the tickets, which are valid on every worker.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| error.to_string())?;
        // The client's order decides; with configured cipher suites, their order does.
        config.ignore_client_order = !settings.protocol.cipher_suites.is_empty();
        let without_alpn = Arc::new(config.clone());
        if settings.alpn == Alpn::Http {
            config.alpn_protocols = HTTP.iter().map(|name| name.to_vec()).collect();
        }
        Ok(Self {
            config: Arc::new(config),
            without_alpn,
            fallback,
            clients: settings.clients.clone(),
            identities,
            authorities,
        })
    }

    /// Whether the authorities of the mesh verify clients, and the trust domain is one of the mesh.
    pub fn proves_mesh_identity(&self, trust_domain: &str) -> bool {
        let clients = self.clients.iter();
        let mut domains = clients.flat_map(|clients| &clients.mesh_domains);
        domains.any(|domain| **domain == *trust_domain)
    }

    /// Whether every client that `before` has accepted is accepted here as well, as far as requirements and authorities
    /// tell.
    pub fn accepts_clients_of(&self, before: &Self) -> bool {
        let has_authorities = match (&self.authorities, &before.authorities) {
            (Some(own), Some(before)) => own.cover(before),
            (own, before) => own.is_none() && before.is_none(),
        };
        self.clients.is_none() || (self.clients == before.clients && has_authorities)
    }

    /// Returns the configuration for a client that offers these protocols by ALPN.
    ///
    /// rustls would abort a handshake without a common protocol; HTTP clients are served HTTP/1.1 instead.
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
