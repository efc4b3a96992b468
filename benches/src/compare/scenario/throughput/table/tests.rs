use std::time::Duration;

use super::*;
use crate::compare::configure::Work;
use crate::compare::load::{Counts, Load};
use crate::compare::scenario::throughput::Variant;

/// Returns a turn of one second.
pub(in crate::compare::scenario::throughput) fn turn(cpu_ms: u64, requests: u64) -> Turn {
    let counts = Counts {
        requests,
        ..Counts::default()
    };
    Turn {
        counts,
        unit: Unit::Request,
        bytes_each: 0,
        cpu: Duration::from_millis(cpu_ms),
        elapsed: Duration::from_secs(1),
    }
}

pub(in crate::compare::scenario::throughput) fn course() -> Course {
    Course {
        title: "Title",
        text: "Text.".to_owned(),
        load: Load::Http1 { connections: 1 },
        unit: Unit::Request,
        work: Work::Http,
        tls: false,
        path: "/".to_owned(),
        proxies: &Proxy::ALL,
        variants: vec![Variant::catch_all(None)],
    }
}

fn direct(turns: Vec<Turn>) -> Entrant {
    Entrant {
        turns,
        label: "direct".to_owned(),
        ..Entrant::direct()
    }
}

#[test]
fn row_shows_median_and_range_over_the_rounds() {
    let turns = vec![turn(300, 10_000), turn(100, 10_000), turn(200, 10_000)];
    let section = section(&course(), &[direct(turns)]);
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
fn bytes_are_shown_per_second_and_per_core() {
    let mut course = course();
    course.unit = Unit::Gigabyte;
    let mut turn = turn(500, 1);
    turn.unit = Unit::Gigabyte;
    turn.counts.bytes = 1_000_000_000;
    let section = section(&course, &[direct(vec![turn])]);
    assert_eq!(section.rows[0][1], "500");
    assert_eq!(section.rows[0][3..6], ["1.00", "50 %", "2.00"]);
    assert_eq!(section.columns[5], "GB/s per core");
    assert_eq!(section.columns.len(), section.rows[0].len());
}

#[test]
fn entrant_without_a_turn_has_no_row() {
    assert_eq!(section(&course(), &[direct(vec![])]).rows.len(), 0);
}

#[test]
fn errors_of_all_rounds_are_flagged() {
    let mut bad = turn(1, 1);
    bad.counts.bad_statuses = 2;
    bad.counts.failures = 1;
    assert_eq!(
        errors(&[turn(1, 1), bad.clone(), bad]),
        "**4 bad statuses, 2 failures**"
    );
    assert_eq!(errors(&[turn(1, 1)]), "none");
}

#[test]
fn short_bodies_and_the_first_reason_are_flagged() {
    let mut bad = turn(1, 10);
    bad.bytes_each = 128;
    bad.counts.bytes = 1279;
    bad.counts.reason = Some("handshake was Some(Full)".to_owned());
    assert_eq!(
        errors(&[bad]),
        "**0 bad statuses, 0 failures, bodies too short in 1 turns: handshake was Some(Full)**"
    );
}
