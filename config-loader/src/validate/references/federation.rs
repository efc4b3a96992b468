//! Policies across clusters that cannot have their effect, and imports without endpoints.
//!
//! The local cluster may be unknown. In that case, if the service has endpoints without a cluster, one otherwise
//! unknown key is accepted as the local cluster.

use std::sync::Arc;

use super::clusters::{Clusters, last};
use super::finding::warning;
use super::pools;
use super::rules::Rules;
use super::served::{Served, served};
use crate::catalog::{POOLS_MAX, PossibleClient};
use crate::diagnostic::codes::references::{X293, X294, X295, X297, X307, X311, X321};
use crate::diagnostic::{Diagnostic, suggest};
use crate::kind::MCS_API;
use crate::resource::core::{Service, ServicePort};
use crate::resource::flomesh::{
    ClusterBalancing, ClusterKey, GlobalTrafficPolicy, ImportPort, ServiceImport, TrafficTarget,
};
use crate::resource::{Object, ResourceSet, port_protocol};
use crate::span::Line;

type Policy = Object<GlobalTrafficPolicy>;

pub(super) fn check(
    set: &ResourceSet,
    rules: &Rules,
    client: PossibleClient<'_>,
    clusters: &Clusters<'_>,
    found: &mut Vec<Diagnostic>,
) {
    if set.global_traffic_policies.is_empty() && set.service_imports.is_empty() {
        return;
    }
    let services = served(set);
    for (name, policy) in &set.global_traffic_policies {
        let Some(service) = services.get(name).filter(|service| service.exists) else {
            found.push(unknown_service(policy));
            continue;
        };
        check_targets(policy, service, clusters, found);
        check_own(policy, clusters, found);
        check_weights(policy, found);
        check_count(policy, service, found);
        found.extend(pools::check(rules, client, policy, service, clusters));
    }
    let imports = &set.service_imports;
    for (name, import) in imports {
        let of = services.get(name);
        if of.is_none_or(|service| service.clusters.is_empty()) {
            found.push(empty_import(import));
        }
    }
    for (name, import) in imports.iter().chain(imports.all_in_other_groups()) {
        check_paths(import, set.services.get(name), found);
    }
}

fn unknown_service(policy: &Policy) -> Diagnostic {
    let (name, namespace) = (&policy.id.name, &policy.id.namespace);
    let message = format!("no service `{name}` is known in `{namespace}`: this has no effect");
    let field = "metadata.name".to_owned();
    let mut diagnostic = warning(policy, X293, Line(0), field, message);
    diagnostic.help(
        "a policy has the name and the namespace of a Service, a ServiceImport or a Destination",
    );
    diagnostic
}

/// Warns of clusters beyond the limit, which get no requests.
fn check_count(policy: &Policy, service: &Served<'_>, found: &mut Vec<Diagnostic>) {
    let count = service.clusters.len() + usize::from(service.is_native);
    if count > POOLS_MAX && policy.spec.balancing != ClusterBalancing::Locality {
        let name = &policy.id.name;
        let message =
            format!("{count} clusters serve `{name}`: those beyond {POOLS_MAX} get no requests");
        let mut diagnostic = warning(policy, X321, Line(0), "spec.targets".to_owned(), message);
        diagnostic.help("export the service from fewer clusters");
        found.push(diagnostic);
    }
}

/// Warns of the local cluster among the backups of a FailOver policy, which always begins with it.
fn check_own(policy: &Policy, clusters: &Clusters<'_>, found: &mut Vec<Diagnostic>) {
    if policy.spec.balancing != ClusterBalancing::FailOver {
        return;
    }
    for (index, target) in policy.spec.targets.iter().enumerate() {
        if clusters.own == Some(target.cluster.as_str()) {
            let field = format!("spec.targets[{index}].clusterKey");
            let message = format!(
                "`{}` is the local cluster, which comes first anyway: the target has no effect",
                target.cluster
            );
            let mut diagnostic = warning(policy, X311, target.line, field, message);
            diagnostic.help("name the clusters that take over from it");
            found.push(diagnostic);
        }
    }
}

/// Warns of target clusters without an endpoint of the service.
fn check_targets(
    policy: &Policy,
    service: &Served<'_>,
    clusters: &Clusters<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let spec = &policy.spec;
    if spec.balancing == ClusterBalancing::Locality {
        return;
    }
    let is_own = |key: &ClusterKey| clusters.own == Some(key.as_str());
    let is_backup = |target: &&TrafficTarget| {
        spec.balancing == ClusterBalancing::ActiveActive || !is_own(&target.cluster)
    };
    // where it is the local cluster, what has no mark is its
    let has = |key: &ClusterKey| {
        service.has(key) || clusters.is_told(key) || is_own(key) && service.is_native
    };
    let targets = || spec.targets.iter().enumerate();
    let unknown: Vec<_> = targets()
        .filter(|(_, target)| is_backup(target) && !has(&target.cluster))
        .collect();
    let none_serves = !spec.targets.is_empty() && unknown.len() == spec.targets.len();
    // a key whose last part is that of another one is misspelt rather than the local one
    let may_be_own = |key: &ClusterKey| !service.clusters.keys().any(|known| ends(known, key));
    // the local cluster is no backup of a FailOver, so that no target represents it
    let is_own_a_target = spec.balancing == ClusterBalancing::ActiveActive;
    let own_may_be_named =
        is_own_a_target && clusters.own.is_none() && service.is_native && !none_serves;
    if own_may_be_named && unknown.len() == 1 && may_be_own(&unknown[0].1.cluster) {
        return;
    }
    // which of several is not known here
    let one_may_be_own = match own_may_be_named && unknown.len() > 1 {
        true => ", unless it is the proxy's own",
        false => "",
    };
    for (index, target) in unknown {
        let key = target.cluster.as_str();
        let name = &policy.id.name;
        let message = match none_serves {
            true => format!("no cluster that is named here serves `{name}`: `{key}` is unknown"),
            false => format!("cluster `{key}` has no endpoint of `{name}`{one_may_be_own}"),
        };
        let field = format!("spec.targets[{index}].clusterKey");
        let mut diagnostic = warning(policy, X294, target.line, field, message);
        diagnostic.help(help(key, service, &spec.targets));
        found.push(diagnostic);
    }
}

