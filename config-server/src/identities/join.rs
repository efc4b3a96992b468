//! Join tokens: with one, a workload outside Kubernetes gets its first certificate. The store has their hashes only.

use std::time::Duration;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::tokens::{hash, hex};
use crate::clock;
use crate::object;
use crate::store::{Entry, Expected, Scan, Store, StoreError, Written};

/// Prefix of the keys.
const PREFIX: &str = "/strait.identity/tokens/";
/// Maximum number of join tokens, used ones included.
const TOKENS_MAX: usize = 10_000;
/// Maximum length of the part of a name that comes from the service account.
const ACCOUNT_MAX: usize = 40;
/// Start of the text of a join token.
pub(crate) const MARK: &str = "strait-join.";

/// Maximum time in which a join token can be used.
pub const EXPIRES_MAX: Duration = Duration::from_secs(30 * 86_400);
/// Maximum number of uses of a join token.
pub const USES_MAX: u32 = 100_000;

/// Join token that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewJoinToken {
    /// Namespace of the workload.
    pub namespace: String,
    /// Service account of the workload.
    pub service_account: String,
    /// Number of uses.
    pub uses: u32,
    /// Seconds in which it can be used.
    pub expires_in: u64,
}

/// Stored record of a join token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JoinToken {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) service_account: String,
    /// Number of uses that are left.
    pub(crate) uses_left: u32,
    /// Time of creation, RFC 3339.
    pub(crate) created: String,
    /// Last time of a use, in seconds since 1970.
    pub(crate) expires: u64,
    /// SHA-256 of the token, in hexadecimal.
    pub(crate) hash: String,
}

/// Creates a join token, and returns its text, which is not stored.
///
/// # Errors
/// If it is malformed, if there are too many, or if the store cannot be written.
pub(crate) async fn create(store: &dyn Store, new: &NewJoinToken) -> Result<String, String> {
    for name in [&new.namespace, &new.service_account] {
        if !object::is_name(name) {
            return Err(format!("{name:?} is no name of a namespace or an account"));
        }
    }
    let seconds_max = EXPIRES_MAX.as_secs();
    if !(1..=USES_MAX).contains(&new.uses) || !(1..=seconds_max).contains(&new.expires_in) {
        return Err(format!(
            "a join token has 1 to {USES_MAX} uses, and is valid for 1s to {}h",
            seconds_max / 3_600
        ));
    }
    let count = list(store).await?.len();
    if count >= TOKENS_MAX {
        return Err(format!(
            "there are {count} join tokens; revoke used and expired ones"
        ));
    }
    loop {
        let account: String = new.service_account.chars().take(ACCOUNT_MAX).collect();
        let name = format!("{account}-{}", object::random_suffix());
        let secret: [u8; 32] = rand::rng().random();
        let text = format!("{MARK}{name}.{}", hex(&secret));
        let token = JoinToken {
            name,
            namespace: new.namespace.clone(),
            service_account: new.service_account.clone(),
            uses_left: new.uses,
            created: clock::now(),
            expires: clock::seconds_now().saturating_add(new.expires_in),
            hash: hash(text.as_bytes()),
        };
        if write(store, &token, Expected::Absent).await? {
            return Ok(text);
        }
    }
}

/// Returns all join tokens.
///
/// # Errors
/// If the store cannot be read.
pub(crate) async fn list(store: &dyn Store) -> Result<Vec<JoinToken>, String> {
    let scan = Scan {
        prefix: PREFIX.to_owned(),
        ..Scan::default()
    };
    let page = store.scan(scan).await.map_err(said)?;
    page.entries.iter().map(read).collect()
}

/// Revokes a join token. What joined with it renews its certificate no more.
///
/// # Errors
/// If there is no such token, or the store cannot be written.
pub(crate) async fn revoke(store: &dyn Store, name: &str) -> Result<(), String> {
    let key = format!("{PREFIX}{name}");
    loop {
        let (found, _) = store.get(&key).await.map_err(said)?;
        let found = found.ok_or_else(|| format!("there is no join token named {name:?}"))?;
        let written = store.write(key.clone(), Expected::At(found.revision), None);
        if let Written::Done(_) = written.await.map_err(said)? {
            return Ok(());
        }
    }
}

/// Returns the join token of this name, if it was not revoked.
///
/// # Errors
/// If the store cannot be read.
pub(crate) async fn named(store: &dyn Store, name: &str) -> Result<Option<JoinToken>, String> {
    let (found, _) = store.get(&format!("{PREFIX}{name}")).await.map_err(said)?;
    found.as_ref().map(read).transpose()
}

