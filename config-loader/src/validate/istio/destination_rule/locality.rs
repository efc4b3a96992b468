//! `localityLbSetting` and `zoneAwareLbSetting`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::diagnostic::Code;
use crate::diagnostic::codes::istio::{
    DR162, DR163, DR164, DR165, DR166, DR167, DR168, DR169, DR170, DR171, DR172, DR173, DR305,
};
use crate::raw::{self, Field, Map};
use crate::resource::istio::{
    Distribute, Failover, FailoverLabel, LocalityPattern, LocalitySetting, ZoneAwareSetting,
};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Labels that name a locality.
const LOCALITY_LABELS: [&str; 3] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.istio.io/subzone",
];

/// Returns the locality settings. `outliers` tells whether endpoints can be ejected.
pub(in crate::validate::istio) fn locality_setting(
    field: &Field<raw::istio::LocalityLoadBalancerSetting>,
    outliers: bool,
    check: &mut Check<'_>,
) -> Option<LocalitySetting> {
    let raw = field.get()?;
    let failover = ("failover", shared::list(&raw.failover));
    let priority = ("failoverPriority", shared::list(&raw.failover_priority));
    let help = "distribute says where all traffic goes: remove one of them";
    shared::exclude(
        [("distribute", shared::list(&raw.distribute)), failover],
        DR162,
        help,
        check,
    );
    let enabled = raw.enabled.get().copied().unwrap_or(true);
    if enabled && !outliers {
        needs_outliers(&[failover, priority], check);
    }
    let labels = if failover.1.is_none() {
        None
    } else {
        Some(DR163)
    };
    Some(LocalitySetting {
        enabled,
        distribute: distribute(&raw.distribute, check),
        failover: failovers(&raw.failover, check),
        failover_priority: failover_priority(&raw.failover_priority, labels, check),
        line: check.line(field.span()),
    })
}

/// Returns the zone-aware settings.
pub(super) fn zone_aware_setting(
    field: &Field<raw::istio::ZoneAwareLoadBalancerSetting>,
    outliers: bool,
    check: &mut Check<'_>,
) -> Option<ZoneAwareSetting> {
    let raw = field.get()?;
    let enabled = raw.enabled.get().copied().unwrap_or(true);
    if enabled && !outliers {
        let failover = ("failover", shared::list(&raw.failover));
        let priority = ("failoverPriority", shared::list(&raw.failover_priority));
        needs_outliers(&[failover, priority], check);
    }
    let least = scalar::non_negative(&raw.min_cluster_size, "minClusterSize", DR305, check);
    Some(ZoneAwareSetting {
        enabled,
        // 0 is what a missing number means.
        cluster_size_min: least
            .filter(|least| *least > 0)
            .unwrap_or(ZoneAwareSetting::CLUSTER_SIZE_MIN_DEFAULT),
        failover: failovers(&raw.failover, check),
        failover_priority: failover_priority(&raw.failover_priority, Some(DR173), check),
        line: check.line(field.span()),
    })
}

fn needs_outliers(settings: &[(&str, Span)], check: &mut Check<'_>) {
    if let Some((name, span)) = settings.iter().find(|(_, span)| !span.is_none()) {
        check
            .warning(
                DR172,
                *span,
                format!("without outlierDetection, `{name}` acts only on endpoints that take no connection"),
            )
            .help("write `outlierDetection`, which tells when endpoints have failed; Istio does nothing without it");
    }
}

fn distribute(
    field: &Field<Vec<Field<raw::istio::Distribute>>>,
    check: &mut Check<'_>,
) -> Vec<Distribute> {
    let mut patterns = Vec::new();
    let mut entries = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let text = raw.from.get().map_or("", String::as_str);
        let span = shared::location(&raw.from, entry.span());
        let from = pattern(text, span, check);
        patterns.push((from.clone(), text, span));
        entries.push(Distribute {
            from,
            to: shares(&raw.to, text, entry.span(), check),
            line: check.line(entry.span()),
        });
    }
    overlaps(&patterns, check);
    entries
}

fn shares(
    field: &Field<Map<i64>>,
    from: &str,
    around: Span,
    check: &mut Check<'_>,
) -> BTreeMap<LocalityPattern, u32> {
    let mut patterns = Vec::new();
    let mut shares = BTreeMap::new();
    let mut sum: u64 = 0;
    let mut bad = field.is_invalid();
    for (text, key, value) in field.get().into_iter().flat_map(Map::iter) {
        let to = pattern(text, key.span(), check);
        patterns.push((to.clone(), text, key.span()));
        let weight = scalar::in_range(value, 1..=100, "weight", DR164, check);
        bad |= weight.is_none();
        let weight = weight
            .and_then(|weight| u32::try_from(weight).ok())
            .unwrap_or(0);
        sum += u64::from(weight);
        shares.insert(to, weight);
    }
    overlaps(&patterns, check);
    if sum != 100 && !bad {
        check
            .error(
                DR165,
                shared::location(field, around),
                format!("the weights of `{from}` sum to {sum}, not 100"),
            )
            .help("they are percentages of the traffic");
    }
    shares
}

