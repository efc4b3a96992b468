//! Places of the keys of the CA: a store, a Secret of an API server, or files of the operator.

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::authorities::Authorities;
use crate::access::pki::encoded;
use crate::shared_secret::{self, Content};
use crate::store::{Expected, Store, Written};

/// Key of the store.
const KEY: &str = "/strait.identity/ca/keys";
/// Field of the Secret. The hub serves no Secret with a field of this name.
const FIELD: &str = "ca.key";
/// Name of the Secret.
pub const SECRET: &str = "strait-ca";

/// Certificate, key and root files of an operator's CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaFiles {
    /// Certificate that signs, followed by those between it and the root, PEM.
    pub certificate: PathBuf,
    /// Key of the certificate, PEM.
    pub key: PathBuf,
    /// Roots that workloads trust, PEM.
    pub root: PathBuf,
}

/// Contents of these files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct FilesContent {
    pub(super) chain: Vec<String>,
    pub(super) key: String,
    pub(super) roots: String,
}

impl CaFiles {
    pub(super) fn read(&self) -> Result<FilesContent, String> {
        let read = |path: &PathBuf| {
            let text = std::fs::read_to_string(path);
            text.map_err(|error| format!("{}: {error}", path.display()))
        };
        let certificates = |path: &PathBuf| {
            let text = read(path)?;
            let all = CertificateDer::pem_slice_iter(text.as_bytes());
            let all = all.map(|der| Ok(encoded("CERTIFICATE", &der?)));
            let all = all.collect::<Result<Vec<_>, rustls_pki_types::pem::Error>>();
            let all = all.map_err(|error| format!("{}: {error}", path.display()))?;
            match all.is_empty() {
                true => Err(format!("{}: no certificate in it", path.display())),
                false => Ok(all),
            }
        };
        Ok(FilesContent {
            chain: certificates(&self.certificate)?,
            key: read(&self.key)?,
            roots: certificates(&self.root)?.concat(),
        })
    }
}

/// Place of keys that Strait makes.
#[derive(Clone)]
pub enum Keep {
    /// Secret of an API server.
    Secret(Api<Secret>),
    /// Store of a server.
    Store(Arc<dyn Store>),
}

impl std::fmt::Debug for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Keep::Secret(_) => "Secret",
            Keep::Store(_) => "Store",
        })
    }
}

impl Keep {
    /// Returns the Secret in a namespace of an API server.
    pub fn of_cluster(client: Client, namespace: &str) -> Keep {
        Keep::Secret(Api::namespaced(client, namespace))
    }

    /// Reads the keys, and writes what takes their place. `change` gets `None` if there are none, and returns `None` if
    /// nothing changes. Returns the keys that count then.
    ///
    /// # Errors
    /// If the place cannot be read or written, or the keys are damaged.
    pub(super) async fn change(
        &self,
        change: impl Fn(Option<&Authorities>) -> Result<Option<Authorities>, String>,
    ) -> Result<Option<Authorities>, String> {
        let store = match self {
            Keep::Secret(secrets) => {
                return shared_secret::change(secrets, SECRET, change).await;
            }
            Keep::Store(store) => store,
        };
        loop {
            let (found, _) = store.get(KEY).await.map_err(|error| error.to_string())?;
            let known = found.as_ref().map(|found| read(&found.value)).transpose()?;
            let Some(new) = change(known.as_ref())? else {
                return Ok(known);
            };
            let expected = found.map_or(Expected::Absent, |found| Expected::At(found.revision));
            let value = serde_json::to_vec(&new).map_err(|error| error.to_string())?;
            let written = store.write(KEY.to_owned(), expected, Some(value.into()));
            if let Written::Done(_) = written.await.map_err(|error| error.to_string())? {
                return Ok(Some(new));
            }
        }
    }
}

fn read(bytes: &[u8]) -> Result<Authorities, String> {
    let read = serde_json::from_slice(bytes);
    read.map_err(|error| format!("the stored keys of the CA are damaged: {error}"))
}

impl Content for Authorities {
    const TYPE: &'static str = "Opaque";

    fn fields(&self) -> Result<Vec<(&'static str, String)>, String> {
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        Ok(vec![(FIELD, text)])
    }

    fn read(field: impl Fn(&str) -> Result<String, String>) -> Result<Self, String> {
        read(field(FIELD)?.as_bytes())
    }
}
