//! Workload identities of client and service: a certificate authority and a certificate for each, created for the run.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::compare::failure::{Failure, context};

/// Workload of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Workload that sends requests.
    Client,
    /// Workload that answers requests.
    Service,
}

impl Side {
    /// Both workloads in start order: the service first, since the client needs it.
    pub const ALL: [Self; 2] = [Self::Service, Self::Client];

    /// Returns the name of the workload, which is also the name of its service account.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Service => "service",
        }
    }

    /// Returns the SPIFFE ID.
    pub fn id(self) -> String {
        format!("spiffe://cluster.local/ns/bench/sa/{}", self.name())
    }
}

/// Files with the keys (ECDSA P-256) and certificates of both workloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identities {
    directory: PathBuf,
}

impl Identities {
    /// Creates the keys and certificates, and writes them below a directory.
    ///
    /// # Errors
    /// When a certificate cannot be created, or a file cannot be written.
    pub fn make(directory: &Path) -> Result<Self, Failure> {
        let files = Self {
            directory: directory.to_owned(),
        };
        let failed = "cannot make a certificate";
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "bench authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().map_err(context(failed))?;
        let authority = params.self_signed(&key).map_err(context(failed))?;
        write(&files.authority(), &authority.pem())?;
        let issuer = Issuer::new(params, key);
        for side in Side::ALL {
            let mut params = CertificateParams::default();
            let id = side.id().try_into().map_err(context(failed))?;
            params.subject_alt_names = vec![SanType::URI(id)];
            params.extended_key_usages = vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ];
            let key = KeyPair::generate().map_err(context(failed))?;
            let certificate = params.signed_by(&key, &issuer).map_err(context(failed))?;
            write(&files.certificate(side), &certificate.pem())?;
            write(&files.key(side), &key.serialize_pem())?;
        }
        Ok(files)
    }

    /// Returns the path of the authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.directory.join("authority.pem")
    }

    /// Returns the path of a workload's certificate.
    pub fn certificate(&self, side: Side) -> PathBuf {
        self.directory.join(format!("{}.pem", side.name()))
    }

    /// Returns the path of a workload's private key.
    pub fn key(&self, side: Side) -> PathBuf {
        self.directory.join(format!("{}.key", side.name()))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(context(path.display()))
}
