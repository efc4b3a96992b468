//! Memory of an idle process, and memory per idle keep-alive connection.

use super::notes::{installed, note};
use crate::compare::bench::{Bench, Shape};
use crate::compare::client::Connection;
use crate::compare::configure::{Proxy, Work};
use crate::compare::failure::{Failure, context};
use crate::compare::report::{Figure, Report, Section, number, ratio};
use crate::compare::say;
use crate::compare::statistics::median;

/// Maximum number of rounds; memory hardly differs between rounds.
const ROUNDS_MAX: u32 = 3;

/// Number of connections per one that is used again at the end, to check that they were really open.
const SAMPLE: usize = 50;

/// Memory sizes of one round.
struct Sizes {
    idle_kib: f64,
    full_kib: f64,
}

/// Opens connections that send one request each, in every proxy in turn, and adds the table.
pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let connections = bench.arguments.connections;
    let proxies: Vec<Proxy> = installed(bench, Work::Http).collect();
    let mut results: Vec<Vec<Sizes>> = proxies.iter().map(|_| Vec::new()).collect();
    for round in 0..bench.arguments.rounds.min(ROUNDS_MAX) {
        for (proxy, sizes) in proxies.iter().zip(&mut results) {
            let size = note(
                report,
                &format!("idle connections, {}", proxy.name()),
                one_round(bench, *proxy),
            )?;
            let Some(size) = size.flatten() else { continue };
            let (idle, full) = (size.idle_kib, size.full_kib);
            say(&format!(
                "  round {} {}: {idle} KiB idle, {full} KiB full",
                round + 1,
                proxy.name()
            ));
            sizes.push(size);
        }
    }
    let mut rows = Vec::new();
    for (proxy, sizes) in proxies.iter().zip(&results) {
        let Some(idle) = median(sizes.iter().map(|size| size.idle_kib)) else {
            continue;
        };
        let Some(full) = median(sizes.iter().map(|size| size.full_kib)) else {
            continue;
        };
        let each = (full - idle).max(0.0) / f64::from(connections);
        report.figures.insert((Figure::IdleKib, *proxy), idle);
        report.figures.insert((Figure::ConnectionKib, *proxy), each);
        rows.push((*proxy, idle, full, each));
    }
    report.sections.push(section(connections, &rows));
    Ok(())
}

fn one_round(bench: &Bench, proxy: Proxy) -> Result<Option<Sizes>, Failure> {
    let wanted = bench.arguments.connections;
    let Some(mut running) = bench.start(proxy, &Shape::catch_all(wanted + 64))? else {
        return Ok(None);
    };
    let idle = bench.settled_kib(&mut running)?;
    let mut open = Vec::new();
    for index in 0..wanted {
        bench.launcher.cancel().check()?;
        let failed = || format!("connection {} of {wanted}", index + 1);
        let mut connection = Connection::open(running.plan.listen).map_err(context(failed()))?;
        expect_ok(connection.get("/").map_err(context(failed()))?)?;
        open.push(connection);
    }
    let full = bench.settled_kib(&mut running)?;
    for connection in open.iter_mut().step_by(SAMPLE) {
        expect_ok(
            connection
                .get("/")
                .map_err(context("a connection did not stay open"))?,
        )?;
    }
    Ok(Some(Sizes {
        idle_kib: idle as f64,
        full_kib: full as f64,
    }))
}

fn expect_ok(status: u16) -> Result<(), Failure> {
    if status == 200 {
        Ok(())
    } else {
        Err(Failure::new(format!("status {status} instead of 200")))
    }
}

fn section(connections: u32, sizes: &[(Proxy, f64, f64, f64)]) -> Section {
    let of = |wanted: Proxy| {
        sizes
            .iter()
            .find(|(proxy, ..)| *proxy == wanted)
            .map(|(.., each)| *each)
    };
    let rows = sizes.iter().map(|(proxy, idle, full, each)| {
        vec![
            proxy.name().to_owned(),
            number(idle / 1024.0),
            number(full / 1024.0),
            number(*each),
            ratio(Some(*each), of(Proxy::Haproxy)),
            ratio(Some(*each), of(Proxy::Envoy)),
        ]
    });
    let columns = [
        "proxy",
        "idle MiB",
        "with connections MiB",
        "KiB per connection",
        "to HAProxy",
        "to Envoy",
    ];
    Section {
        title: "Memory: idle process and idle connections".to_owned(),
        text: format!(
            "Resident memory after the start and one request, and with {connections} keep-alive connections that \
             made one request each. Buffers in the kernel are not counted."
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_per_connection() {
        let sizes = [
            (Proxy::Strait, 10_240.0, 61_440.0, 10.0),
            (Proxy::Haproxy, 8_192.0, 13_312.0, 1.0),
        ];
        let section = section(5_000, &sizes);
        assert_eq!(
            section.rows[0],
            ["Strait", "10.0", "60.0", "10.0", "10.00x", "-"]
        );
        assert!(section.text.contains("5000 keep-alive"));
    }
}
