//! `strait demo`: three clusters, one of which is stopped and recovers.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::{collections::BTreeMap, fs};

use crate::support::origin::Back;
use crate::support::otlp::{CLIENT, Collector, SERVER};
use crate::support::proxy::free_address;
use crate::support::raw::Raw;
use crate::support::{eventually, until};

struct Demo {
    edge: SocketAddr,
    calls: SocketAddr,
    child: Child,
    files: tempfile::TempDir,
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the demo on free ports, including its own requests, and parses the addresses from its introduction.
fn demo(requests_per_second: u16) -> Demo {
    demo_with(requests_per_second, &[])
}

/// Starts the demo with further arguments.
fn demo_with(requests_per_second: u16, arguments: &[&str]) -> Demo {
    let files = tempfile::tempdir().unwrap();
    // two processes that listen on one port share its connections, so each test has an IP of its own
    let free = SocketAddr::new(free_address().ip(), 0).to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["demo", "--listen", &free, "--control", &free])
        .args(["--admin", &free_address().to_string(), "--keep-files"])
        .arg(files.path())
        .args(["--concurrency", "1", "--requests-per-second"])
        .arg(requests_per_second.to_string())
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut address = |begin: &str, end: &str| -> SocketAddr {
        let found = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, rest) = line.split_once(begin)?;
            Some(rest.split_once(end)?.0.to_owned())
        });
        found.unwrap().parse().unwrap()
    };
    let edge = address("edge on http://", " ");
    let calls = address("curl -X POST http://", "/demo");
    // what it prints later must go somewhere
    std::thread::spawn(move || lines.for_each(drop));
    let demo = Demo {
        edge,
        calls,
        child,
        files,
    };
    eventually("the edge serves", || {
        let answered = std::panic::catch_unwind(|| ask(demo.edge, "GET / HTTP/1.1").0 == 200);
        answered.unwrap_or(false)
    });
    demo
}

fn ask(at: SocketAddr, line: &str) -> (u16, String) {
    let mut client = Raw::connect(at);
    let reply = client
        .send(format!(
            "{line}\r\nHost: web.demo\r\nConnection: close\r\n\r\n"
        ))
        .reply();
    (reply.status, String::from_utf8(reply.body).unwrap())
}

impl Demo {
    fn call(&self, line: &str) -> String {
        let (status, text) = ask(self.calls, &format!("{line} HTTP/1.1"));
        assert_eq!(status, 200, "{text}");
        text
    }

    /// Returns the number of the demo's own requests so far, by cluster.
    fn requests(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for line in self.call("GET /demo/requests").lines() {
            let (name, count) = line.rsplit_once(' ').unwrap();
            let cluster = name.split(' ').next().unwrap();
            *all.entry(cluster.to_owned()).or_default() += count.parse::<u64>().unwrap();
        }
        all
    }

    /// Sends requests on one connection, all of which must succeed, and returns the number of responses by cluster.
    fn served(&self, requests: usize) -> BTreeMap<String, usize> {
        let mut client = Raw::connect(self.edge);
        let mut counts = BTreeMap::new();
        for _ in 0..requests {
            let reply = client
                .send("GET / HTTP/1.1\r\nHost: web.demo\r\n\r\n")
                .reply();
            let text = String::from_utf8(reply.body).unwrap();
            assert_eq!(reply.status, 200, "{text}");
            let words = text.strip_prefix("hello from ").unwrap();
            let cluster = words.split(' ').next().unwrap();
            *counts.entry(cluster.to_owned()).or_default() += 1;
        }
        counts
    }

    fn parts(&self) -> [usize; 3] {
        let counts = self.served(100);
        ["c1", "c2", "c3"].map(|name| counts.get(name).copied().unwrap_or_default())
    }
}

#[test]
fn demo_fails_no_request_while_a_cluster_stops_and_restarts() {
    let demo = demo(200);
    // the demo's own requests come between ours
    let share = |expected: [usize; 3]| {
        let pairs = demo.parts().into_iter().zip(expected);
        pairs
            .into_iter()
            .all(|(part, expected)| part.abs_diff(expected) <= 10)
    };
    eventually("all clusters share", || share([50, 30, 20]));
    let states = demo.call("POST /demo/clusters/c2/stop");
    assert_eq!(states, "c1 runs\nc2 stopped\nc3 runs\n");
    // at once, and also after the stopped cluster is known to be unreachable
    demo.served(200);
    eventually("the others share", || share([71, 0, 29]));
    // responses of c2 may still be on their way when it has stopped
    eventually("the demo's own requests go on, without c2", || {
        let before = demo.requests();
        eventually("the demo's own requests go on", || {
            demo.requests()["c1"] > before["c1"] + 20
        });
        demo.requests()["c2"] == before["c2"]
    });

    let before = demo.requests();
    let states = demo.call("POST /demo/clusters/c2/start");
    assert_eq!(states, "c1 runs\nc2 runs\nc3 runs\n");
    eventually("c2 has its part again", || share([50, 30, 20]));
    eventually("of the demo's own requests, too", || {
        demo.requests()["c2"] > before["c2"]
    });
    let requests = demo.requests();
    assert_eq!(requests["failed"], 0, "{requests:?}");
}

