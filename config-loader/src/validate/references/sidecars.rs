//! Sidecars: selectors without a workload, several Sidecars for one workload, egress hosts without a match, and TLS
//! settings that the mesh's mutual TLS replaces.

mod reach;

use std::collections::BTreeMap;

use reach::Reach;

use super::finding::{location, warning};
use super::workloads::Workloads;
use crate::catalog::{PeerPolicy, Services, Workload};
use crate::diagnostic::codes::references::{X340, X341, X342, X343, X344, X345, X346};
use crate::diagnostic::{Diagnostic, Severity, suggest};
use crate::resource::istio::{EgressHost, EgressListener, EgressNamespace, MutualTls, Sidecar};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

type Labels = BTreeMap<String, String>;

pub(super) fn check(
    set: &ResourceSet,
    root_namespace: &str,
    domain: &str,
    services: &Services,
    found: &mut Vec<Diagnostic>,
) {
    if set.sidecars.is_empty() {
        return;
    }
    let workloads = Workloads::new(set);
    let reach = Reach::new(set, services, root_namespace, domain);
    let mut sidecars: Vec<_> = set.sidecars.values().map(AsRef::as_ref).collect();
    sidecars.sort_by(|a, b| a.age().cmp(&b.age()));
    let mut by_namespace: BTreeMap<&str, Vec<&Object<Sidecar>>> = BTreeMap::new();
    for sidecar in sidecars {
        let older = by_namespace.entry(&sidecar.id.namespace).or_default();
        check_selector(sidecar, &workloads, found);
        let mut others = older.iter();
        if let Some(older) = others.find(|older| collide(older, sidecar, &workloads)) {
            found.push(hidden(sidecar, older));
        }
        check_egress(sidecar, &reach, found);
        check_egress_proxy(sidecar, services, found);
        check_ingress(sidecar, set, root_namespace, found);
        older.push(sidecar);
    }
}

fn check_selector(
    sidecar: &Object<Sidecar>,
    workloads: &Workloads<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let Some(selector) = &sidecar.spec.workload_selector else {
        return;
    };
    let namespace = &*sidecar.id.namespace;
    if workloads.has_any(namespace) && !workloads.may_select(namespace, selector) {
        let near = selector.iter().find_map(|(key, value)| {
            let near = suggest::nearest(value, workloads.values(namespace, key))?;
            (near != value).then(|| format!("did you mean `{key}: {near}`?"))
        });
        let pairs = selector.iter().map(|(key, value)| format!("{key}={value}"));
        let labels = pairs.collect::<Vec<_>>().join(",");
        let message = format!(
            "no Service or WorkloadEntry of namespace `{namespace}` tells of a workload with `{labels}`"
        );
        let field = "spec.workloadSelector".to_owned();
        let line = sidecar.spec.workload_selector_line;
        let mut diagnostic = warning(sidecar, X340, line, field, message);
        if near.is_none() {
            // Istio looks at pods, and a pod need not belong to a Service
            diagnostic.severity = Severity::Note;
        }
        diagnostic.help(near.unwrap_or_else(|| {
            "nothing to do if its pods belong to no Service; else write labels of its pods or WorkloadEntries".to_owned()
        }));
        found.push(diagnostic);
    }
}

/// Whether two Sidecars of one namespace apply to the same workload at the same level.
fn collide(older: &Object<Sidecar>, younger: &Object<Sidecar>, workloads: &Workloads<'_>) -> bool {
    let selectors = (
        &older.spec.workload_selector,
        &younger.spec.workload_selector,
    );
    match selectors {
        (None, None) => true,
        (Some(one), Some(other)) => {
            includes(one, other)
                || includes(other, one)
                || workloads.select_one(&younger.id.namespace, one, other)
        }
        _ => false,
    }
}

fn includes(whole: &Labels, part: &Labels) -> bool {
    part.iter()
        .all(|(key, value)| whole.get(key) == Some(value))
}

fn hidden(sidecar: &Object<Sidecar>, older: &Object<Sidecar>) -> Diagnostic {
    let has_selector = sidecar.spec.workload_selector.is_some();
    let (code, field, message, help) = match has_selector {
        true => (
            X341,
            "spec.workloadSelector",
            format!(
                "the older {} is used for the workloads that both select",
                older.id
            ),
            "let their selectors exclude each other, or merge the two",
        ),
        false => (
            X342,
            "metadata.name",
            format!(
                "the older {} is the default of namespace `{}`: this Sidecar has no effect",
                older.id, sidecar.id.namespace
            ),
            "merge the two, or add a workloadSelector to one of them",
        ),
    };
    let line = sidecar.spec.workload_selector_line;
    let mut diagnostic = warning(sidecar, code, line, field.to_owned(), message);
    diagnostic.help(help);
    diagnostic.related(location(older, Line(0)), "this one is used");
    diagnostic
}

