//! TLS settings as written.

use serde::Deserialize;

use crate::raw::Field;

/// `tls` of a DestinationRule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientTlsSettings {
    /// `mode`
    pub mode: Field<String>,
    /// `clientCertificate`
    pub client_certificate: Field<String>,
    /// `privateKey`
    pub private_key: Field<String>,
    /// `caCertificates`
    pub ca_certificates: Field<String>,
    /// `caCrl`
    pub ca_crl: Field<String>,
    /// `credentialName`
    pub credential_name: Field<String>,
    /// `subjectAltNames`
    pub subject_alt_names: Field<Vec<Field<String>>>,
    /// `sni`
    pub sni: Field<String>,
    /// `insecureSkipVerify`
    pub insecure_skip_verify: Field<bool>,
}

/// `tls` of a Gateway server or a Sidecar's ingress.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerTlsSettings {
    /// `httpsRedirect`
    pub https_redirect: Field<bool>,
    /// `mode`
    pub mode: Field<String>,
    /// `serverCertificate`
    pub server_certificate: Field<String>,
    /// `privateKey`
    pub private_key: Field<String>,
    /// `caCertificates`
    pub ca_certificates: Field<String>,
    /// `caCrl`
    pub ca_crl: Field<String>,
    /// `credentialName`
    pub credential_name: Field<String>,
    /// `credentialNames`
    pub credential_names: Field<Vec<Field<String>>>,
    /// `tlsCertificates`
    pub tls_certificates: Field<Vec<Field<TlsCertificate>>>,
    /// `caCertCredentialName`
    pub ca_cert_credential_name: Field<String>,
    /// `subjectAltNames`
    pub subject_alt_names: Field<Vec<Field<String>>>,
    /// `verifyCertificateSpki`
    pub verify_certificate_spki: Field<Vec<Field<String>>>,
    /// `verifyCertificateHash`
    pub verify_certificate_hash: Field<Vec<Field<String>>>,
    /// `minProtocolVersion`
    pub min_protocol_version: Field<String>,
    /// `maxProtocolVersion`
    pub max_protocol_version: Field<String>,
    /// `cipherSuites`
    pub cipher_suites: Field<Vec<Field<String>>>,
    /// `ecdhCurves`
    pub ecdh_curves: Field<Vec<Field<String>>>,
    /// `insecureSkipVerify`
    pub insecure_skip_verify: Field<bool>,
}

/// An entry of `tlsCertificates`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsCertificate {
    /// `serverCertificate`
    pub server_certificate: Field<String>,
    /// `privateKey`
    pub private_key: Field<String>,
    /// `caCertificates`
    pub ca_certificates: Field<String>,
}
