//! Traffic shift policies applied to a rule: each policy makes a variant of the rule for the requests that it takes.

use std::sync::Arc;

use config_loader::catalog::SHIFT_VARIANTS_MAX;
use config_loader::resource::istio::HttpDestination;

use crate::compile::clusters::Clusters;
use crate::compile::rules::destinations::complete;
use crate::compile::rules::scope::Sourced;
use crate::compile::service::Shift;
use traffic::route::Conditions;

/// Variant of a rule for some of its requests.
pub(in crate::compile) struct Variant {
    /// Conditions that select these requests.
    pub conditions: Conditions,
    /// Traffic shift of each destination, if it has one.
    pub shifts: Vec<Option<Arc<Shift>>>,
}

/// Traffic shift with the requests that it takes, `None` for all; or no shift.
type Choice = (Option<Conditions>, Option<Arc<Shift>>);

/// Host with the alternatives for its requests, in matching order. The last one takes all other requests.
struct Shifted {
    host: String,
    choices: Vec<Choice>,
}

/// Returns the variants of a rule with these `conditions`, in matching order. The last one takes all other requests;
/// most rules have only that one.
pub(in crate::compile) fn variants(
    sourced: &Sourced<'_>,
    conditions: Conditions,
    destinations: &[HttpDestination],
    clusters: &Clusters<'_>,
) -> Vec<Variant> {
    let mut all: Vec<Shifted> = Vec::new();
    let mut by_destination = Vec::with_capacity(destinations.len());
    for weighted in destinations {
        let written = &weighted.destination;
        let host = complete(sourced, written, clusters);
        let shifts = clusters.shifts(&host);
        // a destination with a subset is not shifted
        by_destination.push(if written.subset.is_some() || shifts.is_empty() {
            None
        } else if let Some(known) = all.iter().position(|known| known.host == host) {
            Some(known)
        } else {
            all.push(Shifted {
                choices: choices(shifts),
                host: host.into_owned(),
            });
            Some(all.len() - 1)
        });
    }
    bound(&mut all);
    let count: usize = all.iter().map(|one| one.choices.len()).product();
    let variant = |number: usize| {
        let mut rest = number;
        let mut conditions = conditions.clone();
        // the last host varies fastest, so that alternatives of the first host come first
        let mut chosen: Vec<&Choice> = Vec::with_capacity(all.len());
        for one in all.iter().rev() {
            chosen.push(&one.choices[rest % one.choices.len()]);
            rest /= one.choices.len();
        }
        chosen.reverse();
        for of_policy in chosen.iter().filter_map(|(asked, _)| asked.clone()) {
            conditions = conditions.and(of_policy);
        }
        let shifts = by_destination.iter();
        let shifts = shifts.map(|at| at.and_then(|at: usize| chosen[at].1.clone()));
        Variant {
            conditions,
            shifts: shifts.collect(),
        }
    };
    (0..count).map(variant).collect()
}

fn choices(shifts: &[Arc<Shift>]) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for shift in shifts {
        if shift.requests.is_empty() {
            choices.push((None, Some(Arc::clone(shift))));
            return choices;
        }
        let asked = shift.requests.iter();
        choices.extend(asked.map(|asked| (Some(asked.clone()), Some(Arc::clone(shift)))));
    }
    choices.push((None, None));
    choices
}

/// Keeps only the alternative for all other requests if there would be too many variants; `check` warns of it.
fn bound(all: &mut [Shifted]) {
    let count = |all: &[Shifted]| {
        let counts = all.iter().map(|one| one.choices.len());
        counts.fold(1, usize::saturating_mul)
    };
    if count(all) <= SHIFT_VARIANTS_MAX {
        return;
    }
    for one in all {
        let last = one.choices.len().saturating_sub(1);
        one.choices.drain(..last);
    }
}
