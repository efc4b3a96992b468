//! TLS client configurations for connections to endpoints, from settings and certificates.
//!
//! Invariant: equal settings and material give the same [`ClientTls`], see [`super::Store::client`], so that
//! connections and sessions are reused across reloads; any other one has a number and sessions of its own, so that no
//! session outlives the material with which it was verified. One whose material was never valid refuses every
//! connection.

use std::any::Any;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls_pki_types::{DnsName, ServerName};

use traffic::connection::UpstreamTls;

use super::server_verify::{AcceptedNames, ServerVerifier};
use super::{Authorities, AuthoritySource, Identity, IdentitySource, ProtocolSettings, Version};

/// TLS settings towards endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientSettings {
    /// TLS mode.
    pub mode: ClientMode,
    /// Certificate of the proxy; `None` to present none.
    pub identity: Option<IdentitySource>,
    /// Authorities that must have signed the server's certificate; `None` to verify nothing.
    pub authorities: Option<AuthoritySource>,
    /// Accepted names, of which the certificate must carry one; if empty, `naming` decides.
    pub names: Vec<Arc<str>>,
    /// Trust domains, of which the certificate must have a SPIFFE id if `names` is empty; empty for any certificate.
    pub trust_domains: Vec<Arc<str>>,
    /// Server name (SNI) to request.
    pub naming: Naming,
    /// Oldest version, cipher suites and groups.
    pub protocol: ProtocolSettings,
    /// Reason that these settings cannot be used, if any.
    pub refused: Option<Arc<str>>,
}

impl<'a> From<&'a ClientSettings> for AcceptedNames<'a> {
    fn from(settings: &'a ClientSettings) -> Self {
        Self {
            names: &settings.names,
            trust_domains: &settings.trust_domains,
        }
    }
}

/// TLS mode of connections to endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientMode {
    /// Mutual TLS of the mesh, without a rule that requests it.
    Automatic,
    /// Mutual TLS of the mesh.
    IstioMutual,
    /// Certificates on both sides.
    Mutual,
    /// Certificate on the server only.
    #[default]
    Simple,
}

impl ClientMode {
    /// Returns the name that rules use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "ISTIO_MUTUAL (automatic)",
            Self::IstioMutual => "ISTIO_MUTUAL",
            Self::Mutual => "MUTUAL",
            Self::Simple => "SIMPLE",
        }
    }

    /// Whether the mode is mutual TLS of the mesh.
    pub const fn is_mesh(self) -> bool {
        matches!(self, Self::Automatic | Self::IstioMutual)
    }
}

/// Server name (SNI) to request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Naming {
    /// Fixed name; not compared with the certificate.
    Fixed(Arc<str>),
    /// Fixed name; without other accepted names, the certificate must be valid for it. Source: BackendTLSPolicy `hostname`.
    Hostname(Arc<str>),
    /// Host of the request; without other accepted names, the certificate must be valid for it.
    #[default]
    Host,
}

/// Protocol inside TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Raw bytes: no request, and so no host to send as server name.
    Bytes,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// ALPN of HTTP/2.
const H2: &[u8] = b"h2";

/// ALPN within the mesh, as Istio's sidecars offer it: the inner protocol, `istio`, and the name that servers select.
///
/// `istio-peer-exchange` is not offered: a peer that selects it sends workload metadata before the bytes.
const MESH_BYTES: [&[u8]; 1] = [b"istio"];
const MESH_HTTP1: [&[u8]; 3] = [b"istio-http/1.1", b"istio", b"http/1.1"];
const MESH_HTTP2: [&[u8]; 3] = [b"istio-h2", b"istio", H2];

/// Maximum server names, per TLS version (up to 1.2, and 1.3), with sessions kept for resumption.
const SESSIONS_MAX: usize = 1_024;

/// TLS client configuration of connections.
pub struct ClientTls {
    /// Identifier, never reused.
    pub serial: u64,
    /// Settings of the configuration.
    pub settings: ClientSettings,
    /// Certificate of the proxy, for admin pages.
    pub identity: Option<Arc<Identity>>,
    /// Authorities that sign server certificates, for admin pages.
    pub authorities: Option<Arc<Authorities>>,
    terms: Result<ClientConfigs, Arc<str>>,
}

