//! The tables that requests pick from, rebuilt when the health or the warm-up of an endpoint changes.
//!
//! A table may be a moment behind: the picker checks the endpoint's own health too, draws again, and at last takes
//! any endpoint that may be used.

mod hash_tables;
mod other;

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::Endpoint;
use super::locality::{self, Group};
use super::parts::Parts;
use super::priorities::{self, Health, OVERPROVISIONING_PERCENT, Share, Shares};
use super::warmup::PRECISION;
use crate::balance::{Balancer, EndpointIdx, Policy, Simple, Weights};
use crate::registry::{CURSORS, Moment};

pub use hash_tables::LazyTable;
pub use other::Avoid;

/// Draws from a table whose endpoints may not be used any more.
const DRAWS_MAX: usize = 4;

/// What a request brings to a pick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// The hash of its key, if it has one.
    pub hash: Option<u64>,
    /// How many times it was tried before.
    pub attempt: u32,
    /// Whether endpoints that may not be used stay so even where a pool panics, since another pool may be asked.
    pub calm: bool,
}

/// How endpoints of one priority are picked.
#[derive(Debug)]
pub enum Method {
    /// By a table of the usable endpoints.
    Simple(Simple),
    /// By tables of all of them, one for each priority.
    Hash(Box<[Arc<LazyTable>]>),
}

impl Method {
    /// The method that the policy of a cluster asks for.
    pub(super) fn of(parts: &Parts) -> Self {
        match &parts.balance.policy {
            Policy::Simple(simple) => Method::Simple(*simple),
            Policy::Passthrough => Method::Hash(Box::default()),
            Policy::Hash(_) => {
                let table = |priority| Arc::new(LazyTable::of(parts, priority));
                Method::Hash((0..parts.plan.len()).map(table).collect())
            }
        }
    }
}

/// Tables.
#[derive(Debug)]
pub struct Live {
    levels: Box<[Level]>,
    /// Priorities without load, for retries that leave out others.
    spare: Box<[Level]>,
    /// What each priority gets.
    pub shares: Shares,
    /// How healthy each priority is.
    pub health: Box<[Health]>,
    /// When tables are to be rebuilt because some endpoint has less than its weight.
    pub warms_at: Option<Moment>,
    /// The tables of a pool that panics, for requests that have no other pool.
    last_resort: Option<Box<Live>>,
}

/// The endpoints of one priority.
#[derive(Debug)]
struct Level {
    priority: usize,
    /// Sum of its load and those before, in percent.
    upto: u8,
    panic: bool,
    choice: Choice,
}

#[derive(Debug)]
enum Choice {
    One(Pool),
    Groups(Weights, Box<[Pool]>),
    Hash(Arc<LazyTable>),
}

/// Endpoints of one group.
#[derive(Debug)]
struct Pool {
    /// Their numbers in the cluster; `None` when they are all of its endpoints.
    members: Option<Box<[u32]>>,
    balancer: Balancer,
    cursor: usize,
}

impl Pool {
    #[inline]
    fn global(&self, local: EndpointIdx) -> EndpointIdx {
        match &self.members {
            None => local,
            Some(members) => EndpointIdx(members[local.0 as usize]),
        }
    }

    #[inline]
    fn pick(&self, parts: &Parts, panic: bool, rng: &mut impl Rng) -> Option<EndpointIdx> {
        let state = |local| &*parts.endpoints[self.global(local).0 as usize].state;
        for _ in 0..DRAWS_MAX {
            let local = self
                .balancer
                .pick(state, &parts.state.cursors[self.cursor], rng);
            if panic || state(local).health.is_usable() {
                return Some(self.global(local));
            }
        }
        None
    }
}

impl Live {
    /// Makes tables for the endpoints as they are now.
    pub(super) fn build(parts: &Parts, method: &Method, now: Moment) -> Self {
        let tables = |panic_percent| Self::with(parts, method, now, panic_percent);
        if !parts.is_pool || parts.balance.panic_percent == 0 {
            return tables(parts.balance.panic_percent);
        }
        let last_resort = tables(parts.balance.panic_percent);
        Self {
            last_resort: last_resort.panics().then(|| Box::new(last_resort)),
            ..tables(0)
        }
    }

