//! DestinationRules that apply to a host.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::services::Touched;
use super::{HostIndex, Workload, differences, hostname};
use crate::resource::istio::DestinationRule;
use crate::resource::{ExportTo, Object, ResourceSet};

type Rule = Arc<Object<DestinationRule>>;

/// Index of all DestinationRules by host.
///
/// The index is the same for every proxy. The client decides between rules: rules in its own namespace apply first (for
/// a client in the root namespace only rules that no other namespace sees), then rules in the namespace of the service,
/// then rules in the root namespace. Within a namespace only the rules with the most specific host apply.
#[derive(Clone, Debug)]
pub struct DestinationRules {
    domain: Arc<str>,
    /// Ordered by namespace, and within one by precedence: rules with a workload selector first, then by age.
    by_host: HostIndex<Vec<Rule>>,
}

/// Client of a service; parts of it can be unknown.
#[derive(Clone, Copy, Debug)]
pub struct PossibleClient<'a> {
    /// Namespace of the client; `None` if it is unknown.
    pub namespace: Option<&'a str>,
    /// Root namespace, which holds mesh-wide defaults.
    pub root_namespace: &'a str,
}

impl DestinationRules {
    /// Creates an empty index for a mesh with this domain.
    pub fn new(domain: &Arc<str>) -> Self {
        Self {
            domain: Arc::clone(domain),
            by_host: HostIndex::new(),
        }
    }

    /// Applies a change of the indexed resources. Returns the hosts whose rules changed, each with a changed rule.
    pub fn update(&mut self, before: &ResourceSet, now: &ResourceSet) -> Touched {
        let mut touched = Touched::new();
        for (gone, came) in differences(&before.destination_rules, &now.destination_rules) {
            if let Some(gone) = gone {
                let host = gone.full_host(&self.domain);
                let rules = self.by_host.entry(&host);
                rules.retain(|rule| rule.id != gone.id);
                if rules.is_empty() {
                    self.by_host.remove(&host);
                }
                touched.insert(host.into(), gone.id.clone());
            }
            if let Some(came) = came {
                let host = came.full_host(&self.domain);
                let rules = self.by_host.entry(&host);
                let at = rules.partition_point(|rule| precedence(rule, came).is_lt());
                rules.insert(at, Arc::clone(came));
                touched.insert(host.into(), came.id.clone());
            }
        }
        touched
    }

    /// Returns the rules that apply to a host of a service for a client: the oldest rule first, then the rules merged
    /// with it.
    pub fn applying(
        &self,
        host: &str,
        service_namespace: &str,
        client: Workload<'_>,
    ) -> Vec<&Rule> {
        let of = |host: &str| {
            let covering: Vec<_> = self.by_host.covering(host).collect();
            let scopes = [client.namespace, service_namespace, client.root_namespace];
            let mut scopes = scopes.into_iter().enumerate();
            scopes.find_map(|(step, namespace)| {
                let only_private = step == 0 && namespace == client.root_namespace;
                let mut levels = covering.iter().map(|rules| {
                    let rules = of_namespace(rules, namespace).iter();
                    let counting = rules.filter(|rule| rule.counts_for(client));
                    merged(counting.filter(|rule| !only_private || is_private(rule)))
                });
                levels.find(|rules| !rules.is_empty())
            })
        };
        let native = || hostname::of_domain(host, &self.domain);
        // rules for a service apply to its host of the cluster set, too, unless that host has rules of its own
        of(host).or_else(|| of(&native()?)).unwrap_or_default()
    }

    /// Returns the rules for this exact host. The rules of each namespace are in the order in which they are merged.
    pub fn of_host(&self, host: &str) -> &[Rule] {
        self.by_host.get(host).map_or(&[], Vec::as_slice)
    }

