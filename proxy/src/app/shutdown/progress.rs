//! State machine of the drain. Pure: the observed state and the time are passed in.

use std::time::Duration;

use tokio::time::Instant;

use crate::app::settings::OutboundDrain;
use crate::runtime::drain::Stage;

/// Time without an open connection after which a sidecar considers its workload done. A client that opens a connection
/// for each request has moments without one.
const QUIET: Duration = Duration::from_secs(1);

/// Minimum time for connections of a workload to end once outbound listeners drain as well.
const OUTBOUND_END: Duration = Duration::from_secs(1);

/// Durations of the stages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// From the signal to end until listeners close.
    pub(super) pre_drain: Duration,
    /// From closing the listeners until open connections are closed.
    pub(super) drain_time: Duration,
    /// Drain of the outbound listeners of a sidecar; `None` for a gateway.
    pub(super) outbound: Option<OutboundDrain>,
}

/// Observed state that decides the stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObservedProgress {
    /// Whether clients are to be notified.
    pub(super) announced: bool,
    /// Time when the process was told to end.
    pub(super) ending: Option<Instant>,
    /// Whether requests can no longer reach the workload.
    pub(super) workload_gone: bool,
    /// Time since when no connection has been open.
    pub(super) quiet: Option<Instant>,
    /// Whether the workers have no work left.
    pub(super) finished: bool,
}

/// Stage of the drain, and the times when its parts began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    times: Times,
    stage: Stage,
    /// Time when listeners began to close.
    closing: Option<Instant>,
    /// Time when the last listeners began to close.
    draining: Option<Instant>,
}

/// Result of one step.
enum Next {
    /// Enter this stage.
    Enter(Stage),
    /// Stay until this time, or until the observed state changes.
    Wait(Option<Instant>),
}

impl Progress {
    pub(super) fn new(times: Times) -> Self {
        Self {
            times,
            stage: Stage::Serving,
            closing: None,
            draining: None,
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    pub(super) fn times(&mut self) -> &mut Times {
        &mut self.times
    }

    /// Enters a stage; a stage that is already passed has no effect.
    pub(super) fn enter(&mut self, stage: Stage, now: Instant) {
        self.stage = self.stage.max(stage);
        if self.stage >= Stage::DrainingInbound {
            self.closing.get_or_insert(now);
        }
        if self.stage >= Stage::Draining {
            self.draining.get_or_insert(now);
        }
    }

    /// Enters all stages that the observed state allows, and calls `entered` for each. Returns the time of the next
    /// stage if time alone brings it.
    pub(super) fn step(
        &mut self,
        seen: &ObservedProgress,
        now: Instant,
        mut entered: impl FnMut(Stage),
    ) -> Option<Instant> {
        loop {
            match self.next(seen, now) {
                Next::Enter(stage) => {
                    self.enter(stage, now);
                    entered(stage);
                }
                Next::Wait(due) => return due,
            }
        }
    }

    fn next(&self, seen: &ObservedProgress, now: Instant) -> Next {
        let is_sidecar = self.times.outbound.is_some();
        match (self.stage, seen.ending) {
            (Stage::Serving, None) if !seen.announced => Next::Wait(None),
            (Stage::Serving, _) => Next::Enter(Stage::Announcing),
            (Stage::Announcing | Stage::DrainingInbound, _) if is_sidecar && seen.workload_gone => {
                Next::Enter(Stage::WorkloadGone)
            }
            (Stage::Stopped, _) | (_, None) => Next::Wait(None),
            (Stage::Announcing, Some(ending)) => {
                let then = match is_sidecar {
                    true => Stage::DrainingInbound,
                    false => Stage::Draining,
                };
                at(Some(ending + self.times.pre_drain), then, now)
            }
            (Stage::DrainingInbound | Stage::WorkloadGone, Some(ending)) => {
                at(self.outbound_end(seen, ending), Stage::Draining, now)
            }
            (Stage::Draining, Some(_)) if seen.finished => Next::Enter(Stage::Stopped),
            (Stage::Draining, Some(ending)) => at(self.end(ending), Stage::Stopped, now),
        }
    }

    /// Time when outbound listeners begin to drain, given the observed state.
    fn outbound_end(&self, seen: &ObservedProgress, ending: Instant) -> Option<Instant> {
        let outbound = self.times.outbound?;
        let begun = self.closing?.max(ending);
        let minimum = match self.stage {
            Stage::WorkloadGone => outbound.minimum.min(QUIET),
            _ => outbound.minimum,
        };
        let quiet = |since| (begun + minimum).max(since + QUIET.min(minimum));
        let end = begun + outbound.time;
        Some(seen.quiet.map_or(end, |since| end.min(quiet(since))))
    }

    /// Time when open connections are closed.
    fn end(&self, ending: Instant) -> Option<Instant> {
        let end = self.closing?.max(ending) + self.times.drain_time;
        let least = self.times.outbound.and(self.draining);
        Some(least.map_or(end, |draining| end.max(draining + OUTBOUND_END)))
    }
}

fn at(due: Option<Instant>, then: Stage, now: Instant) -> Next {
    match due {
        Some(due) if now < due => Next::Wait(Some(due)),
        _ => Next::Enter(then),
    }
}

#[cfg(test)]
mod tests;