/// Configurations for rustls.
struct ClientConfigs {
    fixed: Option<ServerName<'static>>,
    bytes: Arc<ClientConfig>,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl UpstreamTls for ClientTls {
    fn serial(&self) -> u64 {
        self.serial
    }

    fn wants_host(&self) -> bool {
        self.settings.naming == Naming::Host
    }
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}

impl Eq for ClientTls {}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("serial", &self.serial)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Text for admin pages: names of files and secrets, no key material.
impl fmt::Display for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClientSettings {
            mode,
            identity,
            authorities,
            names,
            trust_domains,
            naming,
            ..
        } = &self.settings;
        f.write_str(mode.as_str())?;
        match naming {
            Naming::Fixed(name) | Naming::Hostname(name) => write!(f, ", sni {name}")?,
            Naming::Host => f.write_str(", sni is the host")?,
        }
        if let Some(source) = identity {
            write!(f, ", shows {source}")?;
        }
        match (authorities, &**names, naming) {
            (None, _, _) => f.write_str(", verifies nothing")?,
            (Some(source), [], Naming::Host) => write!(f, ", verifies by {source}, for the host")?,
            (Some(source), [], Naming::Hostname(_)) => {
                write!(f, ", verifies by {source}, for that name")?;
            }
            (Some(source), [], _) if !trust_domains.is_empty() => {
                let domains = trust_domains.join(" or ");
                write!(f, ", verifies by {source}, for any workload of {domains}")?;
            }
            (Some(source), [], _) => write!(f, ", verifies by {source}, for any name")?,
            (Some(source), names, _) => {
                write!(f, ", verifies by {source}, for {}", names.join(" or "))?;
            }
        }
        match self.refusal() {
            Some(refusal) => write!(f, "; connections fail: {refusal}"),
            None => Ok(()),
        }
    }
}

/// Certificates for a [`ClientTls`].
#[derive(Default)]
pub struct Material {
    /// Certificate of the proxy.
    pub identity: Option<Arc<Identity>>,
    /// Authorities that sign server certificates.
    pub authorities: Option<Arc<Authorities>>,
}

impl ClientTls {
    /// Returns a configuration without sessions. If required material is missing, it refuses every connection.
    pub fn new(serial: u64, settings: ClientSettings, material: Material) -> Self {
        let terms = ClientConfigs::new(&settings, &material).map_err(Arc::from);
        Self {
            serial,
            settings,
            identity: material.identity,
            authorities: material.authorities,
            terms,
        }
    }

    /// Reason that every connection is refused, if so. Contains no file names.
    pub fn refusal(&self) -> Option<&Arc<str>> {
        self.terms.as_ref().err()
    }

    /// Returns the configuration that a cluster carries.
    pub fn of(tls: &dyn UpstreamTls) -> &Self {
        let tls: &dyn Any = tls;
        tls.downcast_ref()
            .expect("the compiler puts no other type into clusters")
    }

    /// Whether the configuration was built from this material.
    pub(super) fn is_made_of(&self, material: &Material) -> bool {
        let same = |own: Option<usize>, other: Option<usize>| own == other;
        let at = |one: &Option<Arc<Identity>>| one.as_ref().map(|one| Arc::as_ptr(one) as usize);
        let by = |one: &Option<Arc<Authorities>>| one.as_ref().map(|one| Arc::as_ptr(one) as usize);
        same(at(&self.identity), at(&material.identity))
            && same(by(&self.authorities), by(&material.authorities))
    }

    /// Returns the configuration and the server name of a handshake; `host` is that of the request, if there is one.
    ///
    /// # Errors
    ///
    /// Reason that no handshake is possible.
    pub fn terms(
        &self,
        inside: Inside,
        host: Option<&ServerName<'static>>,
    ) -> Result<(Arc<ClientConfig>, ServerName<'static>), Arc<str>> {
        let terms = self.terms.as_ref().map_err(Arc::clone)?;
        let config = match inside {
            Inside::Bytes => &terms.bytes,
            Inside::Http1 => &terms.http1,
            Inside::Http2 => &terms.http2,
        };
        // an IP address is never sent as server name (RFC 6066, section 3)
        let nobody = || ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let name = match (&terms.fixed, host) {
            (Some(fixed), _) => fixed.clone(),
            (None, Some(host)) => host.clone(),
            (None, None) if inside == Inside::Bytes => nobody(),
            (None, None) => {
                return Err("the request's host is no name that can be asked for".into());
            }
        };
        Ok((Arc::clone(config), name))
    }

