//! Expected members and shares of traffic, written from the specification without any of the proxy's code.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{EndpointSite, Kind, Policy, World};

/// Members and their weights by tier, in failover order.
#[derive(Debug)]
pub(crate) struct Tiers {
    tiers: Vec<BTreeMap<u8, u64>>,
    /// Endpoints that may serve the request.
    candidates: BTreeSet<EndpointSite>,
    /// Whether members share traffic by weight; otherwise every endpoint gets an equal share.
    weighted: bool,
}

/// Computes the tiers by sections 3.5 and 3.6 of the specification.
pub(crate) fn tiers(world: &World) -> Tiers {
    let candidates: BTreeSet<EndpointSite> = candidates(world);
    let has_pool = |member: &u8| candidates.iter().any(|place| place.member == *member);
    let own = world.own;
    let weight = |weight: Option<u32>| match weight {
        None => 100,
        Some(0) if world.zero_counts => 100,
        Some(weight) => u64::from(weight),
    };
    let mut tiers: Vec<BTreeMap<u8, u64>> = match &world.policy {
        None => {
            let all = (1..=world.members).map(|member| (member, 1));
            vec![all.collect()]
        }
        Some(Policy::Locality) => vec![BTreeMap::from([(own, 1)])],
        Some(Policy::ActiveActive(targets)) if targets.is_empty() => {
            vec![(1..=world.members).map(|member| (member, 100)).collect()]
        }
        Some(Policy::ActiveActive(targets)) => {
            let listed = targets.iter().map(|(member, w)| (*member, weight(*w)));
            let mut tier: BTreeMap<u8, u64> = listed.collect();
            tier.entry(own).or_insert(100);
            vec![tier]
        }
        Some(Policy::FailOver { targets, ordered }) => {
            let backups = targets.iter().filter(|(member, _)| *member != own);
            let mut tiers = vec![BTreeMap::from([(own, 1)])];
            if *ordered {
                tiers.extend(backups.map(|(member, _)| BTreeMap::from([(*member, 1)])));
            } else {
                tiers.push(backups.map(|(member, w)| (*member, weight(*w))).collect());
            }
            tiers
        }
    };
    for tier in &mut tiers {
        tier.retain(|member, weight| *weight > 0 && has_pool(member));
    }
    tiers.retain(|tier| !tier.is_empty());
    Tiers {
        tiers,
        candidates,
        weighted: world.policy.is_some(),
    }
}

/// Returns the endpoints that this proxy may use for the port.
fn candidates(world: &World) -> BTreeSet<EndpointSite> {
    let own = world.own;
    let may_use = |member: u8| {
        let Some(exposure) = &world.exposure else {
            return true;
        };
        let named = |names: &BTreeSet<u8>, member| names.is_empty() || names.contains(&member);
        let consumes = exposure.for_gateways || named(&exposure.consumers, own);
        if !exposure.has_port || !consumes {
            return member == own;
        }
        named(&exposure.providers, member) || member == own && world.local_always
    };
    let places = world.places();
    let kept = places.iter().filter(|place| match place.kind {
        _ if !may_use(place.member) => false,
        Kind::Workload => true,
        // under the host of the cluster imports wait for a policy; they stand back where workloads are known
        Kind::Gateway => {
            (world.policy.is_some() || world.of_set)
                && place.member != own
                && !places
                    .iter()
                    .any(|other| other.member == place.member && other.kind == Kind::Workload)
        }
    });
    kept.copied().collect()
}

impl Tiers {
    fn is_available(&self, member: u8, usable: &BTreeMap<EndpointSite, bool>) -> bool {
        let mut own = self.candidates.iter().filter(|p| p.member == member);
        own.any(|place| usable.get(place).copied().unwrap_or(false))
    }

    /// Returns the available members of each tier that has at least one.
    pub(crate) fn usable_tiers(&self, usable: &BTreeMap<EndpointSite, bool>) -> Vec<Vec<u8>> {
        let available = |tier: &BTreeMap<u8, u64>| -> Vec<u8> {
            let members = tier.keys().copied();
            members.filter(|m| self.is_available(*m, usable)).collect()
        };
        let tiers = self.tiers.iter().map(available);
        tiers.filter(|tier| !tier.is_empty()).collect()
    }

    /// Returns the available members of the tier in use.
    pub(crate) fn first_usable(&self, usable: &BTreeMap<EndpointSite, bool>) -> Option<Vec<u8>> {
        self.usable_tiers(usable).into_iter().next()
    }

    /// Returns the weights of the members that share the traffic now, if traffic is shared by member.
    pub(crate) fn in_use(
        &self,
        usable: &BTreeMap<EndpointSite, bool>,
    ) -> Option<BTreeMap<u8, u64>> {
        let first = self.first_usable(usable).filter(|_| self.weighted)?;
        let mut tiers = self.tiers.iter();
        let tier = tiers.find(|tier| first.iter().all(|member| tier.contains_key(member)))?;
        Some(first.iter().map(|member| (*member, tier[member])).collect())
    }

    /// Checks the endpoint of a request: available, in a cluster with a share, of the first available tier; an ejected
    /// endpoint only in panic mode.
    pub(crate) fn check_pick(
        &self,
        place: EndpointSite,
        usable: &BTreeMap<EndpointSite, bool>,
        panics: bool,
    ) {
        assert!(
            self.candidates.contains(&place),
            "{place:?} may not be used: {self:?}"
        );
        let all: BTreeSet<u8> = self
            .tiers
            .iter()
            .flat_map(|tier| tier.keys().copied())
            .collect();
        assert!(all.contains(&place.member), "{place:?} is drained");
        let is_out = !usable[&place];
        let others = all
            .iter()
            .any(|m| *m != place.member && self.is_available(*m, usable));
        if is_out {
            assert!(panics, "{place:?} is out");
            assert!(!others || !self.weighted, "{place:?} panics beside others");
            return;
        }
        let first = self.first_usable(usable).unwrap_or_default();
        assert!(
            first.contains(&place.member),
            "{place:?} is not of {first:?}"
        );
    }
}
