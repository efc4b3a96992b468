//! GlobalTrafficPolicy: the checks of its API and its webhook.

use crate::diagnostic::codes::multicluster::{
    GTP001, GTP002, GTP003, GTP004, GTP005, GTP006, GTP007, GTP009,
};
use crate::diagnostic::suggest;
use crate::raw::Field;
use crate::raw::flomesh as raw;
use crate::resource::flomesh::{ClusterBalancing, GlobalTrafficPolicy, TrafficTarget};
use crate::span::Span;
use crate::validate::{Check, api, scalar};

const BALANCINGS: [(&str, ClusterBalancing); 3] = [
    ("ActiveActive", ClusterBalancing::ActiveActive),
    ("FailOver", ClusterBalancing::FailOver),
    ("Locality", ClusterBalancing::Locality),
];

/// The only value of the failover order annotation.
const ORDERED: &str = "ordered";

/// Checks a GlobalTrafficPolicy.
pub fn global_traffic_policy(
    raw: &raw::GlobalTrafficPolicy,
    check: &mut Check<'_>,
) -> GlobalTrafficPolicy {
    let empty = raw::GlobalTrafficPolicySpec::default();
    let spec = raw.spec.get().unwrap_or(&empty);
    let balancing = api::enum_of(&spec.lb_type, &BALANCINGS, check);
    let targets = targets(&spec.targets, balancing, check);
    let count = spec.targets.get().map_or(0, Vec::len);
    match balancing {
        Some(ClusterBalancing::FailOver) if count == 0 && !spec.targets.is_invalid() => {
            let why = "at least one backup cluster is required for FailOver";
            if spec.targets.is_set() {
                let message = format!("Required value: {why}");
                check.error(GTP004, spec.targets.span(), message);
            } else {
                api::required(raw.spec.span(), "targets", why, GTP004, check);
            }
        }
        None | Some(ClusterBalancing::Locality) if !unknown(&spec.lb_type, balancing) => {
            locality(spec, count, check);
        }
        _ => {}
    }
    GlobalTrafficPolicy {
        balancing: balancing.unwrap_or_default(),
        targets,
        is_ordered: is_ordered(balancing, check),
    }
}

/// Whether the annotation orders the backups.
fn is_ordered(balancing: Option<ClusterBalancing>, check: &mut Check<'_>) -> bool {
    let Some(field) = check.annotations().get(GlobalTrafficPolicy::FAILOVER_ORDER) else {
        return false;
    };
    let is_ordered = field.get().is_some_and(|text| text == ORDERED);
    if !is_ordered {
        let text = field.get().map_or("", String::as_str);
        let message = format!("{text:?} is no order: backups share by weight");
        let near = suggest::nearest(text, [ORDERED]);
        check
            .warning(GTP009, field.span(), message)
            .help(match near {
                Some(_) => "did you mean `ordered`?",
                None => "write `ordered`, or remove the annotation",
            });
    } else if let Some(kind) = balancing.filter(|kind| *kind != ClusterBalancing::FailOver) {
        let known = BALANCINGS.iter().find(|(_, known)| *known == kind);
        let name = known.map_or("", |(name, _)| *name);
        check
            .warning(
                GTP009,
                field.span(),
                format!("the annotation has no effect: {name} has no backups to put in order"),
            )
            .help("write `lbType: FailOver`, or remove the annotation");
    }
    is_ordered
}

/// Whether the type is unknown, so that its targets cannot be checked.
fn unknown(field: &Field<String>, balancing: Option<ClusterBalancing>) -> bool {
    let written = field.is_invalid() || field.get().is_some_and(|text| !text.is_empty());
    written && balancing.is_none()
}

fn locality(spec: &raw::GlobalTrafficPolicySpec, count: usize, check: &mut Check<'_>) {
    let span = spec.targets.span();
    if count > 1 {
        let rule = "Locality keeps traffic in exactly one cluster, at most one target is allowed";
        check
            .error(GTP003, span, format!("Invalid value: {count}: {rule}"))
            .help("to share traffic between clusters, write `lbType: ActiveActive` or `lbType: FailOver`");
    } else if count == 1 {
        check.warning(
            GTP007,
            span,
            "the target has no effect: Locality keeps traffic in the local cluster",
        );
    }
}

fn targets(
    field: &Field<Vec<Field<raw::TrafficTarget>>>,
    balancing: Option<ClusterBalancing>,
    check: &mut Check<'_>,
) -> Vec<TrafficTarget> {
    let mut seen: Vec<(&str, Span)> = Vec::new();
    let mut targets = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let key = &raw.cluster_key;
        if !key.is_set() {
            api::required(entry.span(), "clusterKey", "", GTP001, check);
        }
        if let Some(text) = key.get() {
            match seen.iter().find(|(known, _)| known == text) {
                Some((_, first)) => api::duplicate(text, key.span(), *first, GTP002, check),
                None => seen.push((text, key.span())),
            }
        }
        let cluster = api::cluster_key(key, GTP001, check);
        let weight = weight(&raw.weight, check);
        if balancing == Some(ClusterBalancing::Locality) && raw.weight.is_set() {
            check.warning(
                GTP007,
                raw.weight.span(),
                "the weight has no effect: Locality keeps traffic in the local cluster",
            );
        }
        let line = check.line(entry.span());
        targets.extend(cluster.map(|cluster| TrafficTarget {
            cluster,
            weight,
            line,
        }));
    }
    let sum: u64 = targets.iter().map(|target| u64::from(target.weight)).sum();
    if sum > u64::from(u32::MAX) {
        let message = format!("Invalid value: {sum}: sum of weights must not exceed 4294967295");
        check.error(GTP006, field.span(), message);
    }
    targets
}

fn weight(field: &Field<i64>, check: &mut Check<'_>) -> u32 {
    let Some(&value) = field.get() else {
        return TrafficTarget::WEIGHT_DEFAULT;
    };
    if value < 0 {
        let message = format!("Invalid value: {value}: must be greater than or equal to 0");
        check.error(GTP005, field.span(), message);
        return 0;
    }
    u32::try_from(value).unwrap_or_else(|_| {
        let message = format!("Invalid value: {value}: sum of weights must not exceed 4294967295");
        check.error(GTP006, field.span(), message);
        0
    })
}

#[cfg(test)]
mod tests;
