//! State that replicas share in addition to objects: the CA, tokens and proxy reports.

use bytes::Bytes;

use super::calls::Outcome;
use super::client::{Client, EtcdSettings};
use super::follow::load_tokens;
use super::keys::{Keys, end_of};
use super::messages::RangeRequest;
use super::mirror::Mirror;
use crate::store::{Expected, Revision, StoreError};

/// Access to the shared state.
#[derive(Clone, Debug)]
pub struct Shared {
    client: Client,
    keys: Keys,
}

impl Shared {
    /// Returns the shared state in an etcd cluster, without connecting.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(settings: &EtcdSettings) -> Result<Shared, String> {
        Ok(Shared {
            client: Client::new(settings)?,
            keys: Keys::below(&settings.prefix),
        })
    }

    /// Returns the shared CA, and stores `own` if there is none yet.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn authority(&self, own: Bytes) -> Result<Bytes, StoreError> {
        let key = self.keys.authority();
        let written = self
            .client
            .write_if(&key, Expected::Absent, Some(own.clone()), 0)
            .await?;
        Ok(match written {
            Outcome::Mismatch(Some(found)) => found.value,
            _ => own,
        })
    }

    /// Returns the shared CA; `None` if there is none yet.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn known_authority(&self) -> Result<Option<Bytes>, StoreError> {
        let (found, _) = self.client.read(self.keys.authority()).await?;
        Ok(found.map(|found| found.value))
    }

    /// Returns the name of the backup whose restore has not finished; `None` if there is none.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn restoring(&self) -> Result<Option<String>, StoreError> {
        let (found, _) = self.client.read(self.keys.restoring()).await?;
        Ok(found.map(|found| String::from_utf8_lossy(&found.value).into_owned()))
    }

    /// Records the backup that is being restored. Returns false if a restore has already begun.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn begin_restore(&self, backup: String) -> Result<bool, StoreError> {
        let (key, value) = (self.keys.restoring(), Some(Bytes::from(backup)));
        let written = self
            .client
            .write_if(&key, Expected::Absent, value, 0)
            .await?;
        Ok(matches!(written, Outcome::Done(_)))
    }

    /// Records that the restore has finished.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn finish_restore(&self) -> Result<(), StoreError> {
        let key = self.keys.restoring();
        let (found, _) = self.client.read(key.clone()).await?;
        if let Some(found) = found {
            let expected = Expected::At(super::calls::number(found.mod_revision));
            self.client.write_if(&key, expected, None, 0).await?;
        }
        Ok(())
    }

    /// Sets the offset of revisions, before there are objects.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn set_base(&self, base: Revision) -> Result<(), StoreError> {
        let key = self.keys.base();
        let value = Bytes::from(base.to_string());
        loop {
            let (found, _) = self.client.read(key.clone()).await?;
            let expected = match &found {
                Some(found) => Expected::At(super::calls::number(found.mod_revision)),
                None => Expected::Absent,
            };
            let written = self
                .client
                .write_if(&key, expected, Some(value.clone()), 0)
                .await?;
            if let Outcome::Done(_) = written {
                return Ok(());
            }
        }
    }

    /// Adds a token. Returns false if the name is taken.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn add_token(&self, name: &str, token: Bytes) -> Result<bool, StoreError> {
        let key = self.keys.token(name);
        let written = self
            .client
            .write_if(&key, Expected::Absent, Some(token), 0)
            .await?;
        Ok(matches!(written, Outcome::Done(_)))
    }

    /// Removes a token. Returns false if there is no token of that name.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn remove_token(&self, name: &str) -> Result<bool, StoreError> {
        let key = self.keys.token(name);
        loop {
            let (found, _) = self.client.read(key.clone()).await?;
            let Some(found) = found else {
                return Ok(false);
            };
            let expected = Expected::At(super::calls::number(found.mod_revision));
            let written = self.client.write_if(&key, expected, None, 0).await?;
            if let Outcome::Done(_) = written {
                return Ok(true);
            }
        }
    }

    /// Reads all tokens into a mirror.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn load_tokens(&self, mirror: &Mirror) -> Result<(), StoreError> {
        load_tokens(&self.client, &self.keys, mirror).await
    }

    /// Creates a lease with this TTL, in seconds.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn lease(&self, seconds: i64) -> Result<i64, StoreError> {
        self.client.grant(seconds).await
    }

    /// Renews a lease. Returns false if it has expired.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn keep_lease(&self, lease: i64) -> Result<bool, StoreError> {
        self.client.keep(lease).await
    }

    /// Writes a chunk of proxy reports, or removes it if `value` is `None`.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn put_report(
        &self,
        name: &str,
        value: Option<Bytes>,
        lease: i64,
    ) -> Result<(), StoreError> {
        let key = self.keys.report(name);
        loop {
            // Only this replica writes the key, so the second attempt succeeds at the latest.
            let (found, _) = self.client.read(key.clone()).await?;
            let expected = match &found {
                Some(found) => Expected::At(super::calls::number(found.mod_revision)),
                None if value.is_none() => return Ok(()),
                None => Expected::Absent,
            };
            let written = self
                .client
                .write_if(&key, expected, value.clone(), lease)
                .await?;
            if let Outcome::Done(_) = written {
                return Ok(());
            }
        }
    }

    /// Returns the chunks of proxy reports of other replicas.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn reports(&self, own: &str) -> Result<Vec<Bytes>, StoreError> {
        let prefix = self.keys.report("");
        let request = RangeRequest {
            range_end: end_of(&prefix),
            key: prefix.into(),
            ..RangeRequest::default()
        };
        let own = self.keys.report(own);
        let found = self.client.range(&request).await?;
        let others = found.kvs.into_iter();
        let others = others.filter(|kv| !kv.key.starts_with(own.as_bytes()));
        Ok(others.map(|kv| kv.value).collect())
    }

    /// Returns all tokens, encoded.
    ///
    /// # Errors
    /// If etcd fails.
    pub async fn tokens(&self) -> Result<Vec<Bytes>, StoreError> {
        let mirror = Mirror::default();
        load_tokens(&self.client, &self.keys, &mirror).await?;
        Ok(mirror.values().1)
    }
}