    fn with(parts: &Parts, method: &Method, now: Moment, panic_percent: u8) -> Self {
        let health: Box<[Health]> = parts
            .plan
            .iter()
            .map(|groups| {
                let all = groups.iter().flat_map(|group| &group.members);
                of_members(&parts.endpoints, all.copied())
            })
            .collect();
        let shares = priorities::shares(&health, panic_percent);
        let mut builder = Builder {
            parts,
            method,
            now,
            is_warming: false,
            pools: 0,
        };
        let mut upto = 0;
        let mut level = |(priority, share): (usize, &Share)| {
            upto += share.load;
            Some(Level {
                priority,
                upto,
                panic: share.panic,
                choice: builder.choice(priority, share.panic)?,
            })
        };
        let (loaded, spare): (Vec<_>, Vec<_>) =
            (shares.iter().enumerate()).partition(|(_, share)| share.load > 0);
        let levels = loaded.into_iter().filter_map(&mut level).collect();
        let spare = spare.into_iter().filter_map(&mut level).collect();
        Self {
            levels,
            spare,
            shares,
            health,
            warms_at: parts
                .balance
                .warmup
                .filter(|_| builder.is_warming)
                .map(|warmup| {
                    let step = u64::try_from(warmup.step().as_millis()).unwrap_or(u64::MAX);
                    Moment(now.0.saturating_add(step))
                }),
            last_resort: None,
        }
    }

    /// The tables for requests that have no other pool, or for all other requests.
    #[inline]
    pub fn for_last(&self, is_last: bool) -> &Self {
        match &self.last_resort {
            Some(tables) if is_last => tables,
            _ => self,
        }
    }

    /// Whether some priority uses all of its endpoints, healthy or not.
    pub fn panics(&self) -> bool {
        self.shares.iter().any(|share| share.panic)
    }

    /// Whether any endpoint may be used.
    pub fn is_available(&self) -> bool {
        self.health.iter().any(|health| health.healthy > 0)
    }

    /// Picks an endpoint; `None` when there is none that may be used.
    #[inline]
    pub fn pick(&self, parts: &Parts, ask: Ask, rng: &mut impl Rng) -> Option<EndpointIdx> {
        let level = match &*self.for_last(!ask.calm).levels {
            [] => None,
            [level] => Some(level),
            levels => {
                let draw = match ask.hash {
                    Some(hash) => hash % 100,
                    None => u64::from(rng.random_range(0..100_u8)),
                };
                let found = levels.iter().find(|level| draw < u64::from(level.upto));
                found.or(levels.last())
            }
        };
        let picked = level.and_then(|level| level.pick(parts, ask, rng));
        picked.or_else(|| any(parts, rng))
    }

    /// Probability of each endpoint to be picked next, while all are equally busy and keys are evenly spread.
    pub fn probabilities(&self, parts: &Parts) -> Vec<f64> {
        let mut all = vec![0.0; parts.endpoints.len()];
        let mut before = 0;
        for level in &self.levels {
            let load = f64::from(level.upto - before) / 100.0;
            before = level.upto;
            level.add_probabilities(parts, load, &mut all);
        }
        all
    }
}

impl Level {
    #[inline]
    fn pick(&self, parts: &Parts, ask: Ask, rng: &mut impl Rng) -> Option<EndpointIdx> {
        let panic = self.panic;
        match &self.choice {
            Choice::One(pool) => pool.pick(parts, panic, rng),
            Choice::Groups(weights, pools) => {
                let group = weights.draw(rng).0 as usize;
                pools[group].pick(parts, panic, rng)
            }
            Choice::Hash(table) => {
                let table = table.get(parts, self.priority)?;
                let hash = ask.hash.unwrap_or_else(|| rng.random());
                table.pick(hash, ask.attempt, |endpoint| {
                    panic
                        || parts.endpoints[endpoint.0 as usize]
                            .state
                            .health
                            .is_usable()
                })
            }
        }
    }

    fn add_probabilities(&self, parts: &Parts, load: f64, all: &mut [f64]) {
        let mut add = |pool: &Pool, load: f64| {
            for (local, share) in pool.balancer.shares().into_iter().enumerate() {
                let global = pool.global(EndpointIdx(local as u32));
                all[global.0 as usize] += load * share;
            }
        };
        match &self.choice {
            Choice::One(pool) => add(pool, load),
            Choice::Groups(weights, pools) => {
                for (pool, share) in pools.iter().zip(weights.shares()) {
                    add(pool, load * share);
                }
            }
            Choice::Hash(table) => {
                for (endpoint, share) in table.shares(parts, self.priority) {
                    all[endpoint.0 as usize] += load * share;
                }
            }
        }
    }
}

/// Any endpoint that may be used, those of the first priority before others.
#[cold]
fn any(parts: &Parts, rng: &mut impl Rng) -> Option<EndpointIdx> {
    parts.plan.iter().find_map(|groups| {
        let members = || groups.iter().flat_map(|group| &group.members);
        let count = members().count();
        let from = rng.random_range(0..count.max(1));
        let turned = members().skip(from).chain(members().take(from));
        let mut turned = turned.map(|member| EndpointIdx(*member));
        turned.find(|member| parts.endpoints[member.0 as usize].state.health.is_usable())
    })
}

