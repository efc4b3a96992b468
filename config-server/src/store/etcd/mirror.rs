//! In-memory copy of small values in etcd that every request needs: the tokens.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

use crate::store::Revision;

/// Copy of values by name.
#[derive(Debug, Default)]
pub struct Mirror {
    kept: RwLock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Change counter.
    version: u64,
    /// Revision of the values, which include all earlier changes.
    revision: Revision,
    values: BTreeMap<String, Bytes>,
}

impl Mirror {
    /// Applies a change, unless it is older than the values. The followed history begins before them, and must not
    /// bring back a removed value.
    pub fn set(&self, name: &str, value: Option<Bytes>, revision: Revision) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if revision <= kept.revision {
            return;
        }
        kept.revision = revision;
        kept.version += 1;
        match value {
            Some(value) => drop(kept.values.insert(name.to_owned(), value)),
            None => drop(kept.values.remove(name)),
        }
    }

    /// Replaces all values by those at `revision`, unless newer ones are known.
    pub fn replace(&self, values: BTreeMap<String, Bytes>, revision: Revision) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if revision < kept.revision {
            return;
        }
        kept.revision = revision;
        kept.version += 1;
        kept.values = values;
    }

    /// Returns the change counter.
    pub fn version(&self) -> u64 {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.version
    }

    /// Returns the change counter and all values.
    pub fn values(&self) -> (u64, Vec<Bytes>) {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        (kept.version, kept.values.values().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_value_does_not_come_back_with_old_changes() {
        let mirror = Mirror::default();
        let value = || Some(Bytes::from_static(b"x"));
        mirror.replace(BTreeMap::new(), 10);
        mirror.set("revoked", value(), 3);
        assert!(mirror.values().1.is_empty());
        mirror.set("new", value(), 11);
        assert_eq!(mirror.values().1.len(), 1);
        mirror.set("new", None, 12);
        mirror.replace(BTreeMap::from([("new".to_owned(), Bytes::new())]), 11);
        assert!(mirror.values().1.is_empty());
    }
}
