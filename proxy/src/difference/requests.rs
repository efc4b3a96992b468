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

/// Request of a class.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Method.
    pub method: String,
    /// URL.
    pub url: String,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// Question for `explain`, without the rules that were tried.
    pub question: Question,
}

impl Sample {
    /// Makes the request of a point; `None` if it is none.
    fn of(point: &Point, (scheme, host): (&str, &str), listener: &Listener) -> Option<Self> {
        let port = listener.key.address.port();
        let method = point.method().to_owned();
        let url = format!("{scheme}://{host}:{port}{}", point.target());
        let mut question = Question::parse(&method, &url).ok()?.outcome_only();
        let address = listener.key.address.ip()?;
        question.at_listener(&address.to_string()).ok()?;
        let authority = point.authority().map(|name| ("host", name));
        let headers = point.headers().chain(authority);
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        for (name, value) in &headers {
            question.header(&format!("{name}: {value}")).ok()?;
        }
        Some(Self {
            method,
            url,
            headers,
            question,
        })
    }

    /// Returns the command that sends it.
    fn command(&self) -> String {
        let mut command = "curl".to_owned();
        if self.method != "GET" {
            _ = write!(command, " -X {}", self.method);
        }
        for (name, value) in &self.headers {
            _ = write!(command, " -H {}", quoted(&format!("{name}: {value}")));
        }
        format!("{command} {}", quoted(&self.url))
    }
}

/// Names of the virtual hosts of listeners.
fn names<'s>(listeners: &[&'s Arc<Listener>]) -> BTreeSet<&'s str> {
    let hosts = listeners.iter().flat_map(|listener| listener.all_http());
    let hosts = hosts.flat_map(|hosts| hosts.all());
    hosts.map(|host| &*host.name).collect()
}

fn scheme(listener: &Listener) -> &'static str {
    match listener.service {
        Service::Tls(_) => "https",
        _ => "http",
    }
}

/// Returns a request for each rule of a listener, and one that no rule of a host gets.
pub(super) fn of_rules(listener: &Arc<Listener>) -> Vec<Sample> {
    let mut samples = Vec::new();
    for name in names(&[listener]) {
        let host = witness(name);
        let rules = HostRules::of(listener, &host);
        let origin = (scheme(listener), &*host);
        let classes = search::classes([&rules, &rules], origin).into_values();
        samples.extend(classes.filter_map(|found| Sample::of(&found.point, origin, listener)));
    }
    samples
}

/// Compares the requests for each host that either serves.
pub(super) fn compare(sides: [&Side<'_>; 2], listeners: [&Arc<Listener>; 2], report: &mut Report) {
    let [old, new] = listeners;
    for name in names(&listeners) {
        let host = witness(name);
        let rules = [HostRules::of(old, &host), HostRules::of(new, &host)];
        let [before, after] = &rules;
        if before.is_same(&sides[0].snapshot, after, &sides[1].snapshot) {
            report.decided += 1;
            continue;
        }
        let origin = (scheme(old), &*host);
        for found in search::classes([before, after], origin).into_values() {
            match found.is_sampled {
                true => report.sampled += 1,
                false => report.decided += 1,
            }
            let Some(sample) = Sample::of(&found.point, origin, old) else {
                continue;
            };
            let answers = sides.map(|side| side.explain(&sample.question));
            let changes = effect::changes(&answers[0], &answers[1]);
            if !changes.is_empty() {
                report.add(changes, sample.command(), [&answers[0], &answers[1]]);
            }
        }
    }
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
