//! Servers that terminate TLS, and the fields of their settings for diagnostics.

use std::sync::Arc;

use config_loader::ObjectRef;
use config_loader::resource::Object;
use config_loader::resource::istio::{
    Certificates, CipherSuite, ServerTls, ServerTlsMode, TlsVersion,
};

use crate::tls::{ServerSettings, Version};

/// Maximum number of certificates of one server.
pub(super) const CERTIFICATES_MAX: usize = 2;

/// Server that terminates TLS, with its settings.
#[derive(Clone, Debug)]
pub struct Use {
    /// Gateway or Sidecar of the server.
    pub object: ObjectRef,
    /// File of the resource.
    pub file: Arc<str>,
    /// Locations of `tls` and its fields.
    pub fields: Fields,
    /// Hosts of the server.
    pub hosts: Vec<Arc<str>>,
    /// TLS settings of the server.
    pub settings: ServerSettings,
    /// TLS mode of the server.
    pub mode: &'static str,
}

/// Fields of a `tls` block, for diagnostics about the files and secrets that they name.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// Path of the `tls` block, such as `spec.servers[0].tls`.
    pub tls: String,
    /// Line of the block in the file.
    pub line: u32,
    /// Fields with a value, by their paths below `tls`, each with its line in the file.
    pub lines: Vec<(Arc<str>, u32)>,
    /// Paths of the fields that name the chain and the key of each certificate.
    pub identities: Vec<[String; 2]>,
    /// Path of the field that names the certificate authorities for the peer's certificate.
    pub authorities: String,
}

/// Place of a field in an object.
pub struct FieldPlace {
    /// Path within the object, such as `spec.servers[0].tls.mode`.
    pub path: String,
    /// Line in the file.
    pub line: u32,
}

impl Fields {
    /// Returns the fields of the `tls` block at this path of an object.
    pub(super) fn new<T>(object: &Object<T>, path: String, tls: &ServerTls) -> Self {
        let lines = tls.places.iter();
        let lines = lines.map(|place| (Arc::clone(&place.value), object.line_of(place.line)));
        Self {
            tls: path,
            line: object.line_of(tls.line),
            lines: lines.collect(),
            identities: identity_fields(tls),
            authorities: authority_field(tls),
        }
    }

    /// Returns the whole path and the line of a field of `tls`; those of `tls` itself if the field is absent.
    pub fn find(&self, path: &str) -> FieldPlace {
        match self.lines.iter().find(|(known, _)| **known == *path) {
            Some((path, line)) => FieldPlace {
                path: format!("{}.{path}", self.tls),
                line: *line,
            },
            None => FieldPlace {
                path: self.tls.clone(),
                line: self.line,
            },
        }
    }

    /// Returns the path and line of the field that names a certificate's chain, or its key.
    pub fn identity(&self, index: usize, key: bool) -> FieldPlace {
        let paths = self.identities.get(index);
        self.find(paths.map_or("mode", |paths| &paths[usize::from(key)]))
    }
}

/// Returns the paths of the fields that `identities` reads.
fn identity_fields(tls: &ServerTls) -> Vec<[String; 2]> {
    let used = |count: usize| 0..count.min(CERTIFICATES_MAX);
    match &tls.certificates {
        _ if tls.mode == ServerTlsMode::IstioMutual => Vec::new(),
        Certificates::None => Vec::new(),
        Certificates::Files(_) if tls.has("serverCertificate") && tls.has("privateKey") => {
            vec![["serverCertificate".to_owned(), "privateKey".to_owned()]]
        }
        Certificates::Files(files) => used(files.len())
            .map(|index| {
                ["serverCertificate", "privateKey"]
                    .map(|name| format!("tlsCertificates[{index}].{name}"))
            })
            .collect(),
        Certificates::Secrets(_) if tls.has("credentialName") => {
            vec![["credentialName".to_owned(), "credentialName".to_owned()]]
        }
        Certificates::Secrets(names) => used(names.len())
            .map(|index| [(); 2].map(|()| format!("credentialNames[{index}]")))
            .collect(),
    }
}

/// Returns the path of the field that `authorities` reads.
fn authority_field(tls: &ServerTls) -> String {
    if tls.mode == ServerTlsMode::IstioMutual {
        return "mode".to_owned();
    }
    let mut paths = vec![
        "caCertCredentialName".to_owned(),
        "caCertificates".to_owned(),
    ];
    if let Certificates::Files(files) = &tls.certificates {
        let of = |index| format!("tlsCertificates[{index}].caCertificates");
        paths.extend((0..files.len()).map(of));
    }
    paths.extend(["credentialName".to_owned(), "credentialNames[0]".to_owned()]);
    let written = paths.into_iter().find(|path| tls.has(path));
    written.unwrap_or_else(|| "mode".to_owned())
}

/// Returns the names of cipher suites.
pub(super) fn names(suites: &[CipherSuite]) -> Vec<Arc<str>> {
    suites.iter().map(|suite| suite.as_str().into()).collect()
}

/// Returns a supported version: versions below 1.2 become 1.2.
pub(super) fn version(written: TlsVersion, default: Version) -> Version {
    match written {
        TlsVersion::Auto => default,
        TlsVersion::V1_0 | TlsVersion::V1_1 | TlsVersion::V1_2 => Version::Tls12,
        TlsVersion::V1_3 => Version::Tls13,
    }
}
