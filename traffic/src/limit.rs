//! Limits on the requests of a route: which requests a rule counts, and which are refused.
//!
//! A request is counted by all rules that select it if each of them has a token, and by none otherwise. The buckets are
//! those of [`registry`](crate::registry), so that all workers share them. Holds no clock.

mod global;
mod selector;
mod sources;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::provenance::Provenance;
use crate::registry::{Buckets, Exhausted, Time};

pub use global::{Entry, GlobalRule};
pub use selector::{CountedRequest, PathMatch, Selector, ValueMatch, is_distinct, objection};
pub use sources::Sources;

/// Limits of a route.
#[derive(Debug)]
pub struct RouteLimits {
    /// Rules of this proxy.
    pub rules: Box<[LimitRule]>,
    /// Rules of the rate limit service.
    pub global: Box<[GlobalRule]>,
    /// Maximum number of bytes of a request's body.
    pub body_max: Option<u64>,
    /// Addresses of the clients that are served.
    pub sources: Sources,
    /// Whether requests beyond a rate get a response with status 503 in place of 429.
    pub is_unavailable: bool,
    /// Whether a rule reads headers that the proxy adds to requests.
    pub reads_added: bool,
    /// Hash of the policy.
    pub fingerprint: u64,
    /// Policy with the limits.
    pub provenance: Provenance,
}

/// Limit on the requests that match.
#[derive(Debug)]
pub struct LimitRule {
    /// Conditions; all must hold.
    pub selectors: Box<[Selector]>,
    /// Tokens that a request takes.
    pub cost: u32,
    /// Whether requests are counted and never refused.
    pub is_shadow: bool,
    /// Buckets with the tokens.
    pub buckets: Arc<Buckets>,
    /// The rule in the configuration.
    pub provenance: Provenance,
}

/// Rules of a route that count a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All.
    All,
    /// Rules that read only address, method, path and query.
    Early,
    /// All others.
    Late,
}

/// Refusal of a request.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// Rule that refuses it; of several, the one whose next token takes longest.
    pub rule: &'a LimitRule,
    /// Tokens that are left, and the time until there are enough.
    pub exhausted: Exhausted,
}

/// Result of counting a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted<'a> {
    /// Whether any rule counted the request.
    pub is_counted: bool,
    /// Refusal, if there is one.
    pub refusal: Option<Refusal<'a>>,
    /// Number of rules in shadow mode that would have refused it.
    pub shadowed: u32,
    /// Number of rules with too many keys.
    pub overflowed: u32,
}

impl<'a> Counted<'a> {
    /// Refuses the request by the rule whose tokens take longest.
    fn refuse(&mut self, rule: &'a LimitRule, exhausted: Exhausted) {
        let longest = self.refusal.map(|refusal| refusal.exhausted.wait);
        if longest.is_none_or(|longest| exhausted.wait > longest) {
            self.refusal = Some(Refusal { rule, exhausted });
        }
    }
}

/// Key of a request within a rule; `None` if all requests have one bucket.
type Key = Option<u64>;

impl RouteLimits {
    /// Counts a request.
    pub fn count(&self, request: &CountedRequest<'_>, part: Part, now: Time) -> Counted<'_> {
        let mut counted = Counted::default();
        let chosen = self.rules.iter().filter(|rule| match part {
            Part::All => true,
            Part::Early => rule.is_early(),
            Part::Late => !rule.is_early(),
        });
        let selected = chosen.filter_map(|rule| Some((rule, rule.key(request)?)));
        let (shadow, enforced): (SmallVec<[(&LimitRule, Key); 4]>, SmallVec<_>) =
            selected.partition(|(rule, _)| rule.is_shadow);
        counted.is_counted = !enforced.is_empty();
        // a request that is refused takes nothing, so that a flood of them leaves the other rules as they are
        for (rule, key) in enforced.iter().filter(|_| enforced.len() > 1) {
            if let Err(exhausted) = rule.buckets.check(*key, rule.cost, now) {
                counted.refuse(rule, exhausted);
            }
        }
        if counted.refusal.is_some() {
            return counted;
        }
        let mut taken: SmallVec<[_; 4]> = SmallVec::new();
        for (rule, key) in enforced {
            let (result, is_shared) = rule.buckets.take(key, rule.cost, now);
            counted.overflowed += u32::from(is_shared);
            match result {
                Ok(token) => taken.push((rule, key, token)),
                // another request was faster
                Err(exhausted) => {
                    counted.refuse(rule, exhausted);
                    break;
                }
            }
        }
        if counted.refusal.is_some() {
            for (rule, key, token) in taken {
                rule.buckets.put_back(key, token);
            }
            return counted;
        }
        for (rule, key) in shadow {
            let (result, is_shared) = rule.buckets.take(key, rule.cost, now);
            counted.overflowed += u32::from(is_shared);
            counted.shadowed += u32::from(result.is_err());
        }
        counted
    }
}

impl LimitRule {
    /// Whether the rule reads only address, method, path and query.
    pub fn is_early(&self) -> bool {
        let mut selectors = self.selectors.iter();
        !selectors.any(|selector| matches!(selector, Selector::Header(..)))
    }

    /// Returns the key of a request; `None` if the rule does not select it.
    pub fn key(&self, request: &CountedRequest<'_>) -> Option<Key> {
        let mut hasher = None;
        for selector in &self.selectors {
            let distinct = selector.distinct(request)?;
            if let Some(value) = distinct {
                let hasher = hasher.get_or_insert_with(|| self.buckets.hasher());
                value.hash(hasher);
            }
        }
        Some(hasher.map(|hasher| hasher.finish()))
    }
}

#[cfg(test)]
mod tests;
