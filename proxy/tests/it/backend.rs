//! `strait backend`: a test workload that answers with its name, and its client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::raw::Raw;

struct Backend {
    http: SocketAddr,
    tcp: SocketAddr,
    child: Child,
}

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn strait() -> Command {
    Command::new(env!("CARGO_BIN_EXE_strait"))
}

/// Starts the backend on free ports, and parses the addresses from its output.
fn backend(version: &str) -> Backend {
    let mut child = strait()
        .args(["backend", "--listen", "127.0.0.1:0", "--tcp", "127.0.0.1:0"])
        .args(["--cluster", "c1", "--version", version])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut address = || -> SocketAddr {
        let line = lines.next().unwrap().unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    Backend {
        http: address(),
        tcp: address(),
        child,
    }
}

#[test]
fn response_names_cluster_service_and_version() {
    let backend = backend("v1");
    let mut client = Raw::connect(backend.http);
    let mut get = |path: &str, headers: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: shop.test\r\n{headers}\r\n");
        let reply = client.send(request).reply();
        (reply.status, String::from_utf8(reply.body).unwrap())
    };
    let text = "hello from c1 web v1: GET /a?b=c for shop.test\n";
    assert_eq!(get("/a?b=c", ""), (200, text.to_owned()));
    let (_, body) = get("/", "accept: application/json\r\nx-me: 7\r\n");
    let json: serde_json::Value = serde_json::from_str(&body).unwrap();
    for (field, value) in [("cluster", "c1"), ("service", "web"), ("version", "v1")] {
        assert_eq!(json[field], value);
    }
    assert_eq!(json["headers"]["x-me"], "7");
    assert_eq!(get("/status/418", "").0, 418);
}

#[test]
fn tcp_server_speaks_first() {
    let backend = backend("v2");
    let mut client = TcpStream::connect(backend.tcp).unwrap();
    let mut greeting = [0; 10];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"c1 web v2\n");
    client.write_all(b"ping").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "ping");
}

#[test]
fn sigterm_ends_it_with_exit_code_0() {
    let mut backend = backend("v1");
    let mut idle = Raw::connect(backend.http);
    let request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    assert_eq!(idle.send(request).reply().status, 200);
    let pid = Pid::from_child(&backend.child);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(backend.child.wait().unwrap().code(), Some(0));
}

#[test]
fn client_counts_who_responds_and_fails_for_failed_requests() {
    let backend = backend("v1");
    let run = |path: &str| {
        let url = format!("http://localhost:{}{path}", backend.http.port());
        let ended = strait()
            .args(["backend", "--client", &url, "--rate", "200"])
            .args(["--requests", "20"])
            .output()
            .unwrap();
        let text = String::from_utf8(ended.stdout).unwrap();
        (ended.status.code(), text)
    };
    let (code, text) = run("/");
    assert!(text.ends_with("total:  c1 web v1 20  failed 0\n"), "{text}");
    assert_eq!(code, Some(0));
    let (code, text) = run("/status/500");
    assert!(
        text.contains("failed: 500 Internal Server Error c1 web v1"),
        "{text}"
    );
    assert!(text.ends_with("total:  failed 20\n"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn client_counts_answers_of_other_servers_as_unnamed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Serves one connection after the other, each for one request, until the test ends.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
            while head.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
            stream.write_all(reply).unwrap();
        }
    });
    let url = format!("http://{address}/");
    let ended = strait()
        .args([
            "backend",
            "--client",
            &url,
            "--rate",
            "200",
            "--requests",
            "5",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(text.ends_with("total:  failed 0  unnamed 5\n"), "{text}");
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn client_needs_a_url_of_http() {
    for url in ["/path", "https://edge/", "edge:80"] {
        let ended = strait().args(["backend", "--client", url]).output();
        assert_eq!(ended.unwrap().status.code(), Some(2), "{url}");
    }
}
