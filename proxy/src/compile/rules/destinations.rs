//! Where a rule sends requests: its destinations by weight, and what a policy makes of those that it shifts.

use std::borrow::Cow;
use std::sync::Arc;

use config_loader::resource::Line;
use config_loader::resource::istio::{Destination as RawDestination, HttpDestination};

use super::{Place, Sourced};
use crate::cluster::Split;
use crate::compile::clusters::{self, Clusters};
use crate::compile::names;
use crate::compile::service::{Part, Shift};
use crate::snapshot::Destination;

/// The destinations of a rule by weight.
pub(super) fn split(
    sourced: &Sourced<'_>,
    destinations: &[HttpDestination],
    place: &Place<'_>,
    clusters: &mut Clusters<'_>,
) -> Option<Split<Destination>> {
    let shifts: Vec<Option<Arc<Shift>>> = destinations
        .iter()
        .map(|weighted| shift(sourced, &weighted.destination, place, clusters))
        .collect();
    let whole = match shifts.iter().any(Option::is_some) {
        true => WHOLE,
        false => 1,
    };
    let mut entries = Vec::with_capacity(destinations.len());
    for (position, (weighted, shift)) in destinations.iter().zip(shifts).enumerate() {
        let written = &weighted.destination;
        // a lone destination has no weight to speak of
        let weight = if destinations.len() == 1 {
            1
        } else {
            weighted.weight
        };
        let Some(shift) = shift else {
            let at = (position, weighted.line);
            let destination = destination(sourced, written, at, place, clusters);
            entries.push((weight.saturating_mul(whole), destination));
            continue;
        };
        let host = complete(sourced, written, place);
        let port = clusters.port(&host, written.port, place.port);
        for part in &shift.parts {
            let destination = part_of(&shift, part, (position, port), clusters);
            entries.push((weight.saturating_mul(part.weight_percent), destination));
        }
    }
    Split::build(entries)
}

/// The weights of the parts of a shift sum up to this.
const WHOLE: u32 = 100;

fn complete<'a>(
    sourced: &Sourced<'_>,
    written: &'a RawDestination,
    place: &Place<'_>,
) -> Cow<'a, str> {
    let namespace = &sourced.object.id.namespace;
    names::complete(&written.host, namespace, &place.identity.domain)
}

/// Where requests for a destination go instead, if a policy shifts them. One that names a subset means that.
fn shift(
    sourced: &Sourced<'_>,
    written: &RawDestination,
    place: &Place<'_>,
    clusters: &Clusters<'_>,
) -> Option<Arc<Shift>> {
    if written.subset.is_some() {
        return None;
    }
    clusters.shift(&complete(sourced, written, place)).cloned()
}

/// A part of a shift as a destination of the rule at that position; `port` is the one that is asked for.
fn part_of(
    shift: &Shift,
    part: &Part,
    (position, port): (usize, u16),
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

/// A destination at a position of the rule, written on that line.
pub(super) fn destination(
    sourced: &Sourced<'_>,
    written: &RawDestination,
    (position, line): (usize, Line),
    place: &Place<'_>,
    clusters: &mut Clusters<'_>,
) -> Destination {
    let host = complete(sourced, written, place);
    let port = clusters.port(&host, written.port, place.port);
    let name = clusters::name(port, written.subset.as_deref().unwrap_or(""), &host);
    let (name, cluster) = clusters.need(&name);
    Destination {
        name,
        cluster,
        position,
        provenance: sourced.provenance(line),
    }
}
