//! Members that serve a port of a service to this proxy, with their tiers and weights.
//!
//! Pure decisions from the resources: a MultiClusterService limits the clusters that a proxy may use at all; the kind
//! of resource that names an endpoint decides whether it needs a policy; and a GlobalTrafficPolicy assigns the members
//! to tiers. A policy never adds a cluster that the proxy may not use.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::resource::flomesh::ClusterBalancing;

use traffic::cluster::Absence;
pub(in crate::compile) use traffic::cluster::federation::POOLS_MAX;

// `check` warns of a larger number of pools
const _: () = assert!(POOLS_MAX == config_loader::catalog::POOLS_MAX);
use crate::compile::members::Member;
use crate::compile::service::Service;
use crate::compile::service::port::Port;
use crate::compile::service::sharing::{Exposure, Sharing};
use crate::compile::service::workload::Workload;
use crate::identity::{Identity, Mode};

/// Weight of a member without a weight in the policy.
const WEIGHT_DEFAULT: u32 = 100;

/// Properties of a proxy that decide which clusters are exposed to it.
#[derive(Clone, Copy, Debug)]
pub(in crate::compile) struct Viewer<'a> {
    /// Cluster that the proxy runs in.
    pub own: &'a Arc<Member>,
    /// Mode of the proxy: gateway or sidecar.
    pub mode: Mode,
    /// Whether the local cluster serves even if it is not a provider.
    pub local_when_not_provider: bool,
    /// Identity of the proxy.
    identity: &'a Identity,
}

impl<'a> Viewer<'a> {
    pub(in crate::compile) fn new(own: &'a Arc<Member>, identity: &'a Identity) -> Self {
        Self {
            own,
            mode: identity.mode,
            local_when_not_provider: identity.mesh.local_when_not_provider,
            identity,
        }
    }

    /// Whether the local cluster alone serves a host.
    fn stays_local(&self, host: &str) -> bool {
        let Identity {
            mesh_config,
            domain,
            ..
        } = self.identity;
        mesh_config.is_cluster_local(host, domain)
    }
}

impl Exposure {
    fn exposes(&self, port: &Port) -> bool {
        let is_it = |(number, name): &(u16, Option<Arc<str>>)| {
            *number == port.number && name.as_ref().is_none_or(|name| **name == *port.name)
        };
        self.ports.is_empty() || self.ports.iter().any(is_it)
    }

    /// Whether this MultiClusterService lets the proxy use endpoints of other clusters, whatever their providers.
    pub(in crate::compile) fn includes(&self, viewer: Viewer<'_>) -> bool {
        match self.edge_only {
            true => viewer.mode == Mode::Gateway,
            false => has(self.consumers.as_deref(), viewer.own),
        }
    }

    /// Whether the proxy may use endpoints of a member for a port.
    fn allows(&self, viewer: Viewer<'_>, port: &Port, member: &Member) -> bool {
        let is_own = member.key == viewer.own.key;
        if !self.exposes(port) || !self.includes(viewer) {
            return is_own;
        }
        has(self.providers.as_deref(), member) || is_own && viewer.local_when_not_provider
    }
}

fn has(keys: Option<&[Arc<str>]>, member: &Member) -> bool {
    keys.is_none_or(|keys| keys.contains(&member.key))
}

/// Endpoints that may serve a port, and the number of those that were left out.
#[derive(Debug)]
pub(in crate::compile) struct Candidates<'a> {
    /// Endpoints by member; those of the local cluster have its own key.
    pub by_member: BTreeMap<Arc<str>, Vec<&'a Workload>>,
    /// Number of endpoints that were left out, by member and reason.
    pub left_out: BTreeMap<(Arc<str>, LeftOut), usize>,
}

/// Reason that an endpoint is not a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::compile) enum LeftOut {
    /// The mesh configuration keeps the host in the local cluster.
    ClusterLocal,
    /// A MultiClusterService does not let this proxy use it.
    Hidden,
    /// It needs a GlobalTrafficPolicy.
    WithoutPolicy,
    /// It lacks labels of the subset.
    Subset,
    /// It needs a path prefix, but the port's protocol has no paths.
    PathNotApplicable,
    /// Its cluster has endpoints that are reached directly.
    Shadowed,
}

