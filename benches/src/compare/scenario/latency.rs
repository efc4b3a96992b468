//! Latency at fixed rates, from the due time of each request (no coordinated omission).

use std::time::Duration;

use super::notes::{installed, note};
use crate::compare::bench::{Bench, Running, Shape};
use crate::compare::configure::Work;
use crate::compare::failure::Failure;
use crate::compare::report::{Report, Section, number};
use crate::compare::statistics::{median, range};
use crate::compare::steady::{Latency, Steady};
use crate::compare::{accounting, say};

/// Request rates, per second.
const RATES: [u32; 2] = [2_000, 10_000];

/// Length of the warm-up before the rounds, which fills pools and caches and does not count.
const WARM_UP: Duration = Duration::from_secs(1);

/// Protocol between the generator and the proxies.
struct Course {
    title: &'static str,
    text: &'static str,
    connections: u32,
    streams: Option<u32>,
}

const COURSES: [Course; 2] = [
    Course {
        title: "Latency at a fixed rate, HTTP/1.1",
        text: "64 connections, responses of 128 bytes, one route.",
        connections: 64,
        streams: None,
    },
    Course {
        title: "Latency at a fixed rate, HTTP/2 without TLS",
        text: "16 connections with 8 streams each, responses of 128 bytes, one route, HTTP/1.1 to the upstream. \
               The direct row is HTTP/1.1.",
        connections: 16,
        streams: Some(8),
    },
];

impl Course {
    /// Returns the load at this rate; for the direct row over HTTP/1.1, the only protocol of the upstream.
    fn steady(&self, rate: u32, direct: bool) -> Steady {
        let streams = self.streams.filter(|_| !direct);
        let connections = match self.streams {
            Some(streams) if direct => self.connections * streams,
            _ => self.connections,
        };
        Steady {
            rate,
            connections,
            streams,
        }
    }
}

/// Entrant: a proxy, or the upstream without one.
struct Entrant {
    running: Option<Running>,
    label: String,
    /// Turns at each of [`RATES`].
    turns: [Vec<Turn>; RATES.len()],
}

struct Turn {
    latency: Latency,
    /// CPU time of the proxy per request, in us.
    cpu: f64,
}

/// Runs every rate on every proxy in turn, and adds a table for each protocol.
pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    for course in &COURSES {
        let mut entrants = start(bench, report, course)?;
        for entrant in &entrants {
            let warm = turn(bench, course, entrant, RATES[0], WARM_UP);
            note(
                report,
                &format!("{}, warm-up of {}", course.title, entrant.label),
                warm,
            )?;
        }
        for round in 0..bench.arguments.rounds as usize {
            for place in 0..entrants.len() {
                // no proxy always runs first, nor always after the same one
                let index = (place + round) % entrants.len();
                one_round(bench, report, course, &mut entrants[index], round)?;
            }
        }
        report.sections.push(section(course, &entrants));
    }
    Ok(())
}

fn start(bench: &Bench, report: &mut Report, course: &Course) -> Result<Vec<Entrant>, Failure> {
    let entrant = |label: &str, running| Entrant {
        running,
        label: label.to_owned(),
        turns: Default::default(),
    };
    let mut entrants = vec![entrant("direct (CPU of the upstream)", None)];
    let shape = Shape {
        http2: course.streams.is_some(),
        ..Shape::catch_all(1024)
    };
    for proxy in installed(bench, Work::Http) {
        let running = bench.start(proxy, &shape);
        let running = note(
            report,
            &format!("{}, {}", course.title, proxy.name()),
            running,
        )?;
        if let Some(running) = running.flatten() {
            entrants.push(entrant(proxy.name(), Some(running)));
        }
    }
    Ok(entrants)
}

fn one_round(
    bench: &Bench,
    report: &mut Report,
    course: &Course,
    entrant: &mut Entrant,
    round: usize,
) -> Result<(), Failure> {
    for (index, rate) in RATES.into_iter().enumerate() {
        let turn = turn(bench, course, entrant, rate, bench.arguments.turn());
        let what = format!("{}, {} at {rate}/s", course.title, entrant.label);
        let Some(turn) = note(report, &what, turn)? else {
            continue;
        };
        say(&format!(
            "  round {} {} at {rate}/s: p50 {}, p99 {}, p99.9 {} us",
            round + 1,
            entrant.label,
            number(turn.latency.p50),
            number(turn.latency.p99),
            number(turn.latency.p999),
        ));
        report.notes.extend(
            turn.latency
                .notes
                .iter()
                .map(|note| format!("{what}: {note}")),
        );
        entrant.turns[index].push(turn);
    }
    Ok(())
}

