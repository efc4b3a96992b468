//! What Destinations require for traffic shifts: subsets by their labels, and the shift itself where it is known to be
//! attached to the destination.
//!
//! A requirement only says that some policy's shift names subsets of the destination; the policy may be attached to
//! another one. So the shift counts only if no VirtualService routes the host, and the policy is among those that are
//! applied to the destination, or every part of the shift is the same service.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::gloo::{
    Backing, ClusterRef, Destination, KubeService, RequiredSubsets, ShiftTarget, subset_name,
};

use super::super::{Collector, Draft, provenance};
use crate::compile::names;
use crate::compile::service::{Part, Shift};

/// The hosts of VirtualServices, but those that stand for every host.
pub(super) struct Routed(Vec<String>);

impl Routed {
    pub(super) fn collect(collector: &Collector<'_>) -> Self {
        let destinations = collector.resources.destinations.values();
        let mut required = destinations.flat_map(|object| &object.spec.status.required_subsets);
        if required.next().is_none() {
            return Self(Vec::new());
        }
        let objects = collector.resources.virtual_services.values();
        let hosts = objects.flat_map(|object| {
            let namespace = &object.id.namespace;
            let hosts = object.spec.hosts.iter();
            hosts.map(|host| names::complete(&host.value, namespace, collector.domain).into_owned())
        });
        Self(hosts.filter(|host| host != "*").collect())
    }

    fn has(&self, host: &str) -> bool {
        self.0.iter().any(|routed| names::is_subset(host, routed))
    }
}

/// The subsets that a Destination requires, by name.
pub(super) fn subsets(object: &Destination) -> BTreeMap<Arc<str>, BTreeMap<String, String>> {
    let all = object.status.required_subsets.iter();
    let parts = all.flat_map(|required| &required.shift.destinations);
    let subsets = parts.filter_map(|part| match &part.target {
        ShiftTarget::Kube { subset, .. } if !subset.is_empty() => {
            Some((subset_name(subset).into(), subset.clone()))
        }
        _ => None,
    });
    subsets.collect()
}

/// Attaches the first shift of a Destination that counts for its host.
pub(super) fn attach(
    collector: &Collector<'_>,
    routed: &Routed,
    (object, kube): (&Arc<Object<Destination>>, &KubeService),
    draft: &mut Draft,
) {
    if routed.has(&draft.service.host) {
        return;
    }
    let status = &object.spec.status;
    let counting = status
        .required_subsets
        .iter()
        .filter(|required| required.is_attached(&status.traffic_policies, &kube.service));
    let mut shifts = counting.filter_map(|required| shift(collector, object, required));
    draft.service.shift = shifts.next().map(Arc::new);
}

/// A shift with the hosts of its parts; none if one of them has none that the proxy may use.
fn shift(
    collector: &Collector<'_>,
    object: &Arc<Object<Destination>>,
    required: &RequiredSubsets,
) -> Option<Shift> {
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
            host: host(collector, service)?,
            subset: match subset.is_empty() {
                true => Arc::from(""),
                false => subset_name(subset).into(),
            },
            port: *port,
        });
    }
    (!parts.is_empty()).then(|| Shift {
        parts,
        provenance: provenance(object.as_ref(), required.line.0),
    })
}

/// The host of a service of a cluster: of the own one its own, else the one by which other clusters reach it.
fn host(collector: &Collector<'_>, service: &ClusterRef) -> Option<Arc<str>> {
    let member = collector.members.find(&service.cluster)?;
    if member.key == collector.members.own.key {
        let (name, namespace) = (&service.name, &service.namespace);
        return Some(format!("{name}.{namespace}.svc.{}", collector.domain).into());
    }
    let of = collector.resources.destinations.values();
    let mut of = of.filter(|object| match &object.spec.backing {
        Backing::Kube(kube) => kube.service == *service,
        Backing::External(_) | Backing::Nothing => false,
    });
    of.find_map(|object| object.spec.status.federation.as_ref()?.hostname.clone())
}
