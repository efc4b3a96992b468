//! Names in policies that nothing has: namespaces without workloads, identities of other trust domains, namespaces or
//! service accounts, and hosts that no gateway serves.

use std::collections::BTreeSet;

use traffic::authz::{Attribute, Condition, Pattern, Peer, Values};

use super::policies::{Policies, Policy, about, conditions, has};
use crate::Fleet;
use crate::diagnostic::codes::istio::{AZ102, AZ108, AZ112};
use crate::diagnostic::{Diagnostic, Severity, suggest};
use crate::resource::istio::authorization_policy::Rule;
use crate::resource::istio::{Gateway, ServerTlsMode};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;
use crate::validate::references::finding::warning;

/// Trust domain that means that of the mesh, whatever its name.
const DEFAULT_DOMAIN: &str = "cluster.local";

/// Namespaces and service accounts of the mesh, as far as they are known.
pub(super) struct KnownNames<'a> {
    /// Namespaces; empty if they are not known.
    namespaces: BTreeSet<&'a str>,
    /// Service accounts with their namespaces; empty if pods are not known.
    accounts: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> KnownNames<'a> {
    pub(super) fn new(set: &'a ResourceSet) -> Self {
        let namespaces = set.namespaces.values().map(|one| &*one.id.name);
        let pods = set.pods.values();
        let pods = pods.map(|pod| (&*pod.id.namespace, &*pod.spec.account));
        let has_pods = !set.pods.is_empty();
        let entries = set.workload_entries.values().filter(|_| has_pods);
        let entries = entries.map(|one| (&*one.id.namespace, &*one.spec.service_account));
        Self {
            namespaces: namespaces.collect(),
            accounts: pods.chain(entries).collect(),
        }
    }
}

/// Warns of a policy for a namespace in which no workload is known.
pub(super) fn check_namespace(
    policies: &Policies<'_>,
    policy: &Policy,
    fleet: &Fleet,
    found: &mut Vec<Diagnostic>,
) {
    let (set, namespace) = (policies.set, &*policy.id.namespace);
    let own = fleet.namespace.as_deref().or(Some(policies.root_namespace));
    let mut gateways = set.gateways.values().map(|one| &one.id.namespace);
    let of_api = set
        .kubernetes_gateways
        .values()
        .map(|one| &one.id.namespace);
    let has_workloads = policies.workloads().has_any(namespace)
        || namespace == policies.root_namespace
        || own == Some(namespace)
        || gateways.any(|one| **one == *namespace)
        || of_api.into_iter().any(|one| **one == *namespace);
    if has_workloads || policies.workloads().is_empty() {
        return;
    }
    let message = format!("no Service, WorkloadEntry or pod of namespace `{namespace}` is known");
    let field = "metadata.namespace".to_owned();
    let mut diagnostic = warning(policy, AZ102, Line(0), field, message);
    // pods need not belong to a Service
    diagnostic.severity = Severity::Note;
    let near = suggest::nearest(namespace, policies.workloads().namespaces());
    let near = near.map(|near| format!("did you mean `{near}`?"));
    diagnostic.help(near.unwrap_or_else(|| {
        "nothing to do if its pods belong to no Service; else write the namespace of the workloads"
            .to_owned()
    }));
    found.push(diagnostic);
}

/// Warns of identities that no client has.
pub(super) fn check_principals(
    policies: &Policies<'_>,
    policy: &Policy,
    fleet: &Fleet,
    known: &KnownNames<'_>,
    found: &mut Vec<Diagnostic>,
) {
    // authorities of a gateway may issue identities of any trust domain
    let has_own_clients = gateways(policies, policy).any(|gateway| {
        let mut modes = gateway
            .spec
            .servers
            .iter()
            .filter_map(|one| one.tls.as_ref());
        modes.any(|tls| tls.mode != ServerTlsMode::IstioMutual)
    });
    for (index, rule) in policy.spec.rules.iter().enumerate() {
        for principal in exact(rule, |one| *one == Attribute::Principal) {
            let uri = format!("spiffe://{principal}");
            let Some(peer) = Peer::parse(&uri) else {
                continue;
            };
            let domains = &fleet.trust_domains;
            let is_ours = peer.trust_domain == DEFAULT_DOMAIN
                || domains.iter().any(|one| **one == *peer.trust_domain);
            let (namespace, account) = (peer.namespace, peer.service_account);
            let (what, near) = if !domains.is_empty() && !is_ours && !has_own_clients {
                let near = suggest::nearest(peer.trust_domain, domains.iter().map(|one| &**one));
                (format!("trust domain `{}`", peer.trust_domain), near)
            } else if is_ours
                && !known.namespaces.is_empty()
                && !known.namespaces.contains(namespace)
            {
                let near = suggest::nearest(namespace, known.namespaces.iter().copied());
                (format!("namespace `{namespace}`"), near)
            } else if is_ours
                && known.accounts.iter().any(|(one, _)| *one == namespace)
                && !known.accounts.contains(&(namespace, account))
            {
                let all = known.accounts.iter();
                let here = all
                    .filter(|(one, _)| *one == namespace)
                    .map(|(_, one)| *one);
                (
                    format!("service account `{account}`"),
                    suggest::nearest(account, here),
                )
            } else {
                continue;
            };
            let message =
                format!("no client has the identity `{principal}`: its {what} is unknown");
            let mut diagnostic = about(policy, index, rule, AZ108, &message);
            let near = near.map(|near| format!("did you mean `{near}`?"));
            diagnostic.help(near.unwrap_or_else(|| {
                "write an identity of the mesh, or start its workloads first".to_owned()
            }));
            found.push(diagnostic);
        }
    }
}