impl LeftOut {
    /// Returns the reason in words.
    pub(in crate::compile) fn text(self) -> &'static str {
        match self {
            LeftOut::ClusterLocal => "`serviceSettings` of the mesh keep its host in each cluster",
            LeftOut::Hidden => "a MultiClusterService does not let this cluster use it",
            LeftOut::WithoutPolicy => {
                "imported endpoints serve only clusterset.local until a GlobalTrafficPolicy says otherwise"
            }
            LeftOut::Subset => "not the labels of the subset",
            LeftOut::PathNotApplicable => {
                "its gateway wants a path prefix, which the port's protocol cannot carry"
            }
            LeftOut::Shadowed => "the cluster has endpoints that are reached directly",
        }
    }
}

/// Requested port of a service, with the subset if there is one.
#[derive(Clone, Copy, Debug)]
pub(in crate::compile) struct Wanted<'a> {
    pub service: &'a Service,
    pub port: &'a Port,
    pub subset: Option<&'a BTreeMap<String, String>>,
}

/// Returns the candidates for a port.
pub(in crate::compile) fn candidates<'a>(wanted: Wanted<'a>, viewer: Viewer<'_>) -> Candidates<'a> {
    let Wanted {
        service,
        port,
        subset,
    } = wanted;
    let stays = viewer.stays_local(&service.host);
    let waits = !service.is_cluster_set && service.sharing.is_none();
    let mut found = Candidates {
        by_member: BTreeMap::new(),
        left_out: BTreeMap::new(),
    };
    // endpoints with the same facts get the same result
    let alike = |a: &Workload, b: &Workload| Arc::ptr_eq(&a.facts, &b.facts);
    for workloads in service.endpoints.chunk_by(alike) {
        let workload = &workloads[0];
        if workload.port(port).is_none() {
            continue;
        }
        let member = workload.member.as_ref().unwrap_or(viewer.own);
        let exposure = service.exposure.as_ref();
        let why = if exposure.is_some_and(|exposure| !exposure.allows(viewer, port, member)) {
            Some(LeftOut::Hidden)
        } else if stays && member.key != viewer.own.key {
            Some(LeftOut::ClusterLocal)
        } else if waits && workload.origin.waits_for_policy() && member.key != viewer.own.key {
            Some(LeftOut::WithoutPolicy)
        } else if subset.is_some_and(|labels| !workload.is_in(labels, member)) {
            Some(LeftOut::Subset)
        } else if workload.path_prefix().is_some() && !port.carries_paths {
            Some(LeftOut::PathNotApplicable)
        } else {
            None
        };
        match why {
            Some(why) => {
                let key = (Arc::clone(&member.key), why);
                *found.left_out.entry(key).or_default() += workloads.len();
            }
            None => found
                .by_member
                .entry(Arc::clone(&member.key))
                .or_default()
                .extend(workloads),
        }
    }
    found.drop_shadowed();
    found
}

impl Candidates<'_> {
    /// Keeps for each member only the endpoints that are nearest to the workloads: a gateway is not needed if workloads
    /// are known.
    fn drop_shadowed(&mut self) {
        for (member, workloads) in &mut self.by_member {
            let before = workloads.len();
            let nearest = workloads.iter().map(|workload| workload.remoteness()).min();
            workloads.retain(|workload| Some(workload.remoteness()) == nearest);
            if workloads.len() < before {
                let key = (Arc::clone(member), LeftOut::Shadowed);
                *self.left_out.entry(key).or_default() += before - workloads.len();
            }
        }
    }

    /// Returns the reason that there is no endpoint; `None` if there is one.
    fn absence(&self, is_shared: bool, port_exists_elsewhere: bool) -> Option<Absence> {
        if !self.by_member.is_empty() {
            return None;
        }
        let has = |wanted| self.left_out.keys().any(|(_, why)| *why == wanted);
        if has(LeftOut::Subset) {
            Some(Absence::SubsetEmpty)
        } else if has(LeftOut::Hidden) || has(LeftOut::ClusterLocal) {
            Some(Absence::ConsumerExcluded)
        } else if has(LeftOut::WithoutPolicy) {
            Some(Absence::WithoutPolicy)
        } else if !is_shared {
            None
        } else if port_exists_elsewhere {
            Some(Absence::PortNotExported)
        } else {
            Some(Absence::NoMatchingCluster)
        }
    }
}

/// Pool of a member, with its tier and weight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::compile) struct Placed {
    /// Key of the member.
    pub member: Arc<str>,
    pub tier: u8,
    pub weight: u32,
}

