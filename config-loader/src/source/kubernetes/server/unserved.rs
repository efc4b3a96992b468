//! Kinds that a server does not serve: a server that starts answers for up to 2 s with a part of its API groups, and with success.
//!
//! Objects that were saved are let go only if a server that is ready does not serve their kind, twice, seconds apart. Until then
//! they are in effect. A proxy without a saved state starts once its server is ready. Where the credentials do not allow to read
//! that, two answers count that are the same.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::source::kubernetes::discovery::{Readiness, Resource};
use crate::source::stream::report::Key;

/// What the first configuration waits for until the server is ready.
pub(super) const GROUPS: &str = "every API group";

/// How often a server is asked of which this is not known.
const INTERVAL: Duration = Duration::from_secs(1);

/// Time between the two answers of a server without a kind; of one that does not tell its readiness.
const APART: Duration = Duration::from_secs(5);
const APART_UNKNOWN: Duration = Duration::from_secs(30);

/// Time between two answers that are the same, of a server that does not tell its readiness.
const SAME_FOR: Duration = Duration::from_secs(2);

/// What becomes of a kind that is not served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// What was saved of it takes the place of its list.
    Keep(Key),
    /// Its objects are let go.
    LetGo(Key),
}

/// What is known of what a server does not serve.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    /// Whether it serves everything that it has.
    is_whole: bool,
    /// Whether nothing is open any more.
    is_known: bool,
    /// The resources of the first of several answers that are the same, and when it came.
    same: Option<(Instant, Vec<String>)>,
    /// Kinds with saved objects that are not served, and since when by a server that is ready.
    missing: HashMap<Key, Option<Instant>>,
}

impl Unserved {
    /// Whether nothing is open any more.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// What the first configuration waits for.
    pub(super) fn awaited(&self) -> Option<Key> {
        (!self.is_whole).then(|| GROUPS.into())
    }

    /// Takes in what is served.
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

    /// Decides about the kinds with objects that the server does not serve, after each answer.
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

    /// When the server is asked again, if it is `usually` otherwise.
    pub(super) fn pause(&self, usually: Duration) -> Duration {
        match self.is_known {
            true => usually,
            false => INTERVAL.min(usually),
        }
    }
}
