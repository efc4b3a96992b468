//! Rules of AuthorizationPolicies that can never match, and rules that others cover. What cannot be told for certain does not
//! count.

use traffic::authz::{Attribute, Condition, Pattern, Values};

use crate::resource::istio::authorization_policy::{Alternative, Rule};

/// Whether no request can match a rule.
pub(super) fn is_impossible(rule: &Rule) -> bool {
    let when = || rule.when.iter();
    let never = |all: &[Alternative]| {
        let mut alternatives = all.iter();
        !all.is_empty() && alternatives.all(|one| contradicts(one.iter().chain(when())))
    };
    contradicts(when()) || never(&rule.from) || never(&rule.to)
}

/// Whether each request that matches `inner` matches `outer`, too.
pub(super) fn covers(outer: &Rule, inner: &Rule) -> bool {
    let implies = |conditions: &[Condition], one: &Condition| {
        conditions.iter().any(|known| implies(known, one))
    };
    let group = |outer: &[Alternative], inner: &[Alternative]| {
        let is_covered = |inner: &Alternative| {
            let mut outer = outer.iter();
            outer.any(|outer| outer.iter().all(|one| implies(inner, one)))
        };
        outer.is_empty() || (!inner.is_empty() && inner.iter().all(is_covered))
    };
    group(&outer.from, &inner.from)
        && group(&outer.to, &inner.to)
        && outer.when.iter().all(|one| implies(&inner.when, one))
}

/// Whether no request meets all of the conditions.
fn contradicts<'c>(conditions: impl Iterator<Item = &'c Condition>) -> bool {
    let all: Vec<&Condition> = conditions.collect();
    let is_empty = |one: &Condition| match (&one.values, &one.not_values) {
        (Some(values), Some(not_values)) => is_within(values, not_values),
        (None, Some(not_values)) => is_always_present(&one.attribute) && has_all(not_values),
        _ => false,
    };
    let is_disjoint = |one: &Condition, other: &Condition| {
        let (Some(values), Some(others)) = (&one.values, &other.values) else {
            return false;
        };
        one.attribute == other.attribute
            && has_one_text(&one.attribute)
            && are_disjoint(values, others)
    };
    let pairs = all.iter().enumerate();
    let mut pairs = pairs.flat_map(|(at, one)| all[at + 1..].iter().map(move |other| (one, other)));
    all.iter().any(|one| is_empty(one)) || pairs.any(|(one, other)| is_disjoint(one, other))
}

/// Whether a condition holds for each request for which the other one does.
fn implies(known: &Condition, wanted: &Condition) -> bool {
    let is_host = |attribute: &Attribute| matches!(attribute, Attribute::Host { .. });
    let is_same = known.attribute == wanted.attribute
        || (is_host(&known.attribute) && is_host(&wanted.attribute));
    let values = match (&known.values, &wanted.values) {
        (_, None) => true,
        (Some(known), Some(wanted)) => is_within(known, wanted),
        (None, Some(_)) => false,
    };
    let not_values = match (&known.not_values, &wanted.not_values) {
        (_, None) => true,
        (Some(known), Some(wanted)) => is_within(wanted, known),
        (None, Some(_)) => false,
    };
    is_same && values && not_values
}

/// Whether each text of the one list matches the other.
fn is_within(inner: &Values, outer: &Values) -> bool {
    match (inner, outer) {
        (Values::Texts(inner), Values::Texts(outer)) => {
            let is_in = |one: &Pattern| outer.iter().any(|other| other == one || takes(other, one));
            inner.iter().all(is_in)
        }
        (Values::Networks(inner), Values::Networks(outer)) => {
            let is_in = |one| outer.iter().any(|other: &ipnet::IpNet| other.contains(one));
            inner.iter().all(is_in)
        }
        (Values::Ports(inner), Values::Ports(outer)) => {
            inner.iter().all(|port| outer.contains(port))
        }
        (Values::Principals(inner), Values::Principals(outer)) => {
            inner.iter().all(|one| outer.contains(one))
        }
        _ => false,
    }
}

/// Whether a pattern matches each text that another one matches.
fn takes(outer: &Pattern, inner: &Pattern) -> bool {
    if let Some(text) = exact(inner) {
        return outer.matches(text.as_bytes(), false);
    }
    match (outer, inner) {
        (Pattern::Any, Pattern::Present) => false,
        (Pattern::Any | Pattern::Present, _) => true,
        (Pattern::Prefix(outer), Pattern::Prefix(inner)) => inner.starts_with(&**outer),
        (Pattern::Suffix(outer), Pattern::Suffix(inner)) => inner.ends_with(&**outer),
        _ => false,
    }
}

/// Returns the only text that a pattern matches.
fn exact(pattern: &Pattern) -> Option<&str> {
    match pattern {
        Pattern::Exact(text) => Some(text),
        Pattern::Glob(text) if !text.contains('*') => Some(text),
        _ => None,
    }
}

fn are_disjoint(one: &Values, other: &Values) -> bool {
    match (one, other) {
        (Values::Texts(one), Values::Texts(other)) => {
            let mut pairs = one
                .iter()
                .flat_map(|one| other.iter().map(move |other| (one, other)));
            pairs.all(|(one, other)| match (exact(one), exact(other)) {
                (Some(text), _) => !other.matches(text.as_bytes(), false),
                (_, Some(text)) => !one.matches(text.as_bytes(), false),
                (None, None) => false,
            })
        }
        (Values::Ports(one), Values::Ports(other)) => !one.iter().any(|port| other.contains(port)),
        _ => false,
    }
}

/// Whether a request has at most one text of the attribute.
fn has_one_text(attribute: &Attribute) -> bool {
    !matches!(
        attribute,
        Attribute::Header(_) | Attribute::Claim(_) | Attribute::Host { .. }
    )
}

fn is_always_present(attribute: &Attribute) -> bool {
    matches!(
        attribute,
        Attribute::Host { .. } | Attribute::Method | Attribute::Path
    )
}

fn has_all(values: &Values) -> bool {
    matches!(values, Values::Texts(patterns) if patterns.contains(&Pattern::Any))
}
