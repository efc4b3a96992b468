//! Picks for retries, which avoid tried endpoints but stay within priorities that have load.

use rand::seq::IteratorRandom;
use rand::{Rng, RngExt};

use super::{Choice, Level, PickInput, PickTables, Pool, any};
use crate::balance::EndpointIdx;
use crate::cluster::parts::Parts;
use crate::cluster::priorities::{Shares, shares_without};

/// Maximum number of further draws to avoid tried endpoints; after them, all endpoints that may be picked are searched.
const REDRAWS_MAX: u32 = 5;

/// Endpoints and priorities that a retry avoids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Avoid<'a> {
    /// Endpoints to avoid as long as others may be picked.
    pub endpoints: &'a [EndpointIdx],
    /// Priorities to avoid; see [`crate::cluster::Cluster::left_out`].
    pub priorities: &'a [u32],
}

impl PickTables {
    /// Picks an endpoint like [`PickTables::pick`], and avoids those of `avoid` while others may be picked; `None` if no
    /// endpoint is usable.
    #[cold]
    pub fn pick_other(
        &self,
        parts: &Parts,
        ask: PickInput,
        avoid: &Avoid<'_>,
        rng: &mut impl Rng,
    ) -> Option<EndpointIdx> {
        let tables = self.tables_for(!ask.ignore_panic);
        let shares = match avoid.priorities {
            [] => tables.shares.clone(),
            left_out => shares_without(left_out, &tables.health),
        };
        let is_tried = |endpoint: &EndpointIdx| avoid.endpoints.contains(endpoint);
        let mut last = None;
        for attempt in 0..=REDRAWS_MAX {
            let level = tables.level(&shares, ask.hash, rng);
            let ask = PickInput { attempt, ..ask };
            let picked = level.and_then(|level| level.pick(parts, ask, rng));
            let picked = picked.or_else(|| any(parts, rng))?;
            // without an alternative, further draws would only take turns away from other requests
            let is_last = || {
                let mut usable = tables.loaded(&shares).flat_map(|level| level.usable(parts));
                attempt == 0 && usable.all(|endpoint| is_tried(&endpoint))
            };
            if !is_tried(&picked) || is_last() {
                return Some(picked);
            }
            last = Some((level, picked));
        }
        // chance or a hash may lead to the same endpoints every time
        let (level, picked) = last?;
        let levels = level.into_iter().chain(tables.loaded(&shares));
        let mut others = levels.filter_map(|level| {
            let untried = level.usable(parts);
            untried.filter(|endpoint| !is_tried(endpoint)).choose(rng)
        });
        others.next().or(Some(picked))
    }

    /// Whether an endpoint outside of `than` is usable without panic mode.
    pub fn has_other(&self, parts: &Parts, than: &[EndpointIdx]) -> bool {
        let tables = self.tables_for(false);
        let mut usable = tables
            .loaded(&tables.shares)
            .flat_map(|level| level.usable(parts));
        usable.any(|endpoint| !than.contains(&endpoint))
    }

    /// Draws a level by these shares.
    fn level(&self, shares: &Shares, hash: Option<u64>, rng: &mut impl Rng) -> Option<&Level> {
        let mut draw = match hash {
            Some(hash) => (hash % 100) as u8,
            None => rng.random_range(0..100),
        };
        let priority = shares.iter().position(|share| {
            let is_drawn = draw < share.load;
            draw = draw.saturating_sub(share.load);
            is_drawn
        });
        self.all_levels()
            .find(|level| Some(level.priority) == priority)
    }

    /// The levels that have load by these shares.
    fn loaded<'a>(&'a self, shares: &'a Shares) -> impl Iterator<Item = &'a Level> {
        let share = |level: &Level| shares.get(level.priority);
        let has_load = move |level: &&Level| share(level).is_some_and(|share| share.load > 0);
        self.all_levels().filter(has_load)
    }

    fn all_levels(&self) -> impl Iterator<Item = &Level> {
        self.levels.iter().chain(&self.spare)
    }
}

