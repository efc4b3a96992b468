//! Differences as plain data.

use serde::Serialize;

use super::effect::{FieldChange, changes, is_breaking};
use super::side::Side;
use crate::explain::answer::Source;
use crate::explain::{Explanation, Question};

/// Maximum number of witnesses of an entry.
const WITNESSES_MAX: usize = 3;

/// Everything that differs between two configurations of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Classes of requests and connections whose outcome differs; those with the same difference are one entry.
    pub requests: Vec<Entry>,
    /// Number of classes that were decided exactly.
    pub decided: usize,
    /// Number of classes of which only samples were tried.
    pub sampled: usize,
    /// Addresses that are opened.
    pub opened: Vec<String>,
    /// Addresses that are closed.
    pub closed: Vec<String>,
    /// Endpoints of clusters that are added or removed.
    pub endpoints: Vec<EndpointChange>,
    /// Other differences, which are not compared request by request.
    pub notes: Vec<Note>,
    /// Whether the proxy has no listener in either configuration, so that nothing was compared.
    pub is_without_listeners: bool,
}

/// Difference that is not compared request by request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Note {
    /// Text.
    pub text: String,
    /// Whether requests that were served may be refused.
    pub breaking: bool,
}

/// Classes with the same difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Differences by field.
    pub changes: Vec<FieldChange>,
    /// Whether a request that was served is refused or redirected elsewhere, or loses a protection.
    pub breaking: bool,
    /// Number of classes.
    pub classes: usize,
    /// Requests of some of the classes.
    pub witnesses: Vec<Witness>,
}

/// Request or connection of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Witness {
    /// Command of `curl` that sends it, or the connection as `strait explain` takes it.
    pub command: String,
    /// Rule that it matches before; `None` for none.
    pub before: Option<RuleName>,
    /// Rule that it matches after; `None` for none.
    pub after: Option<RuleName>,
}

/// Rule that is found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleName {
    /// Name; empty for none.
    pub name: String,
    /// Object, with file and line.
    #[serde(flatten)]
    pub source: Source,
}

impl RuleName {
    pub(super) fn of(answer: &Explanation) -> Option<Self> {
        let won = answer.rules.iter().find(|rule| rule.matched)?;
        Some(Self {
            name: won.name.clone(),
            source: won.source.clone(),
        })
    }
}

/// Endpoints of a cluster that differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndpointChange {
    /// Name of the cluster.
    pub cluster: String,
    /// Addresses that are added.
    pub added: Vec<String>,
    /// Addresses that are removed.
    pub removed: Vec<String>,
}

impl Report {
    /// Asks both sides, adds the class if its outcome differs, and returns whether it does.
    pub(super) fn compare(
        &mut self,
        sides: [&Side<'_>; 2],
        question: &Question,
        command: impl FnOnce() -> String,
    ) -> bool {
        let [old, new] = sides.map(|side| side.explain(question));
        let changes = changes(&old, &new);
        let differs = !changes.is_empty();
        if differs {
            self.add(changes, command(), [&old, &new]);
        }
        differs
    }

    /// Adds a class whose outcome differs.
    fn add(&mut self, changes: Vec<FieldChange>, command: String, [old, new]: [&Explanation; 2]) {
        let witness = Witness {
            command,
            before: RuleName::of(old),
            after: RuleName::of(new),
        };
        let known = self.requests.iter_mut().find(|one| one.changes == changes);
        if let Some(entry) = known {
            entry.classes += 1;
            if entry.witnesses.len() < WITNESSES_MAX {
                entry.witnesses.push(witness);
            }
            return;
        }
        self.requests.push(Entry {
            breaking: is_breaking(&changes, &old.outcome, &new.outcome),
            changes,
            classes: 1,
            witnesses: vec![witness],
        });
    }

    /// Adds a difference that is not compared request by request.
    pub(super) fn note(&mut self, text: String, breaking: bool) {
        self.notes.push(Note { text, breaking });
    }

    /// Puts breaking entries first.
    pub(super) fn sort(&mut self) {
        self.requests.sort_by_key(|one| !one.breaking);
    }

    /// Whether a difference breaks something.
    pub fn is_breaking(&self) -> bool {
        self.requests.iter().any(|one| one.breaking)
            || self.notes.iter().any(|one| one.breaking)
            || !self.closed.is_empty()
    }

    /// Whether the outcome of no request or connection differs, and nothing else does.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
            && self.opened.is_empty()
            && self.closed.is_empty()
            && self.endpoints.is_empty()
            && self.notes.is_empty()
    }
}
