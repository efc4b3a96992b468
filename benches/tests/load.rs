//! Tests of the program `load` against servers in this process.

#![allow(unreachable_pub, reason = "a test program has no users")]
#![allow(clippy::unwrap_used, reason = "tests: what fails is shown")]

#[path = "load/server.rs"]
mod server;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use benches::load::arguments::Arguments;
use clap::{CommandFactory as _, Parser as _};
use serde_json::Value;

use server::{Kind, Server};

const BINARY: &str = env!("CARGO_BIN_EXE_load");

fn load(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().unwrap()
}

/// Runs `load` and returns its exit code and JSON result.
fn measure(url: &str, arguments: &[&str]) -> (i32, Value) {
    let all = [&[url, "--quiet", "--json", "-"], arguments].concat();
    let output = load(&all);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = serde_json::from_slice(&output.stdout);
    let result = result.unwrap_or_else(|error| panic!("{error}: {errors}"));
    (output.status.code().unwrap(), result)
}

/// Runs `load` with invalid arguments and returns its error message.
fn refused(arguments: &[&str]) -> String {
    let output = load(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

const SHORT: [&str; 4] = ["--rate", "200", "--duration", "500ms"];

#[test]
fn every_due_request_is_sent_once_at_the_rate() {
    let server = Server::start(Kind::Http1);
    let line = ["--rate", "1000", "--duration", "1s", "--threads", "2"];
    let (code, result) = measure(&server.url(), &line);
    assert_eq!(code, 0, "{result:#}");
    for count in [
        &result["requests"],
        &result["succeeded"],
        &result["statuses"]["200"],
    ] {
        assert_eq!(*count, 1000, "{result:#}");
    }
    assert_eq!(server.requests(), 1000);
    assert_eq!(result["latency_ms"]["count"], 1000);
    // the last request is due after 999 ms; a busy machine may need longer for the response
    let elapsed = result["elapsed_seconds"].as_f64().unwrap();
    assert!((0.999..20.0).contains(&elapsed), "{elapsed}");
    let rate = result["responses_per_second"].as_f64().unwrap();
    assert!(rate <= 1001.1, "{rate}");
}

#[test]
fn every_protocol_is_spoken() {
    for (kind, protocol, version, name) in [
        (Kind::Http1, "http1", "HTTP/1.1", "HTTP/1.1"),
        (Kind::Http1Tls, "http1", "HTTP/1.1", "HTTP/1.1 over TLS"),
        (Kind::Http2, "http2", "HTTP/2.0", "h2c"),
        (Kind::Http2Tls, "http2", "HTTP/2.0", "h2"),
        (Kind::Http2, "grpc", "HTTP/2.0", "gRPC"),
        (Kind::Http2Tls, "grpc", "HTTP/2.0", "gRPC over TLS"),
    ] {
        let server = Server::start(kind);
        let url = format!("{}/package.Service/Method", server.url());
        let ca = server.authority();
        let ca = ca.path().to_str().unwrap();
        let line = [&SHORT[..], &["--protocol", protocol, "--ca", ca]].concat();
        let line = [
            &line[..],
            &[
                "--server-name",
                "load.example",
                "--count-header",
                "x-version",
            ],
        ];
        let (code, result) = measure(&url, &line.concat());
        assert_eq!(code, 0, "{name}: {result:#}");
        assert_eq!(result["protocol"], name);
        assert_eq!(
            result["destinations"],
            serde_json::json!({version: 100}),
            "{name}"
        );
    }
}

#[test]
fn blocks_of_the_file_take_turns() {
    for kind in [Kind::Http1, Kind::Http2] {
        let server = Server::start(kind);
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "host: a.example\n\nhost: b.example\n:path: /other\n\nhost: a.example\n";
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap();
        let protocol = if kind == Kind::Http1 {
            "http1"
        } else {
            "http2"
        };
        let line = [
            "--rate",
            "300",
            "--duration",
            "400ms",
            "--protocol",
            protocol,
        ];
        let line = [&line[..], &["--headers", path, "--count-header", "x-host"]].concat();
        let (code, result) = measure(&server.url(), &line);
        assert_eq!(code, 0, "{result:#}");
        let expected = serde_json::json!({"a.example": 80, "b.example": 40});
        assert_eq!(result["destinations"], expected);
    }
}

#[test]
fn broken_limit_is_an_exit_code() {
    let server = Server::start(Kind::Http1);
    let code = |path: &str, arguments: &[&str]| {
        let line = [&SHORT[..], arguments].concat();
        let (code, result) = measure(&format!("{}{path}", server.url()), &line);
        (code, result)
    };
    let (ok, result) = code("/", &["--max-p99", "30s", "--max-failures", "0"]);
    assert_eq!(ok, 0, "{result:#}");
    let (slow, result) = code("/", &["--max-p99", "1us"]);
    assert_eq!(slow, 1, "{result:#}");
    assert_eq!(result["limits"][0]["met"], false);
    // every second response of this path is 503
    let (failing, result) = code("/half", &["--max-failures", "49"]);
    assert_eq!(
        (failing, &result["failures"]["status_5xx"]),
        (1, &50.into())
    );
    assert_eq!(code("/half", &["--max-failures", "50%"]).0, 0);
    assert_eq!(
        code(
            "/half",
            &["--expect-status", "200", "--expect-status", "503"]
        )
        .1["failed"],
        0
    );
    // nothing succeeds, which needs no limit
    let (wrong, result) = code("/", &["--expect-body-bytes", "3"]);
    assert_eq!((wrong, &result["failures"]["body"]), (1, &100.into()));
    assert_eq!(result["reasons"]["body"], "5 bytes instead of 3");
}

#[test]
fn run_that_cannot_begin_says_why() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let error = refused(&[&format!("http://127.0.0.1:{port}/")]);
    assert!(
        error.contains("cannot connect to") && error.contains("start the proxy"),
        "{error}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "host: a\n\nnonsense\n").unwrap();
    let path = file.path().to_str().unwrap();
    let error = refused(&["--headers", path]);
    assert!(
        error.contains(&format!("{path}:3: expected `name: value`")),
        "{error}"
    );
    let server = Server::start(Kind::Http2Tls);
    let error = refused(&[&server.url(), "--protocol", "http2"]);
    assert!(
        error.contains("tls: ") && error.contains("certificate"),
        "{error}"
    );
    // ALPN has nothing in common
    let error = refused(&[&server.url(), "--insecure"]);
    assert!(error.contains("tls: "), "{error}");
    let line = [&SHORT[..], &["--protocol", "http2", "--insecure"]].concat();
    assert_eq!(measure(&server.url(), &line).0, 0);
}

#[test]
fn distribution_is_written_as_text_and_as_image() {
    let server = Server::start(Kind::Http1);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (text, image, json) = (
        file("latency.hgrm"),
        file("latency.svg"),
        file("result.json"),
    );
    let url = server.url();
    let line = [
        "--histogram",
        &text,
        "--plot",
        &image,
        "--json",
        &json,
        "--quiet",
        &url,
    ];
    let output = load(&[&SHORT[..], &line].concat());
    assert!(output.status.success());
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("100 succeeded")
    );
    let text = std::fs::read_to_string(text).unwrap();
    assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
    assert!(
        text.contains(" 1.000000000000        100\n#[Mean    ="),
        "{text}"
    );
    assert!(std::fs::read_to_string(image).unwrap().starts_with("<svg "));
    let json: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(json["schema"], 1);
}

#[test]
fn signal_ends_a_run_with_the_results_so_far() {
    let server = Server::start(Kind::Http1);
    let mut child = Command::new(BINARY)
        .args([&server.url(), "--duration", "10m", "--json", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    assert!(line.contains(" s of 600 s: "), "{line}");
    let kill = format!("kill -INT {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    let mut output = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(result["stopped"], true);
    assert!(result["succeeded"].as_u64().unwrap() > 0, "{result:#}");
}

/// Returns the path of the documentation page, which lists the flags and example commands.
fn path() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    root.join("docs/measure.md")
}

fn page() -> String {
    std::fs::read_to_string(path()).unwrap()
}

/// Rewrites the page instead of comparing it if `UPDATE_DOCS` is set in the environment.
#[test]
fn page_has_the_help_of_the_program() {
    let mut command = Arguments::command().term_width(100);
    let help = command.render_long_help().to_string();
    let help: Vec<_> = help.lines().map(str::trim_end).collect();
    let section = format!("## Options\n\n```text\n{}\n```\n", help.join("\n"));
    let page = page();
    let (before, _) = page.split_once("## Options\n").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(), before.to_owned() + &section).unwrap();
    } else {
        assert!(page.ends_with(&section), "run this test with UPDATE_DOCS=1");
    }
}

#[test]
fn commands_of_the_page_can_be_run() {
    let page = page().replace("\\\n", " ");
    let commands = page.lines().filter_map(|line| {
        line.trim()
            .strip_prefix("cargo run --release -p benches --bin load -- ")
    });
    let mut count = 0;
    for command in commands {
        let words = command
            .split_ascii_whitespace()
            .map(|word| word.trim_matches('\''));
        // a header is one word to the shell
        let parsed = Arguments::try_parse_from(std::iter::once("load").chain(words));
        assert!(parsed.is_ok(), "{command}: {parsed:?}");
        count += 1;
    }
    assert!(count >= 4, "only {count} commands");
}

#[test]
fn keys_of_the_page_are_those_of_the_result() {
    let server = Server::start(Kind::Http1);
    let (_, result) = measure(&server.url(), &SHORT);
    let page = page();
    for key in result.as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}
