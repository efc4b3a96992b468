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

const WRK_BYTES: u64 = (8.555 * 1024.0 * 1024.0) as u64;

fn aim() -> Aim<'static> {
    Aim {
        port: 1,
        path: "/it",
        tls: false,
        http1_only: false,
        headers: &[],
        pid: 77,
    }
}

/// Returns the words of the command, on a machine with all programs.
fn command(load: Load, aim: Aim<'_>) -> String {
    let tools = Tools::from_iter([(Tool::Wrk, "/bin/wrk"), (Tool::H2load, "/bin/h2load")]);
    let material = Material::below(Path::new("/run/it"));
    let line = load.command(&tools, &material, &aim, Duration::from_secs(5));
    let CommandLine(words) = line.unwrap();
    let words: Vec<String> = words
        .into_iter()
        .map(|word| word.into_string().unwrap())
        .collect();
    words.join(" ")
}

#[test]
fn wrk_without_errors_counts_requests() {
    let expected = Counts {
        requests: 29_105,
        bytes: WRK_BYTES,
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
        bytes: WRK_BYTES,
        ..Counts::default()
    };
    assert_eq!(
        parse_wrk(&WRK.replace("Requests/sec", &format!("{errors}Requests/sec"))),
        Some(expected)
    );
}

#[test]
fn sizes_have_units() {
    assert_eq!(bytes("12.00B"), Some(12));
    assert_eq!(bytes("1.00KB"), Some(1029));
    assert_eq!(bytes("1.00GB"), Some((1.005 * f64::from(1 << 30)) as u64));
    assert_eq!(bytes("1.50"), None);
}

#[test]
fn h2load_counts_a_bad_status_once() {
    let expected = Counts {
        requests: 91_220,
        bad_statuses: 7,
        failures: 3,
        bytes: 182_456,
        ..Counts::default()
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
fn own_load_counts_what_was_done_and_why_not() {
    let load = Load::Bulk { connections: 1 };
    let counts = load.parse("done 3 failures 1\ntook too long\n").unwrap();
    assert_eq!((counts.requests, counts.failures), (3, 1));
    assert_eq!(counts.bytes, 3 * load.bytes_each(0));
    assert_eq!(counts.reason.as_deref(), Some("took too long"));
}

#[test]
fn load_without_its_program_cannot_be_made() {
    let load = Load::Http1 { connections: 1 };
    let material = Material::below(Path::new("/run/it"));
    let turn = Duration::from_secs(1);
    let line = load.command(&Tools::default(), &material, &aim(), turn);
    assert!(line.is_err());
}

#[test]
fn plain_load_is_called_as_ever() {
    let http1 = Load::Http1 { connections: 64 };
    let line = "/bin/wrk -t1 -c64 -d5s http://127.0.0.1:1/it";
    assert_eq!(command(http1, aim()), line);
    let with_header = Aim {
        headers: &[("x-bench", "1")],
        ..aim()
    };
    let line = "/bin/wrk -t1 -c64 -H x-bench: 1 -d5s http://127.0.0.1:1/it";
    assert_eq!(command(http1, with_header), line);
    let http2 = Load::Http2 {
        connections: 16,
        streams: 8,
    };
    let line = "/bin/h2load -t1 -c 16 -m 8 -D 5 http://127.0.0.1:1/it";
    assert_eq!(command(http2, aim()), line);
}

#[test]
fn tls_is_offered_in_one_way_only() {
    let aim = Aim { tls: true, ..aim() };
    let http1 = command(Load::Http1 { connections: 1 }, aim);
    assert!(http1.starts_with("env OPENSSL_CONF=/run/it/openssl.cnf /bin/wrk "));
    assert!(http1.ends_with(" https://127.0.0.1:1/it"));
    let http2 = Load::Http2 {
        connections: 1,
        streams: 1,
    };
    let http2 = command(http2, aim);
    assert!(http2.contains("--npn-list=h2 --tls13-ciphers=TLS_AES_128_GCM_SHA256"));
    let handshakes = Load::Handshakes {
        connections: 2,
        resumed: true,
    };
    assert!(
        command(handshakes, aim).contains(
            " generate resumed --port 1 --connections 2 --seconds 5 --certificate /run/it/"
        )
    );
}

#[test]
fn rotation_counts_what_happened_while_all_connections_were_open() {
    let load = Load::Rotation {
        connections: 1000,
        in_flight: 64,
    };
    assert!(command(load, aim()).ends_with(
        " generate rotation --port 1 --connections 1000 --seconds 5 --in-flight 64 --pid 77 --path /it"
    ));
    let counts = load.parse("done 3 failures 0\ncpu_us 20 elapsed_us 1000000\n");
    let span = counts.unwrap().span.unwrap();
    assert_eq!(span.cpu, Duration::from_micros(20));
    assert_eq!(span.elapsed, Duration::from_secs(1));
    assert_eq!(load.parse("done 3 failures 0\n").unwrap().span, None);
}

#[test]
fn calls_carry_a_message() {
    let load = Load::Grpc {
        connections: 1,
        streams: 1,
    };
    let line = command(load, aim());
    assert!(line.contains("-d /run/it/message.grpc -H content-type: application/grpc"));
}

#[test]
fn bodies_must_have_arrived() {
    let http1 = Load::Http1 { connections: 1 };
    assert_eq!(http1.bytes_each(128), 128);
    let calls = Load::Grpc {
        connections: 1,
        streams: 1,
    };
    assert_eq!(calls.bytes_each(128), 133);
}
