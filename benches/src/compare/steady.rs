//! Load at a fixed rate by this program's own generator, and the measured latency.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::Value;

use crate::compare::bench::Bench;
use crate::compare::failure::{Failure, context};
use crate::compare::process::CommandLine;
use crate::compare::tls::HOST;

/// Load at a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Requests per second.
    pub rate: u32,
    /// Connections open at once.
    pub connections: u32,
    /// Requests in flight per HTTP/2 connection; `None` for HTTP/1.1.
    pub streams: Option<u32>,
}

/// Result of a load at a fixed rate. Times are in us.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Requests that were due.
    pub requests: u64,
    /// Failed requests.
    pub failures: u64,
    /// Median latency.
    pub p50: f64,
    /// 99th percentile of latency.
    pub p99: f64,
    /// 99.9th percentile of latency.
    pub p999: f64,
    /// 99th percentile of the generator's own delay before sending.
    pub own_p99: f64,
    /// Notes of the generator on the figures.
    pub notes: Vec<String>,
}

impl Steady {
    /// Sends the load to a port for `length`.
    ///
    /// # Errors
    /// When the generator cannot run, or no request was answered.
    pub fn put_on(self, bench: &Bench, port: u16, length: Duration) -> Result<Latency, Failure> {
        let own = std::env::current_exe().map_err(context("cannot find this program"))?;
        let line = CommandLine::new(&own, self.arguments(port, length));
        let output = bench.run_beside("load", &line, length * 2 + Duration::from_secs(30))?;
        let latency = parse(&output);
        let latency =
            latency.ok_or_else(|| Failure::new(format!("no result: {}", output.trim())))?;
        if latency.failures == latency.requests {
            return Err(Failure::new("no request succeeded"));
        }
        Ok(latency)
    }

    fn arguments(self, port: u16, length: Duration) -> Vec<OsString> {
        let mut words = vec![
            "load".to_owned(),
            format!("http://127.0.0.1:{port}/"),
            format!("--rate={}", self.rate),
            format!("--duration={}ms", length.as_millis()),
            format!("--connections={}", self.connections),
            format!("--header=host: {HOST}"),
            "--quiet".to_owned(),
            "--json=-".to_owned(),
        ];
        if let Some(streams) = self.streams {
            words.push("--protocol=http2".to_owned());
            words.push(format!("--streams={streams}"));
        }
        words.into_iter().map(OsString::from).collect()
    }
}

/// Parses the result of the generator.
fn parse(output: &str) -> Option<Latency> {
    let result: Value = serde_json::from_str(output).ok()?;
    let micros = |times: &str, name: &str| Some(result[times][name].as_f64()? * 1000.0);
    let notes = result["notes"].as_array()?.iter();
    Some(Latency {
        requests: result["requests"].as_u64()?,
        failures: result["failed"].as_u64()?,
        p50: micros("latency_ms", "p50")?,
        p99: micros("latency_ms", "p99")?,
        p999: micros("latency_ms", "p99_9")?,
        own_p99: micros("own_lateness_ms", "p99")?,
        notes: notes
            .filter_map(|note| Some(note.as_str()?.to_owned()))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::arguments::Arguments;
    use crate::load::protocol::Protocol;
    use clap::Parser as _;

    #[test]
    fn generator_understands_its_command_line() {
        let steady = Steady {
            rate: 2_000,
            connections: 16,
            streams: Some(8),
        };
        let words = steady.arguments(8080, Duration::from_secs(2));
        let arguments = Arguments::parse_from(words);
        assert_eq!(arguments.url.as_deref(), Some("http://127.0.0.1:8080/"));
        assert_eq!((arguments.rate, arguments.connections), (2_000, 16));
        assert_eq!(
            (arguments.protocol, arguments.streams),
            (Protocol::Http2, 8)
        );
        assert_eq!(arguments.duration, Duration::from_secs(2));
        assert_eq!(arguments.common, ["host: bench.example"]);
        assert!(arguments.quiet && arguments.json.is_some());
    }

    #[test]
    fn result_of_the_generator_is_read() {
        let output = r#"{"requests": 10, "failed": 1, "notes": ["late"],
            "latency_ms": {"p50": 0.1, "p99": 0.25, "p99_9": 2.5}, "own_lateness_ms": {"p99": 0.05}}"#;
        let latency = parse(output).unwrap();
        assert_eq!((latency.requests, latency.failures), (10, 1));
        let times = [latency.p50, latency.p99, latency.p999, latency.own_p99];
        assert_eq!(times, [100.0, 250.0, 2_500.0, 50.0]);
        assert_eq!(latency.notes, ["late"]);
        assert_eq!(parse("load: cannot connect"), None);
    }
}
