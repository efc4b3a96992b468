//! Access log by resources, by the side of the proxy.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::direction::Direction;
use super::tracing::Collector;
use crate::telemetry::LogPlan;

/// Access log of both sides of the proxy; `None` for a side whose log is that of the flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    /// Log of a gateway, and of the outbound side of a sidecar.
    pub client: Option<Arc<LogPlan>>,
    /// Log of the inbound side of a sidecar.
    pub server: Option<Arc<LogPlan>>,
    /// Services that log records are sent to, by the provider.
    pub collectors: BTreeMap<Arc<str>, Collector>,
}

impl Logging {
    /// The log of traffic of a direction.
    pub fn of(&self, direction: Direction) -> Option<&Arc<LogPlan>> {
        match direction {
            Direction::Inbound => self.server.as_ref(),
            Direction::Gateway | Direction::Outbound => self.client.as_ref(),
        }
    }

    /// The logs of both sides.
    pub fn plans(&self) -> impl Iterator<Item = &Arc<LogPlan>> {
        self.client.iter().chain(&self.server)
    }
}
