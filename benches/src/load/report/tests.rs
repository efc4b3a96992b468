use super::*;
use crate::load::arguments::Arguments;
use crate::load::outcome::{FailureClass, Fault};
use crate::load::quantity::FailureLimit;
use crate::load::record::Record;
use crate::load::record::tests::{answered, failed};
use crate::load::verdict;
use clap::Parser as _;
use std::time::Duration;

fn settings(line: &[&str]) -> Settings {
    let line = ["load", "http://127.0.0.1:8080/cart"].iter().chain(line);
    Settings::new(&Arguments::parse_from(line)).unwrap()
}

fn outcome() -> Outcome {
    let mut record = Record::new(Some(http::HeaderName::from_static("x-zone")));
    for _ in 0..3 {
        record.add(&answered(100, "a"));
    }
    record.add(&answered(900, "b"));
    record.add(&failed(1, FailureClass::Connect, "connection refused"));
    Outcome {
        record,
        elapsed: Duration::from_secs(2),
        abandoned: 0,
        stopped: false,
        unopened: None,
    }
}

fn checks(outcome: &Outcome) -> Vec<Check> {
    let p99 = Some(Duration::from_millis(5));
    verdict::checks(&outcome.record, p99, Some(FailureLimit::Count(0)))
}

/// Programs read these keys: changing them requires a new `schema`.
#[test]
fn json_has_the_documented_keys() {
    let (settings, outcome) = (settings(&["--rate", "100"]), outcome());
    let checks = checks(&outcome);
    let json = Report {
        settings: &settings,
        outcome: &outcome,
        checks: &checks,
    }
    .json();
    let times = |name: &str| {
        let keys: Vec<_> = json[name].as_object().unwrap().keys().cloned().collect();
        assert_eq!(
            keys,
            [
                "count", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "max"
            ]
        );
        let value = |key: &str| json[name][key].as_f64().unwrap();
        (value("count"), value("p50"), value("max"))
    };
    assert_eq!(times("latency_ms"), (4.0, 0.1, 0.9));
    assert_eq!(times("own_lateness_ms"), (5.0, 0.01, 0.01));
    assert_eq!(times("queued_ms"), (5.0, 0.0, 0.0));
    let mut rest = json.clone();
    for name in ["latency_ms", "own_lateness_ms", "queued_ms"] {
        rest[name].take();
    }
    let expected = json!({
        "schema": 1,
        "url": "http://127.0.0.1:8080/cart",
        "protocol": "HTTP/1.1",
        "rate": 100,
        "duration_seconds": 10.0,
        "connections": 64,
        "streams": 1,
        "threads": 1,
        "elapsed_seconds": 2.0,
        "stopped": false,
        "requests": 5,
        "succeeded": 4,
        "failed": 1,
        "abandoned": 0,
        "responses_per_second": 2.0,
        "body_bytes": 512,
        "latency_ms": null,
        "own_lateness_ms": null,
        "queued_ms": null,
        "failures": {
            "body": 0, "connect": 1, "grpc_status": 0, "not_sent": 0, "protocol": 0, "reset": 0,
            "status_4xx": 0, "status_5xx": 0, "status_other": 0, "timeout": 0, "tls": 0,
        },
        "reasons": {"connect": "connection refused"},
        "statuses": {"200": 4},
        "destinations": {"a": 3, "b": 1},
        "limits": [
            {"name": "max_p99", "limit": "5ms", "measured": "0.9 ms", "met": true},
            {"name": "max_failures", "limit": "0", "measured": "1", "met": false},
        ],
        "notes": [],
    });
    assert_eq!(rest, expected, "{rest:#}");
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&rest), keys(&expected));
}

#[test]
fn text_says_what_was_done_and_what_came_of_it() {
    let (settings, mut outcome) = (settings(&["--protocol", "http2"]), outcome());
    outcome.stopped = true;
    outcome.abandoned = 7;
    outcome.unopened = Some((2, Fault::new(FailureClass::Connect, "no route")));
    let checks = checks(&outcome);
    let text = Report {
        settings: &settings,
        outcome: &outcome,
        checks: &checks,
    }
    .text();
    for line in [
        "http://127.0.0.1:8080/cart: h2c, 1000 requests/s for 10s, 64 connections with 8 streams, 1 thread\n",
        "requests     5 sent or due, 4 succeeded, 1 failed, 2.0 responses/s\n",
        "latency      p50 0.100, p90 0.900, p99 0.900, p99.9 0.900, p99.99 0.900, max 0.900 ms\n",
        "statuses     200 4 (80.0 %)\n",
        "x-zone       a 3 (60.0 %), b 1 (20.0 %)\n",
        "failed       1 connect, first: connection refused\n",
        "limit        --max-p99 5ms: met, 0.9 ms\n",
        "limit        --max-failures 0: BROKEN, 1\n",
        "note         stopped by a signal; 7 requests had no outcome yet\n",
        "note         2 connections could not be opened before the run, first: no route\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
