//! Pair of sidecars between a client and a service: CPU time of both, memory of each, and added latency.

use std::time::{Duration, Instant};

use super::notes::{installed, note, skip};
use crate::compare::bench::Bench;
use crate::compare::configure::Work;
use crate::compare::failure::Failure;
use crate::compare::process::Process;
use crate::compare::report::Report;
use crate::compare::sidecars::{Identities, PROXIES};
use crate::compare::tool::Tool;
use crate::compare::{accounting, say};

mod entrant;
mod load;
mod pair;
mod table;

use entrant::{Entrant, TITLE, Turn};
use load::Load;
use pair::Pair;

/// Length of the warm-up turns before the rounds, which fill pools and caches and do not count.
const WARM_UP: Duration = Duration::from_secs(1);

/// Runs the load on every pair in turn, and adds the table.
pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    if bench.tools.get(Tool::Wrk).is_none() {
        skip(report, TITLE, Tool::Wrk);
        return Ok(());
    }
    let identities = Identities::make(bench.launcher.directory())?;
    let mut entrants = start(bench, report, &identities)?;
    for entrant in &entrants {
        for load in [Load::FlatOut, Load::Steady] {
            let warm = turn(bench, entrant, load, WARM_UP);
            note(
                report,
                &format!("{TITLE}, warm-up of {}", entrant.label),
                warm,
            )?;
        }
    }
    for round in 0..bench.arguments.rounds as usize {
        for place in 0..entrants.len() {
            // no pair always runs first, nor always after the same one
            let index = (place + round) % entrants.len();
            one_round(bench, report, &mut entrants[index], round)?;
        }
    }
    for entrant in &mut entrants {
        let sizes = entrant.pair.iter().flat_map(Pair::processes);
        entrant.kib = sizes
            .map(|process| accounting::resident_kib(process.pid()))
            .max();
    }
    table::figures(&entrants, &mut report.figures);
    report.sections.push(table::section(&entrants));
    Ok(())
}

fn one_round(
    bench: &Bench,
    report: &mut Report,
    entrant: &mut Entrant,
    round: usize,
) -> Result<(), Failure> {
    for load in [Load::FlatOut, Load::Steady] {
        let turn = turn(bench, entrant, load, bench.arguments.turn());
        let Some(turn) = note(report, &format!("{TITLE}, {}", entrant.label), turn)? else {
            continue;
        };
        say(&format!(
            "  round {} {}, {}: {:.1} us/request, p99 {:?} us",
            round + 1,
            entrant.label,
            load.name(),
            turn.cpu_each(),
            turn.measured.p99,
        ));
        match load {
            Load::FlatOut => entrant.flat_out.push(turn),
            Load::Steady => entrant.steady.push(turn),
        }
    }
    Ok(())
}

/// Starts every pair. They stay up for all rounds, since idle pairs hardly use CPU time.
fn start(
    bench: &Bench,
    report: &mut Report,
    identities: &Identities,
) -> Result<Vec<Entrant>, Failure> {
    let entrant = |label: String, pair| Entrant {
        label,
        pair,
        flat_out: Vec::new(),
        steady: Vec::new(),
        kib: None,
    };
    let mut entrants = vec![entrant("without proxies".to_owned(), None)];
    for proxy in installed(bench, Work::Http).filter(|proxy| PROXIES.contains(proxy)) {
        for tls in [true, false] {
            let label = format!("{}, {}", proxy.name(), table::security(tls));
            let pair = Pair::start(bench, proxy, tls, identities);
            if let Some(pair) = note(report, &format!("{TITLE}, {label}"), pair)? {
                entrants.push(entrant(label, Some(pair)));
            }
        }
    }
    Ok(entrants)
}

fn turn(bench: &Bench, entrant: &Entrant, load: Load, length: Duration) -> Result<Turn, Failure> {
    let upstream = bench.upstream_port(Work::Http);
    let port = entrant.pair.as_ref().map_or(upstream, Pair::port);
    let processes = || {
        entrant
            .pair
            .iter()
            .flat_map(Pair::processes)
            .map(Process::pid)
    };
    let cpu = || processes().map(accounting::cpu_time).sum::<Duration>();
    let (cpu_before, begin) = (cpu(), Instant::now());
    let measured = load.put_on(bench, port, length)?;
    Ok(Turn {
        measured,
        cpu: cpu().saturating_sub(cpu_before),
        elapsed: begin.elapsed(),
    })
}
