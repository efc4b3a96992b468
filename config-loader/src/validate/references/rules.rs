//! DestinationRules: their subsets, and rules that others hide.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::destinations;
use super::endpoints::{Endpoint, Endpoints};
use super::finding::{SUGGESTIONS_MAX, location, nearest_host, warning};
use crate::catalog::{DestinationRules, PossibleClient, Services, hostname};
use crate::diagnostic::codes::references::{X283, X284, X316, X318};
use crate::diagnostic::{Diagnostic, Severity};
use crate::resource::istio::{DestinationRule, Subset};
use crate::resource::{Object, ResourceSet};

type Rule = Object<DestinationRule>;

/// Largest number of distinct pod labels in a help text.
const LABELS_MAX: usize = 3;

/// Pod labels that controllers add to distinguish revisions.
const HASHES: [&str; 2] = ["controller-revision-hash", "pod-template-hash"];

/// DestinationRules, and subsets that exist without a rule.
#[derive(Debug)]
pub(super) struct Rules {
    domain: Arc<str>,
    index: DestinationRules,
    /// Subsets that Destinations require, by host. No rule has to define them.
    required: HashMap<String, BTreeSet<Arc<str>>>,
}

/// Host of a destination, and the client that sends requests to it.
#[derive(Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) host: &'a str,
    /// Namespace of its service, if known.
    pub(super) service_namespace: Option<&'a str>,
    pub(super) client: PossibleClient<'a>,
}

impl Rules {
    /// Creates an empty set for a mesh with this domain.
    pub(super) fn new(domain: &Arc<str>) -> Rules {
        Rules {
            domain: Arc::clone(domain),
            index: DestinationRules::new(domain),
            required: HashMap::new(),
        }
    }

    /// Applies a change of the resources. Returns the hosts whose rules changed.
    pub(super) fn update(&mut self, before: &ResourceSet, now: &ResourceSet) -> BTreeSet<Arc<str>> {
        if !before.destinations.same(&now.destinations) {
            self.required = destinations::required_subsets(now, &self.domain);
        }
        self.index.update(before, now).into_keys().collect()
    }

    /// Returns the rules that may apply to requests.
    pub(super) fn may_apply(&self, sent: Sent<'_>) -> impl Iterator<Item = &Rule> {
        let rules = self
            .index
            .may_apply(sent.host, sent.service_namespace, sent.client);
        rules.into_iter().map(|rule| &**rule)
    }

    /// Returns the older rules that a rule is merged with. Their settings take precedence.
    pub(super) fn merged_before<'a>(&'a self, rule: &Rule, host: &str) -> Vec<&'a Rule> {
        let all = self.index.of_host(host).iter().map(|rule| &**rule);
        let all = all.filter(|older| older.id.namespace == rule.id.namespace);
        all.take_while(|older| older.id != rule.id)
            .filter(|older| older.is_merged_with(rule))
            .collect()
    }

    /// Whether a rule for the host defines a subset, or a Destination requires it.
    pub(super) fn has_subset(&self, sent: Sent<'_>, subset: &str) -> bool {
        let required = |host: &str| {
            let all = self.required.get(host);
            all.is_some_and(|all| all.contains(subset))
        };
        let native = || hostname::of_domain(sent.host, &self.domain);
        let mut rules = self.may_apply(sent);
        rules.any(|rule| rule.spec.subset(subset).is_some())
            || required(sent.host)
            || native().is_some_and(|native| required(&native))
    }

    /// Returns the subsets that rules for a host define.
    pub(super) fn subsets(&self, sent: Sent<'_>) -> std::vec::IntoIter<&str> {
        let subsets = self.may_apply(sent).flat_map(|rule| &rule.spec.subsets);
        let names: Vec<&str> = subsets.map(|subset| &*subset.name).collect();
        names.into_iter()
    }
}

/// Rule to check, with the resources that it is checked against.
#[derive(Clone, Copy)]
pub(super) struct CheckedRule<'a> {
    pub(super) object: &'a Rule,
    /// Full host of the rule.
    pub(super) host: &'a str,
    pub(super) services: &'a Services,
    pub(super) domain: &'a str,
    pub(super) endpoints: &'a Endpoints<'a>,
}

/// Checks the host and the subsets of a rule. Counts the suggestions of other hosts in `suggestions`.
pub(super) fn check(rule: CheckedRule<'_>, suggestions: &mut usize, found: &mut Vec<Diagnostic>) {
    check_host(rule, suggestions, found);
    check_subsets(rule, found);
}

/// Warns of a host that does not exist, or a wildcard that matches no host.
fn check_host(rule: CheckedRule<'_>, suggestions: &mut usize, found: &mut Vec<Diagnostic>) {
    let CheckedRule {
        object,
        host,
        services,
        domain,
        ..
    } = rule;
    let written = &object.spec.host;
    // that of clusters together may be said by what is not read here, such as the imports of another cluster
    let within = hostname::of_domain(host, domain);
    let is_known = |host: &str| services.find(host).is_some();
    let covers_one = || {
        let mut known = services.iter();
        host.starts_with('*') && known.any(|(known, _)| hostname::is_subset(known, host))
    };
    if is_known(host) || covers_one() || within.is_some_and(|of_cluster| is_known(&of_cluster)) {
        return;
    }
    let message = match host.starts_with('*') {
        false => format!("`{written}` is not a known service: this rule has no effect"),
        true => format!("`{written}` matches no known service: this rule has no effect"),
    };
    let (line, field) = (object.spec.host_line, "spec.host".to_owned());
    let mut diagnostic = warning(object, X316, line, field, message);
    *suggestions += 1;
    let near = match *suggestions <= SUGGESTIONS_MAX {
        true => nearest_host(services, host),
        false => None,
    };
    diagnostic.help(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if host != &**written => format!("the short name means `{host}`"),
        None => {
            "write the full name of a Service, or describe the host in a ServiceEntry".to_owned()
        }
    });
    found.push(diagnostic);
}

