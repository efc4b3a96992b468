//! Differences between requests of two versions of a listener.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::names::witness;
use super::points::Point;
use super::report::Report;
use super::rules::HostRules;
use super::side::Side;
use super::{effect, search};
use crate::explain::Question;
use crate::snapshot::{Listener, Service};

/// Compares the requests for each host that either serves.
pub(super) fn compare(sides: [&Side<'_>; 2], listeners: [&Arc<Listener>; 2], report: &mut Report) {
    let names: BTreeSet<&str> = listeners
        .iter()
        .flat_map(|listener| listener.all_http())
        .flat_map(|hosts| hosts.all())
        .map(|host| &*host.name)
        .collect();
    let [old, new] = listeners;
    for name in names {
        let host = witness(name);
        let rules = [HostRules::of(old, &host), HostRules::of(new, &host)];
        let [before, after] = &rules;
        if before.is_same(&sides[0].snapshot, after, &sides[1].snapshot) {
            report.decided += 1;
            continue;
        }
        let is_tls = matches!(old.service, Service::Tls(_));
        let scheme = if is_tls { "https" } else { "http" };
        for found in search::classes([before, after], (scheme, &host)).into_values() {
            match found.is_sampled {
                true => report.sampled += 1,
                false => report.decided += 1,
            }
            let Some((question, command)) = question(&found.point, scheme, &host, old) else {
                continue;
            };
            let answers = sides.map(|side| side.explain(&question));
            let changes = effect::changes(&answers[0], &answers[1]);
            if !changes.is_empty() {
                report.add(changes, command, [&answers[0], &answers[1]]);
            }
        }
    }
}

/// Returns the question for a point, and the command that sends it.
fn question(
    point: &Point,
    scheme: &str,
    host: &str,
    listener: &Listener,
) -> Option<(Question, String)> {
    let port = listener.key.address.port();
    let (method, target) = (point.method(), point.target());
    let url = format!("{scheme}://{host}:{port}{target}");
    let mut question = Question::parse(method, &url).ok()?.outcome_only();
    question
        .at_listener(&listener.key.address.ip()?.to_string())
        .ok()?;
    let mut command = "curl".to_owned();
    if method != "GET" {
        _ = write!(command, " -X {method}");
    }
    let authority = point.authority().map(|name| ("host", name));
    for (name, value) in point.headers().chain(authority) {
        let line = format!("{name}: {value}");
        question.header(&line).ok()?;
        _ = write!(command, " -H {}", quoted(&line));
    }
    _ = write!(command, " {}", quoted(&url));
    Some((question, command))
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
