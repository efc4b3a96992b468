//! Metric handles for the requests of a federation, by pool, made when it is compiled.

use std::sync::Arc;

use super::Pool;
use crate::telemetry::{
    MemberLabels, MemberTally, ReplayCause, ReplayLabels, ReplayTally, ShiftReason, ShiftTally,
    StatsRegistry, WorkerId,
};

/// Metric handles of one federation.
#[derive(Debug)]
pub(super) struct Counts {
    /// By pool.
    tries: Box<[Arc<MemberTally>]>,
    /// By the pool that failed a request, then by the pool of the replay; `None` for pools of the same or an earlier
    /// tier. Empty if there is only one tier.
    replays: Box<[Option<Arc<ReplayTally>>]>,
    shifts: Arc<ShiftTally>,
}

impl Counts {
    pub(super) fn new(
        service: &Arc<str>,
        source: &Arc<str>,
        pools: &[Pool],
        stats: &StatsRegistry,
    ) -> Self {
        let name = |pool: &Pool| -> Arc<str> { pool.name().into() };
        let tries = pools.iter().map(|pool| {
            stats.member_tally(&MemberLabels {
                service: Arc::clone(service),
                source: Arc::clone(source),
                member: name(pool),
                tier: pool.tier,
            })
        });
        let way = |from: &Pool, to: &Pool| {
            let labels = || ReplayLabels {
                service: Arc::clone(service),
                from: name(from),
                to: name(to),
            };
            (from.tier < to.tier).then(|| stats.replay_tally(&labels()))
        };
        let has_tiers = pools.iter().any(|pool| pool.tier > 0);
        let from = pools.iter().filter(|_| has_tiers);
        let ways = from.flat_map(|from| pools.iter().map(move |to| way(from, to)));
        Self {
            tries: tries.collect(),
            replays: ways.collect(),
            shifts: stats.shift_tally(service),
        }
    }

    #[inline]
    pub(super) fn tried(&self, worker: WorkerId, at: usize, code: u16) {
        self.tries[at].tried(worker, code);
    }

    pub(super) fn replayed(&self, worker: WorkerId, from: usize, to: usize, cause: ReplayCause) {
        let way = self.replays.get(from * self.tries.len() + to);
        if let Some(Some(way)) = way {
            way.count(worker, cause as usize);
        }
    }

    pub(super) fn shifted(&self, worker: WorkerId, reason: ShiftReason) {
        self.shifts.count(worker, reason as usize);
    }
}
