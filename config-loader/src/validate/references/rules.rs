//! DestinationRules: the subsets that they define, and what hides them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::destinations;
use super::endpoints::Endpoints;
use super::finding::{SUGGESTIONS_MAX, location, nearest_host, warning};
use crate::catalog::{HostIndex, Services, differences, hostname};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X283, X284, X316};
use crate::resource::istio::DestinationRule;
use crate::resource::{Object, ResourceSet};

type Rule = Object<DestinationRule>;

/// Every DestinationRule, by its host.
#[derive(Debug)]
pub(super) struct Rules {
    domain: Arc<str>,
    by_host: HostIndex<Vec<Arc<Rule>>>,
    /// Subsets that no rule has to define, by host.
    required: HashMap<String, BTreeSet<String>>,
}

impl Rules {
    /// Without rules, for a mesh with this domain.
    pub(super) fn new(domain: &Arc<str>) -> Rules {
        Rules {
            domain: Arc::clone(domain),
            by_host: HostIndex::new(),
            required: HashMap::new(),
        }
    }

    /// Follows a change of the resources; hands on each host whose rules changed.
    pub(super) fn update(
        &mut self,
        before: &ResourceSet,
        now: &ResourceSet,
        touch: &mut dyn FnMut(&str),
    ) {
        for (gone, came) in differences(&before.destination_rules, &now.destination_rules) {
            if let Some(gone) = gone {
                let host = full(gone, &self.domain);
                touch(&host);
                let rules = self.by_host.entry(&host);
                rules.retain(|rule| rule.id != gone.id);
                if rules.is_empty() {
                    self.by_host.remove(&host);
                }
            }
            if let Some(came) = came {
                let host = full(came, &self.domain);
                touch(&host);
                let rules = self.by_host.entry(&host);
                let at = rules.partition_point(|rule| rule.id < came.id);
                rules.insert(at, Arc::clone(came));
            }
        }
        if !before.destinations.same(&now.destinations) {
            self.required = destinations::required_subsets(now, &self.domain);
        }
    }

    /// The rules that can apply to a host. Which one does depends on the proxy.
    pub(super) fn of(&self, host: &str) -> impl Iterator<Item = &Rule> {
        self.by_host.covering(host).flatten().map(|rule| &**rule)
    }

    /// The host whose rules hold for a host: for that of clusters together the one of the cluster, unless rules name
    /// it.
    fn ruled<'h>(&self, host: &'h str) -> Cow<'h, str> {
        match hostname::of_domain(host, &self.domain) {
            Some(of_cluster) if self.of(host).next().is_none() => of_cluster.into(),
            _ => host.into(),
        }
    }

    /// Whether some rule for a host defines a subset, or a Destination requires it.
    pub(super) fn has_subset(&self, host: &str, subset: &str) -> bool {
        let host = &*self.ruled(host);
        let required = || {
            self.required
                .get(host)
                .is_some_and(|all| all.contains(subset))
        };
        let mut rules = self.of(host);
        rules.any(|object| object.spec.subset(subset).is_some()) || required()
    }

    /// The subsets that rules for a host define.
    pub(super) fn subsets(&self, host: &str) -> std::vec::IntoIter<&str> {
        let host = self.ruled(host);
        let subsets = self.of(&host).flat_map(|object| &object.spec.subsets);
        let names: Vec<&str> = subsets.map(|subset| &*subset.name).collect();
        names.into_iter()
    }
}

/// The full host of a rule.
pub(super) fn full<'r>(rule: &'r Rule, domain: &str) -> Cow<'r, str> {
    hostname::complete(&rule.spec.host, &rule.id.namespace, domain)
}

/// Checks the host and the subsets of a rule. Returns whether its host is unknown.
pub(super) fn check(
    (object, host): (&Rule, &str),
    (services, domain): (&Services, &str),
    endpoints: &Endpoints<'_>,
    suggestions: &mut usize,
    found: &mut Vec<Diagnostic>,
) {
    check_host((object, host), services, (domain, suggestions), found);
    check_subsets((object, host), (services, endpoints), found);
}

/// A rule must be for a host that there is. What a wildcard matches is not known from files.
fn check_host(
    (object, host): (&Rule, &str),
    services: &Services,
    (domain, suggestions): (&str, &mut usize),
    found: &mut Vec<Diagnostic>,
) {
    let written = &object.spec.host;
    // that of clusters together may be said by what is not read here, such as the imports of another cluster
    let within = hostname::of_domain(host, domain);
    let is_known = |host: &str| services.find(host).is_some();
    if host.starts_with('*')
        || is_known(host)
        || within.is_some_and(|of_cluster| is_known(&of_cluster))
    {
        return;
    }
    let message = format!("`{written}` is not a known service: this rule has no effect");
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

/// A subset must select an endpoint, where all endpoints are known.
fn check_subsets(
    (object, host): (&Rule, &str),
    (services, endpoints): (&Services, &Endpoints<'_>),
    found: &mut Vec<Diagnostic>,
) {
    let seen = services.find_from(host, &object.id.namespace);
    let Some(endpoints) = seen.and_then(|seen| endpoints.of(&seen)) else {
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
        if selects || derived {
            continue;
        }
        let labels: Vec<String> = subset
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let message = format!("subset `{}` has no endpoints", subset.name);
        let mut diagnostic = warning(
            object,
            X283,
            subset.line,
            format!("spec.subsets[{index}].labels"),
            message,
        );
        diagnostic.help(format!(
            "no endpoint of {host} has the labels {}",
            labels.join(", ")
        ));
        found.push(diagnostic);
    }
}

/// A rule for a wildcard adds nothing to a more specific one of its namespace.
pub(super) fn check_hidden(set: &ResourceSet, domain: &str, found: &mut Vec<Diagnostic>) {
    for wide in set.destination_rules.values() {
        let pattern = full(wide, domain);
        if !pattern.starts_with('*') || wide.spec.workload_selector.is_some() {
            continue;
        }
        let others = set
            .destination_rules
            .values()
            .filter(|object| object.id.namespace == wide.id.namespace);
        for narrow in others {
            let host = full(narrow, domain);
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
