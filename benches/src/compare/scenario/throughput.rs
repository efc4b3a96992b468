//! Scenarios under load: CPU time per request, in rounds in which every proxy has its turn.

use std::time::{Duration, Instant};

use super::{installed, note, skip};
use crate::compare::bench::{Bench, Running, Shape, url};
use crate::compare::configure::Proxy;
use crate::compare::failure::Failure;
use crate::compare::load::{Counts, Load};
use crate::compare::report::{Figure, Report, Section, number, ratio};
use crate::compare::statistics::{median, range};
use crate::compare::{accounting, say};

/// Length of the turn before the rounds, which fills pools and caches and is not counted.
const WARM_UP: Duration = Duration::from_secs(1);

/// One scenario under load.
pub(super) struct Course {
    pub(super) title: &'static str,
    pub(super) text: &'static str,
    pub(super) load: Load,
    pub(super) path: String,
    /// The first one is what the others are compared with.
    pub(super) variants: Vec<Variant>,
}

/// One way to configure each proxy in a scenario.
pub(super) struct Variant {
    pub(super) label: &'static str,
    pub(super) prefixes: Vec<String>,
    pub(super) figure: Option<Figure>,
}

impl Variant {
    /// One route that takes everything.
    pub(super) fn catch_all(figure: Option<Figure>) -> Self {
        Self {
            label: "",
            prefixes: vec!["/".to_owned()],
            figure,
        }
    }
}

/// Somebody who takes turns under load.
struct Entrant {
    /// `None` is the upstream itself, without a proxy.
    running: Option<Running>,
    variant: usize,
    label: String,
    turns: Vec<Turn>,
}

/// What one turn gave.
#[derive(Clone, Copy, Debug)]
struct Turn {
    counts: Counts,
    cpu: Duration,
    elapsed: Duration,
}

impl Turn {
    fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.counts.requests as f64
    }

    fn requests_per_second(&self) -> f64 {
        self.counts.requests as f64 / self.elapsed.as_secs_f64()
    }

    fn busy_percent(&self) -> f64 {
        100.0 * self.cpu.as_secs_f64() / self.elapsed.as_secs_f64()
    }
}

impl Entrant {
    fn proxy(&self) -> Option<Proxy> {
        self.running.as_ref().map(|running| running.proxy)
    }

    fn pid(&self, bench: &Bench) -> u32 {
        self.running
            .as_ref()
            .map_or(bench.upstream_pid(), |running| running.process.pid())
    }

    fn port(&self, bench: &Bench) -> u16 {
        self.running
            .as_ref()
            .map_or(bench.upstream_port(), |running| running.plan.listen)
    }

    fn cpu_us(&self) -> Option<f64> {
        median(self.turns.iter().map(Turn::cpu_us))
    }
}

/// Runs a scenario and adds its table.
pub(super) fn measure(bench: &Bench, report: &mut Report, course: &Course) -> Result<(), Failure> {
    if bench.tools.get(course.load.tool()).is_none() {
        skip(report, course.title, course.load.tool());
        return Ok(());
    }
    let mut entrants = start(bench, report, course)?;
    for entrant in &entrants {
        let turn = turn(bench, course, entrant, WARM_UP);
        note(
            report,
            &format!("{}, warm-up of {}", course.title, entrant.label),
            turn,
        )?;
    }
    let rounds = bench.arguments.rounds as usize;
    for round in 0..rounds {
        for place in 0..entrants.len() {
            // Nobody always comes after the same neighbour, nor always first.
            let index = (place + round) % entrants.len();
            let entrant = &mut entrants[index];
            let turn = turn(bench, course, entrant, bench.arguments.turn());
            let Some(turn) = note(
                report,
                &format!("{}, {}", course.title, entrant.label),
                turn,
            )?
            else {
                continue;
            };
            say(&format!(
                "  round {}/{rounds} {}: {} us",
                round + 1,
                entrant.label,
                number(turn.cpu_us())
            ));
            entrant.turns.push(turn);
        }
    }
    for entrant in &entrants {
        let figure = course.variants[entrant.variant].figure;
        if let (Some(figure), Some(proxy), Some(value)) =
            (figure, entrant.proxy(), entrant.cpu_us())
        {
            report.figures.insert((figure, proxy), value);
        }
    }
    report.sections.push(section(course, &entrants));
    Ok(())
}

/// Starts every installed proxy in every variant. They stay up for all rounds; those that wait use no CPU time.
fn start(bench: &Bench, report: &mut Report, course: &Course) -> Result<Vec<Entrant>, Failure> {
    let direct = Entrant {
        running: None,
        variant: 0,
        label: "direct (CPU of the upstream)".into(),
        turns: vec![],
    };
    let mut entrants = vec![direct];
    for proxy in installed(bench) {
        for (
            variant,
            Variant {
                label, prefixes, ..
            },
        ) in course.variants.iter().enumerate()
        {
            let mut shape = Shape::catch_all(1024);
            shape.prefixes.clone_from(prefixes);
            shape.prefixes_per_object = prefixes.len();
            shape.http2 = matches!(course.load, Load::Http2 { .. });
            shape.probe.clone_from(&course.path);
            let label = if label.is_empty() {
                proxy.name().into()
            } else {
                format!("{}, {label}", proxy.name())
            };
            let running = note(
                report,
                &format!("{}, {label}", course.title),
                bench.start(proxy, &shape),
            )?;
            if let Some(running) = running.flatten() {
                entrants.push(Entrant {
                    running: Some(running),
                    variant,
                    label,
                    turns: vec![],
                });
            }
        }
    }
    Ok(entrants)
}