    /// Whether the selected ALPN protocol, if any, means HTTP/2 inside.
    pub fn agreed_on_http2(&self, protocol: Option<&[u8]>) -> bool {
        let Some(protocol) = protocol else {
            return false;
        };
        // between sidecars, the port declares the protocol
        protocol == H2 || (self.settings.mode.is_mesh() && MESH_HTTP2.contains(&protocol))
    }
}

/// Parses a server name for TLS; `None` if the text is none.
pub fn server_name(text: &str) -> Option<ServerName<'static>> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(ip.into());
    }
    let name = DnsName::try_from(text.to_ascii_lowercase()).ok()?;
    Some(ServerName::DnsName(name))
}

impl ClientConfigs {
    fn new(settings: &ClientSettings, material: &Material) -> Result<Self, String> {
        if let Some(refused) = &settings.refused {
            return Err(refused.to_string());
        }
        if settings.identity.is_some() && material.identity.is_none() {
            return Err("there is no usable client certificate".to_owned());
        }
        if settings.authorities.is_some() && material.authorities.is_none() {
            return Err("there are no usable CA certificates".to_owned());
        }
        let fixed = match &settings.naming {
            Naming::Fixed(name) | Naming::Hostname(name) => {
                Some(server_name(name).ok_or_else(|| format!("`{name}` is no name for SNI"))?)
            }
            Naming::Host => None,
        };
        let provider = Arc::new(settings.protocol.provider());
        // Verified connections must not resume sessions of connections whose server name was not verified.
        let sessions = || Resumption::in_memory_sessions(SESSIONS_MAX);
        let is_policy = matches!(settings.naming, Naming::Hostname(_));
        let has_no_names = settings.names.is_empty();
        let by_host = (is_policy || settings.naming == Naming::Host) && has_no_names;
        let named = config(settings, material, &provider, by_host)?;
        let nameless = config(settings, material, &provider, is_policy && has_no_names)?;
        let is_mesh = settings.mode.is_mesh();
        let with_alpn = |config: &ClientConfig, resumption: &Resumption, inside: Inside| {
            let mut config = config.clone();
            config.resumption = resumption.clone();
            let names: &[&[u8]] = match inside {
                Inside::Bytes if is_mesh => &MESH_BYTES,
                Inside::Http1 if is_mesh => &MESH_HTTP1,
                Inside::Http2 if is_mesh => &MESH_HTTP2,
                Inside::Http2 => &[H2],
                Inside::Http1 if is_policy => &[b"http/1.1"],
                Inside::Bytes | Inside::Http1 => &[],
            };
            config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        let http = sessions();
        Ok(Self {
            fixed,
            bytes: with_alpn(&nameless, &sessions(), Inside::Bytes),
            http1: with_alpn(&named, &http, Inside::Http1),
            http2: with_alpn(&named, &http, Inside::Http2),
        })
    }
}

fn config(
    settings: &ClientSettings,
    material: &Material,
    provider: &Arc<CryptoProvider>,
    by_host: bool,
) -> Result<ClientConfig, String> {
    let authorities = match &settings.authorities {
        Some(_) => material.authorities.as_deref(),
        None => None,
    };
    let verifier = ServerVerifier::new(authorities, settings.into(), by_host, provider)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&settings.protocol.versions(Version::Tls13))
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(match &material.identity {
        Some(identity) => {
            builder.with_client_cert_resolver(Arc::new(Own(Arc::clone(&identity.certified))))
        }
        None => builder.with_no_client_auth(),
    })
}

/// Returns a configuration that verifies nothing, as the kubelet's probes do.
///
/// # Errors
///
/// If the library supports none of the protocol versions.
pub fn unverified() -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = ServerVerifier::new(None, AcceptedNames::default(), false, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| error.to_string())?;
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(Arc::new(builder.with_no_client_auth()))
}

/// Presents one certificate to every server.
struct Own(Arc<CertifiedKey>);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
