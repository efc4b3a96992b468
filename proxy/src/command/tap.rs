//! `strait tap`: shows the requests of a running proxy as they end.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use serde::Deserialize;

use super::admin_client::{self, encode};
use super::args::{AdminArgs, OutputArg};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_USAGE, print, report};
use crate::telemetry::{TapCounts, TapFilter, TapStyle, TappedRequest, tap_line, tap_rate};

const HELP: &str = "\
Shows what became of each request: status, response flags, the rule that matched with its file and line, destination, \
cluster and endpoint, the attempts with the reason of each, and the time of each phase. It needs neither an access log nor \
tracing, changes nothing, and costs the proxy nothing while no tap is open. Bodies and headers are not shown; values \
of query parameters that are credentials are REDACTED.

Filters, all of which must hold; `*` matches any characters, and a name may be given again for another value:
  host=shop.example   path=/cart*          method=POST           listener=8080
  header:x-user=u7    status=5xx, 503      flag=UH               slower=200ms
  rule=testers        destination=cart.*   cluster=c2            endpoint=10.0.0.1:*
rule is a name or KIND/NAMESPACE/NAME; cluster and endpoint are those of any attempt.

Examples:
  strait tap                                    every request, at most 50 per second
  strait tap status=5xx                         failures, as they happen
  strait tap host=shop.example 'path=/cart*' slower=200ms
  strait tap cluster=c2 --max 10                the next 10 requests that had an attempt in c2
  strait tap header:x-user=u7 -o json | jq .attempts
  kubectl port-forward POD 15000 & strait tap   of a proxy in a pod
  strait tap --schema > strait-tap.schema.json

Exit codes: 0 --max requests were shown, or the reader went away; 1 the proxy cannot be reached or has ended; 2 the usage \
is wrong.";

/// JSON Schema of `-o json`.
const SCHEMA: &str = include_str!("tap/schema.json");

/// Arguments of `strait tap`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct TapArgs {
    /// Requests to show: NAME=VALUE; default: all
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
    /// Proxy that is asked.
    #[command(flatten)]
    pub asked: AdminArgs,
    /// Maximum number of requests per second (50/s) or minute (600/m); what is beyond it is counted
    #[arg(
        long,
        value_name = "RATE",
        default_value = "50/s",
        env = "STRAIT_TAP_RATE"
    )]
    pub rate: String,
    /// End after this number of requests
    #[arg(long, value_name = "NUMBER", env = "STRAIT_TAP_MAX")]
    pub max: Option<u64>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = OutputArg::Text, env = "STRAIT_OUTPUT")]
    pub output: OutputArg,
    /// Print the JSON Schema of `-o json`
    #[arg(long)]
    pub schema: bool,
}

/// Line of the admin server.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    /// Counts.
    Told {
        /// The counts.
        tap: TapCounts,
    },
    /// A request.
    Request(Box<TappedRequest>),
}

/// Runs `strait tap`.
pub fn run(args: &TapArgs) -> u8 {
    if args.schema {
        return print(SCHEMA);
    }
    let target = match target(args) {
        Ok(target) => target,
        Err(error) => {
            report(&error);
            return EXIT_USAGE;
        }
    };
    let shown = admin_client::stream(&args.asked.admin, &target).map(|stream| show(args, stream));
    match shown {
        Ok(Ok(())) => EXIT_DONE,
        Ok(Err(error)) => {
            report(&error);
            EXIT_INPUT
        }
        Err(error) => {
            report(&format!("--admin {}: {error}", args.asked.admin));
            EXIT_INPUT
        }
    }
}

/// Makes the target of the request to the admin server.
///
/// # Errors
///
/// If a filter or the rate is wrong.
fn target(args: &TapArgs) -> Result<String, String> {
    TapFilter::parse(args.filters.iter().map(String::as_str))?;
    tap_rate(&args.rate).map_err(|error| format!("--rate: {error}"))?;
    let mut target = "/tap?format=json".to_owned();
    let mut add = |name: &str, value: &str| {
        for (text, before) in [(name, '&'), (value, '=')] {
            target.push(before);
            encode(text, &mut target);
        }
    };
    add("rate", &args.rate);
    if let Some(max) = args.max {
        add("max", &max.to_string());
    }
    for (name, value) in args.filters.iter().filter_map(|one| one.split_once('=')) {
        add(name, value);
    }
    Ok(target)
}

/// Prints what the proxy sends.
fn show(args: &TapArgs, stream: impl BufRead) -> Result<(), String> {
    let style = match io::stdout().is_terminal() {
        true => TapStyle::Colored,
        false => TapStyle::Plain,
    };
    let (mut shown, mut told) = (0, None);
    for line in stream.lines() {
        let line = line.map_err(|error| format!("--admin {}: {error}", args.asked.admin))?;
        if line.is_empty() {
            continue;
        }
        let read = serde_json::from_str(&line);
        match read.map_err(|error| format!("cannot read what the proxy sends: {error}"))? {
            Line::Told { tap } => {
                tell(args, told, tap);
                told = Some(tap);
            }
            Line::Request(request) => {
                let text = match args.output {
                    OutputArg::Json => line,
                    OutputArg::Text => tap_line(&request, style),
                };
                let mut out = io::stdout().lock();
                // the reader went away
                if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
                    return Ok(());
                }
                shown += 1;
            }
        }
    }
    match args.max {
        Some(max) if shown >= max => Ok(()),
        _ => Err(format!(
            "the proxy at {} has ended the tap",
            args.asked.admin
        )),
    }
}

/// Tells on standard error that the tap is open, and what it does not show.
fn tell(args: &TapArgs, before: Option<TapCounts>, counts: TapCounts) {
    let Some(before) = before else {
        if io::stderr().is_terminal() {
            let which = match args.filters.is_empty() {
                true => "requests".to_owned(),
                false => format!("requests with {}", args.filters.join(" ")),
            };
            let admin = &args.asked.admin;
            report(&format!(
                "{which} of {admin}, as they end; interrupt to stop"
            ));
        }
        return;
    };
    let over_rate = counts.over_rate - before.over_rate.min(counts.over_rate);
    let dropped = counts.dropped - before.dropped.min(counts.dropped);
    if over_rate > 0 {
        report(&format!(
            "{over_rate} more requests are beyond --rate {}",
            args.rate
        ));
    }
    if dropped > 0 {
        report(&format!(
            "{dropped} requests were dropped: this output is too slow"
        ));
    }
}

#[cfg(test)]
mod tests;
