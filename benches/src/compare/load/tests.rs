use super::*;

const WRK: &str = "\
Running 3s test @ http://127.0.0.1:8098/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    75.65us  152.47us   4.18ms   99.40%
    Req/Sec    26.65k     3.66k   37.39k    90.91%
  29105 requests in 1.10s, 8.55MB read
Requests/sec:  26472.35
Transfer/sec:      7.78MB
";

const H2LOAD: &str = "\
Application protocol: h2c

finished in 1.00s, 91228.00 req/s, 5.92MB/s
requests: 91228 total, 91236 started, 91220 done, 91210 succeeded, 10 failed, 3 errored, 0 timeout
status codes: 91213 2xx, 0 3xx, 0 4xx, 7 5xx
traffic: 5.92MB (6203602) total, 4.18MB (4378944) headers (space savings 51.02%), 178.18KB (182456) data
";

#[test]
fn wrk_without_errors_counts_requests() {
    let expected = Counts {
        requests: 29_105,
        ..Counts::default()
    };
    assert_eq!(parse_wrk(WRK), Some(expected));
}

#[test]
fn wrk_errors_are_counted() {
    let errors =
        "  Socket errors: connect 1, read 2, write 3, timeout 4\n  Non-2xx or 3xx responses: 77\n";
    let expected = Counts {
        requests: 29_105,
        bad_statuses: 77,
        failures: 10,
    };
    assert_eq!(
        parse_wrk(&WRK.replace("Requests/sec", &format!("{errors}Requests/sec"))),
        Some(expected)
    );
}

#[test]
fn h2load_counts_a_bad_status_once() {
    let expected = Counts {
        requests: 91_220,
        bad_statuses: 7,
        failures: 3,
    };
    assert_eq!(parse_h2load(H2LOAD), Some(expected));
}

#[test]
fn output_that_is_no_report_is_refused() {
    let text = "unable to connect to 127.0.0.1:1 Connection refused\n";
    assert_eq!(parse_wrk(text), None);
    assert_eq!(parse_h2load(text), None);
    assert_eq!(
        parse_h2load("requests: 1 total\nstatus codes: 1 2xx\n"),
        None
    );
}

#[test]
fn load_without_its_program_cannot_be_made() {
    let turn = Duration::from_secs(1);
    let load = Load::Http1 { connections: 1 };
    assert_eq!(
        load.command(&Tools::default(), "http://127.0.0.1:1/", turn, false),
        None
    );
    assert_eq!(Load::probe(&Tools::default(), "http://127.0.0.1:1/"), None);
}
