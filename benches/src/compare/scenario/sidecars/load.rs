//! The two loads: as many requests as pass, and a steady rate whose latency is measured.

use std::path::Path;
use std::time::Duration;

use crate::compare::bench::Bench;
use crate::compare::failure::{Failure, context};
use crate::compare::load as generators;
use crate::compare::process::CommandLine;
use crate::compare::tls::HOST;

/// Requests per second of the steady load, and the connections that share them.
pub(super) const RATE: u64 = 1_000;
const STEADY_CONNECTIONS: u64 = 20;

/// Connections of the load that sends as much as passes.
pub(super) const CONNECTIONS: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// The next request of a connection follows the response before it.
    FlatOut,
    /// [`RATE`] requests per second.
    Steady,
}

/// What the load generator saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Measured {
    pub requests: u64,
    pub failures: u64,
    /// Half of the requests of the steady load took at most this long, in us.
    pub p50: Option<u64>,
    /// 99 of 100 took at most this long, in us.
    pub p99: Option<u64>,
}

impl Load {
    pub fn name(self) -> &'static str {
        match self {
            Self::FlatOut => "flat out",
            Self::Steady => "steady",
        }
    }

    /// Puts the load on a port for this long.
    pub fn put_on(self, bench: &Bench, port: u16, length: Duration) -> Result<Measured, Failure> {
        let tool = self.generator().tool();
        let program = tool.and_then(|tool| bench.tools.get(tool));
        let program = program.ok_or_else(|| Failure::new("the load generator is missing"))?;
        let log = bench.launcher.directory().join("latencies.log");
        let line = self.line(&program.path, port, length, &log);
        let limit = length * 2 + Duration::from_secs(30);
        let output = bench.run_beside("load", &line, limit)?;
        let counts = self.generator().parse(&output);
        let counts = counts.ok_or_else(|| Failure::new("the load generator made no report"))?;
        let mut measured = Measured {
            requests: counts.requests,
            failures: counts.failures + counts.bad_statuses,
            ..Measured::default()
        };
        if measured.requests == 0 {
            return Err(Failure::new("nothing was answered"));
        }
        if self == Self::Steady {
            let text = std::fs::read_to_string(&log).map_err(context(log.display()))?;
            let mut latencies = latencies(&text);
            measured.p50 = percentile(&mut latencies, 50);
            measured.p99 = percentile(&mut latencies, 99);
        }
        Ok(measured)
    }

    fn generator(self) -> generators::Load {
        match self {
            Self::FlatOut => generators::Load::Http1 { connections: 64 },
            Self::Steady => generators::Load::Http2 {
                connections: 20,
                streams: 1,
            },
        }
    }

    fn line(self, program: &Path, port: u16, length: Duration, log: &Path) -> CommandLine {
        let seconds = length.as_secs().max(1);
        let url = format!("http://127.0.0.1:{port}/");
        let words = match self {
            Self::FlatOut => vec![
                "-t1".to_owned(),
                format!("-c{CONNECTIONS}"),
                format!("-d{seconds}s"),
                format!("-HHost: {HOST}"),
                url,
            ],
            Self::Steady => vec![
                "--h1".to_owned(),
                "-t1".to_owned(),
                "-m1".to_owned(),
                format!("-c{STEADY_CONNECTIONS}"),
                format!("--rps={}", RATE / STEADY_CONNECTIONS),
                format!("-D{seconds}"),
                format!("-H:authority: {HOST}"),
                format!("--log-file={}", log.display()),
                url,
            ],
        };
        CommandLine::new(program, words)
    }
}

/// The third column of h2load's log: microseconds until the end of the response. Failed requests are left out.
fn latencies(log: &str) -> Vec<u64> {
    let of = |line: &str| {
        let mut columns = line.split('\t').skip(1);
        let status: i32 = columns.next()?.parse().ok()?;
        let taken = columns.next()?.parse().ok()?;
        (status > 0).then_some(taken)
    };
    log.lines().filter_map(of).collect()
}

/// The least value that so many percent of all are not above.
fn percentile(values: &mut [u64], percent: usize) -> Option<u64> {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_answered_requests_are_read() {
        let log = "1700000000000000\t200\t310\n1700000000000100\t-1\t9999\n1700000000000200\t503\t120\nrubbish\n";
        assert_eq!(latencies(log), [310, 120]);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut values: Vec<u64> = (1..=200).rev().collect();
        assert_eq!(percentile(&mut values, 50), Some(100));
        assert_eq!(percentile(&mut values, 99), Some(198));
        assert_eq!(percentile(&mut [7], 99), Some(7));
        assert_eq!(percentile(&mut [], 99), None);
    }
}
