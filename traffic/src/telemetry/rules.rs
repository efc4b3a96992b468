//! Changes of Istio's metrics: families that are not made, and labels that are removed or have another value.
//!
//! They are applied when metrics are scraped: series that become equal are added up, and no request pays for them but
//! for labels with values of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::labels::{Reporter, UNKNOWN};
use super::tags::TagValues;

/// Changes of metrics, by the side that reports and the name of the family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricRules {
    source: BTreeMap<&'static str, FamilyRule>,
    destination: BTreeMap<&'static str, FamilyRule>,
}

/// Changes of a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilyRule {
    /// Whether it is not made.
    pub is_off: bool,
    /// Labels that are not written.
    pub removed: BTreeSet<Arc<str>>,
    /// Labels with another value, or of their own.
    pub set: BTreeMap<Arc<str>, TagText>,
}

/// Value of a label that a rule sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagText {
    /// The same for all requests.
    Fixed(Arc<str>),
    /// Value of an expression, by the name that [`super::tags::TagNames`] has.
    OfRequest(Arc<str>),
}

impl TagText {
    /// The text for series with these values of requests.
    pub fn text<'t>(&'t self, values: Option<&'t TagValues>) -> &'t str {
        match self {
            Self::Fixed(text) => text,
            Self::OfRequest(name) => values.map_or(UNKNOWN, |values| values.value(name)),
        }
    }
}

impl MetricRules {
    /// Adds the changes of a family.
    pub fn insert(&mut self, reporter: Reporter, family: &'static str, rule: FamilyRule) {
        let rules = match reporter {
            Reporter::Destination => &mut self.destination,
            Reporter::Source => &mut self.source,
        };
        rules.insert(family, rule);
    }

    /// Families of one side that have labels with values of requests.
    pub fn families_of_requests(&self, reporter: Reporter) -> impl Iterator<Item = &'static str> {
        let rules = match reporter {
            Reporter::Destination => &self.destination,
            Reporter::Source => &self.source,
        };
        let of_request = |text: &TagText| matches!(text, TagText::OfRequest(_));
        let is_any = move |rule: &FamilyRule| !rule.is_off && rule.set.values().any(of_request);
        let found = rules.iter().filter(move |(_, rule)| is_any(rule));
        found.map(|(name, _)| *name)
    }

    /// The changes of a family, if there are any.
    pub fn of(&self, reporter: Reporter, family: &str) -> Option<&FamilyRule> {
        match reporter {
            Reporter::Destination => self.destination.get(family),
            Reporter::Source => self.source.get(family),
        }
    }
}
