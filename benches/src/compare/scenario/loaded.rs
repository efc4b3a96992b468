//! 5,000 routes: memory, time until the last route answers, and for Strait the time until a change is in effect.

use std::fs;
use std::time::{Duration, Instant};

use super::notes::{installed, note};
use crate::compare::bench::{Bench, Running, Shape};
use crate::compare::client::Connection;
use crate::compare::configure::{Proxy, Work, prefix, strait};
use crate::compare::failure::{Failure, context};
use crate::compare::report::{Figure, Report, Section, number};
use crate::compare::say;
use crate::compare::statistics::{median, range};

/// Number of routes.
const ROUTES: usize = 5_000;

/// Routes per VirtualService in the usual layout.
const ROUTES_PER_OBJECT: usize = 50;

/// Maximum number of rounds; starting takes long and varies little.
const ROUNDS_MAX: u32 = 3;

/// Number of changes per round.
const CHANGES: usize = 5;

/// Timeout of a change.
const CHANGE_LIMIT: Duration = Duration::from_secs(10);

/// Interval between two requests that test whether a change is in effect; also the error of the figure.
const CHANGE_INTERVAL: Duration = Duration::from_micros(500);

/// Layout of the routes.
struct Layout {
    proxy: Proxy,
    label: String,
    routes_per_object: usize,
    change: Figure,
}

/// Values of all rounds.
#[derive(Debug, Default)]
struct Seen {
    load_millis: Vec<f64>,
    kib: Vec<f64>,
    change_millis: Vec<f64>,
}

/// Loads the routes into every proxy in turn, and adds the table.
pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let layouts: Vec<Layout> = installed(bench, Work::Http).flat_map(layouts_of).collect();
    let mut results: Vec<Seen> = layouts.iter().map(|_| Seen::default()).collect();
    for round in 0..bench.arguments.rounds.min(ROUNDS_MAX) {
        for (layout, seen) in layouts.iter().zip(&mut results) {
            let what = format!("{ROUTES} routes, {}", layout.label);
            if note(report, &what, one_round(bench, layout, seen))?.is_some() {
                let (kib, millis) = (seen.kib.last(), seen.load_millis.last());
                let (kib, millis) = (
                    kib.copied().unwrap_or_default(),
                    millis.copied().unwrap_or_default(),
                );
                say(&format!(
                    "  round {} {}: {kib} KiB, {millis:.0} ms",
                    round + 1,
                    layout.label
                ));
            }
        }
    }
    for (layout, seen) in layouts.iter().zip(&results) {
        if layout.routes_per_object == ROUTES_PER_OBJECT
            && let Some(kib) = median(seen.kib.iter().copied())
        {
            report
                .figures
                .insert((Figure::LoadedKib, layout.proxy), kib);
        }
        if let Some(millis) = median(seen.change_millis.iter().copied()) {
            report.figures.insert((layout.change, layout.proxy), millis);
        }
    }
    report.sections.push(section(&layouts, &results));
    Ok(())
}

/// Returns the layouts of a proxy; only Strait has more than one.
fn layouts_of(proxy: Proxy) -> Vec<Layout> {
    let usual = Layout {
        proxy,
        label: proxy.name().to_owned(),
        routes_per_object: ROUTES_PER_OBJECT,
        change: Figure::ChangeMillis,
    };
    if proxy != Proxy::Strait {
        return vec![usual];
    }
    let one_object = Layout {
        proxy,
        label: "Strait, one VirtualService".to_owned(),
        routes_per_object: ROUTES,
        change: Figure::ChangeOneObjectMillis,
    };
    let objects = ROUTES / ROUTES_PER_OBJECT;
    vec![
        Layout {
            label: format!("Strait, {objects} VirtualServices"),
            ..usual
        },
        one_object,
    ]
}

fn one_round(bench: &Bench, layout: &Layout, seen: &mut Seen) -> Result<(), Failure> {
    let mut shape = Shape::catch_all(1024);
    shape.prefixes = (0..ROUTES).map(prefix).collect();
    shape.prefixes_per_object = layout.routes_per_object;
    shape.probe = format!("{}item", prefix(ROUTES - 1));
    let Some(mut running) = bench.start(layout.proxy, &shape)? else {
        return Ok(());
    };
    seen.load_millis.push(running.load_time.as_secs_f64() * 1e3);
    seen.kib.push(bench.settled_kib(&mut running)? as f64);
    if layout.proxy == Proxy::Strait {
        for number in 0..CHANGES {
            let taken = change(bench, &mut running, number)?;
            seen.change_millis.push(taken.as_secs_f64() * 1e3);
        }
    }
    Ok(())
}

