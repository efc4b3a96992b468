//! The measurements, by name.

use clap::ValueEnum;

use crate::compare::bench::Bench;
use crate::compare::configure::{Proxy, Work};
use crate::compare::failure::Failure;
use crate::compare::report::Report;
use crate::compare::{say, tool};

mod connections;
mod courses;
mod loaded;
mod slow;
mod throughput;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Small responses over 64 keep-alive HTTP/1.1 connections.
    Small,
    /// 1,000 prefix routes, hitting the last, beside one route.
    Routes,
    /// A plain route alone, and beside routes full of features.
    Features,
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
    /// Memory of an idle process, and per idle connection.
    Connections,
    /// Memory per slow reader, stalled upload and unanswered request.
    Slow,
    /// 5,000 routes: memory, time to load, time until a change is in effect.
    Loaded,
}

impl Scenario {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 14] = [
        Self::Small,
        Self::Routes,
        Self::Features,
        Self::H2c,
        Self::Large,
        Self::Https,
        Self::TlsFull,
        Self::TlsResumed,
        Self::H2,
        Self::Grpc,
        Self::Tcp,
        Self::Connections,
        Self::Slow,
        Self::Loaded,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Routes => "routes",
            Self::Features => "features",
            Self::H2c => "h2c",
            Self::Large => "large",
            Self::Https => "https",
            Self::TlsFull => "tls-full",
            Self::TlsResumed => "tls-resumed",
            Self::H2 => "h2",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
            Self::Connections => "connections",
            Self::Slow => "slow",
            Self::Loaded => "loaded",
        }
    }

    /// Measures, and adds the results to the report.
    ///
    /// # Errors
    /// When the run was asked to stop. What fails in one proxy becomes a note.
    pub fn measure(self, bench: &Bench, report: &mut Report) -> Result<(), Failure> {
        let course = match self {
            Self::Small => courses::small(),
            Self::Routes => courses::routes(),
            Self::Features => courses::features(),
            Self::H2c => courses::h2c(),
            Self::Large => courses::large(),
            Self::Https => courses::https(),
            Self::TlsFull => courses::handshakes(false),
            Self::TlsResumed => courses::handshakes(true),
            Self::H2 => courses::h2(),
            Self::Grpc => courses::grpc(),
            Self::Tcp => courses::tcp(),
            Self::Connections => return connections::measure(bench, report),
            Self::Slow => return slow::measure(bench, report),
            Self::Loaded => return loaded::measure(bench, report),
        };
        throughput::measure(bench, report, &course)
    }
}

/// The proxies that are installed, with what they need to pass this on.
fn installed(bench: &Bench, work: Work) -> impl Iterator<Item = Proxy> {
    Proxy::ALL
        .into_iter()
        .filter(move |proxy| bench.tools.get(proxy.tool_for(work)).is_some())
}

/// Takes note of a failure in one proxy; passes on that the run shall stop.
fn note<T>(
    report: &mut Report,
    what: &str,
    result: Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Cancelled) => Err(Failure::Cancelled),
        Err(Failure::Other(message)) => {
            let message = format!("{what}: {message}");
            say(&message);
            report.notes.push(message);
            Ok(None)
        }
    }
}

/// Takes note of a scenario that cannot be run without a program.
fn skip(report: &mut Report, title: &str, missing: tool::Tool) {
    let message = format!("{title}: skipped, {}", tool::missing_hint(missing));
    say(&message);
    report.notes.push(message);
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

    #[test]
    fn failure_becomes_a_note_and_a_stop_does_not() {
        let mut report = Report::default();
        let failed = note::<()>(&mut report, "nginx", Err(Failure::new("no")));
        assert!(matches!(failed, Ok(None)));
        assert_eq!(report.notes, ["nginx: no"]);
        let stopped = note::<()>(&mut report, "nginx", Err(Failure::Cancelled));
        assert!(matches!(stopped, Err(Failure::Cancelled)));
    }
}