fn of_members(endpoints: &[Endpoint], members: impl Iterator<Item = u32>) -> Health {
    let mut health = Health::default();
    for member in members {
        health.total += 1;
        let usable = endpoints[member as usize].state.health.is_usable();
        health.healthy += u32::from(usable);
    }
    health
}

/// Makes the tables of one cluster.
struct Builder<'a> {
    parts: &'a Parts,
    method: &'a Method,
    now: Moment,
    is_warming: bool,
    /// Pools made so far.
    pools: usize,
}

impl Builder<'_> {
    fn choice(&mut self, level: usize, panic: bool) -> Option<Choice> {
        let simple = match self.method {
            Method::Simple(simple) => *simple,
            Method::Hash(tables) => return Some(Choice::Hash(Arc::clone(tables.get(level)?))),
        };
        let groups = &self.parts.plan[level];
        if let [group] = &**groups {
            return self.pool(simple, &group.members, panic).map(Choice::One);
        }
        if let Some(size_min) = self.parts.balance.zones_from() {
            return self.zones(simple, groups, panic, size_min);
        }
        let mut pools = Vec::new();
        let mut weights = Vec::new();
        for group in groups {
            let health = of_members(&self.parts.endpoints, group.members.iter().copied());
            let capacity = OVERPROVISIONING_PERCENT * u64::from(health.healthy);
            let capacity = (capacity / u64::from(health.total).max(1)).min(100) as u32;
            let weight = group
                .weight
                .saturating_mul(if panic { 100 } else { capacity });
            if weight > 0
                && let Some(pool) = self.pool(simple, &group.members, panic)
            {
                pools.push(pool);
                weights.push(weight);
            }
        }
        match pools.len() {
            0 => None,
            1 => pools.pop().map(Choice::One),
            _ => Some(Choice::Groups(Weights::build(&weights), pools.into())),
        }
    }

    /// Zones, the local one first, each with its share; one pool when they do not matter.
    fn zones(
        &mut self,
        simple: Simple,
        groups: &[Group],
        panic: bool,
        size_min: u32,
    ) -> Option<Choice> {
        let healthy = |group: &Group| {
            let members = group.members.iter().copied();
            of_members(&self.parts.endpoints, members).healthy
        };
        let healthy: Vec<u32> = groups.iter().map(healthy).collect();
        let shares = locality::zone_shares(&healthy, size_min).filter(|_| !panic);
        let Some(shares) = shares else {
            let all = groups.iter().flat_map(|group| &group.members);
            let mut all: Vec<u32> = all.copied().collect();
            all.sort_unstable();
            return self.pool(simple, &all, panic).map(Choice::One);
        };
        let mut pools = Vec::new();
        let mut weights = Vec::new();
        for (group, share) in groups.iter().zip(shares) {
            if share > 0
                && let Some(pool) = self.pool(simple, &group.members, panic)
            {
                pools.push(pool);
                weights.push(share);
            }
        }
        match pools.len() {
            0 | 1 => pools.pop().map(Choice::One),
            _ => Some(Choice::Groups(Weights::build(&weights), pools.into())),
        }
    }

    fn pool(&mut self, simple: Simple, members: &[u32], panic: bool) -> Option<Pool> {
        let usable = |member: &u32| {
            panic
                || self.parts.endpoints[*member as usize]
                    .state
                    .health
                    .is_usable()
        };
        let members: Vec<u32> = members.iter().copied().filter(usable).collect();
        let weights = self.weights(&members, simple);
        let balancer = Balancer::build(simple, &weights)?;
        let cursor = self.pools % CURSORS;
        self.pools += 1;
        Some(Pool {
            members: (members.len() < self.parts.endpoints.len()).then(|| members.into()),
            balancer,
            cursor,
        })
    }

    /// Weights, as far as they are warm.
    fn weights(&mut self, members: &[u32], simple: Simple) -> Vec<u32> {
        let weight = |member: &u32| self.parts.endpoints[*member as usize].weight;
        let plain = || members.iter().map(weight).collect();
        let Some(warmup) = self.parts.balance.warmup.filter(|_| simple.warms_up()) else {
            return plain();
        };
        let factors: Vec<Option<f64>> = members
            .iter()
            .map(|member| {
                let health = &self.parts.endpoints[*member as usize].state.health;
                warmup.factor(self.now.since(health.fresh_since(self.now)))
            })
            .collect();
        if factors.iter().all(Option::is_none) {
            return plain();
        }
        self.is_warming = true;
        let scaled = members.iter().zip(factors).map(|(member, factor)| {
            let weight = f64::from(self.parts.endpoints[*member as usize].weight);
            ((weight * factor.unwrap_or(1.0) * PRECISION).round() as u32).max(1)
        });
        scaled.collect()
    }
}

#[cfg(test)]
mod tests;
