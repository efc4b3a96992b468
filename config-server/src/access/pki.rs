//! Certificates: the server's own CA with a certificate that it issues, or the operator's certificate.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Role, User};
use crate::files;
use crate::object;

/// Fix in the error message for an incomplete CA.
const WAY_OUT: &str = "restore ca.crt and ca.key from a backup (`strait control restore`), or remove both for a new CA, whose \
                       certificate all clients then need";

/// Certificate and key files of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// PEM certificate with its chain.
    pub certificate: PathBuf,
    /// Path of the private key of the certificate.
    pub key: PathBuf,
}

/// Verifier of client certificates.
pub type Verifier = Arc<dyn ClientCertVerifier>;

/// TLS configuration and CA certificate of a server.
#[derive(Debug)]
pub struct Material {
    /// Verifier of the client certificates of users.
    pub users: Verifier,
    /// TLS configuration of the listener.
    pub tls: Arc<ServerConfig>,
    /// CA certificate that clients trust, as PEM.
    pub ca: String,
}

/// Certificate authority, as PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// CA certificate.
    pub certificate: String,
    /// Private key of the CA.
    pub key: String,
}

impl Authority {
    /// Returns the CA of a data directory, and creates one if there is none.
    ///
    /// # Errors
    /// If a file cannot be read or written, or if only one of certificate and key exists although clients know the CA.
    pub fn in_dir(data: &Path) -> Outcome<Authority> {
        let (ca_path, ca_key_path) = (data.join("ca.crt"), data.join("ca.key"));
        let has = [ca_path.exists(), ca_key_path.exists()];
        // Without kubeconfigs no client trusts the CA yet, and it can be replaced.
        if has[0] != has[1] && data.join("admin.kubeconfig").exists() {
            let missing = if has[0] { &ca_key_path } else { &ca_path };
            return Err(format!("{} is missing: {WAY_OUT}", missing.display()));
        }
        if !has[0] || !has[1] {
            let key = KeyPair::generate().map_err(|e| e.to_string())?;
            let certificate = authority()?.self_signed(&key).map_err(|e| e.to_string())?;
            let new = Authority {
                certificate: certificate.pem(),
                key: key.serialize_pem(),
            };
            new.write_to(data)?;
        }
        Ok(Authority {
            certificate: read(&ca_path)?,
            key: read(&ca_key_path)?,
        })
    }

    /// Writes certificate and key to a data directory.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_to(&self, data: &Path) -> Outcome<()> {
        write(&data.join("ca.key"), &self.key)?;
        write(&data.join("ca.crt"), &self.certificate)
    }
}

type Outcome<T> = Result<T, String>;

fn context<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> String {
    let path = path.to_owned();
    move |error| format!("{}: {error}", path.display())
}

/// Creates or reads the certificates in a data directory. The operator's certificate `own` replaces the issued one.
/// Connections are accepted with the certificates of `clients`, which gets the verifier of users.
///
/// # Errors
/// If a file is malformed or cannot be written.
pub fn prepare(
    data: &Path,
    own: Option<&Files>,
    names: &[String],
    clients: impl FnOnce(&Verifier) -> Verifier,
) -> Outcome<Material> {
    let Authority {
        certificate: ca,
        key: ca_key,
    } = Authority::in_dir(data)?;
    let files = match own {
        Some(files) => files.clone(),
        None => {
            let files = Files {
                certificate: data.join("server.crt"),
                key: data.join("server.key"),
            };
            issue(&ca, &ca_key, &files, names)?;
            files
        }
    };
    let trusted = match own {
        Some(files) => read(&files.certificate)?,
        None => ca.clone(),
    };
    let users = users(&ca)?;
    Ok(Material {
        tls: Arc::new(server_config(clients(&users), &files)?),
        users,
        ca: trusted,
    })
}

fn damaged(file: &str, error: impl std::fmt::Display) -> String {
    format!("{file} of the data directory is damaged: {error}: {WAY_OUT}")
}

fn authority() -> Outcome<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new()).map_err(|e| e.to_string())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name = named("strait control CA");
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Issues a new server certificate. This happens at every start, since the names may have changed.
fn issue(ca: &str, ca_key: &str, files: &Files, names: &[String]) -> Outcome<()> {
    let ca_key = KeyPair::from_pem(ca_key).map_err(|e| damaged("ca.key", e))?;
    let issuer = Issuer::from_ca_cert_pem(ca, ca_key).map_err(|e| damaged("ca.crt", e))?;
    let mut params = CertificateParams::new(names.to_vec()).map_err(|e| e.to_string())?;
    params.distinguished_name = named("strait control");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    let key = KeyPair::generate().map_err(|e| e.to_string())?;
    let certificate = params.signed_by(&key, &issuer).map_err(|e| e.to_string())?;
    write(&files.key, &key.serialize_pem())?;
    write(&files.certificate, &certificate.pem())
}

/// Returns the verifier of users, whose certificates the CA signs.
fn users(ca: &str) -> Outcome<Verifier> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        let certificate = certificate.map_err(|e| damaged("ca.crt", e))?;
        roots.add(certificate).map_err(|e| damaged("ca.crt", e))?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|e| damaged("ca.crt", e))
}

fn server_config(clients: Verifier, files: &Files) -> Outcome<ServerConfig> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(&files.certificate)
        .map_err(context(&files.certificate))?
        .collect();
    let chain = chain.map_err(context(&files.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(context(&files.key))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(context(&files.certificate))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns the user of a verified client certificate: the common name, with the role from the organization
/// `strait:ROLE`.
pub fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let mut roles = subject.iter_organization().filter_map(|organization| {
        let text = organization.as_str().ok()?;
        text.strip_prefix("strait:")?.parse::<Role>().ok()
    });
    roles.next().map(|role| User {
        name,
        role,
        namespace: None,
    })
}

/// Returns bytes as PEM with this label.
pub(crate) fn encoded(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64);
    let lines: Vec<&str> = lines
        .map(|line| std::str::from_utf8(line).unwrap_or_default())
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
}

/// Parses a name for a server certificate.
///
/// # Errors
/// If the text is neither a host name nor an IP address.
pub fn parse_name(text: &str) -> Outcome<String> {
    let host = text.strip_prefix("*.").unwrap_or(text);
    let is_host = !host.is_empty() && object::is_name(&host.to_ascii_lowercase());
    if is_host || text.parse::<IpAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    Err(
        "it is no host name and no IP address; write one such as control.example.com or 10.0.0.1"
            .to_owned(),
    )
}

/// Returns the names of a server certificate for a listen address.
pub fn names_for(listen: IpAddr, more: &[String]) -> Vec<String> {
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    names.push(host.trim().to_ascii_lowercase());
    if !listen.is_unspecified() {
        names.push(listen.to_string());
    }
    names.extend(more.iter().cloned());
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(context(path))
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    files::write_private(path, text.as_bytes()).map_err(context(path))
}