/// Returns the join token with this text, valid or not.
///
/// # Errors
/// If the store cannot be read.
pub(crate) async fn with_text(store: &dyn Store, text: &str) -> Result<Option<JoinToken>, String> {
    let parts = text
        .strip_prefix(MARK)
        .and_then(|rest| rest.rsplit_once('.'));
    let Some((name, _)) = parts.filter(|(name, _)| object::is_name(name)) else {
        return Ok(None);
    };
    let found = named(store, name).await?;
    Ok(found.filter(|token| token.hash == hash(text.as_bytes())))
}

impl JoinToken {
    /// Returns the token for people, without its hash.
    pub(super) fn shown(&self) -> Value {
        json!({
            "name": self.name, "namespace": self.namespace, "service_account": self.service_account,
            "uses_left": self.uses_left, "created": self.created, "expires_at": clock::rfc3339(self.expires),
        })
    }

    /// Returns why the token cannot be used; `None` if it can.
    pub(crate) fn refusal(&self, now: u64) -> Option<&'static str> {
        match self {
            _ if now >= self.expires => Some("the join token has expired"),
            _ if self.uses_left == 0 => Some("the join token is used up"),
            _ => None,
        }
    }
}

/// Uses a join token once. Returns false if it was used up or revoked meanwhile.
///
/// # Errors
/// If the store cannot be written.
pub(crate) async fn take(store: &dyn Store, name: &str) -> Result<bool, String> {
    let key = format!("{PREFIX}{name}");
    loop {
        let (found, _) = store.get(&key).await.map_err(said)?;
        let Some(found) = found else {
            return Ok(false);
        };
        let mut token = read(&found)?;
        if token.refusal(clock::seconds_now()).is_some() {
            return Ok(false);
        }
        token.uses_left -= 1;
        if write(store, &token, Expected::At(found.revision)).await? {
            return Ok(true);
        }
    }
}

async fn write(store: &dyn Store, token: &JoinToken, expected: Expected) -> Result<bool, String> {
    let value = serde_json::to_vec(token).map_err(|error| error.to_string())?;
    let key = format!("{PREFIX}{}", token.name);
    let written = store.write(key, expected, Some(value.into())).await;
    Ok(written.map_err(said)? != Written::Mismatch)
}

fn read(entry: &Entry) -> Result<JoinToken, String> {
    let read = serde_json::from_slice(&entry.value);
    read.map_err(|error| format!("{} is damaged: {error}", entry.key))
}

fn said(error: StoreError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::embedded::EmbeddedStore;
    use crate::store::history::HistoryLimits;

    #[tokio::test]
    async fn join_token_is_used_as_often_as_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(&dir.path().join("s"), HistoryLimits::default()).unwrap();
        let new = |uses, expires_in| NewJoinToken {
            namespace: "shop".to_owned(),
            service_account: "cart".to_owned(),
            uses,
            expires_in,
        };
        let text = create(&store, &new(2, 3_600)).await.unwrap();
        let found = with_text(&store, &text).await.unwrap().unwrap();
        assert_eq!(
            (&*found.namespace, &*found.service_account),
            ("shop", "cart")
        );
        let stored = serde_json::to_string(&list(&store).await.unwrap()).unwrap();
        assert!(!stored.contains(&text) && !stored.contains(text.rsplit_once('.').unwrap().1));
        let takes: Vec<bool> =
            futures_util::future::join_all((0..8).map(|_| take(&store, &found.name)))
                .await
                .into_iter()
                .map(Result::unwrap)
                .collect();
        assert_eq!(takes.iter().filter(|taken| **taken).count(), 2);
        let found = with_text(&store, &text).await.unwrap().unwrap();
        assert_eq!(found.refusal(0), Some("the join token is used up"));
        assert!(found.refusal(found.expires).unwrap().contains("expired"));
        let other = text.replace(&text[text.len() - 2..], "zz");
        assert_eq!(with_text(&store, &other).await, Ok(None));
        for wrong in ["", "strait-join.", "strait-join./../x.y", "strait_abc"] {
            assert_eq!(with_text(&store, wrong).await, Ok(None), "{wrong}");
        }
        revoke(&store, &found.name).await.unwrap();
        assert_eq!(with_text(&store, &text).await, Ok(None));
        assert!(revoke(&store, &found.name).await.is_err());
        assert_eq!(take(&store, &found.name).await, Ok(false));
        for wrong in [new(0, 1), new(1, 0), new(1, u64::MAX)] {
            assert!(create(&store, &wrong).await.is_err());
        }
        let wrong = NewJoinToken {
            namespace: "a/b".to_owned(),
            ..new(1, 1)
        };
        assert!(create(&store, &wrong).await.is_err());
    }
}
