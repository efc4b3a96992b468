//! TLS settings as written.

use serde::Deserialize;

use crate::raw::Field;

/// TLS settings of connections to endpoints: `tls` of a DestinationRule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientTlsSettings {
    /// Mode: `DISABLE` (default), `SIMPLE`, `MUTUAL` or `ISTIO_MUTUAL`.
    pub mode: Field<String>,
    /// PEM file of the client certificate; for `MUTUAL`.
    pub client_certificate: Field<String>,
    /// PEM file of the private key; for `MUTUAL`.
    pub private_key: Field<String>,
    /// PEM file of the CA certificates. Default: `system`, those of the operating system.
    pub ca_certificates: Field<String>,
    /// PEM file of the certificate revocation list.
    pub ca_crl: Field<String>,
    /// Secret with the certificates and the key, instead of files.
    pub credential_name: Field<String>,
    /// Names of which the server certificate must have one.
    pub subject_alt_names: Field<Vec<Field<String>>>,
    /// Server name (SNI). Default: the request's host.
    pub sni: Field<String>,
    /// Whether the server certificate is not verified. Default: false.
    pub insecure_skip_verify: Field<bool>,
}

/// TLS settings of a Gateway server or a Sidecar's ingress listener (`tls`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerTlsSettings {
    /// Whether HTTP requests are redirected to HTTPS; for HTTP ports. Default: false.
    pub https_redirect: Field<bool>,
    /// Mode: `PASSTHROUGH` (default), `SIMPLE`, `MUTUAL`, `OPTIONAL_MUTUAL`, `ISTIO_MUTUAL` or `AUTO_PASSTHROUGH`.
    pub mode: Field<String>,
    /// PEM file of the certificate chain.
    pub server_certificate: Field<String>,
    /// PEM file of the private key.
    pub private_key: Field<String>,
    /// PEM file of the CA certificates for client certificates.
    pub ca_certificates: Field<String>,
    /// PEM file of the revocation list for client certificates.
    pub ca_crl: Field<String>,
    /// Secret with the certificate and the key, in the gateway's namespace.
    pub credential_name: Field<String>,
    /// Secrets with several certificates; the client's capabilities choose one.
    pub credential_names: Field<Vec<Field<String>>>,
    /// Files with several certificates; the client's capabilities choose one.
    pub tls_certificates: Field<Vec<Field<TlsCertificate>>>,
    /// Secret with the CA certificates, if they are not in the certificate's secret.
    pub ca_cert_credential_name: Field<String>,
    /// Names of which a client certificate must have one. Default: any.
    pub subject_alt_names: Field<Vec<Field<String>>>,
    /// Accepted SHA-256 hashes of a client certificate's SubjectPublicKeyInfo, base64.
    pub verify_certificate_spki: Field<Vec<Field<String>>>,
    /// Accepted SHA-256 hashes of a client certificate, hex.
    pub verify_certificate_hash: Field<Vec<Field<String>>>,
    /// Minimum TLS version. Default: `TLS_AUTO`, 1.2; lower versions are treated as 1.2.
    pub min_protocol_version: Field<String>,
    /// Maximum TLS version. Default: `TLS_AUTO`, 1.3.
    pub max_protocol_version: Field<String>,
    /// Cipher suites up to TLS 1.2. Default: those of the TLS library.
    pub cipher_suites: Field<Vec<Field<String>>>,
    /// Key exchange curves. Default: those of the TLS library.
    pub ecdh_curves: Field<Vec<Field<String>>>,
    /// Whether client certificates are not verified. Default: false.
    pub insecure_skip_verify: Field<bool>,
}

/// Certificate in PEM files: an entry of `tlsCertificates`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsCertificate {
    /// PEM file of the certificate chain.
    pub server_certificate: Field<String>,
    /// PEM file of the private key.
    pub private_key: Field<String>,
    /// PEM file of the CA certificates for client certificates.
    pub ca_certificates: Field<String>,
}
