//! Test files that are written: one test for each rule (`--init`), or for each rule that a log has requests of (`--record`).

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};

use super::compare::{status_of, used};
use super::runner::{AskedProxy, ask};
use crate::difference::{Sample, samples};
use crate::explain::answer::{Outcome, Source};
use crate::explain::{Explanation, Question, secret};
use crate::identity::{Identity, Mode};

/// Largest number of bytes of a line of a log.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Returns a test file with a test for each rule.
pub(super) fn of_rules(proxy: &AskedProxy) -> String {
    let mut tests = Tests::new(&proxy.identity);
    for sample in samples(&proxy.snapshot) {
        let answer = ask(proxy, &sample.question);
        tests.add(&sample, &answer);
    }
    tests.text
}

/// Returns a test file with a test for each rule of each host that a log has requests of, and the number of lines that are none of a
/// request. The log is in the JSON format of `--access-log json`.
pub(super) fn of_log(proxy: &AskedProxy, log: &str) -> (String, usize) {
    let mut tests = Tests::new(&proxy.identity);
    let mut seen: BTreeSet<(String, Option<Source>)> = BTreeSet::new();
    let mut unread = 0;
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let Some(sample) = logged(line) else {
            unread += 1;
            continue;
        };
        let (sample, answer) = without_query(proxy, sample);
        let rule = answer.rules.iter().find(|rule| rule.matched);
        let rule = rule.map(|rule| rule.source.clone());
        if seen.insert((answer.request.host.clone(), rule)) {
            tests.add(&sample, &answer);
        }
    }
    (tests.text, unread)
}

/// Leaves out the query of a request if the same rule matches without it, and asks about the request.
fn without_query(proxy: &AskedProxy, sample: Sample) -> (Sample, Explanation) {
    let answer = ask(proxy, &sample.question);
    let Some((url, _)) = sample.url.split_once('?') else {
        return (sample, answer);
    };
    let url = url.to_owned();
    let Ok(question) = Question::parse(&sample.method, &url) else {
        return (sample, answer);
    };
    let question = question.outcome_only();
    let bare = ask(proxy, &question);
    match bare.rules == answer.rules {
        true => (
            Sample {
                url,
                question,
                ..sample
            },
            bare,
        ),
        false => (sample, answer),
    }
}

/// Returns the request of a line; parameters with credentials are left out.
fn logged(line: &str) -> Option<Sample> {
    let entry: Value = serde_json::from_str(line.get(..LINE_BYTES_MAX).unwrap_or(line)).ok()?;
    let text = |name: &str| entry.get(name)?.as_str().filter(|text| !text.is_empty());
    let (method, authority, target) = (text("method")?, text("authority")?, text("path")?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_secret = |one: &&str| secret::is_credential(one.split('=').next().unwrap_or(one));
    let query: Vec<&str> = query
        .split('&')
        .filter(|one| !one.is_empty() && !is_secret(one))
        .collect();
    let query = match query.is_empty() {
        true => String::new(),
        false => format!("?{}", query.join("&")),
    };
    let url = format!("http://{authority}{path}{query}");
    Some(Sample {
        method: method.to_owned(),
        headers: Vec::new(),
        identity: None,
        question: Question::parse(method, &url).ok()?.outcome_only(),
        url,
    })
}

/// Tests that are written.
struct Tests {
    text: String,
    names: BTreeSet<String>,
}

impl Tests {
    fn new(identity: &Identity) -> Self {
        let mode = match identity.mode {
            Mode::Gateway => "gateway",
            Mode::Sidecar => "sidecar",
        };
        let (namespace, labels) = (&identity.namespace, &identity.labels);
        let proxy = json!({"mode": mode, "namespace": namespace, "labels": labels});
        Self {
            text: format!("as: {proxy}\ntests:\n"),
            names: BTreeSet::new(),
        }
    }

    fn add(&mut self, sample: &Sample, answer: &Explanation) {
        let mut request = json!({"url": sample.url});
        if sample.method != "GET" {
            request["method"] = json!(sample.method);
        }
        if !sample.headers.is_empty() {
            request["headers"] = sample.headers.iter().cloned().collect();
        }
        let Some(expected) = expected(answer) else {
            return;
        };
        let name = self.name(sample, answer);
        // JSON is YAML
        _ = writeln!(
            self.text,
            "- name: {}\n  request: {request}\n  expect: {}",
            json!(name),
            expected
        );
    }

    /// Returns a name that no other test has.
    fn name(&mut self, sample: &Sample, answer: &Explanation) -> String {
        let rule = answer.rules.iter().find(|rule| rule.matched);
        let rule = rule
            .map(|rule| rule.name.as_str())
            .filter(|name| !name.is_empty());
        let base = match rule {
            Some(rule) => format!("{rule} of {}", answer.request.host),
            None => format!("{} {}", sample.method, sample.url),
        };
        let numbered = (1..).map(|number| match number {
            1 => base.clone(),
            number => format!("{base}, {number}"),
        });
        let mut free = numbered.filter(|name| !self.names.contains(name));
        let name = free.next().unwrap_or_default();
        self.names.insert(name.clone());
        name
    }
}

/// Returns what a test expects of an answer; `None` if nothing can be said of it.
fn expected(answer: &Explanation) -> Option<Value> {
    Some(match &answer.outcome {
        Outcome::Redirected { status, location } => {
            json!({"redirect": {"status": status, "location": location}})
        }
        Outcome::DirectResponse { status } => json!({"status": status}),
        Outcome::Rejected { status, flags, .. } => match status {
            Some(status) => json!({"status": status}),
            None if flags.is_empty() => return None,
            None => json!({"flags": flags}),
        },
        Outcome::Forwarded { .. } => forwarded(answer),
        Outcome::Unavailable { .. } => match status_of(&answer.outcome).parse::<u16>() {
            Ok(status) => json!({"status": status}),
            Err(_) => return None,
        },
    })
}

fn forwarded(answer: &Explanation) -> Value {
    let named = used(answer).filter(|one| !one.host.is_empty());
    let destinations = named.map(|one| {
        let mut destination = json!({"host": one.host, "port": one.port});
        if !one.subset.is_empty() {
            destination["subset"] = json!(one.subset);
        }
        if one.probability < 1.0 {
            destination["weight"] = json!((one.probability * 1000.0).round() / 10.0);
        }
        destination
    });
    let mut expected = json!({"destinations": destinations.collect::<Vec<_>>()});
    if let Some(action) = &answer.action {
        if let Some(path) = &action.path {
            expected["path"] = json!(path.after);
        }
        if let Some(timeout) = &action.timeout {
            expected["timeout"] = json!(timeout);
        }
    }
    expected
}
