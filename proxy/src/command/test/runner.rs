//! Runs the tests of a file against the configuration that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config_loader::{
    Expectation, Location, ResourceSet, RouteTest, TestFile, TestSubject, UnhealthyPart,
    WrittenProxy,
};

use super::compare::{Difference, differences, endpoint_shares, is_cluster};
use super::subject;
use crate::command::args::IdentityArgs;
use crate::command::explain::{certificates_of, compiled, settings_of};
use crate::compile::{Collected, Survey};
use crate::control::selected::selected;
use crate::explain::{Explanation, Question, explain};
use crate::identity::Identity;
use crate::runtime::clock;
use crate::snapshot::Snapshot;
use traffic::cluster::{Cluster, Endpoint};

/// Share of the traffic, in percent, from which on an endpoint gets all of it.
const ALL_PERCENT: f64 = 99.9;

/// Result of one test.
#[derive(Debug)]
pub(super) struct Outcome {
    pub name: Arc<str>,
    pub location: Location,
    /// Differences from the expectations; empty if the test has passed.
    pub differences: Vec<Difference>,
    /// Answers to all requests of the test.
    pub answers: Vec<Explanation>,
}

impl Outcome {
    pub(super) fn passed(&self) -> bool {
        self.differences.is_empty()
    }

    /// Returns the first answer that is not as expected.
    pub(super) fn failed_answer(&self) -> Option<&Explanation> {
        self.answers.last().filter(|_| !self.passed())
    }
}

/// Proxy with the configuration that it has.
pub(super) struct AskedProxy {
    pub identity: Identity,
    pub resources: Arc<ResourceSet>,
    pub snapshot: Arc<Snapshot>,
    collected: Collected,
}

impl AskedProxy {
    pub(super) fn new(
        identity: Identity,
        resources: &ResourceSet,
        unhealthy: &[UnhealthyPart],
    ) -> Self {
        let resources = selected(resources, &identity.mesh_config, &identity);
        let store = certificates_of(&resources, &identity);
        let snapshot = compiled(&resources, &identity, &store);
        if !unhealthy.is_empty() {
            exclude(&snapshot, unhealthy, &identity);
        }
        Self {
            identity,
            resources: Arc::new(resources),
            snapshot: Arc::new(snapshot),
            collected: Collected::default(),
        }
    }
}

/// Proxies by what tests say about them; each is compiled once.
pub(super) type AskedProxies = BTreeMap<(WrittenProxy, Vec<UnhealthyPart>), AskedProxy>;

