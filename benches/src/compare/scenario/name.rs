//! Names of the scenarios.

use clap::ValueEnum;

use crate::compare::configure::feature;

/// Number of endpoints in the scenario that compares many endpoints with one.
pub(super) const MANY_ENDPOINTS: u16 = 1_000;

/// Number of downstream connections in the scenario that compares many connections with few.
pub(super) const MANY_CONNECTIONS: u32 = 10_000;

/// Maximum number of open files in that scenario: two per connection, as Strait counts, and some spare.
pub(super) const DOWNSTREAM_FILES: u64 = 2 * MANY_CONNECTIONS as u64 + 1_024;

/// Scenario to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Small responses over 64 keep-alive HTTP/1.1 connections.
    Small,
    /// 1,000 prefix routes, hitting the last, beside one route.
    Routes,
    /// 1, 10, 100 and 1,000 endpoints of the upstream, balanced by round robin.
    Endpoints,
    /// 64, 1,000 and 10,000 downstream keep-alive connections with 64 requests in flight.
    Downstream,
    /// A plain route alone, and beside routes full of features.
    Features,
    /// A route with one feature, for each of them.
    FeatureCosts,
    /// 0, 1, 100 and 1,000 policies that deny other requests.
    Authz,
    /// Requests with a token that is verified.
    Jwt,
    /// Requests without traces, and with spans of 0, 1 and 100 %.
    Traces,
    /// HTTP/2 without TLS from downstream, HTTP/1.1 to the upstream.
    H2c,
    /// Responses of 1 MiB.
    Large,
    /// Small responses over 64 keep-alive HTTPS connections.
    Https,
    /// New connections with a full TLS handshake each.
    TlsFull,
    /// New connections with a resumed TLS session each.
    TlsResumed,
    /// HTTP/2 over TLS from downstream, HTTP/1.1 to the upstream.
    H2,
    /// Unary calls of gRPC, HTTP/2 to both sides.
    Grpc,
    /// Bytes through TCP connections.
    Tcp,
    /// Latency at fixed rates, over HTTP/1.1 and HTTP/2 without TLS.
    Latency,
    /// A pair of sidecars, with mutual TLS between them and without: CPU, memory, added latency.
    Sidecars,
    /// Memory of an idle process, and per idle connection.
    Connections,
    /// Memory per slow reader, stalled upload and unanswered request.
    Slow,
    /// 5,000 routes: memory, time to load, time until a change is in effect.
    Loaded,
}

impl Scenario {
    /// All scenarios, in the order of the tables.
    pub const ALL: [Self; 22] = [
        Self::Small,
        Self::Routes,
        Self::Endpoints,
        Self::Downstream,
        Self::Features,
        Self::FeatureCosts,
        Self::Authz,
        Self::Jwt,
        Self::Traces,
        Self::H2c,
        Self::Large,
        Self::Https,
        Self::TlsFull,
        Self::TlsResumed,
        Self::H2,
        Self::Grpc,
        Self::Tcp,
        Self::Latency,
        Self::Sidecars,
        Self::Connections,
        Self::Slow,
        Self::Loaded,
    ];

    /// Returns the number of loopback addresses that the upstream must listen on.
    pub fn upstream_addresses(self) -> u16 {
        match self {
            Self::Endpoints => MANY_ENDPOINTS,
            Self::FeatureCosts => 2 * feature::ENDPOINTS,
            _ => 1,
        }
    }

    /// Returns the number of open files that the scenario needs on its own account; 0 if it depends on the arguments.
    pub fn open_files(self) -> u64 {
        match self {
            Self::Downstream => DOWNSTREAM_FILES,
            _ => 0,
        }
    }

    /// Returns the name of the scenario on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Routes => "routes",
            Self::Endpoints => "endpoints",
            Self::Downstream => "downstream",
            Self::Features => "features",
            Self::FeatureCosts => "feature-costs",
            Self::Authz => "authz",
            Self::Jwt => "jwt",
            Self::Traces => "traces",
            Self::H2c => "h2c",
            Self::Large => "large",
            Self::Https => "https",
            Self::TlsFull => "tls-full",
            Self::TlsResumed => "tls-resumed",
            Self::H2 => "h2",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
            Self::Latency => "latency",
            Self::Sidecars => "sidecars",
            Self::Connections => "connections",
            Self::Slow => "slow",
            Self::Loaded => "loaded",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for scenario in Scenario::ALL {
            let value = scenario.to_possible_value().expect("no scenario is hidden");
            assert_eq!(value.get_name(), scenario.name());
        }
    }
}
