//! Effect of the matching rule on the request.

use std::net::IpAddr;

use http::Request;

use super::answer::{Action, Change, Edit, Edits, MirrorChoice, Outcome, Retries};
use super::duration::duration;
use super::{early, limits, secret};
use crate::exchange::downstream::connection::Connection;
use crate::exchange::select::find_route;
use crate::snapshot::{Route, Snapshot};
use traffic::filter::mirror::WHOLE;
use traffic::filter::{self, Early, HeaderEdit, Mirrors, RetryPolicy, RouteFilters, Scheme};
use traffic::limit::CountedRequest;
use traffic::route::normalize_host;

/// Maximum bytes of a direct response that are shown.
const BODY_SHOWN_MAX: usize = 120;

/// Request that is explained, with a normalized path.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExplainedRequest<'a> {
    /// Connection of the client.
    pub connection: &'a Connection,
    /// Scheme of the client.
    pub scheme: Scheme,
    /// Address of the client.
    pub client: IpAddr,
    /// Head of the request.
    pub head: &'a Request<()>,
}

/// Returns the effect of a route on a request, and the outcome.
pub(super) fn of(
    route: &Route,
    snapshot: &Snapshot,
    request: ExplainedRequest<'_>,
) -> (Action, Outcome) {
    let ExplainedRequest {
        connection,
        scheme,
        client: _,
        head,
    } = request;
    let filters = &route.filters;
    let mut action = Action {
        edits: edits(filters, None),
        ..Action::default()
    };
    let outcome = match &filters.action {
        filter::Action::DirectResponse(direct) => {
            action.body = Some(shown(&direct.body));
            Outcome::DirectResponse {
                status: direct.status.as_u16(),
            }
        }
        filter::Action::Redirect(redirect) => {
            let response = find_route::redirect(redirect, connection, scheme, head);
            let location = response.headers().get(http::header::LOCATION);
            Outcome::Redirected {
                status: response.status().as_u16(),
                location: location.map(|value| lossy(value.as_bytes())),
            }
        }
        filter::Action::Forward => {
            action.authority = authority(filters, None);
            action.path = path(filters, head);
            action.timeout = filters.timeout.map(duration);
            action.retries = filters.retry.as_deref().map(retries);
            action.mirrors = mirrors(route, snapshot);
            Outcome::FORWARDED
        }
    };
    let answered = filters.early.as_deref().and_then(|early| {
        action.limits = limits(early, request);
        let check = early.check.as_ref();
        action.check = check.map(|check| check.settings.url());
        early::of(early, &mut action, head)
    });
    (action, answered.unwrap_or(outcome))
}

/// Returns the effects of the filters of one destination, except header edits, in words, and its change of the path.
pub(super) fn of_share(
    route: &Route,
    position: usize,
    snapshot: &Snapshot,
    request: ExplainedRequest<'_>,
) -> (Vec<String>, Option<Change>) {
    let Some(share) = route.shares.get(position) else {
        return (Vec::new(), None);
    };
    let (action, outcome) = of(share, snapshot, request);
    if let Outcome::Redirected { status, location } = outcome {
        let location = location.unwrap_or_default();
        let words = format!("redirected with {status} to {location}");
        return (vec![words], None);
    }
    let path = action.path.as_ref();
    let path = path.map(|path| format!("path {} -> {}", path.before, path.after));
    let authority = action
        .authority
        .filter(|_| authority(&route.filters, None).is_none());
    let authority = authority.map(|name| format!("authority becomes {name}"));
    let mirrors = action.mirrors.into_iter();
    let of_rule = route.mirrors.iter().flat_map(Mirrors::entries).count();
    let mirrors = mirrors
        .skip(of_rule)
        .map(|one| format!("mirror {} % to {}", one.percent, one.name));
    let words = path.into_iter().chain(authority).chain(mirrors).collect();
    (words, action.path)
}

/// Returns the limits of the rule, and which of them count the request.
fn limits(early: &Early, request: ExplainedRequest<'_>) -> Vec<String> {
    let Some(limits) = early.limits.as_deref() else {
        return Vec::new();
    };
    let authority = find_route::authority(request.head).unwrap_or_default();
    let host = normalize_host(authority);
    let head = find_route::matched_head(request.head, request.scheme, authority, &host);
    limits::words(limits, &CountedRequest::new(head, request.client, 64))
}

/// Returns the header edits of the rule, or of one destination alone.
pub(super) fn edits(filters: &RouteFilters, destination: Option<usize>) -> Edits {
    let edits = |edits: Vec<HeaderEdit<'_>>| edits.into_iter().map(edit).collect();
    Edits {
        request_headers: edits(filters.request_edits(destination)),
        response_headers: edits(filters.response_edits(destination)),
    }
}

/// Returns the authority that the rule sets for all destinations, or the one of a single destination.
pub(super) fn authority(filters: &RouteFilters, destination: Option<usize>) -> Option<String> {
    // no rule has that many destinations, so this is the rule's own
    let of_rule = filters.authority(usize::MAX);
    let found = match destination {
        None => of_rule,
        Some(_) if of_rule.is_some() => None,
        Some(at) => filters.authority(at),
    };
    found.map(|value| lossy(value.as_bytes()))
}

fn retries(policy: &RetryPolicy) -> Retries {
    Retries {
        attempts: policy.attempts,
        on: policy.conditions.words(),
        per_try_timeout: policy.per_try_timeout.map(duration),
        backoff: duration(policy.back_off.base),
    }
}

fn mirrors(route: &Route, snapshot: &Snapshot) -> Vec<MirrorChoice> {
    let mirrors = route.mirrors.iter().flat_map(Mirrors::entries);
    let mirrors = mirrors.map(|(share, mirror)| MirrorChoice {
        name: mirror.destination.name.to_string(),
        percent: f64::from(share) * 100.0 / f64::from(WHOLE),
        source: (&mirror.destination.provenance).into(),
        unknown: snapshot.cluster(mirror.destination.cluster).is_none(),
    });
    mirrors.collect()
}

fn path(filters: &RouteFilters, request: &Request<()>) -> Option<Change> {
    let uri = request.uri();
    let after = filters.rewrite_path(uri.path(), uri.query())?;
    Some(Change {
        before: uri.to_string(),
        after: after.to_string(),
    })
}

fn edit(edit: HeaderEdit<'_>) -> Edit {
    let value = secret::edited(&edit);
    let (operation, name) = match edit {
        HeaderEdit::Add(name, _) => ("add", name),
        HeaderEdit::Remove(name) => ("remove", name),
        HeaderEdit::Set(name, _) => ("set", name),
    };
    Edit {
        operation: operation.to_owned(),
        name: name.to_string(),
        value,
    }
}

fn shown(body: &[u8]) -> String {
    let start = &body[..body.len().min(BODY_SHOWN_MAX)];
    let mut text = lossy(start);
    if start.len() < body.len() {
        text.push_str(&format!("... ({} bytes)", body.len()));
    }
    text
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
