//! Destinations of a rule, with their weights. A traffic shift replaces a destination by its parts.

use std::borrow::Cow;
use std::sync::Arc;

use config_loader::resource::Line;
use config_loader::resource::istio::{Destination as RawDestination, HttpDestination};

use crate::compile::clusters;
use crate::compile::clusters::Clusters;
use crate::compile::rules::scope::RuleScope;
use crate::compile::rules::scope::Sourced;
use crate::compile::service::Part;
use crate::compile::service::Shift;
use crate::snapshot::Destination;
use traffic::cluster::Split;

/// Returns the destinations of a rule by weight, with shifted destinations replaced by their parts.
pub(in crate::compile) fn split(
    sourced: &Sourced<'_>,
    destinations: &[HttpDestination],
    shifts: &[Option<Arc<Shift>>],
    scope: &RuleScope<'_>,
    clusters: &mut Clusters<'_>,
) -> Option<Split<Destination>> {
    let whole = match shifts.iter().any(Option::is_some) {
        true => WHOLE,
        false => 1,
    };
    let mut entries = Vec::with_capacity(destinations.len());
    for (position, (weighted, shift)) in destinations.iter().zip(shifts).enumerate() {
        let written = &weighted.destination;
        // the weight of a single destination has no effect
        let weight = if destinations.len() == 1 {
            1
        } else {
            weighted.weight
        };
        let Some(shift) = shift else {
            let at = Placed {
                written,
                position,
                line: weighted.line,
            };
            let destination = destination(sourced, at, scope, clusters);
            entries.push((weight.saturating_mul(whole), destination));
            continue;
        };
        let host = complete(sourced, written, clusters);
        let port = clusters.port(&host, written.port, scope.port);
        for part in &shift.parts {
            let destination = part_of(shift, part, position, port, clusters);
            entries.push((weight.saturating_mul(part.weight_percent), destination));
        }
    }
    Split::build(entries)
}

/// Sum of the weights of the parts of a shift, in percent.
pub(in crate::compile) const WHOLE: u32 = 100;

/// Returns the full host of a destination.
pub(in crate::compile) fn complete<'a>(
    sourced: &Sourced<'_>,
    written: &'a RawDestination,
    clusters: &Clusters<'_>,
) -> Cow<'a, str> {
    clusters.destination(&written.host, &sourced.source.id().namespace)
}

/// Returns a part of a shift as a destination of the rule at that position; `port` is the requested port.
pub(in crate::compile) fn part_of(
    shift: &Shift,
    part: &Part,
    position: usize,
    port: u16,
    clusters: &mut Clusters<'_>,
) -> Destination {
    let port = part.port.unwrap_or(port);
    let (name, cluster) = clusters.need(&clusters::name(port, &part.subset, &part.host));
    Destination {
        name,
        cluster,
        position,
        provenance: shift.provenance.clone(),
    }
}

/// Destination of a rule.
pub(in crate::compile) struct Placed<'a> {
    pub written: &'a RawDestination,
    /// Position among the destinations of the rule.
    pub position: usize,
    pub line: Line,
}

/// Compiles a destination.
pub(in crate::compile) fn destination(
    sourced: &Sourced<'_>,
    placed: Placed<'_>,
    scope: &RuleScope<'_>,
    clusters: &mut Clusters<'_>,
) -> Destination {
    let Placed {
        written,
        position,
        line,
    } = placed;
    let host = complete(sourced, written, clusters);
    let port = clusters.port(&host, written.port, scope.port);
    let name = clusters::name(port, written.subset.as_deref().unwrap_or(""), &host);
    let (name, cluster) = clusters.need(&name);
    Destination {
        name,
        cluster,
        position,
        provenance: sourced.provenance(line),
    }
}
