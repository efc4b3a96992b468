//! The direction of a listener's traffic.

use crate::telemetry::Reporter;

/// The direction of a listener's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A gateway: from its clients to workloads.
    Gateway,
    /// A sidecar: from clients to its own workload.
    Inbound,
    /// A sidecar: from its own workload to services.
    Outbound,
}

impl Direction {
    /// Whether policies for clients apply to this traffic: not to that of the proxy's own workload.
    pub const fn is_judged(self) -> bool {
        matches!(self, Self::Gateway | Self::Inbound)
    }

    /// The `reporter` label of metrics for this traffic.
    pub const fn reporter(self) -> Reporter {
        match self {
            Self::Gateway | Self::Outbound => Reporter::Source,
            Self::Inbound => Reporter::Destination,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inbound_traffic_is_reported_by_its_destination() {
        for (direction, reporter) in [
            (Direction::Gateway, "source"),
            (Direction::Inbound, "destination"),
            (Direction::Outbound, "source"),
        ] {
            assert_eq!(direction.reporter().as_str(), reporter, "{direction:?}");
        }
    }
}