fn turn(
    bench: &Bench,
    course: &Course,
    entrant: &Entrant,
    rate: u32,
    length: Duration,
) -> Result<Turn, Failure> {
    let running = entrant.running.as_ref();
    let port = running.map_or(bench.upstream_port(Work::Http), |running| {
        running.plan.listen
    });
    let pid = running.map_or(bench.upstream_pid(), |running| running.process.pid());
    let before = accounting::cpu_time(pid);
    let latency = course
        .steady(rate, running.is_none())
        .put_on(bench, port, length)?;
    let cpu = accounting::cpu_time(pid).saturating_sub(before);
    let cpu = cpu.as_secs_f64() * 1e6 / latency.requests as f64;
    Ok(Turn { latency, cpu })
}

fn section(course: &Course, entrants: &[Entrant]) -> Section {
    let mut columns = vec!["proxy".to_owned()];
    for rate in RATES {
        columns.push(format!("p50 us, {rate}/s"));
        columns.extend(["p99", "lowest to highest", "p99.9", "CPU us/request"].map(str::to_owned));
    }
    columns.extend(["own p99", "errors"].map(str::to_owned));
    Section {
        title: course.title.to_owned(),
        text: format!(
            "{} Latency in us from the time when a request was due to the end of its response; medians of the \
             rounds, and the range of the p99. *Own p99* is how late the generator itself was at the highest rate, \
             which is part of the latency.",
            course.text
        ),
        columns,
        rows: entrants.iter().map(row).collect(),
    }
}

fn row(entrant: &Entrant) -> Vec<String> {
    let of = |turns: &[Turn], value: fn(&Turn) -> f64| {
        median(turns.iter().map(value)).map_or("-".to_owned(), number)
    };
    let mut row = vec![entrant.label.clone()];
    for turns in &entrant.turns {
        let (low, high) = range(turns.iter().map(|turn| turn.latency.p99)).unwrap_or_default();
        row.push(of(turns, |turn| turn.latency.p50));
        row.push(of(turns, |turn| turn.latency.p99));
        row.push(format!("{} to {}", number(low), number(high)));
        row.push(of(turns, |turn| turn.latency.p999));
        row.push(of(turns, |turn| turn.cpu));
    }
    let highest = entrant.turns.last().map_or(&[][..], Vec::as_slice);
    row.push(of(highest, |turn| turn.latency.own_p99));
    let failures: u64 = entrant
        .turns
        .iter()
        .flatten()
        .map(|turn| turn.latency.failures)
        .sum();
    row.push(if failures == 0 {
        "none".to_owned()
    } else {
        format!("**{failures} failed**")
    });
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(p99: f64, failures: u64) -> Turn {
        let latency = Latency {
            requests: 100,
            failures,
            p50: 10.0,
            p99,
            p999: 1000.0,
            own_p99: 5.0,
            notes: vec![],
        };
        Turn { latency, cpu: 20.0 }
    }

    #[test]
    fn row_has_medians_of_both_rates() {
        let entrant = Entrant {
            running: None,
            label: "x".to_owned(),
            turns: [
                vec![turn(30.0, 0), turn(50.0, 0), turn(40.0, 0)],
                vec![turn(90.0, 2)],
            ],
        };
        let section = section(&COURSES[0], &[entrant]);
        let row = &section.rows[0];
        assert_eq!(row.len(), section.columns.len());
        assert_eq!(row[1..6], ["10.0", "40.0", "30.0 to 50.0", "1000", "20.0"]);
        assert_eq!(row[6..8], ["10.0", "90.0"]);
        assert_eq!(row[11..], ["5.00", "**2 failed**"]);
    }

    #[test]
    fn upstream_gets_as_much_in_flight_over_http1() {
        let [http1, http2] = &COURSES;
        assert_eq!(http1.steady(1, true).connections, 64);
        let direct = http2.steady(1, true);
        assert_eq!((direct.connections, direct.streams), (128, None));
        assert_eq!(http2.steady(1, false).streams, Some(8));
    }
}
