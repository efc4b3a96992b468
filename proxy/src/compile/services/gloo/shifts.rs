//! Traffic shifts that Destinations require: subsets by their labels, and the shift itself if it is known to be
//! attached to the destination.
//!
//! A requirement only says that a policy's shift names subsets of the destination; the policy may be attached to
//! another destination. So the shift applies only if no route source has the host, and if the policy is among the
//! policies applied to the destination (which then name its requests and sources) or every part of the shift is the
//! same service. A route source for every host disables the shift on its listeners; see `Clusters::shifts`.

use std::collections::HashMap;
use std::sync::Arc;

use config_loader::catalog::RoutedHosts;
use config_loader::resource::Object;
use config_loader::resource::gloo::{
    ClusterRef, Destination, KubeService, PolicyTarget, RequiredSubsets, ShiftTarget,
    WorkloadSelector, subset_name,
};

use crate::compile::conditions;
use crate::compile::provenance::provenance_of;
use crate::compile::service::Part;
use crate::compile::service::Shift;
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;

/// Key of a cluster, and namespace and name of a service there.
pub(in crate::compile) type Named<'a> = (Arc<str>, &'a str, &'a str);

/// Hosts that decide whether a shift applies, and its destinations.
pub(in crate::compile) struct ShiftTargets<'a> {
    routed: RoutedHosts<'a>,
    /// Hosts by which this proxy reaches services of other clusters.
    federated: HashMap<Named<'a>, Arc<str>>,
}

impl<'a> ShiftTargets<'a> {
    pub(in crate::compile) fn collect(
        collector: &Collector<'a>,
        federated: HashMap<Named<'a>, Arc<str>>,
    ) -> Self {
        let destinations = collector.view.all::<Destination>().values();
        let mut required = destinations.flat_map(|object| &object.spec.status.required_subsets);
        let routed = match required.next() {
            Some(_) => RoutedHosts::collect(collector.view, &collector.identity.domain),
            None => RoutedHosts::default(),
        };
        Self { routed, federated }
    }
}

/// Attaches the shifts of a Destination that apply to its host.
pub(in crate::compile) fn attach(
    collector: &Collector<'_>,
    known: &ShiftTargets<'_>,
    object: &Arc<Object<Destination>>,
    kube: &KubeService,
    draft: &mut Draft,
) {
    if known.routed.by(&draft.service.host).is_some() {
        return;
    }
    let status = &object.spec.status;
    let shifts = status.required_subsets.iter().filter_map(|required| {
        let target = required.target(&status.traffic_policies, &kube.service);
        shift(collector, known, object, required, target.ok()?)
    });
    draft.service.shifts.extend(shifts.map(Arc::new));
}

/// Moves conditional shifts before unconditional ones, and drops those that follow an unconditional one.
pub(in crate::compile) fn put_in_order(shifts: &mut Vec<Arc<Shift>>) {
    let takes_all = |shift: &Arc<Shift>| shift.requests.is_empty();
    shifts.sort_by_key(takes_all);
    if let Some(first) = shifts.iter().position(takes_all) {
        shifts.truncate(first + 1);
    }
}

/// Whether the policy applies to the proxy as a client.
fn is_source(collector: &Collector<'_>, target: &PolicyTarget) -> bool {
    let identity = collector.identity;
    let own = &collector.members().own.key;
    let is_in = |name: &Arc<str>| {
        let member = collector.members().find(name);
        member.is_some_and(|member| member.key == *own)
    };
    let selects = |selector: &WorkloadSelector| {
        let mut labels = selector.labels.iter();
        let (namespaces, clusters) = (&selector.namespaces, &selector.clusters);
        labels.all(|(key, value)| identity.labels.get(key) == Some(value))
            && (namespaces.is_empty() || namespaces.iter().any(|one| **one == identity.namespace))
            && (clusters.is_empty() || clusters.iter().any(is_in))
    };
    target.sources.is_empty() || target.sources.iter().any(selects)
}

/// Returns a shift with the hosts of its parts; `None` if a part has no host that the proxy may use, or if the shift is
/// for others.
fn shift(
    collector: &Collector<'_>,
    known: &ShiftTargets<'_>,
    object: &Arc<Object<Destination>>,
    required: &RequiredSubsets,
    target: Option<&PolicyTarget>,
) -> Option<Shift> {
    if target.is_some_and(|target| !is_source(collector, target)) {
        return None;
    }
    let requests = target.map_or(&[][..], |target| &target.requests);
    let mut parts = Vec::new();
    for written in &required.shift.destinations {
        let ShiftTarget::Kube {
            service,
            subset,
            port,
        } = &written.target
        else {
            return None;
        };
        parts.push(Part {
            weight_percent: written.weight_percent,
            host: host(collector, known, service)?,
            subset: match subset.is_empty() {
                true => Arc::from(""),
                false => subset_name(subset).into(),
            },
            port: *port,
        });
    }
    (!parts.is_empty()).then(|| Shift {
        requests: requests.iter().map(conditions::conditions).collect(),
        parts,
        provenance: provenance_of(object.as_ref(), required.line.0),
        fingerprint: object.fingerprint,
    })
}

/// Returns the host of a service of a cluster: for the local cluster its own, else the one by which this proxy reaches
/// it.
fn host(
    collector: &Collector<'_>,
    known: &ShiftTargets<'_>,
    service: &ClusterRef,
) -> Option<Arc<str>> {
    let member = collector.members().find(&service.cluster)?;
    let (name, namespace) = (&*service.name, &*service.namespace);
    if member.key == collector.members().own.key {
        return Some(service.host(&collector.identity.domain).into());
    }
    let named = (Arc::clone(&member.key), namespace, name);
    known.federated.get(&named).cloned()
}