/// Warns of a subset that selects no endpoint, if all endpoints are known.
fn check_subsets(rule: CheckedRule<'_>, found: &mut Vec<Diagnostic>) {
    let (object, host) = (rule.object, rule.host);
    let seen = rule.services.find_from(host, &object.id.namespace);
    let Some(endpoints) = seen.and_then(|seen| rule.endpoints.of(&seen)) else {
        return;
    };
    for (index, subset) in object.spec.subsets.iter().enumerate() {
        // Labels that tell where an endpoint is are not written on it.
        let derived = subset
            .labels
            .keys()
            .any(|key| key.starts_with("topology.istio.io/"));
        let selects = endpoints
            .iter()
            .any(|endpoint| endpoint.has_labels(&subset.labels));
        if selects || derived || is_unjudged(subset, &endpoints) {
            continue;
        }
        let message = format!("subset `{}` has no endpoints", subset.name);
        let mut diagnostic = warning(
            object,
            X283,
            subset.line,
            format!("spec.subsets[{index}].labels"),
            message,
        );
        let labels = subset.labels.iter();
        let labels = written(labels.map(|(key, value)| (&**key, &**value)));
        diagnostic.help(format!(
            "no endpoint of {host} has the labels {labels}{}",
            of_pods(&endpoints)
        ));
        found.push(diagnostic);
    }
}

fn written<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.join(", ")
}

/// Formats the distinct labels of the endpoints' pods for a help text, without labels that only controllers read.
fn of_pods(endpoints: &[Endpoint<'_>]) -> String {
    let pods = endpoints.iter().filter_map(|endpoint| endpoint.pod);
    let labels = pods.map(|pod| {
        let own = pod.iter().filter(|(key, _)| !HASHES.contains(key));
        written(own)
    });
    let labels: BTreeSet<String> = labels.collect();
    if labels.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = labels.iter().take(LABELS_MAX).cloned().collect();
    let more = if labels.len() > LABELS_MAX {
        "; ..."
    } else {
        ""
    };
    format!("; its pods have {}{more}", shown.join("; "))
}

/// Whether a subset cannot be checked: it selects by pod labels, and no pod is known.
fn is_unjudged(subset: &Subset, endpoints: &[Endpoint<'_>]) -> bool {
    let mut all = endpoints.iter();
    let mut keys = subset.labels.keys();
    all.all(|endpoint| endpoint.is_of_slice && endpoint.pod.is_none())
        && !endpoints.is_empty()
        && keys.any(|key| {
            endpoints
                .iter()
                .all(|endpoint| endpoint.label(key).is_none())
        })
}

/// Reports once, for all subsets, that subsets by pod labels cannot be checked because no pod is known.
pub(super) fn check_unread(
    set: &ResourceSet,
    domain: &str,
    services: &Services,
    found: &mut Vec<Diagnostic>,
) {
    if !set.pods.is_empty() {
        return;
    }
    let endpoints = Endpoints::new(set);
    let unjudged = set.destination_rules.values().flat_map(|object| {
        let seen = services.find_from(&object.full_host(domain), &object.id.namespace);
        let endpoints = seen
            .and_then(|seen| endpoints.of(&seen))
            .unwrap_or_default();
        let subsets = object.spec.subsets.iter().enumerate();
        let unjudged = subsets.filter(|(_, subset)| is_unjudged(subset, &endpoints));
        let unjudged: Vec<_> = unjudged
            .map(|(index, subset)| (object, index, subset.line))
            .collect();
        unjudged
    });
    let mut unjudged = unjudged.fuse();
    let Some((object, index, line)) = unjudged.next() else {
        return;
    };
    let more = match unjudged.count() {
        0 => String::new(),
        count => format!(", nor {count} more"),
    };
    let message =
        format!("whether this subset has endpoints cannot be judged{more}: no Pods are read");
    let field = format!("spec.subsets[{index}].labels");
    let mut note = warning(object, X318, line, field, message);
    note.severity = Severity::Note;
    note.help("add what `kubectl get pods --all-namespaces --output yaml` prints; a proxy reads pods from its API server");
    found.push(note);
}

/// Warns of a wildcard rule without an effect next to a more specific rule of its namespace.
pub(super) fn check_hidden(set: &ResourceSet, domain: &str, found: &mut Vec<Diagnostic>) {
    for wide in set.destination_rules.values() {
        let pattern = wide.full_host(domain);
        if !pattern.starts_with('*') || wide.spec.workload_selector.is_some() {
            continue;
        }
        let others = set
            .destination_rules
            .values()
            .filter(|object| object.id.namespace == wide.id.namespace);
        for narrow in others {
            let host = narrow.full_host(domain);
            if host == pattern
                || !hostname::is_subset(&host, &pattern)
                || narrow.spec.workload_selector.is_some()
            {
                continue;
            }
            let (wide_name, narrow_name) = (&wide.id.name, &narrow.id.name);
            let message = format!(
                "{wide_name} is replaced by {narrow_name} for {host}; nothing is inherited"
            );
            let mut diagnostic = warning(
                wide,
                X284,
                wide.spec.host_line,
                "spec.host".to_owned(),
                message,
            );
            diagnostic.help(format!(
                "repeat in {narrow_name} what is to hold for {host}, too"
            ));
            diagnostic.related(
                location(narrow, narrow.spec.host_line),
                "the more specific rule",
            );
            found.push(diagnostic);
        }
    }
}
