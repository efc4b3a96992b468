//! Expectations of a test, compared with what the code of traffic answers. Pure.

use std::collections::BTreeMap;

use config_loader::{Expectation, Expected, ExpectedDestination, Location};

use crate::explain::answer::{Action, DestinationChoice, Edit, Outcome};
use crate::explain::{Explanation, duration, parts};

/// Largest difference of two percentages that count as equal.
const TOLERANCE_PERCENT: f64 = 0.5;

/// Expectation that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// Field of `expect`.
    pub field: String,
    pub expected: String,
    pub got: String,
    pub location: Location,
}

/// Returns what does not hold of one answer. `own_cluster` is the key of the proxy's own Kubernetes cluster.
pub(super) fn differences(
    expected: &[Expected],
    answer: &Explanation,
    own_cluster: &str,
) -> Vec<Difference> {
    let differs = |one: &Expected| {
        let (expected, got) = compare(&one.what, answer, own_cluster)?;
        Some(Difference {
            field: one.field.clone(),
            expected,
            got,
            location: one.location.clone(),
        })
    };
    expected.iter().filter_map(differs).collect()
}

/// Returns what is expected and what it is instead; `None` if it holds.
fn compare(what: &Expectation, answer: &Explanation, own: &str) -> Option<(String, String)> {
    let none = Action::default();
    let action = answer.action.as_ref().unwrap_or(&none);
    let is_forwarded = matches!(answer.outcome, Outcome::Forwarded { .. });
    if !is_forwarded && is_of_forwarding(what) {
        let got = format!("status {}", status_of(&answer.outcome));
        return Some(("a request that is forwarded".to_owned(), got));
    }
    match what {
        Expectation::Status(_)
        | Expectation::Flags(_)
        | Expectation::Rule(_)
        | Expectation::Allowed(_)
        | Expectation::RedirectStatus(_)
        | Expectation::RedirectLocation(_) => outcome_differs(what, answer),
        Expectation::Destinations(wanted) => {
            let got: Vec<_> = used(answer).map(Target::of_destination).collect();
            targets_differ(wanted, &got)
        }
        Expectation::Mirrors(wanted) => {
            let mirrors = action.mirrors.iter();
            let got: Vec<_> = mirrors
                .map(|one| Target::new(parts(&one.name), one.percent))
                .collect();
            targets_differ(wanted, &got)
        }
        Expectation::Clusters(wanted) => {
            let shares = cluster_shares(answer, own);
            shares_differ(wanted, &shares, is_cluster)
        }
        Expectation::Endpoints(wanted) => {
            let is = |address: &str, key: &str| key == address;
            shares_differ(wanted, &endpoint_shares(answer), is)
        }
        Expectation::Path(_)
        | Expectation::Authority(_)
        | Expectation::RequestHeader(..)
        | Expectation::ResponseHeader(..) => message_differs(what, answer, action),
        Expectation::Timeout(_)
        | Expectation::RetryAttempts(_)
        | Expectation::RetryOn(_)
        | Expectation::PerTryTimeout(_) => times_differ(what, action),
        // of all answers together
        Expectation::SameEndpoint | Expectation::Spread(_) => None,
    }
}

/// Whether an expectation is of requests that are forwarded.
fn is_of_forwarding(what: &Expectation) -> bool {
    match what {
        Expectation::Destinations(wanted) | Expectation::Mirrors(wanted) => !wanted.is_empty(),
        Expectation::Clusters(_)
        | Expectation::Endpoints(_)
        | Expectation::Path(_)
        | Expectation::Authority(_)
        | Expectation::RequestHeader(..)
        | Expectation::Timeout(_)
        | Expectation::RetryAttempts(_)
        | Expectation::RetryOn(_)
        | Expectation::PerTryTimeout(_)
        | Expectation::SameEndpoint
        | Expectation::Spread(_) => true,
        Expectation::Status(_)
        | Expectation::Flags(_)
        | Expectation::Rule(_)
        | Expectation::Allowed(_)
        | Expectation::ResponseHeader(..)
        | Expectation::RedirectStatus(_)
        | Expectation::RedirectLocation(_) => false,
    }
}

