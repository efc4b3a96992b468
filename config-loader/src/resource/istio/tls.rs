//! TLS of servers and towards endpoints.

use std::sync::Arc;

use super::Lined;
use crate::span::Line;

/// `tls` of a DestinationRule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// What is done.
    pub mode: ClientTlsMode,
    /// PEM file of the proxy's own certificate.
    pub client_certificate: Option<Arc<str>>,
    /// PEM file of the proxy's own key.
    pub private_key: Option<Arc<str>>,
    /// PEM file of the authorities; none, or the word `system`, for those of the operating system.
    pub ca_certificates: Option<Arc<str>>,
    /// PEM file of revoked certificates.
    pub ca_crl: Option<Arc<str>>,
    /// The secret that holds all of these.
    pub credential_name: Option<Arc<str>>,
    /// Of these names the peer's certificate must carry one; empty for what the mode says.
    pub subject_alt_names: Vec<Arc<str>>,
    /// The SNI; none for the request's host.
    pub sni: Option<Arc<str>>,
    /// Whether neither chain nor names are verified.
    pub insecure_skip_verify: bool,
    /// Where the fields that name something were written, by their names.
    pub places: Vec<Lined<Arc<str>>>,
    /// Where it was written.
    pub line: Line,
}

/// What is done towards endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientTlsMode {
    /// Plain text.
    #[default]
    Disable,
    /// Mesh identity on both sides.
    IstioMutual,
    /// TLS with the proxy's own certificate.
    Mutual,
    /// TLS; only the server has a certificate.
    Simple,
}

impl ClientTlsMode {
    /// The name, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            ClientTlsMode::Disable => "DISABLE",
            ClientTlsMode::IstioMutual => "ISTIO_MUTUAL",
            ClientTlsMode::Mutual => "MUTUAL",
            ClientTlsMode::Simple => "SIMPLE",
        }
    }
}

/// `tls` of a Gateway server or a Sidecar's ingress, without `httpsRedirect`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTls {
    /// What is done.
    pub mode: ServerTlsMode,
    /// Where the proxy's own certificates come from.
    pub certificates: Certificates,
    /// PEM file of the authorities of client certificates.
    pub ca_certificates: Option<Arc<str>>,
    /// PEM file of revoked client certificates.
    pub ca_crl: Option<Arc<str>>,
    /// The secret that holds the authorities, apart from that of the certificate.
    pub ca_credential_name: Option<Arc<str>>,
    /// Of these names a client certificate must carry one; empty for any.
    pub subject_alt_names: Vec<Arc<str>>,
    /// SHA-256 of the SubjectPublicKeyInfo that a client certificate may have, base64. With `verify_hash`, either.
    pub verify_spki: Vec<Arc<str>>,
    /// SHA-256 that a client certificate may have, lower-case hex without colons.
    pub verify_hash: Vec<Arc<str>>,
    /// The oldest version.
    pub version_min: TlsVersion,
    /// The newest version.
    pub version_max: TlsVersion,
    /// The cipher suites up to TLS 1.2 that are known, each once; empty for the TLS library's safe list.
    pub cipher_suites: Vec<CipherSuite>,
    /// Curves of the key exchange; empty for the TLS library's.
    pub ecdh_curves: Vec<Arc<str>>,
    /// Whether any client certificate will do.
    pub insecure_skip_verify: bool,
    /// Where the fields that name something were written, by their paths below this, such as `credentialNames[0]`.
    pub places: Vec<Lined<Arc<str>>>,
    /// Where it was written.
    pub line: Line,
}

impl ServerTls {
    /// Whether the field of that path, one of `places`, was written.
    pub fn has(&self, path: &str) -> bool {
        self.places.iter().any(|location| *location.value == *path)
    }
}

/// What a server does with TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTlsMode {
    /// Forwards it by what its SNI says, without any route.
    AutoPassthrough,
    /// Terminates it with the mesh identity.
    IstioMutual,
    /// Terminates it and wants a client certificate.
    Mutual,
    /// Terminates it and asks for a client certificate.
    OptionalMutual,
    /// Forwards it by SNI.
    #[default]
    Passthrough,
    /// Terminates it.
    Simple,
}

impl ServerTlsMode {
    /// The name, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            ServerTlsMode::AutoPassthrough => "AUTO_PASSTHROUGH",
            ServerTlsMode::IstioMutual => "ISTIO_MUTUAL",
            ServerTlsMode::Mutual => "MUTUAL",
            ServerTlsMode::OptionalMutual => "OPTIONAL_MUTUAL",
            ServerTlsMode::Passthrough => "PASSTHROUGH",
            ServerTlsMode::Simple => "SIMPLE",
        }
    }

    /// Whether TLS ends here.
    pub fn terminates(self) -> bool {
        !matches!(
            self,
            ServerTlsMode::AutoPassthrough | ServerTlsMode::Passthrough
        )
    }
}

/// Where a server's certificates come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Certificates {
    /// PEM files; the clients pick by what they support.
    Files(Vec<FileCertificate>),
    /// The mode needs none, or brings its own.
    #[default]
    None,
    /// Secrets of these names in the gateway's namespace.
    Secrets(Vec<Arc<str>>),
}

/// A certificate in files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCertificate {
    /// PEM file of the certificate chain.
    pub certificate: Arc<str>,
    /// PEM file of the key.
    pub private_key: Arc<str>,
    /// PEM file of the authorities of client certificates, if the entry names one.
    pub ca_certificates: Option<Arc<str>>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.2 as the oldest, 1.3 as the newest.
    #[default]
    Auto,
    /// 1.0; not spoken, 1.2 is.
    V1_0,
    /// 1.1; not spoken, 1.2 is.
    V1_1,
    /// 1.2
    V1_2,
    /// 1.3
    V1_3,
}

/// A cipher suite up to TLS 1.2, by its OpenSSL name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CipherSuite(&'static str);

impl CipherSuite {
    /// Every cipher suite that is known; not all of them are offered.
    pub const KNOWN: [CipherSuite; 15] = [
        CipherSuite("ECDHE-ECDSA-AES128-GCM-SHA256"),
        CipherSuite("ECDHE-ECDSA-AES256-GCM-SHA384"),
        CipherSuite("ECDHE-ECDSA-CHACHA20-POLY1305"),
        CipherSuite("ECDHE-RSA-AES128-GCM-SHA256"),
        CipherSuite("ECDHE-RSA-AES256-GCM-SHA384"),
        CipherSuite("ECDHE-RSA-CHACHA20-POLY1305"),
        CipherSuite("ECDHE-ECDSA-AES128-SHA"),
        CipherSuite("ECDHE-ECDSA-AES256-SHA"),
        CipherSuite("ECDHE-RSA-AES128-SHA"),
        CipherSuite("ECDHE-RSA-AES256-SHA"),
        CipherSuite("AES128-GCM-SHA256"),
        CipherSuite("AES256-GCM-SHA384"),
        CipherSuite("AES128-SHA"),
        CipherSuite("AES256-SHA"),
        CipherSuite("DES-CBC3-SHA"),
    ];

    /// The cipher suite of that name.
    pub fn from_name(name: &str) -> Option<CipherSuite> {
        CipherSuite::KNOWN.into_iter().find(|suite| suite.0 == name)
    }

    /// Its OpenSSL name.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Whether it has forward secrecy and authenticated encryption; the others are accepted but not offered.
    pub fn is_modern(self) -> bool {
        self.0.starts_with("ECDHE-") && (self.0.contains("-GCM-") || self.0.ends_with("POLY1305"))
    }
}