fn turn(
    bench: &Bench,
    course: &Course,
    entrant: &Entrant,
    length: Duration,
) -> Result<Turn, Failure> {
    let url = url(entrant.port(bench), &course.path);
    let line = course
        .load
        .command(&bench.tools, &url, length, entrant.running.is_none());
    let line = line.ok_or_else(|| Failure::new("the load generator is missing"))?;
    let pid = entrant.pid(bench);
    let (cpu_before, begin) = (accounting::cpu_time(pid), Instant::now());
    let output = bench.run_beside("load", &line, length * 2 + Duration::from_secs(30))?;
    let (cpu, elapsed) = (
        accounting::cpu_time(pid).saturating_sub(cpu_before),
        begin.elapsed(),
    );
    let counts = course
        .load
        .parse(&output)
        .ok_or_else(|| Failure::new("the load generator made no report"))?;
    if counts.requests == 0 {
        return Err(Failure::new("no request was answered"));
    }
    Ok(Turn {
        counts,
        cpu,
        elapsed,
    })
}

fn section(course: &Course, entrants: &[Entrant]) -> Section {
    let with_baseline = course.variants.len() > 1;
    let mut columns: Vec<String> = [
        "proxy",
        "CPU us/request",
        "lowest to highest",
        "requests/s",
        "core busy",
        "to HAProxy",
        "to Envoy",
    ]
    .map(str::to_owned)
    .to_vec();
    if with_baseline {
        columns.push(format!("to {}", course.variants[0].label));
    }
    columns.push("errors".to_owned());
    let cpu_of = |proxy: Option<Proxy>, variant: usize| {
        let mut same = entrants
            .iter()
            .filter(|other| other.proxy() == proxy && other.variant == variant);
        same.next().and_then(Entrant::cpu_us)
    };
    let rows = entrants
        .iter()
        .filter(|entrant| !entrant.turns.is_empty())
        .map(|entrant| {
            let cpu = entrant.cpu_us();
            let turns = || entrant.turns.iter();
            let (low, high) = range(turns().map(Turn::cpu_us)).unwrap_or_default();
            let base = |proxy| {
                if entrant.proxy().is_some() {
                    cpu_of(Some(proxy), entrant.variant)
                } else {
                    None
                }
            };
            let mut row = vec![
                entrant.label.clone(),
                number(cpu.unwrap_or_default()),
                format!("{} to {}", number(low), number(high)),
                format!(
                    "{:.0}",
                    median(turns().map(Turn::requests_per_second)).unwrap_or_default()
                ),
                format!(
                    "{:.0} %",
                    median(turns().map(Turn::busy_percent)).unwrap_or_default()
                ),
                ratio(cpu, base(Proxy::Haproxy)),
                ratio(cpu, base(Proxy::Envoy)),
            ];
            if with_baseline {
                row.push(ratio(
                    cpu,
                    entrant.proxy().and_then(|proxy| cpu_of(Some(proxy), 0)),
                ));
            }
            row.push(errors(&entrant.turns));
            row
        });
    Section {
        title: course.title.to_owned(),
        text: course.text.to_owned(),
        rows: rows.collect(),
        columns,
    }
}

/// A run with errors is not worth its other figures, so they are shouted.
fn errors(turns: &[Turn]) -> String {
    let bad_statuses: u64 = turns.iter().map(|turn| turn.counts.bad_statuses).sum();
    let failures: u64 = turns.iter().map(|turn| turn.counts.failures).sum();
    if bad_statuses + failures == 0 {
        return "none".to_owned();
    }
    format!("**{bad_statuses} bad statuses, {failures} failures**")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(cpu_ms: u64, requests: u64) -> Turn {
        let counts = Counts {
            requests,
            ..Counts::default()
        };
        Turn {
            counts,
            cpu: Duration::from_millis(cpu_ms),
            elapsed: Duration::from_secs(1),
        }
    }

    fn course() -> Course {
        Course {
            title: "Title",
            text: "Text.",
            load: Load::Http1 { connections: 1 },
            path: "/".to_owned(),
            variants: vec![Variant::catch_all(None)],
        }
    }

    #[test]
    fn turn_is_turned_into_cpu_per_request() {
        let turn = turn(500, 25_000);
        assert!((turn.cpu_us() - 20.0).abs() < 1e-9);
        assert!((turn.busy_percent() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn row_shows_median_and_range_over_the_rounds() {
        let turns = vec![turn(300, 10_000), turn(100, 10_000), turn(200, 10_000)];
        let direct = Entrant {
            running: None,
            variant: 0,
            label: "direct".to_owned(),
            turns,
        };
        let section = section(&course(), &[direct]);
        assert_eq!(
            section.rows,
            [[
                "direct",
                "20.0",
                "10.0 to 30.0",
                "10000",
                "20 %",
                "-",
                "-",
                "none"
            ]]
        );
        assert_eq!(section.columns.len(), section.rows[0].len());
    }

    #[test]
    fn entrant_without_a_turn_has_no_row() {
        let failed = Entrant {
            running: None,
            variant: 0,
            label: "direct".to_owned(),
            turns: vec![],
        };
        assert_eq!(section(&course(), &[failed]).rows.len(), 0);
    }

    #[test]
    fn errors_of_all_rounds_are_flagged() {
        let mut bad = turn(1, 1);
        bad.counts.bad_statuses = 2;
        bad.counts.failures = 1;
        assert_eq!(
            errors(&[turn(1, 1), bad, bad]),
            "**4 bad statuses, 2 failures**"
        );
        assert_eq!(errors(&[turn(1, 1)]), "none");
    }
}
