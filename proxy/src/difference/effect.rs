//! Effect of the configuration on a request, as texts by field, and the differences between two effects.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::explain::Explanation;
use crate::explain::answer::{
    Action, ClusterUsed, DestinationChoice, Edit, Edits, MirrorChoice, Outcome, Retries,
};

/// Texts by field.
pub type Fields = BTreeMap<String, String>;

/// Fields that protect clients or workloads: a request that loses one is affected even if it is still served.
const PROTECTIONS: [&str; 3] = ["timeout", "limits", "check"];

/// The same of a destination, behind its name.
const PROTECTIONS_OF_DESTINATIONS: [&str; 2] = [" tls", " connection limits"];

/// Difference in one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FieldChange {
    /// Field, such as `destinations` or `timeout`.
    pub field: String,
    /// Text before; `None` if there was none.
    pub before: Option<String>,
    /// Text after; `None` if there is none.
    pub after: Option<String>,
}

/// Effect on a request: fields of the request, and fields of each destination by its name.
#[derive(Debug, Default)]
struct Effect {
    fields: Fields,
    destinations: BTreeMap<String, Fields>,
}

/// Returns the fields that differ. Destinations are compared if they get requests before and after.
pub(super) fn changes(old: &Explanation, new: &Explanation) -> Vec<FieldChange> {
    let is_forwarded = |one: &Explanation| !one.destinations.is_empty();
    let is_other_kind = is_forwarded(old) != is_forwarded(new);
    let (old_outcome, new_outcome) = (outcome(&old.outcome), outcome(&new.outcome));
    let (mut old, mut new) = (effect(old), effect(new));
    if is_other_kind || is_refused(&old_outcome) && old_outcome == new_outcome {
        // what a request that goes nowhere no longer gets is no news
        let told: &[&str] = match old_outcome == new_outcome {
            true => &["outcome", "authorization"],
            false => &["outcome", "destinations", "authorization"],
        };
        old.fields.retain(|name, _| told.contains(&name.as_str()));
        new.fields.retain(|name, _| told.contains(&name.as_str()));
    }
    let mut changes = differing("", &old.fields, &new.fields);
    for (name, before) in &old.destinations {
        if let Some(after) = new.destinations.get(name) {
            changes.extend(differing(name, before, after));
        }
    }
    changes
}

/// Whether no destination takes part in an outcome in short.
fn is_refused(outcome: &str) -> bool {
    outcome.starts_with("refused") || outcome.starts_with("closed")
}

fn differing(of: &str, old: &Fields, new: &Fields) -> Vec<FieldChange> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name));
    differing
        .map(|name| FieldChange {
            field: format!("{of} {name}").trim_start().to_owned(),
            before: old.get(name).cloned(),
            after: new.get(name).cloned(),
        })
        .collect()
}

/// Whether a request that was served is refused or goes elsewhere by a redirect, or loses a protection.
pub(super) fn is_breaking(changes: &[FieldChange], old: &Outcome, new: &Outcome) -> bool {
    let was_served = matches!(old, Outcome::Forwarded { .. })
        || matches!(old, Outcome::DirectResponse { status } if *status < 400);
    let is_refused = match new {
        Outcome::DirectResponse { status } => *status >= 400,
        Outcome::Forwarded { partly } => *partly && *old == Outcome::FORWARDED,
        Outcome::Redirected { .. } | Outcome::Rejected { .. } | Outcome::Unavailable { .. } => true,
    };
    let location = |one: &Outcome| match one {
        Outcome::Redirected { location, .. } => Some(location.clone()),
        _ => None,
    };
    let goes_elsewhere = location(old).is_some() && location(old) != location(new);
    let is_opened =
        |one: &FieldChange| one.field == "authorization" && one.before.as_deref() == Some("denied");
    let is_lost = |one: &FieldChange| {
        let is_protection = PROTECTIONS.contains(&one.field.as_str())
            || (PROTECTIONS_OF_DESTINATIONS.iter()).any(|name| one.field.ends_with(name));
        is_protection && one.before.is_some() && one.after.is_none()
    };
    was_served && is_refused
        || goes_elsewhere
        || changes.iter().any(|one| is_opened(one) || is_lost(one))
}

/// Returns the effect on a request, without the places in the configuration.
fn effect(answer: &Explanation) -> Effect {
    let mut destinations = BTreeMap::new();
    let mut fields = Fields::new();
    fields.insert("outcome".to_owned(), outcome(&answer.outcome));
    if let Some(action) = &answer.action {
        of_action(action, &mut fields);
    }
    let used: Vec<&DestinationChoice> = answer
        .destinations
        .iter()
        .filter(|one| one.unused_reason.is_none())
        .collect();
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for one in &used {
        *shares
            .entry(name(&one.host, one.port, &one.subset))
            .or_default() += one.probability;
    }
    let shares = shares.iter();
    let shares = shares.map(|(name, share)| format!("{name} {} %", percent(*share)));
    put(&mut fields, "destinations", lines(shares));
    for one in used {
        let name = name(&one.host, one.port, &one.subset);
        destinations.insert(name, of_destination(one));
    }
    if let Some(choice) = &answer.authorization {
        let decision = match choice.denied_by {
            Some(_) => "denied",
            None => "allowed",
        };
        fields.insert("authorization".to_owned(), decision.to_owned());
        put(
            &mut fields,
            "providers",
            lines(choice.asks.iter().map(|one| unplaced(one))),
        );
    }
    Effect {
        fields,
        destinations,
    }
}

