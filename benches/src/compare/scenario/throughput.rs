//! Scenarios under load: CPU time per request, in rounds in which every proxy has one turn.

use std::time::{Duration, Instant};

use super::notes::{installed, note, skip};
use crate::compare::bench::{Bench, Shape};
use crate::compare::configure::{Work, request_headers};
use crate::compare::failure::Failure;
use crate::compare::load::{Aim, Load};
use crate::compare::report::{Report, number};
use crate::compare::upstream::http;
use crate::compare::{accounting, say};

mod course;
mod table;

pub(super) use course::{Course, Unit, Variant};
use course::{Entrant, Turn};

/// Length of the warm-up before the rounds, which fills pools and caches and does not count.
const WARM_UP: Duration = Duration::from_secs(1);

/// Maximum number of downstream connections in the configuration of each proxy; four more are added per endpoint.
/// HAProxy derives its limit of open files from it, and closes idle upstream connections beyond a quarter of that
/// limit.
const CONNECTIONS_MAX: u32 = 1_024;

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

/// Starts every installed proxy in every variant. They stay up for all rounds, since idle proxies use no CPU time.
fn start(bench: &Bench, report: &mut Report, course: &Course) -> Result<Vec<Entrant>, Failure> {
    let mut entrants = Vec::new();
    if course.has_direct() {
        entrants.push(Entrant::direct());
    }
    let proxies = installed(bench, course.work).filter(|proxy| course.proxies.contains(proxy));
    for proxy in proxies {
        for (index, variant) in course.variants.iter().enumerate() {
            let label = match &*variant.label {
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
        endpoints: variant.endpoints,
        feature: variant.feature,
        probe: course.path.clone(),
        ..Shape::catch_all(connections_max(course.load(variant), variant.endpoints))
    }
}

fn connections_max(load: Load, endpoints: u16) -> u32 {
    let open = match load {
        Load::Rotation { connections, .. } => connections,
        _ => 0,
    };
    CONNECTIONS_MAX + open + 4 * u32::from(endpoints)
}

fn turn(
    bench: &Bench,
    course: &Course,
    entrant: &Entrant,
    length: Duration,
) -> Result<Turn, Failure> {
    let running = entrant.running.as_ref();
    let variant = &course.variants[entrant.variant];
    let load = course.load(variant);
    let upstream = bench.upstream_port(course.work);
    let pid = entrant.pid(bench);
    let aim = Aim {
        port: running.map_or(upstream, |running| running.plan.listen),
        path: &course.path,
        tls: course.tls && running.is_some(),
        http1_only: running.is_none() && course.work == Work::Http,
        headers: request_headers(variant.feature, variant.others),
        pid,
    };
    let line = load.command(&bench.tools, &bench.material, &aim, length)?;
    let (cpu_before, begin) = (accounting::cpu_time(pid), Instant::now());
    let output = bench.run_beside("load", &line, length * 2 + Duration::from_secs(30))?;
    let (cpu, elapsed) = (
        accounting::cpu_time(pid).saturating_sub(cpu_before),
        begin.elapsed(),
    );
    let counts = load
        .parse(&output)
        .ok_or_else(|| Failure::new("the load generator made no report"))?;
    if counts.requests == 0 {
        let reason = counts.reason.as_deref().unwrap_or("unknown");
        return Err(Failure::new(format!("nothing was answered: {reason}")));
    }
    let (cpu, elapsed) = counts
        .span
        .map_or((cpu, elapsed), |span| (span.cpu, span.elapsed));
    Ok(Turn {
        counts,
        unit: course.unit,
        bytes_each: load.bytes_each(http::body_bytes(&course.path)),
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