/// Compares what the proxy itself answers, and why.
fn outcome_differs(what: &Expectation, answer: &Explanation) -> Option<(String, String)> {
    let redirect = match &answer.outcome {
        Outcome::Redirected { status, location } => Some((status, location)),
        _ => None,
    };
    let no_redirect = || "no redirect".to_owned();
    match what {
        Expectation::Status(status) => unequal(status.to_string(), status_of(&answer.outcome)),
        Expectation::Flags(flags) => unequal(flags.to_string(), flags_of(&answer.outcome)),
        Expectation::Rule(rule) => rule_differs(rule, answer),
        Expectation::Allowed(is_allowed) => {
            let denied = answer.authorization.as_ref();
            let denied = denied.and_then(|choice| choice.denied_by.as_deref());
            let got = denied.map_or("allowed".to_owned(), |by| format!("denied: {by}"));
            (denied.is_none() != *is_allowed).then(|| (allowed(*is_allowed).to_owned(), got))
        }
        Expectation::RedirectStatus(status) => {
            let got = redirect.map_or_else(no_redirect, |(status, _)| status.to_string());
            unequal(status.to_string(), got)
        }
        Expectation::RedirectLocation(wanted) => {
            let location = |(_, location): (_, &Option<String>)| location.clone();
            let got = redirect.map_or_else(no_redirect, |one| location(one).unwrap_or_default());
            unequal(wanted.to_string(), got)
        }
        _ => None,
    }
}

/// Compares what endpoints and clients receive.
fn message_differs(
    what: &Expectation,
    answer: &Explanation,
    action: &Action,
) -> Option<(String, String)> {
    match what {
        Expectation::Path(path) => of_each(answer, path, |one| path_of(answer, action, one)),
        Expectation::Authority(name) => of_each(answer, name, |one| {
            let sent = answer.request.authority.as_ref();
            let set = one.authority.as_ref().or(action.authority.as_ref());
            set.or(sent).cloned().unwrap_or_default()
        }),
        Expectation::RequestHeader(name, wanted) => {
            of_each(answer, wanted.as_deref().unwrap_or(ABSENT), |one| {
                let mut headers = answer.request.headers.clone();
                headers.retain(|(header, _)| **header == **name);
                let edits = one.edits.request_headers.iter();
                edited(headers, name, edits.chain(&action.edits.request_headers))
            })
        }
        Expectation::ResponseHeader(name, wanted) => {
            let nothing = DestinationChoice::default();
            let all: Vec<_> = used(answer).collect();
            let all = if all.is_empty() { vec![&nothing] } else { all };
            let wanted = wanted.as_deref().unwrap_or(ABSENT);
            all.into_iter().find_map(|one| {
                let edits = one.edits.response_headers.iter();
                let edits = edits.chain(&action.edits.response_headers);
                unequal(wanted.to_owned(), edited(Vec::new(), name, edits))
            })
        }
        _ => None,
    }
}

/// Compares the timeout and the retries.
fn times_differ(what: &Expectation, action: &Action) -> Option<(String, String)> {
    let retries = action.retries.as_ref();
    match what {
        Expectation::Timeout(time) => unequal(shown_time(*time), or_none(action.timeout.as_ref())),
        Expectation::RetryAttempts(count) => {
            let got = retries.map_or(0, |one| one.attempts);
            unequal(count.to_string(), got.to_string())
        }
        Expectation::RetryOn(on) => {
            let sorted = |mut words: Vec<String>| {
                words.sort_unstable();
                words.join(", ")
            };
            let wanted = on.iter().map(ToString::to_string).collect();
            let got = retries.map(|one| one.on.clone());
            unequal(sorted(wanted), sorted(got.unwrap_or_default()))
        }
        Expectation::PerTryTimeout(time) => {
            let got = retries.and_then(|one| one.per_try_timeout.as_ref());
            unequal(shown_time(*time), or_none(got))
        }
        _ => None,
    }
}

/// Word for a header that is not there.
const ABSENT: &str = "absent";

/// Whether a Kubernetes cluster with this key is meant by a key or name.
pub(super) fn is_cluster(name: &str, key: &str) -> bool {
    key == name || key.rsplit('/').next() == Some(name)
}

fn unequal(expected: String, got: String) -> Option<(String, String)> {
    (expected != got).then_some((expected, got))
}

fn allowed(is_allowed: bool) -> &'static str {
    if is_allowed { "allowed" } else { "denied" }
}

fn or_none(text: Option<&String>) -> String {
    text.map_or("none".to_owned(), Clone::clone)
}

fn shown_time(time: Option<std::time::Duration>) -> String {
    time.map_or("none".to_owned(), duration)
}

