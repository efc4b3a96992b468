//! The measurements, by name.

use clap::ValueEnum;

use crate::compare::bench::Bench;
use crate::compare::configure::{Proxy, prefix};
use crate::compare::failure::Failure;
use crate::compare::load::Load;
use crate::compare::report::{Figure, Report};
use crate::compare::upstream::LARGE_PATH;
use crate::compare::{say, tool};

mod connections;
mod loaded;
mod throughput;

use throughput::{Course, Variant};

/// Routes in the scenario that compares many routes with one.
const MANY_ROUTES: usize = 1_000;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Small responses over 64 keep-alive HTTP/1.1 connections.
    Small,
    /// 1,000 prefix routes, hitting the last, beside one route.
    Routes,
    /// HTTP/2 without TLS from downstream, HTTP/1.1 to the upstream.
    H2c,
    /// Responses of 1 MiB.
    Large,
    /// Memory of an idle process, and per idle connection.
    Connections,
    /// 5,000 routes: memory, time to load, time until a change is in force.
    Loaded,
}

impl Scenario {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 6] = [
        Self::Small,
        Self::Routes,
        Self::H2c,
        Self::Large,
        Self::Connections,
        Self::Loaded,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Routes => "routes",
            Self::H2c => "h2c",
            Self::Large => "large",
            Self::Connections => "connections",
            Self::Loaded => "loaded",
        }
    }

    /// Measures, and adds the results to the report.
    ///
    /// # Errors
    /// When the run was asked to stop. What fails in one proxy becomes a note.
    pub fn measure(self, bench: &Bench, report: &mut Report) -> Result<(), Failure> {
        match self {
            Self::Small => throughput::measure(bench, report, &small()),
            Self::Routes => throughput::measure(bench, report, &routes()),
            Self::H2c => throughput::measure(bench, report, &h2c()),
            Self::Large => throughput::measure(bench, report, &large()),
            Self::Connections => connections::measure(bench, report),
            Self::Loaded => loaded::measure(bench, report),
        }
    }
}

fn small() -> Course {
    Course {
        title: "Small keep-alive requests over HTTP/1.1",
        text: "64 connections, responses of 128 bytes, one route.",
        load: Load::Http1 { connections: 64 },
        path: "/".to_owned(),
        variants: vec![Variant::catch_all(Some(Figure::CpuSmall))],
    }
}

/// Both variants are asked for the same path, so that only the number of routes differs.
fn routes() -> Course {
    let last = prefix(MANY_ROUTES - 1);
    Course {
        title: "1,000 prefix routes, hitting the last",
        text: "64 connections, responses of 128 bytes. Each proxy also runs with that one route alone, in the same \
               rounds. HAProxy looks prefixes up in a map, nginx has a location for each, Envoy and Strait an \
               ordered list of rules.",
        load: Load::Http1 { connections: 64 },
        path: format!("{last}item"),
        variants: vec![
            Variant {
                label: "1 route",
                prefixes: vec![last],
                figure: Some(Figure::CpuOneRoute),
            },
            Variant {
                label: "1,000 routes",
                prefixes: (0..MANY_ROUTES).map(prefix).collect(),
                figure: Some(Figure::CpuManyRoutes),
            },
        ],
    }
}

fn h2c() -> Course {
    Course {
        title: "HTTP/2 without TLS to HTTP/1.1",
        text: "16 connections with 8 streams each, responses of 128 bytes, one route. The direct row is HTTP/1.1 \
               with 8 requests in flight per connection.",
        load: Load::Http2 {
            connections: 16,
            streams: 8,
        },
        path: "/".to_owned(),
        variants: vec![Variant::catch_all(None)],
    }
}

fn large() -> Course {
    Course {
        title: "Responses of 1 MiB over HTTP/1.1",
        text: "16 connections, one route.",
        load: Load::Http1 { connections: 16 },
        path: LARGE_PATH.to_owned(),
        variants: vec![Variant::catch_all(Some(Figure::CpuLarge))],
    }
}

/// The proxies that are installed.
fn installed(bench: &Bench) -> impl Iterator<Item = Proxy> {
    Proxy::ALL
        .into_iter()
        .filter(|proxy| bench.tools.get(proxy.tool()).is_some())
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
    fn last_of_many_routes_is_the_only_one_of_the_baseline() {
        let course = routes();
        assert_eq!(
            course.variants[0].prefixes,
            [course.variants[1].prefixes[MANY_ROUTES - 1].clone()]
        );
        assert!(course.path.starts_with(&course.variants[0].prefixes[0]));
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