/// Returns a command that runs the demo with these arguments, without its own requests, and with this directory for
/// temporary files.
fn demo_in(temporary: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    command
        .args(["demo", "--concurrency", "1", "--requests-per-second", "0"])
        .args(arguments)
        .env("TMPDIR", temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn is_empty(directory: &std::path::Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn demo_removes_its_temporary_files_on_exit() {
    let temporary = tempfile::tempdir().unwrap();
    let free = "127.0.0.1:0";
    let arguments = ["--listen", free, "--control", free, "--admin", free];
    let mut child = demo_in(temporary.path(), &arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut introduction = lines.by_ref().map(|line| line.unwrap());
    let metrics = introduction.find(|line| line.contains("/stats/prometheus"));
    assert!(
        !metrics.unwrap().contains("127.0.0.1:0/"),
        "the port is known"
    );
    assert!(introduction.any(|line| line.starts_with("The files are removed when the demo ends")));
    assert!(introduction.any(|line| line.starts_with("Ctrl-C")));
    assert!(!is_empty(temporary.path()));
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", "INT", &pid]).status();
    assert!(sent.unwrap().success());
    // what it prints later must go somewhere
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(is_empty(temporary.path()));
}

#[test]
fn second_demo_prints_how_to_choose_other_addresses() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    for flag in ["--listen", "--control", "--admin"] {
        let temporary = tempfile::tempdir().unwrap();
        let mut arguments = vec![flag, &*taken];
        for other in ["--listen", "--control", "--admin"] {
            if other != flag {
                arguments.extend([other, free]);
            }
        }
        let output = demo_in(temporary.path(), &arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{flag}: {text}");
        let hint = "demo --listen 127.0.0.1:0 --control 127.0.0.1:0 --admin 127.0.0.1:0";
        assert!(
            text.contains(&taken) && text.contains(hint),
            "{flag}: {text}"
        );
        assert!(is_empty(temporary.path()), "{flag}");
    }
}

#[test]
fn weights_changed_in_the_file_apply_to_the_next_requests() {
    let demo = demo(0);
    eventually("all clusters share", || demo.parts() == [50, 30, 20]);
    let path = demo.files.path().join("edge/policy.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("weight: 50", "weight: 0")).unwrap();
    eventually("c1 is drained", || demo.parts() == [0, 60, 40]);
    let ordered = "metadata:\n  annotations: {multicluster.flomesh.io/failover-order: ordered}\n";
    let text = text
        .replace("lbType: ActiveActive", "lbType: FailOver")
        .replace("metadata:\n", ordered);
    fs::write(&path, text).unwrap();
    eventually("c1 has all", || demo.parts() == [100, 0, 0]);
    demo.call("POST /demo/clusters/c1/stop");
    eventually("c2 stands in", || demo.parts() == [0, 100, 0]);
    assert!(demo.requests().values().all(|count| *count == 0));
}

#[test]
fn unknown_demo_calls_list_the_known_calls() {
    let demo = demo(0);
    let (status, text) = ask(demo.calls, "POST /demo/clusters/c9/stop HTTP/1.1");
    assert_eq!((status, &*text), (404, "there is no cluster c9\n"));
    let (status, text) = ask(demo.calls, "GET / HTTP/1.1");
    assert!(status == 404 && text.contains("/demo/clusters/NAME/stop"));
}

#[tokio::test]
async fn request_through_two_gateways_is_one_trace() {
    let collector = Collector::start(Back::H1);
    let url = collector.url();
    let arguments = ["--otlp-endpoint", &url, "--trace-sampling", "100"];
    // a client whose request shows that it serves comes first, and may come several times
    let demo = demo_with(0, &arguments);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("traceparent: 00-{trace}-b7ad6b7169203331-01");
    assert_eq!(
        ask(demo.edge, &format!("GET / HTTP/1.1\r\n{parent}")).0,
        200
    );
    let of_trace = || {
        let spans = collector.spans().into_iter();
        spans
            .filter(|span| span.trace() == trace)
            .collect::<Vec<_>>()
    };
    until("all spans of the trace", async || of_trace().len() == 4).await;
    let spans = of_trace();
    let mut parent = "b7ad6b7169203331".to_owned();
    for kind in [SERVER, CLIENT, SERVER, CLIENT] {
        let child = spans.iter().find(|span| span.parent() == parent);
        let child = child.unwrap_or_else(|| panic!("no child of {parent}: {spans:#?}"));
        assert_eq!(child.kind, kind);
        parent = child.id();
    }
}
