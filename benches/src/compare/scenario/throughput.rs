//! Scenarios under load: CPU time per request, in rounds in which every proxy has its turn.

use std::time::{Duration, Instant};

use super::{installed, note, skip};
use crate::compare::bench::{Bench, Running, Shape};
use crate::compare::configure::{Others, Proxy, Work};
use crate::compare::failure::Failure;
use crate::compare::load::{Aim, Counts, Load};
use crate::compare::report::{Figure, Report, number};
use crate::compare::statistics::median;
use crate::compare::upstream::http;
use crate::compare::{accounting, say};

mod table;

/// Length of the turn before the rounds, which fills pools and caches and is not counted.
const WARM_UP: Duration = Duration::from_secs(1);

/// One scenario under load.
pub(super) struct Course {
    pub(super) title: &'static str,
    pub(super) text: String,
    pub(super) load: Load,
    pub(super) unit: Unit,
    pub(super) work: Work,
    pub(super) tls: bool,
    pub(super) path: String,
    pub(super) proxies: &'static [Proxy],
    /// The first one is what the others are compared with.
    pub(super) variants: Vec<Variant>,
}

impl Course {
    fn http2(&self) -> bool {
        matches!(self.load, Load::Http2 { .. } | Load::Grpc { .. })
    }

    /// Handshakes have no row without a proxy, since the upstream speaks no TLS.
    fn has_direct(&self) -> bool {
        self.unit != Unit::Handshake
    }
}

/// What CPU time is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Request,
    Handshake,
    Gigabyte,
}

/// One way to configure each proxy in a scenario.
pub(super) struct Variant {
    pub(super) label: &'static str,
    pub(super) prefixes: Vec<String>,
    pub(super) others: Others,
    pub(super) figure: Option<Figure>,
}

impl Variant {
    /// One route that takes everything.
    pub(super) fn catch_all(figure: Option<Figure>) -> Self {
        Self {
            label: "",
            prefixes: vec!["/".to_owned()],
            others: Others::None,
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
#[derive(Clone, Debug)]
struct Turn {
    counts: Counts,
    unit: Unit,
    /// Bytes that had to be read for each that was counted.
    bytes_each: u64,
    cpu: Duration,
    elapsed: Duration,
}

impl Turn {
    /// How much was done, in its unit.
    fn amount(&self) -> f64 {
        match self.unit {
            Unit::Request | Unit::Handshake => self.counts.requests as f64,
            Unit::Gigabyte => self.counts.bytes as f64 / 1e9,
        }
    }

    /// CPU time for one, in us; of a GB in ms.
    fn cpu(&self) -> f64 {
        let parts = match self.unit {
            Unit::Request | Unit::Handshake => 1e6,
            Unit::Gigabyte => 1e3,
        };
        self.cpu.as_secs_f64() * parts / self.amount()
    }

    fn per_second(&self) -> f64 {
        self.amount() / self.elapsed.as_secs_f64()
    }

    fn busy_percent(&self) -> f64 {
        100.0 * self.cpu.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    /// Whether bodies were shorter than they should be.
    fn is_short(&self) -> bool {
        self.counts.bytes < self.counts.requests * self.bytes_each
    }
}

impl Entrant {
    fn direct() -> Self {
        Self {
            running: None,
            variant: 0,
            label: "direct (CPU of the upstream)".into(),
            turns: vec![],
        }
    }

    fn proxy(&self) -> Option<Proxy> {
        self.running.as_ref().map(|running| running.proxy)
    }

    fn pid(&self, bench: &Bench) -> u32 {
        self.running
            .as_ref()
            .map_or(bench.upstream_pid(), |running| running.process.pid())
    }

    fn cpu(&self) -> Option<f64> {
        median(self.turns.iter().map(Turn::cpu))
    }
}

/// Runs a scenario and adds its table.
pub(super) fn measure(bench: &Bench, report: &mut Report, course: &Course) -> Result<(), Failure> {
    if let Some(tool) = course.load.tool()
        && bench.tools.get(tool).is_none()
    {
        skip(report, course.title, tool);
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
            // No proxy always runs first, nor always after the same one.
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
                "  round {}/{rounds} {}: {} {}",
                round + 1,
                entrant.label,
                number(turn.cpu()),
                course.unit.of_cpu()
            ));
            entrant.turns.push(turn);
        }
    }
    for entrant in &entrants {
        let figure = course.variants[entrant.variant].figure;
        if let (Some(figure), Some(proxy), Some(value)) = (figure, entrant.proxy(), entrant.cpu()) {
            report.figures.insert((figure, proxy), value);
        }
    }
    report.sections.push(table::section(course, &entrants));
    Ok(())
}

/// Starts every installed proxy in every variant. They stay up for all rounds; idle ones use no CPU time.
fn start(bench: &Bench, report: &mut Report, course: &Course) -> Result<Vec<Entrant>, Failure> {
    let mut entrants = Vec::new();
    if course.has_direct() {
        entrants.push(Entrant::direct());
    }
    let proxies = installed(bench, course.work).filter(|proxy| course.proxies.contains(proxy));
    for proxy in proxies {
        for (index, variant) in course.variants.iter().enumerate() {
            let label = match variant.label {
                "" => proxy.name().to_owned(),
                label => format!("{}, {label}", proxy.name()),
            };
            let running = note(
                report,
                &format!("{}, {label}", course.title),
                bench.start(proxy, &shape(course, variant)),
            )?;
            if let Some(running) = running.flatten() {
                entrants.push(Entrant {
                    running: Some(running),
                    variant: index,
                    label,
                    turns: vec![],
                });
            }
        }
    }
    Ok(entrants)
}

fn shape(course: &Course, variant: &Variant) -> Shape {
    Shape {
        prefixes: variant.prefixes.clone(),
        prefixes_per_object: variant.prefixes.len(),
        work: course.work,
        http2: course.http2(),
        tls: course.tls,
        others: variant.others,
        probe: course.path.clone(),
        ..Shape::catch_all(1024)
    }
}

fn turn(
    bench: &Bench,
    course: &Course,
    entrant: &Entrant,
    length: Duration,
) -> Result<Turn, Failure> {
    let running = entrant.running.as_ref();
    let upstream = bench.upstream_port(course.work);
    let aim = Aim {
        port: running.map_or(upstream, |running| running.plan.listen),
        path: &course.path,
        tls: course.tls && running.is_some(),
        http1_only: running.is_none() && course.work == Work::Http,
    };
    let line = course
        .load
        .command(&bench.tools, &bench.material, &aim, length)?;
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
        let reason = counts.reason.as_deref().unwrap_or("unknown");
        return Err(Failure::new(format!("nothing was answered: {reason}")));
    }
    Ok(Turn {
        counts,
        unit: course.unit,
        bytes_each: course.load.bytes_each(http::body_bytes(&course.path)),
        cpu,
        elapsed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_is_turned_into_cpu_per_request() {
        let turn = table::tests::turn(500, 25_000);
        assert!((turn.cpu() - 20.0).abs() < 1e-9);
        assert!((turn.busy_percent() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn bytes_are_counted_in_gigabytes() {
        let mut turn = table::tests::turn(500, 10);
        turn.unit = Unit::Gigabyte;
        turn.counts.bytes = 2_000_000_000;
        assert!((turn.cpu() - 250.0).abs() < 1e-9);
        assert!((turn.per_second() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn handshakes_need_a_proxy() {
        let mut course = table::tests::course();
        assert!(course.has_direct());
        course.unit = Unit::Handshake;
        assert!(!course.has_direct());
    }
}
