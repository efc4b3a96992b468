//! The load generators: how they are called, and what they report.

use std::ffi::OsString;
use std::time::Duration;

use crate::compare::process::CommandLine;
use crate::compare::tool::{Tool, Tools};

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// HTTP/1.1 by wrk, over this many keep-alive connections.
    Http1 {
        /// Connections open at once.
        connections: u32,
    },
    /// HTTP/2 without TLS, by prior knowledge, by h2load.
    Http2 {
        /// Connections open at once.
        connections: u32,
        /// Requests in flight on each of them.
        streams: u32,
    },
}

/// What a load generator counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Responses received.
    pub requests: u64,
    /// Responses other than 2xx and 3xx.
    pub bad_statuses: u64,
    /// Connections or requests that failed or timed out.
    pub failures: u64,
}

impl Load {
    /// The program that makes this load.
    pub fn tool(self) -> Tool {
        match self {
            Self::Http1 { .. } => Tool::Wrk,
            Self::Http2 { .. } => Tool::H2load,
        }
    }

    /// How to call the program, if it is installed. `to_upstream` is for an upstream that knows HTTP/1.1 only.
    pub fn command(
        self,
        tools: &Tools,
        url: &str,
        turn: Duration,
        to_upstream: bool,
    ) -> Option<CommandLine> {
        let program = &tools.get(self.tool())?.path;
        let seconds = turn.as_secs().max(1);
        let arguments: Vec<OsString> = match self {
            Self::Http1 { connections } => {
                vec![
                    "-t1".into(),
                    format!("-c{connections}").into(),
                    format!("-d{seconds}s").into(),
                    url.into(),
                ]
            }
            Self::Http2 {
                connections,
                streams,
            } => {
                let mut arguments: Vec<OsString> = [
                    "-t1",
                    "-c",
                    &connections.to_string(),
                    "-m",
                    &streams.to_string(),
                    "-D",
                    &seconds.to_string(),
                ]
                .map(OsString::from)
                .to_vec();
                if to_upstream {
                    arguments.push("--h1".into());
                }
                arguments.push(url.into());
                arguments
            }
        };
        Some(CommandLine::new(program, arguments))
    }

    /// How to send a single HTTP/2 request, to see whether a listener answers.
    pub fn probe(tools: &Tools, url: &str) -> Option<CommandLine> {
        let program = &tools.get(Tool::H2load)?.path;
        Some(CommandLine::new(program, ["-t1", "-c1", "-n1", url]))
    }

    /// Reads what the program printed; `None` if that is not a report.
    pub fn parse(self, output: &str) -> Option<Counts> {
        match self {
            Self::Http1 { .. } => parse_wrk(output),
            Self::Http2 { .. } => parse_h2load(output),
        }
    }
}

/// Reads the report of wrk.
fn parse_wrk(output: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    let mut complete = false;
    for line in output.lines().map(str::trim) {
        if let Some((requests, _)) = line.split_once(" requests in ") {
            counts.requests = requests.trim().parse().ok()?;
            complete = true;
        } else if let Some(errors) = line.strip_prefix("Socket errors:") {
            counts.failures = numbers(errors).sum();
        } else if let Some(statuses) = line.strip_prefix("Non-2xx or 3xx responses:") {
            counts.bad_statuses = statuses.trim().parse().ok()?;
        }
    }
    complete.then_some(counts)
}

/// Reads the report of h2load.
pub fn parse_h2load(output: &str) -> Option<Counts> {
    let line = |label: &str| output.lines().find_map(|line| line.strip_prefix(label));
    // total, started, done, succeeded, failed, errored, timeout; those errored are among those failed
    let requests: Vec<u64> = numbers(line("requests:")?).collect();
    let statuses: Vec<u64> = numbers(line("status codes:")?).collect();
    let [_, _, done, _, failed, _, timed_out] = requests[..] else {
        return None;
    };
    let [_, _, client_errors, server_errors] = statuses[..] else {
        return None;
    };
    let bad_statuses = client_errors + server_errors;
    // A response with a bad status counts as failed there; here it is counted once.
    let failures = failed.saturating_sub(bad_statuses).max(timed_out);
    Some(Counts {
        requests: done,
        bad_statuses,
        failures,
    })
}

/// The whole numbers in a list such as `10 total, 8 done, 5 2xx`: the first word of every item.
fn numbers(list: &str) -> impl Iterator<Item = u64> {
    list.split(',').filter_map(|item| {
        item.split_ascii_whitespace()
            .find_map(|word| word.parse().ok())
    })
}

#[cfg(test)]
mod tests;
