//! How a sidecar lives and ends with its workload.

use std::time::Duration;

use clap::Args;

use super::duration::duration;
use crate::app::OutboundDrain;

/// What only a sidecar in a pod, or beside a process, has.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sidecar")]
pub struct PodArgs {
    /// Maximum time that a sidecar serves new and open connections of its workload after SIGTERM and --pre-drain, while
    /// connections to the workload drain. It ends before, once neither side has had a connection for 1s
    #[arg(long, value_name = "DURATION", default_value = "20s", env = "STRAIT_TERMINATION_DRAIN", value_parser = duration)]
    pub termination_drain: Duration,
    /// Minimum of that time, also without a connection: a workload that shuts down may open new ones
    #[arg(long, value_name = "DURATION", default_value = "5s", env = "STRAIT_TERMINATION_DRAIN_MINIMUM", value_parser = duration)]
    pub termination_drain_minimum: Duration,
}

impl PodArgs {
    /// How outbound listeners drain.
    pub(super) fn outbound_drain(&self) -> OutboundDrain {
        OutboundDrain {
            time: self.termination_drain,
            minimum: self.termination_drain_minimum.min(self.termination_drain),
        }
    }
}