/// Parses a locality pattern.
fn pattern(text: &str, span: Span, check: &mut Check<'_>) -> LocalityPattern {
    let parts: Vec<&str> = text.split('/').collect();
    let wild = parts.iter().position(|part| part.contains('*'));
    if parts.iter().any(|part| part.is_empty()) {
        check
            .error(DR166, span, format!("locality `{text}` has an empty part"))
            .help("write `region`, `region/zone` or `region/zone/subzone`; `*` for any");
    } else if parts.len() > 3 {
        check
            .error(
                DR166,
                span,
                format!("locality `{text}` has {} parts", parts.len()),
            )
            .help("write `region`, `region/zone` or `region/zone/subzone`");
    } else if wild.is_some_and(|at| at + 1 < parts.len() || parts[at] != "*") {
        check
            .error(
                DR167,
                span,
                format!("the wildcard in `{text}` must be the last part"),
            )
            .help("`region/*` represents all of a region");
    }
    LocalityPattern::parse(text)
}

/// Reports localities that overlap an earlier entry. Two patterns overlap if one is a prefix of the other.
fn overlaps(patterns: &[(LocalityPattern, &str, Span)], check: &mut Check<'_>) {
    let mut known: HashMap<&[Arc<str>], (&str, Span)> = HashMap::new();
    for (pattern, text, span) in patterns {
        match known.get(pattern.parts.as_slice()) {
            Some(first) => overlap([*first, (text, *span)], check),
            None => drop(known.insert(&pattern.parts, (text, *span))),
        }
    }
    for (pattern, text, span) in patterns {
        let shorter = (0..pattern.parts.len()).find_map(|len| known.get(&pattern.parts[..len]));
        if let Some(other) = shorter {
            overlap([*other, (text, *span)], check);
        }
    }
}

fn overlap(mut entries: [(&str, Span); 2], check: &mut Check<'_>) {
    entries.sort_by_key(|(_, span)| *span);
    let [first, second] = entries;
    let location = check.location(first.1);
    check
        .error(
            DR168,
            second.1,
            format!("locality `{}` overlaps `{}`", second.0, first.0),
        )
        .help("a locality may be meant by one entry only: remove one, or narrow it to a zone")
        .related(location, format!("`{}` is here", first.0));
}

fn failovers(
    field: &Field<Vec<Field<raw::istio::Failover>>>,
    check: &mut Check<'_>,
) -> Vec<Failover> {
    let mut failovers = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let from = region(&raw.from, entry.span(), check);
        let to = region(&raw.to, entry.span(), check);
        if from == to && !from.is_empty() {
            check
                .error(
                    DR169,
                    entry.span(),
                    format!("failover from `{from}` to itself"),
                )
                .help("name another region under `to`");
        }
        failovers.push(Failover {
            from,
            to,
            line: check.line(shared::location(&raw.to, entry.span())),
        });
    }
    failovers
}

fn region(field: &Field<String>, around: Span, check: &mut Check<'_>) -> Arc<str> {
    let region = shared::text(field).unwrap_or("");
    let span = shared::location(field, around);
    if region.contains('*') {
        check
            .error(DR171, span, "failover regions take no wildcard")
            .help("name one region");
    } else if region.contains('/') {
        let name = region.split('/').next().unwrap_or("");
        check
            .error(DR170, span, format!("`{region}` is not a region"))
            .help(format!("write `{name}`, without zones"));
    } else if region.is_empty() && !field.is_invalid() {
        check
            .error(DR170, span, "failover without region")
            .help("write `from` and `to`");
    }
    Arc::from(region)
}

/// Returns the labels of a failover priority. If there is a code for it, none of them may name a locality.
fn failover_priority(
    field: &Field<Vec<Field<String>>>,
    refuse: Option<Code>,
    check: &mut Check<'_>,
) -> Vec<FailoverLabel> {
    let mut labels = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(Arc::from(value))),
            None => (text.as_str(), None),
        };
        if let Some(code) = refuse.filter(|_| LOCALITY_LABELS.contains(&key)) {
            let message = if code == DR163 {
                format!("failover excludes `{key}` in failoverPriority")
            } else {
                format!("`{key}` is implied by zone-aware balancing")
            };
            check.error(code, entry.span(), message).help("remove it");
        }
        labels.push(FailoverLabel {
            key: Arc::from(key),
            value,
        });
    }
    labels
}