/// Returns the paths of the configuration of a test file: those of the flags, else the one that it names, else its
/// directory.
pub(super) fn config_of(file: &TestFile, path: &Path, flags: &[PathBuf]) -> Vec<PathBuf> {
    if !flags.is_empty() {
        return flags.to_vec();
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    let config = match &file.config {
        Some(config) => directory.join(&**config),
        None => directory.to_owned(),
    };
    let is_here = config.as_os_str().is_empty();
    vec![if is_here { PathBuf::from(".") } else { config }]
}

/// Runs the tests whose names contain `filter`.
pub(super) fn run(
    file: &TestFile,
    filter: &str,
    resources: &ResourceSet,
    flags: &IdentityArgs,
    proxies: &mut AskedProxies,
) -> Vec<Outcome> {
    let tests = file.tests.iter().filter(|test| test.name.contains(filter));
    tests
        .map(|test| {
            let key = (test.proxy.clone(), test.unhealthy.clone());
            let proxy = proxies.entry(key).or_insert_with(|| {
                AskedProxy::new(flags.identity_of(&test.proxy), resources, &test.unhealthy)
            });
            one(test, proxy)
        })
        .collect()
}

/// Asks a proxy what becomes of a request.
pub(super) fn ask(proxy: &AskedProxy, question: &Question) -> Explanation {
    let settings = settings_of(&proxy.identity);
    let survey = Survey::with(&proxy.resources, &proxy.identity, &proxy.collected);
    explain(question, &proxy.snapshot, &settings, &survey)
}

fn one(test: &RouteTest, proxy: &AskedProxy) -> Outcome {
    let unnamed = test
        .unhealthy
        .iter()
        .filter(|part| !names_something(part, proxy));
    let mut outcome = Outcome {
        name: Arc::clone(&test.name),
        location: test.location.clone(),
        differences: Vec::new(),
        answers: Vec::new(),
    };
    match subject::answers(&test.subject, |question| ask(proxy, question)) {
        Err((location, error)) => outcome.differences.push(Difference {
            field: "request".to_owned(),
            expected: "one that can be asked".to_owned(),
            got: error,
            location,
        }),
        Ok(answers) => {
            outcome.differences = of_all(test, &answers);
            outcome.differences.extend(unnamed.map(|part| Difference {
                field: "given.unhealthy".to_owned(),
                expected: "an endpoint, zone, cluster or host of the configuration".to_owned(),
                got: format!("none is {part:?}"),
                location: test.location.clone(),
            }));
            outcome.differences.extend(wrong_port(test, &answers));
            for (number, answer) in answers.iter().enumerate() {
                let found = differences(&test.expected, answer, &proxy.identity.cluster);
                if !found.is_empty() {
                    outcome.differences.extend(found);
                    outcome.answers = answers[..=number].to_vec();
                    return outcome;
                }
            }
            outcome.answers = answers;
        }
    }
    outcome
}

/// Returns what does not hold of all answers together.
fn of_all(test: &RouteTest, answers: &[Explanation]) -> Vec<Difference> {
    let ends: Vec<Option<String>> = answers.iter().map(end).collect();
    let mut found = Vec::new();
    for expected in &test.expected {
        let (wanted, got) = match &expected.what {
            Expectation::SameEndpoint => {
                let loose = ends.iter().filter(|end| end.is_none()).count();
                if loose == 0 {
                    continue;
                }
                let wanted = "each value goes to one endpoint".to_owned();
                (wanted, format!("{loose} of {} go to several", ends.len()))
            }
            Expectation::Spread(least) => {
                let mut all: Vec<&String> = ends.iter().flatten().collect();
                all.sort_unstable();
                all.dedup();
                if all.len() >= *least as usize {
                    continue;
                }
                (format!("at least {least} endpoints"), all.len().to_string())
            }
            _ => continue,
        };
        found.push(Difference {
            field: expected.field.clone(),
            expected: wanted,
            got,
            location: expected.location.clone(),
        });
    }
    found
}

/// Returns the endpoint that gets the request whatever is drawn.
fn end(answer: &Explanation) -> Option<String> {
    let shares = endpoint_shares(answer).into_iter();
    let mut only = shares.filter(|(_, share)| *share >= ALL_PERCENT);
    only.next().map(|(address, _)| address)
}

/// Returns a difference if the URL of a test names a port on which nothing listens.
fn wrong_port(test: &RouteTest, answers: &[Explanation]) -> Option<Difference> {
    let (TestSubject::Request(request) | TestSubject::Requests { request, .. }) = &test.subject
    else {
        return None;
    };
    let authority = request.url.split("://").nth(1)?.split(['/', '?']).next()?;
    let (_, port) = authority
        .rsplit_once(':')
        .filter(|_| !authority.ends_with(']'))?;
    let chosen = answers.first()?.listener.as_ref()?;
    let is_other = request.listener.is_none() && !chosen.reason.starts_with("the URL leads");
    is_other.then(|| Difference {
        field: "url".to_owned(),
        expected: format!("a listener on port {port}"),
        got: format!("none; one is {}", chosen.address),
        location: request.location.clone(),
    })
}

/// Whether a part names an endpoint of the configuration.
fn names_something(part: &UnhealthyPart, proxy: &AskedProxy) -> bool {
    let clusters = proxy.snapshot.clusters.iter().flatten();
    let mut endpoints = clusters.flat_map(|cluster| {
        let endpoints = cluster.endpoints().iter();
        endpoints.map(move |endpoint| (cluster, endpoint))
    });
    endpoints.any(|(cluster, endpoint)| is_of(part, cluster, endpoint, &proxy.identity))
}

/// Excludes endpoints of a snapshot that carries no traffic.
fn exclude(snapshot: &Snapshot, parts: &[UnhealthyPart], identity: &Identity) {
    for cluster in snapshot.clusters.iter().flatten() {
        let now = cluster.state.journal.at(clock::now());
        let is_out = |endpoint: &Endpoint| {
            parts
                .iter()
                .any(|part| is_of(part, cluster, endpoint, identity))
        };
        if cluster.endpoints().iter().any(is_out) {
            cluster.exclude(is_out, now);
        }
    }
}

fn is_of(
    part: &UnhealthyPart,
    cluster: &Cluster,
    endpoint: &Endpoint,
    identity: &Identity,
) -> bool {
    match part {
        UnhealthyPart::Cluster(name) => {
            let own = &*identity.cluster;
            let key = endpoint.member.as_deref().unwrap_or(own);
            is_cluster(name, key)
        }
        UnhealthyPart::Zone(zone) => {
            let locality = endpoint.locality.to_string();
            locality.split('/').nth(1) == Some(zone)
        }
        UnhealthyPart::Host(host) => cluster.name().rsplit('|').next() == Some(host),
        UnhealthyPart::Endpoint(address) => endpoint.address.to_string() == **address,
    }
}