fn check_egress(sidecar: &Object<Sidecar>, reach: &Reach<'_>, found: &mut Vec<Diagnostic>) {
    if reach.is_empty() {
        return;
    }
    let listeners = sidecar.spec.egress.iter().flatten();
    for (index, listener) in listeners.enumerate() {
        for (at, host) in listener.hosts.iter().enumerate() {
            if !reach.has_match(sidecar, host) {
                let field = format!("spec.egress[{index}].hosts[{at}]");
                found.push(unmatched(sidecar, host, field, reach));
            }
        }
        if let Some(number) = port_of(listener)
            && reach.lacks_port(sidecar, listener, number)
        {
            let message = format!("no service that the hosts match has port {number}");
            let field = format!("spec.egress[{index}].port.number");
            let mut diagnostic = warning(sidecar, X344, listener.line, field, message);
            diagnostic.help("write a port of a service, or remove `port` to mean all ports");
            found.push(diagnostic);
        }
    }
}

/// Warns of ingress TLS settings without an effect. They apply only if a PeerAuthentication disables mutual TLS for the
/// port. The default Sidecar of the mesh is not checked, because its workloads have policies of their own.
fn check_ingress(
    sidecar: &Object<Sidecar>,
    set: &ResourceSet,
    root_namespace: &str,
    found: &mut Vec<Diagnostic>,
) {
    let (namespace, none) = (&*sidecar.id.namespace, Labels::new());
    let selector = sidecar.spec.workload_selector.as_ref();
    if selector.is_none() && namespace == root_namespace {
        return;
    }
    let ingress = sidecar.spec.ingress.iter().enumerate();
    for (index, entry) in ingress {
        let Some(tls) = entry.tls.as_ref().filter(|tls| tls.mode.terminates()) else {
            continue;
        };
        let workload = Workload {
            namespace,
            labels: selector.unwrap_or(&none),
            root_namespace,
        };
        let policy = PeerPolicy::of(set, workload);
        let accepted = policy.of_port(entry.port.number);
        if accepted.mode == MutualTls::Disable {
            continue;
        }
        let (number, mode) = (entry.port.number, accepted.mode.as_str());
        let by = match &accepted.by {
            Some(by) => format!("{by} says {mode}"),
            None => format!("{mode} is the default"),
        };
        let message =
            format!("port {number} has the mutual TLS of the mesh ({by}), not these settings");
        let field = format!("spec.ingress[{index}].tls");
        let mut diagnostic = warning(sidecar, X346, tls.line, field, message);
        diagnostic.help(match selector {
            Some(_) => format!(
                "write a PeerAuthentication with the selector of the Sidecar and `portLevelMtls: {{{number}: {{mode: DISABLE}}}}`"
            ),
            None => "write a PeerAuthentication with `mtls: {mode: DISABLE}`".to_owned(),
        });
        found.push(diagnostic);
    }
}

/// Returns the service port that a listener is for.
fn port_of(listener: &EgressListener) -> Option<u16> {
    let port = listener.port.as_ref()?;
    (port.number > 0).then_some(port.number)
}

fn unmatched(
    sidecar: &Object<Sidecar>,
    host: &EgressHost,
    field: String,
    reach: &Reach<'_>,
) -> Diagnostic {
    let own = &*sidecar.id.namespace;
    let (message, help) = match &host.namespace {
        EgressNamespace::Without(namespace) => (
            format!(
                "`~{namespace}/{}` takes nothing away: no service and no VirtualService matches it",
                host.host
            ),
            "remove it, or write the namespace and host of a service".to_owned(),
        ),
        namespace => {
            let written = match namespace {
                EgressNamespace::Any => "*",
                EgressNamespace::Only(namespace) => namespace,
                _ => ".",
            };
            let near = reach.elsewhere(host, own).map(|namespace| {
                format!(
                    "the host is in namespace `{namespace}`: write `{namespace}/{}`",
                    host.host
                )
            });
            (
                format!(
                    "`{written}/{}` matches no service and no VirtualService that namespace `{own}` sees",
                    host.host
                ),
                near.unwrap_or_else(|| {
                    "write `namespace/host` of a service or ServiceEntry, which `exportTo` must not hide".to_owned()
                }),
            )
        }
    };
    let mut diagnostic = warning(sidecar, X343, host.line, field, message);
    diagnostic.help(help);
    diagnostic
}

fn check_egress_proxy(sidecar: &Object<Sidecar>, services: &Services, found: &mut Vec<Diagnostic>) {
    let policy = sidecar.spec.outbound.as_ref();
    let Some(proxy) = policy.and_then(|policy| policy.egress_proxy.as_ref()) else {
        return;
    };
    let host = proxy.host.to_ascii_lowercase();
    if services.find_from(&host, &sidecar.id.namespace).is_some() {
        return;
    }
    let message =
        format!("`{host}` is not a known service: traffic for unknown destinations will fail");
    let field = "spec.outboundTrafficPolicy.egressProxy.host".to_owned();
    let mut diagnostic = warning(sidecar, X345, proxy.line, field, message);
    diagnostic.help("write the full name of a service, or add a ServiceEntry for it");
    found.push(diagnostic);
}

#[cfg(test)]
mod tests;
