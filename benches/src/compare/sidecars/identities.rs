//! Identities of the two workloads: a certificate authority and a certificate of each, made for the run.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::compare::failure::{Failure, context};

/// A workload of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Sends requests.
    Client,
    /// Answers them.
    Service,
}

impl Side {
    /// Both, in the order in which they start: what a client needs is there when it starts.
    pub const ALL: [Self; 2] = [Self::Service, Self::Client];

    /// Its name, which is also that of its service account.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Service => "service",
        }
    }

    /// Its SPIFFE id.
    pub fn id(self) -> String {
        format!("spiffe://cluster.local/ns/bench/sa/{}", self.name())
    }
}

/// Where the files are: ECDSA with P-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identities {
    directory: PathBuf,
}

impl Identities {
    /// Makes the keys and certificates, and writes them below a directory.
    ///
    /// # Errors
    /// When a certificate cannot be made, or a file cannot be written.
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

    /// The certificate of the authority.
    pub fn authority(&self) -> PathBuf {
        self.directory.join("authority.pem")
    }

    /// The certificate of a workload.
    pub fn certificate(&self, side: Side) -> PathBuf {
        self.directory.join(format!("{}.pem", side.name()))
    }

    /// Its private key.
    pub fn key(&self, side: Side) -> PathBuf {
        self.directory.join(format!("{}.key", side.name()))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(context(path.display()))
}