/// Whether `known` has the same last part, the cluster's name, as `key`.
fn ends(known: &str, key: &ClusterKey) -> bool {
    last(known) == key.name()
}

/// Returns a fix for an unknown cluster key: a similar cluster that is not a target yet, or the clusters that serve the
/// service.
fn help(key: &str, service: &Served<'_>, targets: &[TrafficTarget]) -> String {
    let is_named = |known: &str| {
        let mut keys = targets.iter().map(|target| &target.cluster);
        keys.any(|key| [key.as_str(), key.name()].contains(&known))
    };
    let known: Vec<&str> = service.clusters.keys().copied().collect();
    let others = known.iter().copied().filter(|known| !is_named(known));
    if let Some(near) = suggest::nearest(key, others) {
        return format!("did you mean `{near}`?");
    }
    match known.is_empty() {
        true => "import the service from that cluster: write a ServiceImport".to_owned(),
        false => format!("clusters that serve it: {}", known.join(", ")),
    }
}

/// Warns of policies whose weights leave only the local cluster, or none.
fn check_weights(policy: &Policy, found: &mut Vec<Diagnostic>) {
    let spec = &policy.spec;
    let mut weights = spec.targets.iter().map(|target| target.weight);
    if spec.balancing == ClusterBalancing::FailOver && spec.is_ordered {
        return; // by their order alone
    }
    if spec.targets.is_empty() || weights.any(|weight| weight > 0) {
        return;
    }
    let message = match spec.balancing {
        ClusterBalancing::ActiveActive => {
            "every weight is 0: only the local cluster serves, if it is not named here"
        }
        ClusterBalancing::FailOver => "every weight is 0: there is no backup",
        ClusterBalancing::Locality => return,
    };
    let field = "spec.targets".to_owned();
    let line = spec.targets[0].line;
    let mut diagnostic = warning(policy, X295, line, field, message.to_owned());
    diagnostic.help("0 drains a cluster; leave weight out for 100");
    found.push(diagnostic);
}

/// Warns of endpoints with a path prefix on ports that do not carry HTTP. The Service of the same name determines the
/// protocol first.
fn check_paths(
    import: &Object<ServiceImport>,
    service: Option<&Arc<Object<Service>>>,
    found: &mut Vec<Diagnostic>,
) {
    let known = |port: &ImportPort| {
        let ports = &service?.spec.ports;
        let by_name = |known: &&ServicePort| !port.name.is_empty() && known.name == port.name;
        let named = ports.iter().find(by_name);
        named.or_else(|| ports.iter().find(|known| known.port == port.port))
    };
    for (number, port) in import.spec.ports.iter().enumerate() {
        let (app_protocol, name) = match known(port) {
            Some(known) => (known.app_protocol.as_deref(), &*known.name),
            None => (port.app_protocol.as_deref(), &*port.name),
        };
        let carries = port_protocol::named(app_protocol, name, "http");
        if port_protocol::has_paths(carries) {
            continue;
        }
        for (at, endpoint) in port.endpoints.iter().enumerate() {
            let path = &endpoint.target.path_prefix;
            if path.is_empty() {
                continue;
            }
            let field = format!("spec.ports[{number}].endpoints[{at}].target.path");
            let message = format!(
                "PathNotApplicable: the port carries `{carries}`, which has no paths to put `{path}` in front of: the endpoint is not used"
            );
            let mut diagnostic = warning(import, X307, endpoint.line, field, message);
            diagnostic.help(
                "leave out the path, or say `appProtocol: http` if that is what the port carries",
            );
            found.push(diagnostic);
        }
    }
}

/// Returns the diagnostic about an import without endpoints, if no other resource has endpoints in remote clusters.
fn empty_import(import: &Object<ServiceImport>) -> Diagnostic {
    let message = "the import has no endpoints: no other cluster serves it".to_owned();
    let field = "spec.ports".to_owned();
    let mut diagnostic = warning(import, X297, Line(0), field, message);
    diagnostic.help(match import.id.group {
        MCS_API => {
            "an import of this API has its endpoints from EndpointSlices with the labels \
             `multicluster.kubernetes.io/service-name` and `multicluster.kubernetes.io/source-cluster`"
        }
        _ => "write endpoints of its ports, with the cluster and its gateway",
    });
    diagnostic
}

#[cfg(test)]
mod tests;
