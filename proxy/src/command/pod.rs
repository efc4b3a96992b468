//! Arguments that tie a sidecar to its workload: drain times, the workload process, and probes.

use std::env;
use std::time::Duration;

use clap::Args;

use crate::admin::AppProbers;
use crate::app::{OutboundDrain, WorkloadProcess};
use crate::runtime::duration::duration;

/// Environment variable in which Istio's injector puts the probes that it has rewritten.
const ISTIO_APP_PROBERS: &str = "ISTIO_KUBE_APP_PROBERS";

/// Settings of a sidecar in a pod, or beside a process.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sidecar")]
pub struct PodArgs {
    /// Maximum time that a sidecar serves new and open connections of its workload after SIGTERM and --pre-drain, while
    /// connections to the workload drain. It ends before, once neither side has had a connection for 1s
    #[arg(long, value_name = "DURATION", default_value = "20s", env = "STRAIT_TERMINATION_DRAIN", value_parser = duration)]
    pub termination_drain: Duration,
    /// Minimum of that time, also without a connection: a workload that shuts down may open new ones. At most 1s once it
    /// has closed its ports
    #[arg(long, value_name = "DURATION", default_value = "5s", env = "STRAIT_TERMINATION_DRAIN_MINIMUM", value_parser = duration)]
    pub termination_drain_minimum: Duration,
    /// Process of a job, by number or by a file that the job writes its number to: the proxy drains and exits with 0 once
    /// it has ended. In a pod this needs shareProcessNamespace
    #[arg(
        long,
        value_name = "PID|FILE",
        env = "STRAIT_EXIT_WITH_PID",
        value_parser = WorkloadProcess::parse
    )]
    pub exit_with_pid: Option<WorkloadProcess>,
    /// Probes of the workload's containers by path (/app-health/CONTAINER/livez), which --admin and --health answer by asking
    /// the container; default: $ISTIO_KUBE_APP_PROBERS, which Istio's probe rewrite sets
    #[arg(
        long,
        value_name = "JSON",
        env = "STRAIT_APP_PROBERS",
        hide_env_values = true
    )]
    pub app_probers: Option<String>,
}

impl PodArgs {
    /// Returns the drain times of outbound listeners.
    pub(super) fn outbound_drain(&self) -> OutboundDrain {
        OutboundDrain {
            time: self.termination_drain,
            minimum: self.termination_drain_minimum.min(self.termination_drain),
        }
    }

    /// Parses the probes that the proxy answers.
    pub(super) fn app_probers(&self) -> Result<AppProbers, String> {
        let (name, json) = match (&self.app_probers, env::var(ISTIO_APP_PROBERS)) {
            (Some(json), _) => ("--app-probers", json.clone()),
            (None, Ok(json)) => (ISTIO_APP_PROBERS, json),
            (None, Err(_)) => return Ok(AppProbers::default()),
        };
        if json.trim().is_empty() {
            return Ok(AppProbers::default());
        }
        AppProbers::parse(&json).map_err(|error| format!("{name}: {error}"))
    }
}
