//! Storage location of a server, and access to its store.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access::pki::Authority;
use crate::access::tokens::{self, Token};
use crate::api::Api;
use crate::files;
use crate::store::Store;
use crate::store::embedded::{EmbeddedStore, STORE_FILE};
use crate::store::etcd::{EtcdSettings, EtcdStore, Shared};
use crate::store::history::HistoryLimits;

/// Storage location of a server.
#[derive(Clone, Debug)]
pub struct Location {
    /// Data directory.
    pub data: PathBuf,
    /// etcd that replicas share; `None` for a store in the data directory.
    pub etcd: Option<EtcdSettings>,
}

/// Opened store.
pub struct Opened {
    location: Location,
    pub(super) store: Arc<dyn Store>,
    /// Lock of the data directory, which keeps a server from starting.
    _lock: Option<File>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}

impl Location {
    /// Whether a server runs on the data directory and has the store open.
    ///
    /// # Errors
    /// If there is no data directory, or if its lock cannot be read.
    pub fn is_served(&self) -> Result<bool, String> {
        let lock = self.data.join("lock");
        if self.etcd.is_some() || !lock.exists() {
            return Ok(false);
        }
        Ok(files::try_lock(&lock)?.is_none())
    }

    /// Opens an existing store.
    ///
    /// # Errors
    /// If there is no store, if a server runs on the data directory, or if etcd is unreachable.
    pub async fn open(&self) -> Result<Opened, String> {
        if self.etcd.is_none() && !self.data.join(STORE_FILE).exists() {
            return Err(format!(
                "{} has no store: name the data directory of the server with --data",
                self.data.display()
            ));
        }
        self.open_or_make().await
    }

    /// Opens the store, and creates it if absent.
    ///
    /// # Errors
    /// If a server runs on the data directory, or if etcd is unreachable.
    pub async fn open_or_make(&self) -> Result<Opened, String> {
        let (store, lock): (Arc<dyn Store>, _) = match &self.etcd {
            Some(etcd) => (Arc::new(EtcdStore::open_for_command(etcd).await?), None),
            None => {
                let lock = self.lock()?;
                let path = self.data.join(STORE_FILE);
                let store = EmbeddedStore::open(&path, HistoryLimits::default())?;
                (Arc::new(store), Some(lock))
            }
        };
        Ok(Opened {
            location: self.clone(),
            store,
            _lock: lock,
        })
    }

    fn lock(&self) -> Result<File, String> {
        let shown = self.data.display();
        files::make_private_dir(&self.data).map_err(|error| format!("{shown}: {error}"))?;
        files::check_restored(&self.data)?;
        let path = self.data.join("lock");
        match files::try_lock(&path)? {
            Some(lock) => Ok(lock),
            None => Err(format!(
                "a server runs on {shown}: stop it first, or use kubectl with {shown}/admin.kubeconfig"
            )),
        }
    }
}

impl Opened {
    /// Returns the store. The data directory stays locked as long as this is open.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Returns the API over the store.
    pub fn api(&self) -> Api {
        Api::new(Arc::clone(&self.store))
    }

    /// Returns the tokens of users, and the CA if there is one.
    pub(super) async fn access(&self) -> Result<(Vec<Token>, Option<Authority>), String> {
        let data = &self.location.data;
        let Some(etcd) = &self.location.etcd else {
            return access_in(data);
        };
        let shared = Shared::new(etcd)?;
        let tokens = tokens::load_shared(&shared).await?;
        let value = shared.known_authority().await;
        let authority = match value.map_err(|error| error.to_string())? {
            Some(value) => Some(
                serde_json::from_slice(&value)
                    .map_err(|error| format!("the CA in etcd cannot be read: {error}"))?,
            ),
            None => None,
        };
        Ok((tokens, authority))
    }
}

/// Returns the tokens and the CA of a data directory.
fn access_in(data: &Path) -> Result<(Vec<Token>, Option<Authority>), String> {
    let path = tokens::file_in(data);
    let tokens = tokens::load(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let authority = match data.join("ca.crt").exists() {
        true => Some(Authority::in_dir(data)?),
        false => None,
    };
    Ok((tokens, authority))
}
