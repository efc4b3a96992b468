//! Command line of `stream`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Measures a config server and a proxy that follows it: time to first ready, memory, the time from a write to traffic,
/// and requests during many changes.
///
/// Build both first: `cargo build --release -p proxy`. All traffic stays on 127.0.0.0/8.
#[derive(Clone, Debug, Parser)]
#[command(name = "stream", version)]
pub struct Arguments {
    /// Number of services, each with a VirtualService and ten endpoints.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub services: u32,

    /// Number of other clients' watches in the second series of changes.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub watchers: u32,

    /// Number of timed changes in each series: half to routes, half to endpoints.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub changes: u32,

    /// Protocol by which the proxy follows the server.
    #[arg(long, value_enum, default_value_t = Protocol::Kubernetes)]
    pub protocol: Protocol,

    /// Total length of the storm, in seconds. Storm and quiet periods of the same length alternate.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub storm: u32,

    /// Changes per second in the storm.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub storm_rate: u32,

    /// Requests per second in the storm and in the quiet periods.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,

    /// The binary of Strait. Default: `strait` beside this program.
    #[arg(long, value_name = "PATH")]
    pub strait: Option<PathBuf>,
}

/// Protocol of a control stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// List and watch of a Kubernetes API.
    Kubernetes,
    /// Incremental xDS over an aggregated stream (delta ADS).
    Xds,
}
