//! Description of a request for the rate limit service.

use std::time::Duration;

use super::messages::{Descriptor, Limit, Pair};
use traffic::limit::{CountedRequest, GlobalRule, RouteLimits};

/// Rules of the service that select a request, and a descriptor of each.
#[derive(Default)]
pub(in crate::exchange) struct Described<'a> {
    pub(super) rules: Vec<&'a GlobalRule>,
    pub(super) descriptors: Vec<Descriptor>,
}

impl Described<'_> {
    /// Whether no rule selects the request.
    pub(in crate::exchange) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Describes a request for the service.
pub(super) fn describe<'a>(limits: &'a RouteLimits, request: &CountedRequest<'_>) -> Described<'a> {
    let selected = limits.global.iter().filter_map(|rule| {
        let entries = rule.entries(request)?.into_iter();
        let descriptor = Descriptor {
            entries: entries
                .map(|(key, value)| Pair {
                    key: key.into_owned(),
                    value: value.into_owned(),
                })
                .collect(),
            limit: Some(Limit {
                requests_per_unit: rule.requests,
                unit: unit(rule.unit),
            }),
            hits_addend: (rule.cost != 1).then(|| rule.cost.into()),
        };
        Some((rule, descriptor))
    });
    let (rules, descriptors) = selected.unzip();
    Described { rules, descriptors }
}

/// Returns the number of a unit in `envoy.type.v3.RateLimitUnit`.
fn unit(unit: Duration) -> i32 {
    match unit.as_secs() {
        0..=1 => 1,
        60 => 2,
        3_600 => 3,
        86_400 => 4,
        2_592_000 => 5,
        31_536_000 => 6,
        _ => 7,
    }
}