/// Returns the status that the client gets of the proxy: 200 if an endpoint answers.
pub(super) fn status_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::DirectResponse { status } | Outcome::Redirected { status, .. } => {
            status.to_string()
        }
        Outcome::Forwarded { partly: false } => "200".to_owned(),
        Outcome::Forwarded { partly: true } => {
            "200 of some destinations; others cannot respond".to_owned()
        }
        Outcome::Rejected {
            status: Some(status),
            ..
        } => status.to_string(),
        Outcome::Rejected { reason, .. } => format!("none, the connection is closed: {reason}"),
        Outcome::Unavailable { reason } => reply(reason).0,
    }
}

fn flags_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rejected { flags, .. } => flags.clone(),
        Outcome::Unavailable { reason } => reply(reason).1,
        _ => "-".to_owned(),
    }
}

/// Returns status and flags of `all requests get 503 UH; no endpoint`; the whole reason if it has none.
fn reply(reason: &str) -> (String, String) {
    let reply = reason.split(';').next().unwrap_or_default();
    let words: Vec<&str> = reply.split_whitespace().collect();
    let status = words.iter().position(|word| word.parse::<u16>().is_ok());
    let status = status.map_or(reason.to_owned(), |at| words[at].to_owned());
    let flags = words.last().copied().unwrap_or_default();
    (status, flags.to_owned())
}

fn rule_differs(wanted: &str, answer: &Explanation) -> Option<(String, String)> {
    let won = answer.rules.iter().find(|rule| rule.matched);
    if won.is_some_and(|won| won.name == wanted || won.source.object == wanted) {
        return None;
    }
    let got = won.map_or("no rule".to_owned(), |won| {
        let (source, name) = (&won.source, &won.name);
        let name = if name.is_empty() { "unnamed" } else { name };
        format!(
            "{name} of {} ({}:{})",
            source.object, source.file, source.line
        )
    });
    Some((wanted.to_owned(), got))
}

/// Destinations that get traffic.
pub(super) fn used(answer: &Explanation) -> impl Iterator<Item = &DestinationChoice> {
    let all = answer.destinations.iter();
    all.filter(|one| one.unused_reason.is_none())
}

/// Compares a text with that of each destination.
fn of_each(
    answer: &Explanation,
    wanted: &str,
    of: impl Fn(&DestinationChoice) -> String,
) -> Option<(String, String)> {
    if used(answer).next().is_none() {
        return Some((wanted.to_owned(), "the request is not forwarded".to_owned()));
    }
    used(answer).find_map(|one| unequal(wanted.to_owned(), of(one)))
}

fn path_of(answer: &Explanation, action: &Action, destination: &DestinationChoice) -> String {
    let changed = destination.path.as_ref().or(action.path.as_ref());
    if let Some(change) = changed {
        return change.after.clone();
    }
    let request = &answer.request;
    match &request.query {
        Some(query) => format!("{}?{query}", request.path),
        None => request.path.clone(),
    }
}

/// Returns the value of a header after edits, `absent` for none; several lines are joined by a comma.
fn edited<'e>(
    mut lines: Vec<(String, String)>,
    name: &str,
    edits: impl Iterator<Item = &'e Edit>,
) -> String {
    for edit in edits.filter(|edit| edit.name == name) {
        if edit.operation != "add" {
            lines.clear();
        }
        if let Some(value) = edit.value.as_ref().filter(|_| edit.operation != "remove") {
            lines.push((name.to_owned(), value.clone()));
        }
    }
    let lines: Vec<&str> = lines.iter().map(|(_, value)| value.as_str()).collect();
    match lines.is_empty() {
        true => ABSENT.to_owned(),
        false => lines.join(","),
    }
}

/// Destination or mirror that was found.
struct Target {
    host: String,
    port: u16,
    subset: String,
    percent: f64,
}

impl Target {
    fn new((host, port, subset): (String, u16, String), percent: f64) -> Self {
        Self {
            host,
            port,
            subset,
            percent,
        }
    }

    fn of_destination(one: &DestinationChoice) -> Self {
        let name = (one.host.clone(), one.port, one.subset.clone());
        Self::new(name, one.probability * 100.0)
    }

    fn is(&self, wanted: &ExpectedDestination) -> bool {
        self.host == *wanted.host
            && wanted.port.is_none_or(|port| port == self.port)
            && (wanted.subset.as_deref()).is_none_or(|subset| subset == self.subset)
            && wanted.percent.is_none_or(|one| is_near(one, self.percent))
    }

    fn shown(&self) -> String {
        let subset = match &*self.subset {
            "" => String::new(),
            subset => format!(" subset {subset}"),
        };
        format!(
            "{}:{}{subset} {} %",
            self.host,
            self.port,
            rounded(self.percent)
        )
    }
}

