//! PeerAuthentications without an effect: policies that apply to no workload, and ports that no service has. Also
//! DestinationRules that send plain text to workloads that reject it.

use std::collections::BTreeMap;

use super::finding::{location, warning};
use crate::catalog::{Accepted, PeerPolicy, Services, Source, Workload};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X330, X331, X332, X333};
use crate::resource::core::TargetPort;
use crate::resource::istio::{
    ClientTls, ClientTlsMode, DestinationRule, MutualTls, PeerAuthentication, TrafficPolicy,
};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

type Policy = Object<PeerAuthentication>;
type Labels = BTreeMap<String, String>;

pub(super) fn check(
    set: &ResourceSet,
    root_namespace: &str,
    domain: &str,
    services: &Services,
    found: &mut Vec<Diagnostic>,
) {
    // A rejected policy requires TLS as well.
    if set.peer_authentications.is_empty() && set.withheld.is_empty() {
        return;
    }
    let mut policies: Vec<&Policy> = set
        .peer_authentications
        .values()
        .map(AsRef::as_ref)
        .collect();
    policies.sort_by(|a, b| a.age().cmp(&b.age()));
    for (index, policy) in policies.iter().enumerate() {
        if !policy.spec.selector.is_empty() && *policy.id.namespace == *root_namespace {
            found.push(selects_nothing(policy));
            continue;
        }
        let mut older = policies[..index].iter();
        if let Some(older) = older.find(|older| overlap(older, policy)) {
            found.push(hidden(policy, older));
        }
        check_ports(set, policy, found);
    }
    let rules = Rules {
        set,
        root_namespace,
        services,
    };
    for rule in set.destination_rules.values() {
        let host = rule.full_host(domain);
        rules.check(rule, &host, found);
    }
}

/// Returns the diagnostic about a policy with a selector in the root namespace, which in Istio applies to no workload.
fn selects_nothing(policy: &Policy) -> Diagnostic {
    let message = "a selector in the root namespace selects no workload: this policy has no effect";
    let field = "spec.selector".to_owned();
    let mut diagnostic = warning(policy, X333, Line(0), field, message.to_owned());
    diagnostic.help("move it to the namespace of the workloads, or remove the selector");
    diagnostic
}

/// Whether two policies of one namespace set the same mode for a workload that both select.
fn overlap(older: &Policy, younger: &Policy) -> bool {
    let (one, other) = (&older.spec.selector, &younger.spec.selector);
    older.id.namespace == younger.id.namespace
        && one.is_empty() == other.is_empty()
        && (includes(one, other) || includes(other, one))
}

fn includes(whole: &Labels, part: &Labels) -> bool {
    part.iter()
        .all(|(key, value)| whole.get(key) == Some(value))
}

fn hidden(policy: &Policy, older: &Policy) -> Diagnostic {
    let message = match policy.spec.selector.is_empty() {
        true => format!(
            "{} is older and decides for namespace `{}`: this policy has no effect",
            older.id, policy.id.namespace
        ),
        false => format!(
            "{} is older and decides for workloads that both select",
            older.id
        ),
    };
    let mut diagnostic = warning(policy, X330, Line(0), "metadata.name".to_owned(), message);
    diagnostic.help("merge the two, or let their selectors exclude each other");
    diagnostic.related(location(older, Line(0)), "this one counts");
    diagnostic
}

/// Warns of a port mode that has no effect, because no service uses that port of the workload.
fn check_ports(set: &ResourceSet, policy: &Policy, found: &mut Vec<Diagnostic>) {
    if policy.spec.ports.is_empty() {
        return;
    }
    let Some(ports) = ports_of_services(set, policy) else {
        return;
    };
    for (port, level) in &policy.spec.ports {
        if ports.contains(port) {
            continue;
        }
        let known: Vec<String> = ports.iter().map(u16::to_string).collect();
        let message = format!("no service of these workloads has target port {port}");
        let field = format!("spec.portLevelMtls.{port}");
        let mut diagnostic = warning(policy, X331, level.line, field, message);
        diagnostic.help(format!(
            "write a port of the workload, not of its service: {}",
            known.join(", ")
        ));
        found.push(diagnostic);
    }
}

/// Returns the workload ports that services use of the workloads that a policy selects. `None` if some ports are
/// unknown, or no service is known.
fn ports_of_services(set: &ResourceSet, policy: &Policy) -> Option<Vec<u16>> {
    let selector = &policy.spec.selector;
    let may_select = |other: &Labels| {
        let mut both = other.iter();
        !other.is_empty()
            && both.all(|(key, value)| selector.get(key).is_none_or(|one| one == value))
    };
    let mut ports = Vec::new();
    let services = set.services.values();
    for service in services.filter(|service| service.id.namespace == policy.id.namespace) {
        if !may_select(&service.spec.selector) {
            continue;
        }
        for port in &service.spec.ports {
            match port.target {
                TargetPort::Number(number) => ports.push(number),
                TargetPort::Name(_) => return None,
            }
        }
    }
    let entries = set.service_entries.values();
    for entry in entries.filter(|entry| entry.id.namespace == policy.id.namespace) {
        if entry
            .spec
            .workload_selector
            .as_ref()
            .is_some_and(may_select)
        {
            let targets = entry.spec.ports.iter();
            ports.extend(targets.map(|port| port.target_port.unwrap_or(port.number)));
        }
    }
    // a WorkloadEntry may have other ports than its service
    for entry in set.workload_entries.values() {
        if entry.id.namespace == policy.id.namespace {
            ports.extend(entry.spec.ports.values());
        }
    }
    ports.sort_unstable();
    ports.dedup();
    (!ports.is_empty()).then_some(ports)
}