    /// Returns the rules that can apply to a host for a client that is only partly known. `service_namespace` is `None`
    /// if the service is unknown.
    pub fn may_apply(
        &self,
        host: &str,
        service_namespace: Option<&str>,
        client: PossibleClient<'_>,
    ) -> Vec<&Rule> {
        let of = |host: &str| {
            let covering: Vec<_> = self.by_host.covering(host).collect();
            let known = client.namespace.zip(service_namespace);
            let root = client.root_namespace;
            // namespaces, and whether only rules that no other namespace sees count
            let scopes: Vec<(&str, bool)> = match known {
                Some((own, service)) => vec![(own, own == root), (service, false), (root, false)],
                None => {
                    let all = covering.iter().flat_map(|rules| rules.iter());
                    let all: BTreeSet<&str> = all.map(|rule| &*rule.id.namespace).collect();
                    let all = all.into_iter().map(|namespace| (namespace, false));
                    all.chain([(root, true)]).collect()
                }
            };
            let mut found: Vec<&Rule> = Vec::new();
            for (namespace, only_private) in scopes {
                let mut is_settled = false;
                for rules in &covering {
                    let rules = of_namespace(rules, namespace).iter();
                    let rules = rules.filter(|rule| client.may_count(rule));
                    for rule in rules.filter(|rule| !only_private || is_private(rule)) {
                        is_settled |= client.surely_counts(rule);
                        if !found.iter().any(|known| Arc::ptr_eq(known, rule)) {
                            found.push(rule);
                        }
                    }
                    if is_settled {
                        break;
                    }
                }
                if is_settled && known.is_some() {
                    break;
                }
            }
            found
        };
        let rules = of(host);
        match hostname::of_domain(host, &self.domain) {
            Some(native) if rules.is_empty() => of(&native),
            _ => rules,
        }
    }
}

impl PossibleClient<'_> {
    fn may_count(&self, rule: &Rule) -> bool {
        let own = self.namespace;
        own.is_none_or(|own| match rule.spec.workload_selector {
            Some(_) => *rule.id.namespace == *own,
            None => rule.spec.export_to.includes(own),
        })
    }

    fn surely_counts(&self, rule: &Rule) -> bool {
        let is_seen = match self.namespace {
            Some(own) => rule.spec.export_to.includes(own),
            None => rule.spec.export_to == ExportTo::All,
        };
        is_seen && rule.spec.workload_selector.is_none()
    }
}

impl Object<DestinationRule> {
    /// Returns the full host of the rule.
    pub fn full_host(&self, domain: &str) -> String {
        hostname::complete(&self.spec.host, &self.id.namespace, domain).into_owned()
    }

    /// Whether the rule can apply to a client: it is exported to the client's namespace, or its selector matches the
    /// client.
    pub fn counts_for(&self, client: Workload<'_>) -> bool {
        match &self.spec.workload_selector {
            None => self.spec.export_to.includes(client.namespace),
            Some(selector) => {
                *self.id.namespace == *client.namespace && client.is_selected_by(selector)
            }
        }
    }

    /// Whether two rules for one host in one namespace are merged: they have the same selector and the same `exportTo`.
    pub fn is_merged_with(&self, other: &Self) -> bool {
        self.spec.workload_selector == other.spec.workload_selector
            && self.spec.export_to == other.spec.export_to
    }
}

fn precedence(a: &Rule, b: &Rule) -> Ordering {
    let key = |rule: &Rule| rule.spec.workload_selector.is_none();
    let namespaces = a.id.namespace.cmp(&b.id.namespace);
    namespaces.then_with(|| (key(a), a.age()).cmp(&(key(b), b.age())))
}

/// Returns the rules of one namespace from a list that is sorted by namespace.
fn of_namespace<'r>(rules: &'r [Rule], namespace: &str) -> &'r [Rule] {
    let start = rules.partition_point(|rule| *rule.id.namespace < *namespace);
    let rules = &rules[start..];
    &rules[..rules.partition_point(|rule| *rule.id.namespace == *namespace)]
}

/// Returns the first rule and all rules that are merged with it.
fn merged<'r>(rules: impl Iterator<Item = &'r Rule>) -> Vec<&'r Rule> {
    let mut rules: Vec<&Rule> = rules.collect();
    if let Some(first) = rules.first().copied() {
        rules.retain(|rule| rule.is_merged_with(first));
    }
    rules
}

/// Whether only the rule's own namespace sees it.
fn is_private(rule: &Rule) -> bool {
    let own = &rule.id.namespace;
    let hidden = match &rule.spec.export_to {
        ExportTo::All => false,
        ExportTo::Namespaces(seen) => seen.iter().all(|namespace| namespace == own),
        ExportTo::NoNamespace => true,
    };
    hidden || rule.spec.workload_selector.is_some()
}

#[cfg(test)]
mod tests;