/// Changes the prefix of one route, and waits until the new prefix answers.
fn change(bench: &Bench, running: &mut Running, number: usize) -> Result<Duration, Failure> {
    let plan = &running.plan;
    let objects = plan.prefixes.len().div_ceil(plan.prefixes_per_object);
    let object = objects / 2;
    let first = object * plan.prefixes_per_object;
    let mut prefixes = plan.prefixes[first..first + plan.prefixes_per_object].to_vec();
    let changed = format!("/changed-{number}/");
    let middle = prefixes.len() / 2;
    prefixes[middle].clone_from(&changed);
    // As an editor does it: written beside, then renamed over the old file.
    let next = running.directory.join("next.yaml");
    fs::write(&next, strait::virtual_service(object, &prefixes))
        .map_err(context(next.display()))?;
    let path = running.directory.join(strait::virtual_service_path(object));
    let open = || Connection::open(running.plan.listen).map_err(context("cannot connect"));
    let mut connection = open()?;
    let before = connection.get(&changed).map_err(context(&changed))?;
    if before == 200 {
        return Err(Failure::new(format!(
            "{changed} answers before it was written"
        )));
    }
    let begin = Instant::now();
    fs::rename(&next, &path).map_err(context(path.display()))?;
    let (interval, limit) = (CHANGE_INTERVAL, CHANGE_LIMIT);
    bench.launcher.cancel().poll(
        interval,
        limit,
        "the change is not in effect",
        || match connection.get(&changed) {
            Ok(200) => Ok(Some(begin.elapsed())),
            Ok(_) => Ok(None),
            Err(error) => Err(Failure::new(format!(
                "a change broke a connection: {error}"
            ))),
        },
    )
}

fn section(layouts: &[Layout], results: &[Seen]) -> Section {
    let shown = |values: &[f64], factor: f64| {
        median(values.iter().copied()).map_or("-".to_owned(), |value| self::number(value / factor))
    };
    let rows = layouts
        .iter()
        .zip(results)
        .filter(|(_, seen)| !seen.kib.is_empty())
        .map(|(layout, seen)| {
            let worst = range(seen.change_millis.iter().copied())
                .map_or("-".to_owned(), |(_, high)| self::number(high));
            vec![
                layout.label.clone(),
                shown(&seen.kib, 1024.0),
                shown(&seen.load_millis, 1.0),
                shown(&seen.change_millis, 1.0),
                worst,
            ]
        });
    let columns = [
        "proxy",
        "MiB",
        "load ms",
        "change in effect ms",
        "slowest change ms",
    ];
    Section {
        title: "5,000 routes loaded".to_owned(),
        text: "Resident memory with 5,000 prefix routes, time from the start of the process until the last route \
               answers, and time from the rename of a changed file until the changed route answers. The master and \
               the worker of nginx both count."
            .to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strait_has_two_layouts() {
        assert_eq!(layouts_of(Proxy::Nginx).len(), 1);
        let labels: Vec<String> = layouts_of(Proxy::Strait)
            .into_iter()
            .map(|layout| layout.label)
            .collect();
        assert_eq!(
            labels,
            ["Strait, 100 VirtualServices", "Strait, one VirtualService"]
        );
    }

    #[test]
    fn proxies_without_a_change_show_a_dash() {
        let layouts = layouts_of(Proxy::Nginx);
        let seen = Seen {
            load_millis: vec![30.0],
            kib: vec![10_240.0],
            change_millis: Vec::new(),
        };
        assert_eq!(
            section(&layouts, &[seen]).rows,
            [["nginx", "10.0", "30.0", "-", "-"]]
        );
    }

    #[test]
    fn proxy_that_failed_has_no_row() {
        assert_eq!(
            section(&layouts_of(Proxy::Nginx), &[Seen::default()])
                .rows
                .len(),
            0
        );
    }
}
