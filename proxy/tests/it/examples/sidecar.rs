//! Examples of Sidecars from Istio's reference: the commands of their README, and workloads with live sockets.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use super::{Documented, documented, examples, free_port, prints, strait, words};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::{DEADLINE, eventually};

/// Child processes, killed on drop.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the resources of the example with text replacements.
fn resources(replaced: &[(String, String)]) -> String {
    let read = |name| fs::read_to_string(examples().join("sidecar").join(name)).unwrap();
    let mut text = [read("sidecars.yaml"), read("services.yaml")].join("---\n");
    for (from, to) in replaced {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

/// Returns the README's `strait` commands, which keep running.
fn started() -> Vec<String> {
    let readme = fs::read_to_string(examples().join("sidecar/README.md")).unwrap();
    let commands = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    strait "));
    commands.map(str::to_owned).collect()
}

fn get(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
}

#[test]
fn sidecar_does_what_its_readme_says() {
    let ports = [9080, 3306, 8080, 9101].map(|port| (port, free_port()));
    let moved = |text: &str| {
        ports.iter().fold(text.to_owned(), |text, (from, to)| {
            text.replace(&format!("127.0.0.1:{from}"), &format!("127.0.0.1:{to}"))
        })
    };
    let [(_, http), (_, mysql), (_, app), (_, database)] = ports;
    let replaced = [
        ("number: 9080", format!("number: {http}")),
        ("port: 9080", format!("port: {http}")),
        ("number: 3306", format!("number: {mysql}")),
        ("127.0.0.1:8080", format!("127.0.0.1:{app}")),
        ("mysql: 9101", format!("mysql: {database}")),
    ];
    let replaced = replaced.map(|(from, to)| (from.to_owned(), to));
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mesh.yaml"), resources(&replaced)).unwrap();
    let mut running = Running(Vec::new());
    let commands = started();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let directory = directory.path().to_str().unwrap();
        let command = moved(&command).replace("examples/sidecar", directory);
        let mut program = Command::new(env!("CARGO_BIN_EXE_strait"));
        program.args(words(&command));
        if command.starts_with("run ") {
            program.args(["--admin", &free_address().to_string(), "--concurrency", "1"]);
        }
        let child = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        running.0.push(child.unwrap());
    }
    let commands = documented("sidecar");
    assert!(commands.len() > 5, "{commands:?}");
    for Documented { command, lines } in commands {
        let mut arguments = words(&command);
        if arguments.remove(0) == "strait" {
            let output = strait(&arguments);
            let output = String::from_utf8(output.stdout).unwrap();
            assert!(prints(&output, &lines, false), "{command}\n{output}");
            continue;
        }
        let address = moved(arguments[0].strip_prefix("http://").unwrap());
        let lines: Vec<String> = lines.iter().map(|line| moved(line)).collect();
        eventually("the application responds through its sidecar", || {
            get(address.trim_end_matches('/')).is_some_and(|body| prints(&body, &lines, true))
        });
    }
    let mut stream = TcpStream::connect(("127.0.0.1", mysql)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut greeting = [0; 12];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"productpage\n");
}

/// Starts a sidecar of `app` in `prod-us1`; returns it with its outbound and inbound listener addresses.
fn workload(app: &str, replaced: &[(String, String)]) -> (Proxy, SocketAddr, SocketAddr) {
    let (outbound, inbound) = (free_address(), free_address());
    let proxy = Start::new()
        .args(["--mode", "sidecar", "--root-namespace", "istio-config"])
        .args(["--original-destination", "proxy-header"])
        .args(["--namespace", "prod-us1", "--labels"])
        .args([format!("app={app}")])
        .args(["--outbound-listener".to_owned(), outbound.to_string()])
        .args(["--inbound-listener".to_owned(), inbound.to_string()])
        .file("mesh.yaml", resources(replaced))
        .start();
    (proxy, outbound, inbound)
}

/// Sends a request over a connection that was captured on its way to `dialed`, and returns the status.
fn status(at: SocketAddr, dialed: &str, host: &str) -> u16 {
    let dialed: SocketAddr = dialed.parse().unwrap();
    let (ip, port) = (dialed.ip(), dialed.port());
    let mut connection = Raw::connect(at);
    connection.send(format!("PROXY TCP4 192.0.2.1 {ip} 4000 {port}\r\n"));
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    connection.send(request).reply().status
}

#[test]
fn requests_for_ratings_come_by_its_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let application = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4];
        stream.read_exact(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .unwrap();
        request
    });
    let socket = path.to_str().unwrap().to_owned();
    let replaced = [("/var/run/someuds.sock".to_owned(), socket)];
    let (_proxy, _, inbound) = workload("ratings", &replaced);
    assert_eq!(status(inbound, "10.1.0.2:9080", "ratings"), 204);
    assert_eq!(&application.join().unwrap(), b"GET ");
}

#[test]
fn reviews_reaches_services_and_nothing_else() {
    let (_proxy, outbound, _) = workload("reviews", &[]);
    assert_eq!(status(outbound, "192.0.2.7:80", "outside.example"), 502);
    // the service is known; in this test it has no endpoint that accepts connections
    assert_eq!(status(outbound, "10.96.0.5:80", "api.prod-apis"), 503);
}
