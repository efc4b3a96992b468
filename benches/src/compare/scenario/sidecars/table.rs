//! Table of the results of the sidecar comparison.

use super::entrant::{Entrant, TITLE, Turn};
use super::load::{CONNECTIONS, RATE};
use crate::compare::configure::Proxy;
use crate::compare::report::{Figure, Figures, Section, number, ratio};
use crate::compare::statistics::median;

/// Returns the name of the protocol between the two proxies of a pair.
pub(super) fn security(tls: bool) -> &'static str {
    match tls {
        true => "mutual TLS",
        false => "plain text",
    }
}

/// Figures of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Row {
    flat_out: Option<f64>,
    per_second: Option<f64>,
    steady: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
    kib: Option<f64>,
    failures: u64,
}

impl Row {
    fn of(entrant: &Entrant) -> Self {
        let cpu = |turns: &[Turn]| median(turns.iter().map(Turn::cpu_each));
        let latency = |of: fn(&Turn) -> Option<f64>| median(entrant.steady.iter().filter_map(of));
        let turns = entrant.flat_out.iter().chain(&entrant.steady);
        let has_proxies = entrant.pair.is_some();
        Self {
            flat_out: cpu(&entrant.flat_out).filter(|_| has_proxies),
            per_second: median(entrant.flat_out.iter().map(Turn::per_second)),
            steady: cpu(&entrant.steady).filter(|_| has_proxies),
            p50: latency(|turn| turn.measured.p50),
            p99: latency(|turn| turn.measured.p99),
            kib: entrant.kib.map(|kib| kib as f64),
            failures: turns.map(|turn| turn.measured.failures).sum(),
        }
    }
}

/// Adds the figures that are compared with targets: those of pairs with mutual TLS.
pub(super) fn figures(entrants: &[Entrant], figures: &mut Figures) {
    let direct = entrants.iter().find(|one| one.pair.is_none()).map(Row::of);
    for entrant in entrants {
        let Some(pair) = entrant.pair.as_ref().filter(|pair| pair.tls) else {
            continue;
        };
        let row = Row::of(entrant);
        let added = row.p99.zip(direct.and_then(|direct| direct.p99));
        let found = [
            (Figure::CpuPair, row.flat_out),
            (Figure::CpuPairSteady, row.steady),
            (Figure::PairKib, row.kib),
            (
                Figure::PairAddedMicros,
                added.map(|(with, without)| with - without),
            ),
        ];
        for (figure, value) in found {
            if let Some(value) = value {
                figures.insert((figure, pair.proxy), value);
            }
        }
    }
}

pub(super) fn section(entrants: &[Entrant]) -> Section {
    let rows: Vec<_> = entrants
        .iter()
        .map(|entrant| (entrant, Row::of(entrant)))
        .collect();
    let of_envoy = |tls: bool| {
        let is_it = |entrant: &Entrant| {
            let pair = entrant.pair.as_ref();
            pair.is_some_and(|pair| pair.proxy == Proxy::Envoy && pair.tls == tls)
        };
        let found = rows.iter().find(|(entrant, _)| is_it(entrant));
        found.map(|(_, row)| *row).unwrap_or_default()
    };
    let direct = rows.iter().find(|(entrant, _)| entrant.pair.is_none());
    let direct = direct.map(|(_, row)| *row).unwrap_or_default();
    let rows = rows.iter().map(|(entrant, row)| {
        let peer = of_envoy(entrant.pair.as_ref().is_some_and(|pair| pair.tls));
        cells(&entrant.label, row, &peer, &direct)
    });
    Section {
        title: TITLE.to_owned(),
        text: format!(
            "A client's and a service's sidecar, HTTP/1.1 throughout, responses of 128 bytes; between the two mutual TLS 1.3 \
             with SPIFFE identities, or plain text. CPU of both proxies together, which share a core: flat out over \
             {CONNECTIONS} connections, and at {RATE} requests a second. Latency at that rate, less that without proxies. \
             Memory of the larger one of the two after the load."
        ),
        columns: [
            "pair",
            "CPU us/request, flat out",
            "to Envoy",
            "requests/s",
            "CPU us/request, steady",
            "to Envoy",
            "added p50 us",
            "added p99 us",
            "MiB each",
            "errors",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.collect(),
    }
}

fn cells(label: &str, row: &Row, envoy: &Row, direct: &Row) -> Vec<String> {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let added = |with: Option<f64>, without: Option<f64>| {
        cell(with.zip(without).map(|(with, without)| with - without))
    };
    vec![
        label.to_owned(),
        cell(row.flat_out),
        ratio(row.flat_out, envoy.flat_out),
        cell(row.per_second),
        cell(row.steady),
        ratio(row.steady, envoy.steady),
        added(row.p50, direct.p50),
        added(row.p99, direct.p99),
        cell(row.kib.map(|kib| kib / 1024.0)),
        row.failures.to_string(),
    ]
}
