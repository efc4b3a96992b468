//! Verified tokens of one worker, so that a signature is verified once. Refused tokens are not kept.

use std::collections::HashMap;
use std::sync::Arc;

use crate::snapshot::Authentication;
use crate::tls::digest::{Sha256, sha256};
use traffic::claims::Claims;

/// Entries of each of the two halves: those of the older one are dropped when the younger one is full.
const HALF: usize = 512;

/// Claims of a verified token.
#[derive(Debug)]
pub(super) struct Verified {
    /// Number of the rule that accepts the token.
    pub(super) rule: usize,
    /// Claims of the token.
    pub(super) claims: Arc<Claims>,
    /// Keys that verified it.
    pub(super) keys: Arc<jwt::Keys>,
}

/// Verified tokens by location and text.
#[derive(Debug, Default)]
pub(super) struct TokenCache {
    /// Rules that verified the tokens.
    of: Option<Arc<Authentication>>,
    young: HashMap<Sha256, Arc<Verified>>,
    old: HashMap<Sha256, Arc<Verified>>,
}

impl TokenCache {
    /// Returns the key of a token at a location.
    pub(super) fn key(location: usize, token: &str) -> Sha256 {
        let mut digest = sha256(token.as_bytes());
        for (byte, of_location) in digest.iter_mut().zip(location.to_le_bytes()) {
            *byte ^= of_location;
        }
        digest
    }

    /// Returns a token that was verified by the same rules.
    pub(super) fn find(&mut self, of: &Arc<Authentication>, key: &Sha256) -> Option<Arc<Verified>> {
        if !self.of.as_ref().is_some_and(|known| Arc::ptr_eq(known, of)) {
            *self = Self {
                of: Some(Arc::clone(of)),
                ..Self::default()
            };
            return None;
        }
        if let Some(found) = self.young.get(key) {
            return Some(Arc::clone(found));
        }
        let found = self.old.remove(key)?;
        self.add(*key, Arc::clone(&found));
        Some(found)
    }

    /// Keeps a verified token.
    pub(super) fn add(&mut self, key: Sha256, verified: Arc<Verified>) {
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, verified);
    }

    /// Forgets a token.
    pub(super) fn remove(&mut self, key: &Sha256) {
        self.young.remove(key);
    }
}