/// Assigns members with candidates to tiers; returns the reason if there are none.
pub(in crate::compile) fn tiers(
    sharing: &Sharing,
    has_pool: impl Fn(&str) -> bool,
    members: &[Arc<str>],
    own: &Arc<str>,
) -> Result<Vec<Placed>, Absence> {
    let placed = |member: &Arc<str>, tier, weight| Placed {
        member: Arc::clone(member),
        tier,
        weight,
    };
    let mut all = Vec::new();
    match sharing.balancing {
        ClusterBalancing::Locality => all.push(placed(own, 0, WEIGHT_DEFAULT)),
        ClusterBalancing::ActiveActive if sharing.targets.is_empty() => {
            all.extend(members.iter().map(|key| placed(key, 0, WEIGHT_DEFAULT)));
        }
        ClusterBalancing::ActiveActive => {
            let targets = sharing.targets.iter();
            all.extend(targets.map(|(key, weight)| placed(key, 0, *weight)));
            if !sharing.targets.iter().any(|(key, _)| key == own) {
                all.push(placed(own, 0, WEIGHT_DEFAULT));
            }
        }
        ClusterBalancing::FailOver => {
            all.push(placed(own, 0, WEIGHT_DEFAULT));
            let backups = sharing.targets.iter().filter(|(key, _)| key != own);
            for (number, (key, weight)) in backups.enumerate() {
                let ordered = u8::try_from(number).unwrap_or(u8::MAX - 1) + 1;
                all.push(match sharing.ordered {
                    true => placed(key, ordered, WEIGHT_DEFAULT),
                    false => placed(key, 1, *weight),
                });
            }
        }
    }
    all.retain(|placed| has_pool(&placed.member));
    if all.is_empty() {
        return Err(Absence::NoMatchingCluster);
    }
    all.retain(|placed| placed.weight > 0);
    match all.is_empty() {
        true => Err(Absence::Drained),
        false => Ok(all),
    }
}

/// Destination of a port's traffic.
#[derive(Debug)]
pub(in crate::compile) enum Resolved {
    /// All candidates alike.
    Merged,
    /// Pools, one for each member.
    Federated(Vec<Placed>),
}

/// Decides which clusters serve the port, and the reason if none does.
pub(in crate::compile) fn resolve(
    wanted: Wanted<'_>,
    candidates: &Candidates<'_>,
    own: &Arc<str>,
) -> (Resolved, Option<Absence>) {
    let service = wanted.service;
    let is_shared = service.sharing.is_some() || service.exposure.is_some();
    let has_port = |workload: &Workload| workload.port(wanted.port).is_some();
    let nowhere = !service.endpoints.iter().any(has_port) && !service.endpoints.is_empty();
    let absence = candidates.absence(is_shared, nowhere);
    let Some(sharing) = &service.sharing else {
        return (Resolved::Merged, absence);
    };
    if absence.is_some() {
        return (Resolved::Federated(Vec::new()), absence);
    }
    let members: Vec<Arc<str>> = candidates.by_member.keys().cloned().collect();
    let has_pool = |key: &str| candidates.by_member.contains_key(key);
    match tiers(sharing, has_pool, &members, own) {
        Ok(placed) => (Resolved::Federated(placed), None),
        Err(absence) => (Resolved::Federated(Vec::new()), Some(absence)),
    }
}

/// Returns the members with candidates that get no traffic by the policy, with the number of their endpoints and the
/// reason in words.
pub(in crate::compile) fn without_traffic<'c>(
    wanted: Wanted<'_>,
    candidates: &'c Candidates<'_>,
    own: &Arc<str>,
) -> Vec<(&'c Arc<str>, usize, &'static str)> {
    let (Resolved::Federated(placed), Some(sharing)) =
        (resolve(wanted, candidates, own).0, &wanted.service.sharing)
    else {
        return Vec::new();
    };
    let why = |member: &Arc<str>| match sharing.balancing {
        _ if sharing.is_refused => {
            "the GlobalTrafficPolicy is rejected, and there was no good one before: only the local cluster serves"
        }
        ClusterBalancing::Locality => {
            "the GlobalTrafficPolicy keeps requests in the local cluster (Locality)"
        }
        _ if sharing.targets.iter().any(|(key, _)| key == member) => {
            "weight 0 in the GlobalTrafficPolicy"
        }
        _ => "not among the targets of the GlobalTrafficPolicy",
    };
    let all = candidates.by_member.iter();
    all.filter(|(member, _)| !placed.iter().any(|placed| placed.member == **member))
        .map(|(member, workloads)| (member, workloads.len(), why(member)))
        .collect()
}

#[cfg(test)]
mod tests;
