//! Differences between requests of two versions of a listener.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::names::witness;
use super::points::Point;
use super::report::Report;
use super::rules::HostRules;
use super::side::Side;
use super::{policies, search};
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
    /// Identity of the client, if policies compare it.
    pub identity: Option<String>,
    /// Question for `explain`, without the rules that were tried.
    pub question: Question,
}

impl Sample {
    /// Makes the request of a point; `None` if it is none.
    fn of(
        point: &Point,
        identity: Option<&str>,
        (scheme, host): (&str, &str),
        listener: &Listener,
    ) -> Option<Self> {
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
        if let Some(identity) = identity {
            question.with_identity(identity).ok()?;
        }
        Some(Self {
            method,
            url,
            headers,
            identity: identity.map(str::to_owned),
            question,
        })
    }

    /// Returns the command that sends it.
    fn command(&self) -> String {
        let mut command = "curl".to_owned();
        match &*self.method {
            "GET" => {}
            "HEAD" => command.push_str(" -I"),
            method => _ = write!(command, " -X {method}"),
        }
        for (name, value) in &self.headers {
            // a header without a value ends with a semicolon
            let line = match value.is_empty() {
                true => format!("{name};"),
                false => format!("{name}: {value}"),
            };
            _ = write!(command, " -H {}", quoted(&line));
        }
        if self.url.contains(['[', '{']) {
            command.push_str(" -g");
        }
        _ = write!(command, " {}", quoted(&self.url));
        if let Some(identity) = &self.identity {
            _ = write!(command, " # as {identity}");
        }
        command
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
    let all = names(&[listener]);
    for name in &all {
        let host = witness(name, &all);
        let rules = HostRules::of(listener, &host);
        let origin = (scheme(listener), &*host);
        let (classes, _) = search::classes([&rules, &rules], origin);
        let points = classes.iter().filter_map(|found| found.points.first());
        samples.extend(points.filter_map(|point| Sample::of(point, None, origin, listener)));
    }
    samples
}

/// Compares the requests for each host that either serves.
pub(super) fn compare(sides: [&Side<'_>; 2], listeners: [&Arc<Listener>; 2], report: &mut Report) {
    let [old, new] = listeners;
    let snapshots = sides.map(|side| &*side.snapshot);
    let of_policies = policies::requests(snapshots, listeners, report);
    let all = names(&listeners);
    for name in &all {
        let host = witness(name, &all);
        let rules = [HostRules::of(old, &host), HostRules::of(new, &host)];
        let [before, after] = &rules;
        let is_same = before.is_same(snapshots[0], after, snapshots[1]);
        if is_same && of_policies.is_empty() && is_same_tls(old, new) {
            report.decided += 1;
            continue;
        }
        let origin = (scheme(old), &*host);
        let (classes, unsure) = search::classes([before, after], origin);
        report.sampled += unsure;
        for found in classes {
            match found.is_sampled {
                true => report.sampled += 1,
                false => report.decided += 1,
            }
            let points = found.points.iter();
            let mut samples = points.filter_map(|point| Sample::of(point, None, origin, old));
            _ = samples.find(|one| report.compare(sides, &one.question, || one.command()));
        }
        for (point, identity) in &of_policies {
            report.sampled += 1;
            if let Some(one) = Sample::of(point, identity.as_deref(), origin, old) {
                report.compare(sides, &one.question, || one.command());
            }
        }
    }
}

/// Whether the TLS servers of listeners are the same, if they have any.
fn is_same_tls(old: &Listener, new: &Listener) -> bool {
    !matches!(old.service, Service::Tls(_)) || old.service.is_same(&new.service)
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