impl Level {
    /// The endpoints that this level may pick.
    fn usable<'a>(&'a self, parts: &'a Parts) -> impl Iterator<Item = EndpointIdx> + 'a {
        let (pools, hashed): (&[Pool], &[_]) = match &self.choice {
            Choice::One(pool) => (std::slice::from_ref(pool), &[]),
            Choice::Groups(_, pools) => (pools, &[]),
            Choice::Hash(_) => (&[], &parts.plan[self.priority]),
        };
        let of_pools = pools.iter().flat_map(|pool| {
            let all = parts.endpoints.len();
            let count = pool.indexes.as_ref().map_or(all, |indexes| indexes.len());
            (0..count as u32).map(|local| pool.global(EndpointIdx(local)))
        });
        let hashed = hashed.iter().flat_map(|group| &group.indexes);
        let all = of_pools.chain(hashed.map(|index| EndpointIdx(*index)));
        all.filter(|endpoint| {
            let state = &parts.endpoints[endpoint.0 as usize].state;
            self.panic || state.health.is_usable()
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;
    use crate::balance::{HashAlgorithm, HashKey, HashPolicy, Policy, Simple};
    use crate::cluster::locality::Pattern;
    use crate::cluster::{Balance, Cluster, Spread, by_hand};
    use crate::registry::{Moment, Registry};

    /// Endpoints 0 and 1 are near, 2 to 5 are far.
    fn cluster(policy: Policy, spread: Spread) -> Cluster {
        let zone = |number: u32| if number < 3 { "r/a" } else { "r/b" };
        let endpoints: Vec<(u32, &str)> = (1..7).map(|number| (number, zone(number))).collect();
        let balance = Balance {
            policy,
            spread,
            ..Balance::default()
        };
        let parts = by_hand::parts(&Registry::default(), "a", balance, &endpoints);
        Cluster::build(parts, Moment(1))
    }

    /// The endpoints that are picked after these were tried.
    fn picked(cluster: &Cluster, tried: &[u32], widens: bool) -> Vec<u32> {
        let mut rng = SmallRng::seed_from_u64(7);
        let tried: Vec<EndpointIdx> = tried.iter().copied().map(EndpointIdx).collect();
        let left_out = cluster.left_out(&tried);
        let avoid = Avoid {
            endpoints: &tried,
            priorities: if widens { &left_out } else { &[] },
        };
        let mut pick = |hash| {
            let ask = PickInput {
                hash: Some(hash),
                ..PickInput::default()
            };
            cluster.pick_other(ask, &avoid, &mut rng).unwrap().0
        };
        let mut picked: Vec<u32> = (0..1000).map(|key| pick(key << 52 | key)).collect();
        picked.sort_unstable();
        picked.dedup();
        picked
    }

    #[test]
    fn retry_endpoints_follow_the_load_distribution() {
        let hash = Policy::Hash(HashPolicy {
            key: HashKey::SourceIp,
            algorithm: HashAlgorithm::RingHash { size_min: 1024 },
        });
        let failover = Spread::Failover {
            regions: Vec::new(),
            labels: Vec::new(),
        };
        let near_only = Spread::Distribute(vec![(Pattern(vec!["r".into(), "a".into()]), 100)]);
        for policy in [
            Policy::Simple(Simple::LeastRequest),
            Policy::Simple(Simple::RoundRobin),
            hash,
        ] {
            let by_failover = cluster(policy.clone(), failover.clone());
            let distributed = cluster(policy.clone(), near_only.clone());
            for (cluster, tried, widens, expected) in [
                (&by_failover, &[0][..], false, &[1][..]),
                (&by_failover, &[0, 1], false, &[0, 1]),
                (&by_failover, &[0, 1], true, &[2, 3, 4, 5]),
                (&by_failover, &[0, 1, 3], true, &[2, 4, 5]),
                (&by_failover, &[0, 1, 3, 2], true, &[0, 1]),
                (&distributed, &[0], false, &[1]),
                (&distributed, &[0, 1], false, &[0, 1]),
                (&distributed, &[0, 1], true, &[0, 1]),
            ] {
                let found = picked(cluster, tried, widens);
                assert_eq!(found, expected, "{policy:?} {tried:?} {widens}");
            }
        }
    }
}