fn put(fields: &mut Fields, name: &str, text: Option<String>) {
    fields.extend(text.map(|text| (name.to_owned(), text)));
}

fn of_action(action: &Action, fields: &mut Fields) {
    // every field is named, so that none is forgotten
    let Action {
        faults,
        cors,
        limits,
        check,
        body,
        path,
        authority,
        timeout,
        retries,
        mirrors,
        edits,
    } = action;
    for (name, texts) in [("faults", faults), ("cors", cors), ("limits", limits)] {
        put(fields, name, lines(texts.iter().map(|one| unplaced(one))));
    }
    put(fields, "check", check.clone());
    put(fields, "body", body.clone());
    put(fields, "path", path.as_ref().map(|one| one.after.clone()));
    put(fields, "authority", authority.clone());
    put(fields, "timeout", timeout.clone());
    put(fields, "retries", retries.as_ref().map(of_retries));
    let mirror = |one: &MirrorChoice| {
        let (host, port, subset) = crate::explain::parts(&one.name);
        format!("{} {} %", name(&host, port, &subset), rounded(one.percent))
    };
    put(fields, "mirrors", lines(mirrors.iter().map(mirror)));
    of_edits(edits, fields);
}

fn of_retries(retries: &Retries) -> String {
    let Retries {
        attempts,
        on,
        per_try_timeout,
        backoff,
    } = retries;
    let time = per_try_timeout.as_ref();
    let time = time.map_or(String::new(), |time| format!(", {time} each"));
    format!("{attempts} on {}{time}, after {backoff}", on.join(", "))
}

fn of_edits(edits: &Edits, fields: &mut Fields) {
    let edit = |edit: &Edit| {
        let value = edit.value.as_ref();
        let value = value.map_or(String::new(), |value| format!(": {value}"));
        format!("{} {}{value}", edit.operation, edit.name)
    };
    let Edits {
        request_headers,
        response_headers,
    } = edits;
    put(
        fields,
        "request headers",
        lines(request_headers.iter().map(edit)),
    );
    put(
        fields,
        "response headers",
        lines(response_headers.iter().map(edit)),
    );
}

fn of_destination(one: &DestinationChoice) -> Fields {
    let mut fields = Fields::new();
    put(&mut fields, "filters", lines(one.filters.iter().cloned()));
    put(&mut fields, "authority", one.authority.clone());
    of_edits(&one.edits, &mut fields);
    let reply = one.failure.as_deref();
    let reply = reply.map(|text| text.split(';').next().unwrap_or(text).to_owned());
    put(&mut fields, "failure", reply);
    if let Some(used) = &one.cluster {
        of_cluster(used, &mut fields);
    }
    fields
}

fn of_cluster(used: &ClusterUsed, fields: &mut Fields) {
    let texts = [
        ("protocol", Some(used.protocol.clone())),
        ("load balancer", Some(used.load_balancer.clone())),
        ("connect timeout", Some(used.connect_timeout.clone())),
        ("connection limits", lines(used.limits.iter().cloned())),
        ("tls", used.tls.clone()),
        ("health check", used.health_check.clone()),
    ];
    for (field, text) in texts {
        put(fields, field, text);
    }
    let members = used.member_clusters.iter().map(|one| {
        let share = rounded(one.share * 100.0);
        format!("{} tier {} {share} %", one.cluster_key, one.tier)
    });
    put(fields, "clusters", lines(members));
    let load = used.priorities.iter().map(|one| {
        let localities: Vec<String> = one
            .localities
            .iter()
            .map(|(name, weight)| format!("{name} {weight}"))
            .collect();
        format!("{} % {}", one.load, localities.join(" "))
    });
    put(fields, "priorities", lines(load));
}

/// Returns the outcome in short.
pub(super) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::DirectResponse { status } => format!("response {status}"),
        Outcome::Forwarded { partly: false } => "forwarded".to_owned(),
        Outcome::Forwarded { partly: true } => "forwarded, not by all destinations".to_owned(),
        Outcome::Redirected { status, location } => {
            format!(
                "redirect {status} to {}",
                location.as_deref().unwrap_or_default()
            )
        }
        Outcome::Rejected {
            status: Some(status),
            flags,
            ..
        } => format!("refused {status} {flags}"),
        Outcome::Rejected { flags, .. } => format!("closed {flags}").trim_end().to_owned(),
        Outcome::Unavailable { reason } => {
            let reply = reason.split(';').next().unwrap_or(reason);
            format!("unavailable, {reply}")
        }
    }
}

fn name(host: &str, port: u16, subset: &str) -> String {
    match subset {
        "" => format!("{host}:{port}"),
        subset => format!("{host}:{port} {subset}"),
    }
}

/// Returns a share in percent, with as many digits as it needs.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

fn rounded(percent: f64) -> f64 {
    (percent * 10.0).round() / 10.0
}

fn lines(texts: impl Iterator<Item = String>) -> Option<String> {
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Returns a text without the place behind it, which two spaces separate.
fn unplaced(text: &str) -> String {
    text.split("  ").next().unwrap_or(text).to_owned()
}