/// Warns of hosts that no gateway of a policy serves.
pub(super) fn check_hosts(policies: &Policies<'_>, policy: &Policy, found: &mut Vec<Diagnostic>) {
    let served = gateways(policies, policy).flat_map(|gateway| &gateway.spec.servers);
    let served = served.flat_map(|server| server.hosts.iter().map(|one| &*one.host));
    let served: BTreeSet<&str> = served.collect();
    if served.is_empty() {
        return;
    }
    for (index, rule) in policy.spec.rules.iter().enumerate() {
        for pattern in patterns(rule, |one| matches!(one, Attribute::Host { .. })) {
            let Some((host, name)) = host_of(pattern) else {
                continue;
            };
            if served.iter().any(|one| overlap(one, &name)) {
                continue;
            }
            let message = format!("no server of the gateway has the host `{host}`");
            let mut diagnostic = about(policy, index, rule, AZ112, &message);
            let near = suggest::nearest(&name, served.iter().copied());
            let near = near.map(|near| format!("did you mean `{near}`?"));
            diagnostic.help(near.unwrap_or_else(|| {
                "write a host of its servers, or add the host to one of them".to_owned()
            }));
            found.push(diagnostic);
        }
    }
}

/// Gateways that a policy selects.
fn gateways<'p>(
    policies: &'p Policies<'_>,
    policy: &'p Policy,
) -> impl Iterator<Item = &'p Object<Gateway>> {
    let selector = &policy.spec.scope.selector;
    let all = policies.set.gateways.values().map(AsRef::as_ref);
    all.filter(move |gateway| !selector.is_empty() && has(&gateway.spec.selector, selector))
}

/// Returns the host of a policy as written, and as a name without port and final dot in lower case; `None` for patterns that
/// may match a host of any server.
fn host_of(pattern: &Pattern) -> Option<(String, String)> {
    let (Pattern::Exact(host) | Pattern::Suffix(host)) = pattern else {
        return None;
    };
    let name = host.rsplit_once(':').map_or(&**host, |(name, _)| name);
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    match pattern {
        Pattern::Suffix(_) => Some((format!("*{host}"), format!("*{name}"))),
        _ => Some((host.to_string(), name)),
    }
}

/// Whether a host can have both names, each of which may begin with a wildcard.
fn overlap(one: &str, other: &str) -> bool {
    match (one.strip_prefix('*'), other.strip_prefix('*')) {
        (None, None) => one == other,
        (Some(suffix), None) => other.ends_with(suffix),
        (None, Some(suffix)) => one.ends_with(suffix),
        (Some(one), Some(other)) => one.ends_with(other) || other.ends_with(one),
    }
}

/// Iterates over the values of an attribute that a rule names.
fn patterns(rule: &Rule, wanted: fn(&Attribute) -> bool) -> impl Iterator<Item = &Pattern> {
    let of_attribute = conditions(rule).filter(move |one: &&Condition| wanted(&one.attribute));
    of_attribute.flat_map(|one| match &one.values {
        Some(Values::Texts(patterns)) => &**patterns,
        _ => &[],
    })
}

/// Iterates over the values of an attribute without a wildcard that a rule names.
fn exact(rule: &Rule, wanted: fn(&Attribute) -> bool) -> impl Iterator<Item = &str> {
    patterns(rule, wanted).filter_map(|pattern| match pattern {
        Pattern::Exact(text) => Some(&**text),
        _ => None,
    })
}