fn targets_differ(wanted: &[ExpectedDestination], got: &[Target]) -> Option<(String, String)> {
    let has_all = wanted
        .iter()
        .all(|wanted| got.iter().any(|one| one.is(wanted)));
    let has_no_other = got
        .iter()
        .all(|one| wanted.iter().any(|wanted| one.is(wanted)));
    if has_all && has_no_other {
        return None;
    }
    let shown = |one: &ExpectedDestination| {
        let port = one.port.map_or(String::new(), |port| format!(":{port}"));
        let subset = one.subset.as_ref();
        let subset = subset.map_or(String::new(), |subset| format!(" subset {subset}"));
        let share = one
            .percent
            .map(|percent| format!(" {} %", rounded(percent)));
        format!("{}{port}{subset}{}", one.host, share.unwrap_or_default())
    };
    let got: Vec<String> = got.iter().map(Target::shown).collect();
    Some((joined(wanted.iter().map(shown)), joined(got)))
}

fn joined(texts: impl IntoIterator<Item = String>) -> String {
    let texts: Vec<String> = texts.into_iter().collect();
    match texts.is_empty() {
        true => "nothing".to_owned(),
        false => texts.join(", "),
    }
}

/// Percentage of the traffic that each Kubernetes cluster gets. A destination that no other cluster serves is of the
/// proxy's own.
fn cluster_shares(answer: &Explanation, own: &str) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    for one in used(answer) {
        let members = one.cluster.iter().flat_map(|used| &used.member_clusters);
        let mut any = false;
        for member in members {
            any = true;
            *shares.entry(member.cluster_key.clone()).or_default() +=
                member.share * one.probability * 100.0;
        }
        if !any {
            *shares.entry(own.to_owned()).or_default() += one.probability * 100.0;
        }
    }
    shares
}

/// Percentage of the traffic that each endpoint gets.
pub(super) fn endpoint_shares(answer: &Explanation) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    let used = used(answer).filter_map(|one| one.cluster.as_ref());
    for endpoint in used.flat_map(|used| &used.endpoints) {
        *shares.entry(endpoint.address.clone()).or_default() +=
            endpoint.probability.unwrap_or_default() * 100.0;
    }
    shares
}

/// Compares percentages by name; what is not named gets nothing.
fn shares_differ(
    wanted: &[(std::sync::Arc<str>, f64)],
    got: &BTreeMap<String, f64>,
    is: impl Fn(&str, &str) -> bool,
) -> Option<(String, String)> {
    let of = |name: &str| -> f64 {
        let named = got.iter().filter(|(key, _)| is(name, key));
        named.map(|(_, share)| share).sum()
    };
    let is_named = |key: &str| wanted.iter().any(|(name, _)| is(name, key));
    let holds = wanted.iter().all(|(name, share)| is_near(*share, of(name)))
        && got
            .iter()
            .all(|(key, share)| is_named(key) || is_near(*share, 0.0));
    let shown = |name: &str, share: f64| format!("{name} {} %", rounded(share));
    let expected = wanted.iter().map(|(name, share)| shown(name, *share));
    let got = got.iter().map(|(name, share)| shown(name, *share));
    (!holds).then(|| (joined(expected), joined(got)))
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= TOLERANCE_PERCENT
}

fn rounded(percent: f64) -> f64 {
    (percent * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_of_an_unavailable_destination_is_read_from_its_reason() {
        let reason = "all requests get 503 UH; every endpoint is out";
        assert_eq!(reply(reason), ("503".to_owned(), "UH".to_owned()));
        let outcome = Outcome::Unavailable {
            reason: "all connections are closed, UF; refused".to_owned(),
        };
        assert_eq!(
            status_of(&outcome),
            "all connections are closed, UF; refused"
        );
    }

    #[test]
    fn later_edits_of_a_header_win() {
        let edit = |operation: &str, value: &str| Edit {
            operation: operation.to_owned(),
            name: "x-env".to_owned(),
            value: Some(value.to_owned()),
        };
        let sent = vec![("x-env".to_owned(), "a".to_owned())];
        let edited = |edits: &[Edit]| edited(sent.clone(), "x-env", edits.iter());
        assert_eq!(edited(&[]), "a");
        assert_eq!(edited(&[edit("add", "b")]), "a,b");
        let both = [edit("set", "b"), edit("add", "c")];
        assert_eq!(edited(&both), "b,c");
        assert_eq!(edited(&[edit("set", "b"), edit("remove", "")]), ABSENT);
    }
}
