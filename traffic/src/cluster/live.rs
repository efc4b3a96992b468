//! The tables that requests pick from, rebuilt when the health or the warm-up of an endpoint changes.
//!
//! A table may lag behind: a pick also checks the endpoint's own health, draws again if necessary, and finally takes
//! any usable endpoint.

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

/// Maximum number of draws of endpoints that turn out not to be usable.
const DRAWS_MAX: usize = 4;

/// Inputs of a pick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PickInput {
    /// Hash of the request; `None` without a hash policy.
    pub hash: Option<u64>,
    /// Number of earlier attempts.
    pub attempt: u32,
    /// Whether to ignore the panic mode of a pool, because another pool may be used.
    pub ignore_panic: bool,
}

/// Method of picking an endpoint within a priority.
#[derive(Debug)]
pub enum Method {
    /// A table of the usable endpoints.
    Simple(Simple),
    /// Hash tables of all endpoints, one for each priority.
    Hash(Box<[Arc<LazyTable>]>),
}

impl Method {
    /// The method for the load balancing policy of a cluster.
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

/// Tables for one state of the endpoints' health.
#[derive(Debug)]
pub struct PickTables {
    levels: Box<[Level]>,
    /// Priorities without load, for retries that leave out other priorities.
    spare: Box<[Level]>,
    /// Share of the traffic of each priority.
    pub shares: Shares,
    /// Health of each priority.
    pub health: Box<[Health]>,
    /// Time of the next rebuild for a warm-up step; `None` if no endpoint is warming up.
    pub warms_at: Option<Moment>,
    /// The tables in panic mode, for requests that have no other pool.
    last_resort: Option<Box<PickTables>>,
}

/// The endpoints of one priority.
#[derive(Debug)]
struct Level {
    priority: usize,
    /// Sum of the loads of this priority and all earlier ones, in percent.
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
    /// Numbers in the cluster; `None` if the pool has all of its endpoints.
    indexes: Option<Box<[u32]>>,
    balancer: Balancer,
    cursor: usize,
}

impl Pool {
    #[inline]
    fn global(&self, local: EndpointIdx) -> EndpointIdx {
        match &self.indexes {
            None => local,
            Some(indexes) => EndpointIdx(indexes[local.0 as usize]),
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

impl PickTables {
    /// Builds tables for the current health of the endpoints.
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
                let all = groups.iter().flat_map(|group| &group.indexes);
                health_of(&parts.endpoints, all.copied())
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

    /// The tables in panic mode if `is_last` and the pool panics, else the normal ones.
    #[inline]
    pub fn tables_for(&self, is_last: bool) -> &Self {
        match &self.last_resort {
            Some(tables) if is_last => tables,
            _ => self,
        }
    }

    /// Whether a priority is in panic mode: all of its endpoints are used, healthy or not.
    pub fn panics(&self) -> bool {
        self.shares.iter().any(|share| share.panic)
    }

    /// Whether any endpoint is usable.
    pub fn is_available(&self) -> bool {
        self.health.iter().any(|health| health.healthy > 0)
    }

    /// Picks an endpoint; `None` if no endpoint is usable.
    #[inline]
    pub fn pick(&self, parts: &Parts, ask: PickInput, rng: &mut impl Rng) -> Option<EndpointIdx> {
        let level = match &*self.tables_for(!ask.ignore_panic).levels {
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

    /// Probability of each endpoint to be picked next, while all are equally busy and keys are evenly distributed.
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
    fn pick(&self, parts: &Parts, ask: PickInput, rng: &mut impl Rng) -> Option<EndpointIdx> {
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

/// Picks any usable endpoint, in the order of priorities.
#[cold]
fn any(parts: &Parts, rng: &mut impl Rng) -> Option<EndpointIdx> {
    parts.plan.iter().find_map(|groups| {
        let indexes = || groups.iter().flat_map(|group| &group.indexes);
        let count = indexes().count();
        let from = rng.random_range(0..count.max(1));
        let turned = indexes().skip(from).chain(indexes().take(from));
        let mut turned = turned.map(|index| EndpointIdx(*index));
        turned.find(|index| parts.endpoints[index.0 as usize].state.health.is_usable())
    })
}

fn health_of(endpoints: &[Endpoint], indexes: impl Iterator<Item = u32>) -> Health {
    let mut health = Health::default();
    for index in indexes {
        health.total += 1;
        let usable = endpoints[index as usize].state.health.is_usable();
        health.healthy += u32::from(usable);
    }
    health
}

/// Builds the tables of one cluster.
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
            return self.pool(simple, &group.indexes, panic).map(Choice::One);
        }
        if let Some(size_min) = self.parts.balance.zones_from() {
            return self.zones(simple, groups, panic, size_min);
        }
        let mut pools = Vec::new();
        let mut weights = Vec::new();
        for group in groups {
            let health = health_of(&self.parts.endpoints, group.indexes.iter().copied());
            let capacity = OVERPROVISIONING_PERCENT * u64::from(health.healthy);
            let capacity = (capacity / u64::from(health.total).max(1)).min(100) as u32;
            let weight = group
                .weight
                .saturating_mul(if panic { 100 } else { capacity });
            if weight > 0
                && let Some(pool) = self.pool(simple, &group.indexes, panic)
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

    /// Zones, the local one first, each with its share; a single pool if zones do not matter.
    fn zones(
        &mut self,
        simple: Simple,
        groups: &[Group],
        panic: bool,
        size_min: u32,
    ) -> Option<Choice> {
        let healthy = |group: &Group| {
            let indexes = group.indexes.iter().copied();
            health_of(&self.parts.endpoints, indexes).healthy
        };
        let healthy: Vec<u32> = groups.iter().map(healthy).collect();
        let shares = locality::zone_shares(&healthy, size_min).filter(|_| !panic);
        let Some(shares) = shares else {
            let all = groups.iter().flat_map(|group| &group.indexes);
            let mut all: Vec<u32> = all.copied().collect();
            all.sort_unstable();
            return self.pool(simple, &all, panic).map(Choice::One);
        };
        let mut pools = Vec::new();
        let mut weights = Vec::new();
        for (group, share) in groups.iter().zip(shares) {
            if share > 0
                && let Some(pool) = self.pool(simple, &group.indexes, panic)
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

    fn pool(&mut self, simple: Simple, indexes: &[u32], panic: bool) -> Option<Pool> {
        let usable = |index: &u32| {
            panic
                || self.parts.endpoints[*index as usize]
                    .state
                    .health
                    .is_usable()
        };
        let indexes: Vec<u32> = indexes.iter().copied().filter(usable).collect();
        let weights = self.weights(&indexes, simple);
        let balancer = Balancer::build(simple, &weights)?;
        let cursor = self.pools % CURSORS;
        self.pools += 1;
        Some(Pool {
            indexes: (indexes.len() < self.parts.endpoints.len()).then(|| indexes.into()),
            balancer,
            cursor,
        })
    }

    /// Weights of endpoints, reduced during warm-up.
    fn weights(&mut self, indexes: &[u32], simple: Simple) -> Vec<u32> {
        let weight = |index: &u32| self.parts.endpoints[*index as usize].weight;
        let plain = || indexes.iter().map(weight).collect();
        let Some(warmup) = self.parts.balance.warmup.filter(|_| simple.warms_up()) else {
            return plain();
        };
        let factors: Vec<Option<f64>> = indexes
            .iter()
            .map(|index| {
                let health = &self.parts.endpoints[*index as usize].state.health;
                warmup.factor(self.now.since(health.fresh_since(self.now)))
            })
            .collect();
        if factors.iter().all(Option::is_none) {
            return plain();
        }
        self.is_warming = true;
        let scaled = indexes.iter().zip(factors).map(|(index, factor)| {
            let weight = f64::from(self.parts.endpoints[*index as usize].weight);
            ((weight * factor.unwrap_or(1.0) * PRECISION).round() as u32).max(1)
        });
        scaled.collect()
    }
}

#[cfg(test)]
mod tests;
