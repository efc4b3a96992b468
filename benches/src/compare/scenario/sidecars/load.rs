//! Loads of the sidecar comparison: maximum throughput by wrk, and a steady rate with latency.

use std::path::Path;
use std::time::Duration;

use crate::compare::bench::Bench;
use crate::compare::failure::Failure;
use crate::compare::load as generators;
use crate::compare::process::CommandLine;
use crate::compare::steady::Steady;
use crate::compare::tls::HOST;
use crate::compare::tool::Tool;

/// Requests per second of the steady load.
pub(super) const RATE: u32 = 1_000;
const STEADY_CONNECTIONS: u32 = 20;

/// Number of connections of the load at maximum throughput.
pub(super) const CONNECTIONS: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Maximum throughput: a connection sends its next request right after the previous response.
    FlatOut,
    /// [`RATE`] requests per second.
    Steady,
}

/// Results from the load generator.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub requests: u64,
    pub failures: u64,
    /// Median latency of the steady load, in us.
    pub p50: Option<f64>,
    /// 99th percentile of latency, in us.
    pub p99: Option<f64>,
}

impl Load {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FlatOut => "flat out",
            Self::Steady => "steady",
        }
    }

    /// Sends the load to a port for `length`.
    pub(super) fn put_on(
        self,
        bench: &Bench,
        port: u16,
        length: Duration,
    ) -> Result<Measured, Failure> {
        match self {
            Self::FlatOut => flat_out(bench, port, length),
            Self::Steady => steady(bench, port, length),
        }
    }
}

fn steady(bench: &Bench, port: u16, length: Duration) -> Result<Measured, Failure> {
    let steady = Steady {
        rate: RATE,
        connections: STEADY_CONNECTIONS,
        streams: None,
    };
    let latency = steady.put_on(bench, port, length)?;
    Ok(Measured {
        requests: latency.requests,
        failures: latency.failures,
        p50: Some(latency.p50),
        p99: Some(latency.p99),
    })
}

fn flat_out(bench: &Bench, port: u16, length: Duration) -> Result<Measured, Failure> {
    let program = bench.tools.get(Tool::Wrk);
    let program = program.ok_or_else(|| Failure::new("the load generator is missing"))?;
    let line = wrk(&program.path, port, length);
    let output = bench.run_beside("load", &line, length * 2 + Duration::from_secs(30))?;
    let load = generators::Load::Http1 {
        connections: CONNECTIONS,
    };
    let counts = load.parse(&output);
    let counts = counts.ok_or_else(|| Failure::new("the load generator made no report"))?;
    if counts.requests == 0 {
        return Err(Failure::new("nothing was answered"));
    }
    Ok(Measured {
        requests: counts.requests,
        failures: counts.failures + counts.bad_statuses,
        ..Measured::default()
    })
}

fn wrk(program: &Path, port: u16, length: Duration) -> CommandLine {
    let seconds = length.as_secs().max(1);
    let words = [
        "-t1".to_owned(),
        format!("-c{CONNECTIONS}"),
        format!("-d{seconds}s"),
        format!("-HHost: {HOST}"),
        format!("http://127.0.0.1:{port}/"),
    ];
    CommandLine::new(program, words)
}
