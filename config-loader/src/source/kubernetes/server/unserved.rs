//! Kinds that a server does not serve. A server that is starting responds for up to 2 s with success, but with only
//! part of its API groups.
//!
//! Saved objects are removed only if a ready server twice, seconds apart, does not serve their kind. Until then they
//! stay in effect. A proxy without a saved state starts once its server is ready. If the credentials do not allow
//! reading the readiness, two identical responses count instead.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::source::kubernetes::discovery::{Readiness, Resource};
use crate::source::stream::report::Key;

/// Key that the first configuration waits for until the server is ready.
pub(super) const GROUPS: &str = "every API group";

/// Discovery interval until it is known which kinds the server does not serve.
const INTERVAL: Duration = Duration::from_secs(1);

/// Time between two responses without a kind after which its objects are removed: of a ready server, and of one whose
/// readiness is unknown.
const APART: Duration = Duration::from_secs(5);
const APART_UNKNOWN: Duration = Duration::from_secs(30);

/// Time for which the responses of a server whose readiness is unknown must be identical.
const SAME_FOR: Duration = Duration::from_secs(2);

/// Action for a kind that is not served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Apply the saved objects in place of the list.
    Keep(Key),
    /// Remove the objects.
    LetGo(Key),
}

/// State of the decision about kinds that a server does not serve.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    /// Whether the server serves all of its API groups.
    is_whole: bool,
    /// Whether every kind is decided.
    is_known: bool,
    /// Resources of the first of several identical responses, and its time.
    same: Option<(Instant, Vec<String>)>,
    /// Kinds with saved objects that are not served, and the time since when a ready server has not served them.
    missing: HashMap<Key, Option<Instant>>,
}

impl Unserved {
    /// Whether every kind is decided.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns the key that the first configuration waits for; `None` once all API groups are served.
    pub(super) fn awaited(&self) -> Option<Key> {
        (!self.is_whole).then(|| GROUPS.into())
    }

    /// Records a discovery response.
    pub(super) fn take_in(&mut self, readiness: Option<Readiness>, resources: &[Resource]) {
        let is_whole = match readiness {
            None => return,
            Some(Readiness::Ready) => true,
            Some(Readiness::NotReady) => {
                self.same = None;
                false
            }
            Some(Readiness::Unknown) => {
                let names: Vec<String> = resources.iter().map(Resource::name).collect();
                match &self.same {
                    Some((since, known)) if *known == names => since.elapsed() >= SAME_FOR,
                    _ => {
                        self.same = Some((Instant::now(), names));
                        false
                    }
                }
            }
        };
        self.is_whole |= is_whole;
    }

    /// Decides, after each response, about kinds with objects that the server does not serve.
    pub(super) fn decide(&mut self, readiness: Readiness, missing: Vec<Key>) -> Vec<Step> {
        let apart = match readiness {
            Readiness::Ready => Some(APART),
            Readiness::Unknown => Some(APART_UNKNOWN),
            Readiness::NotReady => None,
        };
        self.missing.retain(|key, _| missing.contains(key));
        let mut steps = Vec::new();
        for key in missing {
            if !self.missing.contains_key(&key) {
                steps.push(Step::Keep(Key::clone(&key)));
            }
            let since = self.missing.entry(Key::clone(&key)).or_default();
            match apart {
                None => *since = None,
                Some(apart) if since.get_or_insert_with(Instant::now).elapsed() >= apart => {
                    self.missing.remove(&key);
                    steps.push(Step::LetGo(key));
                }
                Some(_) => {}
            }
        }
        self.is_known = self.is_whole && self.missing.is_empty();
        steps
    }

    /// Returns the time until the next discovery: `usually`, or less while kinds are undecided.
    pub(super) fn pause(&self, usually: Duration) -> Duration {
        match self.is_known {
            true => usually,
            false => INTERVAL.min(usually),
        }
    }
}
