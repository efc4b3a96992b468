//! Command line of `load`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use http::{HeaderName, Method, StatusCode};

use super::protocol::Protocol;
use super::quantity::{FailureLimit, duration};

/// Maximum number of requests per second.
pub const RATE_MAX: u32 = 500_000;

/// Maximum length of a run, including warm-up.
pub const LENGTH_MAX: Duration = Duration::from_secs(3600);

/// Maximum number of connections.
pub const CONNECTIONS_MAX: u32 = 10_000;

/// Maximum number of requests in flight on all connections.
pub const SLOTS_MAX: u64 = 100_000;

/// Maximum timeout of a request.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Maximum size of a request body, in bytes.
pub const BODY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Sends requests at a constant rate, and measures how long the responses take.
///
/// Requests are due at times that are fixed before the run. The latency of a request counts from its due time, also if
/// all connections were busy then: a server that stalls is charged for every request that came due meanwhile
/// (no coordinated omission). The report says how late the generator itself was.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "load",
    version,
    after_help = "Exit codes: 0 done, 1 a limit of --max-p99 or --max-failures is broken or no request succeeded, \
                  2 the usage is wrong or the run could not begin, 130 stopped by a signal."
)]
pub struct Arguments {
    /// URL to measure: http or https, host, port and path. Default: http://127.0.0.1:15001/
    #[arg(value_name = "URL")]
    pub url: Option<String>,

    /// Requests per second, at most 500000.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(RATE_MAX)))]
    pub rate: u32,

    /// Duration of the measurement, such as 30s or 2m; at most 1h.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,

    /// Duration of a warm-up, whose requests do not count.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub warm_up: Duration,

    /// Connections, kept open and used in turn; at most 10000.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    pub connections: u32,

    /// Requests that a connection of HTTP/2 carries at once.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub streams: u32,

    /// Threads that share rate and connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,

    /// Protocol; with TLS if the URL is https.
    #[arg(long, value_enum, default_value_t = Protocol::Http1, hide_possible_values = false)]
    pub protocol: Protocol,

    /// Arrival times of requests: constant intervals, or random as from many clients (Poisson).
    #[arg(long, value_enum, default_value_t = Spread::Constant)]
    pub arrivals: Spread,

    /// Seed of random arrival times.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// A request fails that has no complete response this long after its due time; at most 60s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub timeout: Duration,

    /// Method. Default: GET, with a body POST.
    #[arg(long, value_name = "METHOD")]
    pub method: Option<Method>,

    /// A header of every request, as `name: value`; may be repeated. `host` names the host.
    #[arg(long = "header", value_name = "HEADER")]
    pub common: Vec<String>,

    /// File of headers that differ between requests: blocks of `name: value` lines, separated by empty lines, which
    /// requests take in turn. `host` names the host, `:path` and `:method` replace path and method. Lines that begin
    /// with # are comments.
    #[arg(long, value_name = "FILE")]
    pub headers: Option<PathBuf>,

    /// File with the body of every request, or the message of every call of gRPC; at most 16 MiB.
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,

    /// A status that is right; may be repeated. Default: 200 to 399.
    #[arg(long = "expect-status", value_name = "STATUS")]
    pub statuses: Vec<StatusCode>,

    /// Length that every response body must have.
    #[arg(long, value_name = "N")]
    pub expect_body_bytes: Option<u64>,

    /// Count responses by the value of this header, for example to see how requests were balanced.
    #[arg(long, value_name = "NAME")]
    pub count_header: Option<HeaderName>,

    /// Authorities of servers with TLS, as PEM. Default: the list of Mozilla.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,

    /// Accept every certificate.
    #[arg(long)]
    pub insecure: bool,

    /// Name that is sent to servers with TLS (SNI) and that their certificate must have. Default: the host of the URL.
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,

    /// Write the result as JSON to this file; to standard output instead of the text if it is `-`.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the distribution of latency to this file, in the text format of HdrHistogram.
    #[arg(long, value_name = "FILE")]
    pub histogram: Option<PathBuf>,

    /// Write the distribution of latency to this file, as an SVG image.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Exit with 1 if the latency of 99 in 100 requests is above this.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_p99: Option<Duration>,

    /// Exit with 1 if more requests fail: a number, or a share such as 0.1%.
    #[arg(long, value_name = "LIMIT", value_parser = FailureLimit::parse)]
    pub max_failures: Option<FailureLimit>,

    /// Show no progress on standard error.
    #[arg(long)]
    pub quiet: bool,
}

/// Distribution of the arrival times of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// Constant intervals.
    Constant,
    /// Random times.
    Random,
}

impl Arguments {
    /// Returns the rate, which the parser has checked.
    pub fn rate(&self) -> NonZeroU32 {
        NonZeroU32::new(self.rate).unwrap_or(NonZeroU32::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn limits_of_the_help_are_those_that_hold() {
        let help = Arguments::command().render_long_help().to_string();
        for limit in [RATE_MAX.to_string(), CONNECTIONS_MAX.to_string()] {
            assert!(help.contains(&format!("at most {limit}")), "{limit}");
        }
        for (flag, value) in [
            ("--rate", "500001"),
            ("--rate", "0"),
            ("--connections", "10001"),
        ] {
            assert!(
                Arguments::try_parse_from(["load", flag, value]).is_err(),
                "{flag} {value}"
            );
        }
    }
}
