//! Identity of the workload within the mesh: its source, and what its certificate must name.

use std::fmt;
use std::path::Path;

/// Identity of the workload within the mesh. Files default to those of `file_set` in `Identity::mesh_certs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadIdentity {
    /// Source of the certificate. Flag `--identity`.
    pub kind: IdentityKind,
    /// Names of the files in the directory; found there when files are read.
    pub file_set: FileSet,
    /// File of the certificate. Flag `--workload-cert`.
    pub certificate: Option<String>,
    /// File of the key. Flag `--workload-key`.
    pub key: Option<String>,
    /// File of the CA certificates that verify other workloads. Flag `--mesh-ca`.
    pub authorities: Option<String>,
    /// Trust domain of SPIFFE ids. Flag `--trust-domain`, default `cluster.local`.
    pub trust_domain: String,
    /// Other names of the trust domain. Flag `--trust-domain-aliases`.
    pub trust_domain_aliases: Vec<String>,
    /// Service account of the workload; `None` for any. Flag `--service-account`.
    pub service_account: Option<String>,
    /// Whether any SPIFFE id of the trust domain is the workload's. Flag `--spiffe-id-format`.
    pub has_any_path: bool,
}

impl WorkloadIdentity {
    /// Returns the trust domain and its aliases.
    pub fn trust_domains(&self) -> impl Iterator<Item = &str> {
        let aliases = self.trust_domain_aliases.iter();
        std::iter::once(&self.trust_domain)
            .chain(aliases)
            .map(String::as_str)
    }

    /// Whether flags name files of the identity.
    pub fn names_files(&self) -> bool {
        self.files().into_iter().any(|file| file.is_some())
    }

    /// Whether no file is looked for in the directory, since flags name all of them.
    pub fn names_all_files(&self) -> bool {
        self.files().into_iter().all(|file| file.is_some())
    }

    fn files(&self) -> [&Option<String>; 3] {
        [&self.certificate, &self.key, &self.authorities]
    }
}

impl Default for WorkloadIdentity {
    fn default() -> Self {
        Self {
            kind: IdentityKind::Files,
            file_set: FileSet::Istio,
            certificate: None,
            key: None,
            authorities: None,
            trust_domain: "cluster.local".to_owned(),
            trust_domain_aliases: Vec::new(),
            service_account: None,
            has_any_path: false,
        }
    }
}

/// Source of the workload's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdentityKind {
    /// Files that another program writes.
    #[default]
    Files,
    /// Certificates that the CA of an Istio mesh signs.
    IstioCa,
    /// No identity.
    None,
    /// Certificates that Strait's own CA signs.
    StraitCa,
    /// SPIFFE Workload API.
    WorkloadApi,
}

impl IdentityKind {
    /// Whether the proxy gets the certificate from a server.
    pub fn is_remote(self) -> bool {
        matches!(self, Self::IstioCa | Self::StraitCa | Self::WorkloadApi)
    }

    /// Returns the value of the flag `--identity`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::IstioCa => "istio-ca",
            Self::None => "none",
            Self::StraitCa => "strait-ca",
            Self::WorkloadApi => "workload-api",
        }
    }
}

impl fmt::Display for IdentityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names of the files of an identity in a directory: certificate chain, key and CA certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FileSet {
    /// csi-driver-spiffe, and Secrets of cert-manager.
    CertManager,
    /// Certificates of Google Kubernetes Engine.
    Gke,
    /// Istio's agent.
    #[default]
    Istio,
    /// spiffe-helper.
    SpiffeHelper,
}

impl FileSet {
    const ALL: [Self; 4] = [
        Self::Istio,
        Self::CertManager,
        Self::SpiffeHelper,
        Self::Gke,
    ];

    /// Names of the chain, of the key and of the CA certificates.
    pub const fn names(self) -> [&'static str; 3] {
        match self {
            Self::CertManager => ["tls.crt", "tls.key", "ca.crt"],
            Self::Gke => ["certificates.pem", "private_key.pem", "ca_certificates.pem"],
            Self::Istio => ["cert-chain.pem", "key.pem", "root-cert.pem"],
            Self::SpiffeHelper => ["svid.pem", "svid_key.pem", "svid_bundle.pem"],
        }
    }

    /// Returns the complete set in a directory, else the one of which most files are there.
    ///
    /// # Errors
    ///
    /// Two complete sets: neither says which one the workload is meant to have.
    pub fn in_directory(directory: &Path) -> Result<Self, [Self; 2]> {
        let count = |set: &Self| {
            let names = set.names().into_iter();
            names.filter(|name| directory.join(name).exists()).count()
        };
        let mut sets = Self::ALL.map(|set| (set, count(&set)));
        // stable: Istio's names come first in an empty directory
        sets.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        match sets {
            [(one, 3), (other, 3), ..] => Err([one, other]),
            [(most, _), ..] => Ok(most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_set_of_files_is_found() {
        let found = |files: &[&str]| {
            let directory = tempfile::tempdir().unwrap();
            for file in files {
                std::fs::write(directory.path().join(file), "").unwrap();
            }
            FileSet::in_directory(directory.path())
        };
        for set in FileSet::ALL {
            assert_eq!(found(&set.names()), Ok(set));
        }
        assert_eq!(found(&[]), Ok(FileSet::Istio));
        let mixed = ["cert-chain.pem", "tls.key", "ca.crt"];
        assert_eq!(found(&mixed), Ok(FileSet::CertManager));
        let more = ["svid.pem", "tls.crt", "tls.key", "ca.crt"];
        assert_eq!(found(&more), Ok(FileSet::CertManager));
        let both = [FileSet::SpiffeHelper.names(), FileSet::CertManager.names()].concat();
        let two = [FileSet::CertManager, FileSet::SpiffeHelper];
        assert_eq!(found(&both), Err(two));
    }
}