/// Resources that DestinationRules are checked against.
struct Rules<'a> {
    set: &'a ResourceSet,
    root_namespace: &'a str,
    services: &'a Services,
}

impl Rules<'_> {
    fn check(&self, rule: &Object<DestinationRule>, host: &str, found: &mut Vec<Diagnostic>) {
        let none = Labels::new();
        let whole = (
            &rule.spec.traffic_policy,
            "spec.trafficPolicy".to_owned(),
            &none,
        );
        let subsets = rule.spec.subsets.iter().enumerate().map(|(index, subset)| {
            let path = format!("spec.subsets[{index}].trafficPolicy");
            (&subset.traffic_policy, path, &subset.labels)
        });
        for (policy, path, labels) in [whole].into_iter().chain(subsets) {
            for block in plain(policy, &path) {
                let Some((strict, by)) = self.strict(host, rule, block.port, labels) else {
                    continue;
                };
                found.push(refused(rule, block, host, strict, &by));
            }
        }
    }

    /// Returns a port of a host whose workloads reject plain text, with the policy that requires mutual TLS.
    fn strict(
        &self,
        host: &str,
        rule: &Object<DestinationRule>,
        port: Option<u16>,
        labels: &Labels,
    ) -> Option<(u16, Accepted)> {
        let seen = self.services.find_from(host, &rule.id.namespace)?;
        seen.sources().iter().find_map(|source| {
            let (namespace, selector, ports) = workloads(source)?;
            let mut own = selector.clone();
            own.extend(labels.clone());
            let workload = Workload {
                namespace,
                labels: &own,
                root_namespace: self.root_namespace,
            };
            let policy = PeerPolicy::of(self.set, workload);
            let mut ports = ports.into_iter();
            ports.find_map(|(number, target)| {
                let accepted = match target {
                    Some(target) => policy.of_port(target),
                    None => policy.whole(),
                };
                let is_meant = port.is_none_or(|port| port == number);
                (is_meant && accepted.mode == MutualTls::Strict).then(|| (number, accepted.clone()))
            })
        })
    }
}

/// Namespace and labels of the workloads of a service, and its ports with the workload ports, if known.
type Workloads<'a> = (&'a str, &'a Labels, Vec<(u16, Option<u16>)>);

fn workloads(source: &Source) -> Option<Workloads<'_>> {
    match source {
        Source::Service(service) => {
            let ports = service.spec.ports.iter().map(|port| match port.target {
                TargetPort::Number(target) => (port.port, Some(target)),
                TargetPort::Name(_) => (port.port, None),
            });
            let selector = &service.spec.selector;
            (!selector.is_empty()).then_some((&service.id.namespace, selector, ports.collect()))
        }
        Source::Entry(entry) => {
            let ports = entry.spec.ports.iter();
            let ports =
                ports.map(|port| (port.number, Some(port.target_port.unwrap_or(port.number))));
            let selector = entry.spec.workload_selector.as_ref()?;
            Some((&entry.id.namespace, selector, ports.collect()))
        }
        _ => None,
    }
}

/// Block of a policy that disables TLS.
struct PlainBlock<'p> {
    /// Port that it applies to; `None` for all.
    port: Option<u16>,
    tls: &'p ClientTls,
    /// Path of its mode.
    path: String,
}

/// Returns the blocks of a policy that disable TLS.
fn plain<'p>(policy: &'p TrafficPolicy, path: &str) -> Vec<PlainBlock<'p>> {
    let whole = policy.tls.as_deref().map(|tls| PlainBlock {
        port: None,
        tls,
        path: format!("{path}.tls.mode"),
    });
    let ports = policy.ports.iter().enumerate().filter_map(|(index, port)| {
        Some(PlainBlock {
            port: Some(port.port),
            tls: port.tls.as_deref()?,
            path: format!("{path}.portLevelSettings[{index}].tls.mode"),
        })
    });
    let all = whole.into_iter().chain(ports);
    all.filter(|block| block.tls.mode == ClientTlsMode::Disable)
        .collect()
}

fn refused(
    rule: &Object<DestinationRule>,
    block: PlainBlock<'_>,
    host: &str,
    port: u16,
    by: &Accepted,
) -> Diagnostic {
    let policy = by.by.as_ref().map_or_else(String::new, ToString::to_string);
    let message = format!(
        "port {port} of `{host}` requires mutual TLS ({policy}): requests in plain text will get 503 UC"
    );
    let mut diagnostic = warning(rule, X332, block.tls.line, block.path, message);
    diagnostic.help("write `mode: ISTIO_MUTUAL`, or remove `tls` so that the proxy chooses");
    diagnostic
}

#[cfg(test)]
mod tests;
