//! TLS settings of servers and of connections to endpoints.

use std::sync::Arc;

use super::Lined;
use crate::span::Line;

/// TLS settings of connections to endpoints: `tls` of a DestinationRule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// TLS mode.
    pub mode: ClientTlsMode,
    /// PEM file of the client certificate.
    pub client_certificate: Option<Arc<str>>,
    /// PEM file of the private key of the client certificate.
    pub private_key: Option<Arc<str>>,
    /// PEM file of the CA certificates; `None` or `system` for those of the operating system.
    pub ca_certificates: Option<Arc<str>>,
    /// PEM file of the certificate revocation list.
    pub ca_crl: Option<Arc<str>>,
    /// Name of the secret with the certificates and the key.
    pub credential_name: Option<Arc<str>>,
    /// Subject alternative names, of which the peer's certificate must have one; empty for the default of the mode.
    pub subject_alt_names: Vec<Arc<str>>,
    /// Server name (SNI); `None` for the request's host.
    pub sni: Option<Arc<str>>,
    /// Whether verification of the peer's certificate is off.
    pub insecure_skip_verify: bool,
    /// Source lines of the fields that name files or secrets, with the field names.
    pub places: Vec<Lined<Arc<str>>>,
    /// Source line within the document.
    pub line: Line,
}

/// TLS mode of connections to endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientTlsMode {
    /// No TLS: plain text.
    #[default]
    Disable,
    /// Mutual TLS with mesh identities.
    IstioMutual,
    /// Mutual TLS with the proxy's own client certificate.
    Mutual,
    /// TLS without a client certificate.
    Simple,
}

impl ClientTlsMode {
    /// Returns the name as written in YAML.
    pub fn as_str(self) -> &'static str {
        match self {
            ClientTlsMode::Disable => "DISABLE",
            ClientTlsMode::IstioMutual => "ISTIO_MUTUAL",
            ClientTlsMode::Mutual => "MUTUAL",
            ClientTlsMode::Simple => "SIMPLE",
        }
    }
}

/// TLS settings of a Gateway server or a Sidecar's ingress, without `httpsRedirect`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTls {
    /// TLS mode.
    pub mode: ServerTlsMode,
    /// Source of the server certificates.
    pub certificates: Certificates,
    /// PEM file of the CA certificates for client certificates.
    pub ca_certificates: Option<Arc<str>>,
    /// PEM file of the revocation list for client certificates.
    pub ca_crl: Option<Arc<str>>,
    /// Name of the secret with the CA certificates, if it is not in the certificate's secret.
    pub ca_credential_name: Option<Arc<str>>,
    /// Subject alternative names, of which a client certificate must have one; empty for any.
    pub subject_alt_names: Vec<Arc<str>>,
    /// Accepted SHA-256 hashes of a client certificate's SubjectPublicKeyInfo, base64. With `verify_hash`, either may
    /// match.
    pub verify_spki: Vec<Arc<str>>,
    /// Accepted SHA-256 hashes of a client certificate, lower-case hex without colons.
    pub verify_hash: Vec<Arc<str>>,
    /// Minimum TLS version.
    pub version_min: TlsVersion,
    /// Maximum TLS version.
    pub version_max: TlsVersion,
    /// Known cipher suites up to TLS 1.2, each once; empty for the TLS library's default.
    pub cipher_suites: Vec<CipherSuite>,
    /// Key exchange curves; empty for the TLS library's default.
    pub ecdh_curves: Vec<Arc<str>>,
    /// Whether verification of client certificates is off.
    pub insecure_skip_verify: bool,
    /// Source lines of the fields that name files or secrets, with the field paths, such as `credentialNames[0]`.
    pub places: Vec<Lined<Arc<str>>>,
    /// Source line within the document.
    pub line: Line,
}

impl ServerTls {
    /// Whether the field with this path, one of `places`, is set.
    pub fn has(&self, path: &str) -> bool {
        self.places.iter().any(|location| *location.value == *path)
    }
}

/// TLS mode of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTlsMode {
    /// Forwards TLS by the SNI, which names the upstream cluster, without a route.
    AutoPassthrough,
    /// Terminates TLS with the mesh identity.
    IstioMutual,
    /// Terminates TLS and requires a client certificate.
    Mutual,
    /// Terminates TLS and requests a client certificate.
    OptionalMutual,
    /// Forwards TLS by SNI routes.
    #[default]
    Passthrough,
    /// Terminates TLS without a client certificate.
    Simple,
}

impl ServerTlsMode {
    /// Returns the name as written in YAML.
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

    /// Whether the server terminates TLS.
    pub fn terminates(self) -> bool {
        !matches!(
            self,
            ServerTlsMode::AutoPassthrough | ServerTlsMode::Passthrough
        )
    }
}

/// Source of a server's certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Certificates {
    /// PEM files; the certificate is chosen by the client's capabilities.
    Files(Vec<FileCertificate>),
    /// No certificates: the mode needs none, or uses the mesh identity.
    #[default]
    None,
    /// Names of secrets in the gateway's namespace.
    Secrets(Vec<Arc<str>>),
}

/// Certificate in PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCertificate {
    /// PEM file of the certificate chain.
    pub certificate: Arc<str>,
    /// PEM file of the private key.
    pub private_key: Arc<str>,
    /// PEM file of the CA certificates for client certificates, if set.
    pub ca_certificates: Option<Arc<str>>,
}

/// TLS version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// Default: 1.2 as the minimum, 1.3 as the maximum.
    #[default]
    Auto,
    /// 1.0; not supported, treated as 1.2.
    V1_0,
    /// 1.1; not supported, treated as 1.2.
    V1_1,
    /// 1.2
    V1_2,
    /// 1.3
    V1_3,
}

/// Names of the key exchange curves that the proxy supports; case does not matter.
pub const CURVES: [&str; 8] = [
    "P-256",
    "P-384",
    "SecP256r1MLKEM768",
    "X25519",
    "X25519MLKEM768",
    "prime256v1",
    "secp256r1",
    "secp384r1",
];

/// Cipher suite up to TLS 1.2, by its OpenSSL name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CipherSuite(&'static str);

impl CipherSuite {
    /// Known cipher suites; not all of them are offered.
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

    /// Returns the cipher suite with this name.
    pub fn from_name(name: &str) -> Option<CipherSuite> {
        CipherSuite::KNOWN.into_iter().find(|suite| suite.0 == name)
    }

    /// Returns the OpenSSL name.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Whether the suite has forward secrecy and authenticated encryption. Other suites are accepted but not offered.
    pub fn is_modern(self) -> bool {
        self.0.starts_with("ECDHE-") && (self.0.contains("-GCM-") || self.0.ends_with("POLY1305"))
    }
}
