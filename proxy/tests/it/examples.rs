//! Every example is valid, runs, and behaves as its README says.

mod sidecar;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hyper::Request;

use crate::support::client::{Answer, Client, Front};
use crate::support::mesh::documents;
use crate::support::origin::empty;
use crate::support::pki::Authority;
use crate::support::proxy::free_address;
use crate::support::tls::{credential, files, secret};
use crate::support::until;

/// Maximum time for runs of a command until it prints the expected output, since a traffic split is random, and a changed
/// file takes effect a moment later.
const TRIES: Duration = Duration::from_secs(10);

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

fn names() -> Vec<String> {
    let entries = fs::read_dir(examples()).unwrap().map(Result::unwrap);
    let directories = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = directories
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Command of a README with its expected output lines.
#[derive(Debug)]
struct Documented {
    command: String,
    lines: Vec<String>,
}

/// Returns the commands of a README: indented lines that begin with `$`, each with the indented lines that follow.
fn documented(name: &str) -> Vec<Documented> {
    let readme = fs::read_to_string(examples().join(name).join("README.md")).unwrap();
    let mut commands: Vec<Documented> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match line.strip_prefix("    ") {
            Some(line) => match line.strip_prefix("$ ") {
                Some(command) => {
                    inside = true;
                    commands.push(Documented {
                        command: command.to_owned(),
                        lines: Vec::new(),
                    });
                }
                None if inside => {
                    let command = commands.last_mut().unwrap();
                    command.lines.push(line.to_owned());
                }
                None => (),
            },
            None => inside = false,
        }
    }
    commands
}

fn strait(arguments: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strait"))
        .current_dir(examples().join(".."))
        .args(arguments)
        .output()
        .unwrap()
}

/// Splits a command line into words, with single quotes as in a shell.
pub fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in command.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words
}

/// Running `strait demo` of a copy of an example, on free ports.
struct Demo {
    edge: SocketAddr,
    /// Address of the TLS listener, if the example has one.
    tls: SocketAddr,
    child: Child,
    directory: tempfile::TempDir,
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that is free on every address, outside of the range of ephemeral ports, since a server of another
/// test could take an ephemeral port before the demo listens. Each process has a range of its own, since two demos with
/// the same port would share it.
fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const OF_ONE_PROCESS: u32 = 400;
    const PROCESSES: u32 = 50;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = FIRST + std::process::id() % PROCESSES * OF_ONE_PROCESS;
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed) % OF_ONE_PROCESS;
        let port = u16::try_from(own + next).unwrap();
        if TcpListener::bind(("::", port)).is_ok() {
            return port;
        }
    }
}

async fn demo(name: &str) -> Demo {
    let directory = tempfile::tempdir().unwrap();
    let edge = free_port();
    let tls = free_port();
    let fixed = [(8080, edge), (8443, tls)].into_iter();
    let backends = [9101, 9102].into_iter().chain(9201..=9206);
    let ports: Vec<(u16, u16)> = fixed
        .chain(backends.map(|port| (port, free_port())))
        .collect();
    for entry in fs::read_dir(examples().join(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let mut text = fs::read_to_string(&path).unwrap();
        for (from, to) in &ports {
            for before in ["grpc", "http", "number", "port"] {
                let replaced = format!("{before}: {to}");
                text = text.replace(&format!("{before}: {from}"), &replaced);
            }
        }
        fs::write(directory.path().join(path.file_name().unwrap()), text).unwrap();
    }
    if has_certificates(name) {
        certificates(directory.path());
    }
    let child = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["demo", "--admin", &free_address().to_string(), "--dir"])
        .arg(directory.path())
        .args(["--access-log", "off", "--concurrency", "1"])
        .args(more_arguments(name))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let demo = Demo {
        edge: ([127, 0, 0, 1], edge).into(),
        tls: ([127, 0, 0, 1], tls).into(),
        child,
        directory,
    };
    until("the gateway listens", async || {
        Client::try_connect(Front::H1, demo.edge).await.is_ok()
    })
    .await;
    demo
}

/// Returns the arguments after the directory in the command by which a README starts its example.
fn more_arguments(name: &str) -> Vec<String> {
    let readme = fs::read_to_string(examples().join(name).join("README.md")).unwrap();
    let start = format!("-- demo --dir examples/{name}");
    let rest = readme.lines().find_map(|line| line.split_once(&start));
    let (_, rest) = rest.unwrap_or_default();
    rest.split_whitespace().map(str::to_owned).collect()
}

fn has_certificates(name: &str) -> bool {
    ["edge-gateway", "gateway-api-edge"].contains(&name)
}

/// Creates the certificates that `make-certificates.sh` of the edge gateway creates.
fn certificates(directory: &Path) {
    let (ca, partners) = (Authority::new("ca"), Authority::new("partners"));
    let [www, shop, api] =
        ["www", "shop", "api"].map(|name| ca.server(&[&format!("{name}.example")]));
    let partner = partners.server(&["partner.example"]);
    let inside = directory.join("certificates");
    fs::create_dir(&inside).unwrap();
    files(
        &inside,
        &[
            ("ca.crt", &ca.pem()),
            ("partner.crt", &partner.chain),
            ("partner.key", &partner.key),
        ],
    );
    let values = [
        ("tls.crt", &*api.chain),
        ("tls.key", &api.key),
        ("ca.crt", &partners.pem()),
    ];
    let secrets = [
        credential("www", &www),
        credential("shop", &shop),
        secret("api", &values),
    ];
    fs::write(directory.join("secrets.yaml"), documents(secrets)).unwrap();
}

/// Runs the real `curl` and returns its output.
fn real_curl(arguments: &[String]) -> String {
    let output = Command::new("curl")
        .arg("--silent")
        .args(arguments)
        .output();
    let output = output.expect("curl is installed: .ci/run sees to it");
    String::from_utf8(output.stdout).unwrap()
}

/// Emulates the output of `curl` for the arguments that the READMEs use.
async fn curl(client: &mut Client, arguments: &[String]) -> String {
    let mut request = Request::get("/");
    let mut with_head = false;
    let mut version = "HTTP/1.1";
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        request = match argument.as_str() {
            "-i" => {
                with_head = true;
                request
            }
            "--http2-prior-knowledge" => {
                version = "HTTP/2";
                request
            }
            "-X" => request.method(arguments.next().unwrap().as_str()),
            "-H" => {
                let (name, value) = arguments.next().unwrap().split_once(": ").unwrap();
                request.header(name, value)
            }
            url => request.uri(url),
        };
    }
    let answer = client.call(request.body(empty()).unwrap()).await;
    let head = if with_head {
        head(&answer, version)
    } else {
        String::new()
    };
    let trailers = answer.trailers.as_ref().filter(|_| with_head);
    let trailers = trailers.map_or_else(String::new, fields);
    format!("{head}{}{trailers}", answer.text())
}

fn head(answer: &Answer, version: &str) -> String {
    let status = hyper::StatusCode::from_u16(answer.status).unwrap();
    // HTTP/2 has no reason phrase
    let status = match version {
        "HTTP/2" => status.as_str().to_owned(),
        _ => status.to_string(),
    };
    format!("{version} {status}\n{}\n", fields(&answer.headers))
}

fn fields(headers: &hyper::HeaderMap) -> String {
    let line = |(name, value): (&_, &hyper::header::HeaderValue)| {
        format!("{name}: {}\n", value.to_str().unwrap())
    };
    headers.iter().map(line).collect()
}

/// Whether the output has the lines in their order; `whole` excludes any others.
pub fn prints(output: &str, lines: &[String], whole: bool) -> bool {
    let mut output = output.lines().map(str::trim_end);
    let found = lines
        .iter()
        .all(|line| output.any(|printed| printed == line.trim_end()));
    found && (!whole || output.next().is_none())
}

async fn check_readme(name: &str) {
    let demo = demo(name).await;
    let mut http1 = Client::connect(Front::H1, demo.edge).await;
    let mut http2 = Client::connect(Front::H2, demo.edge).await;
    let commands = documented(name);
    assert!(commands.len() >= 3, "{name}: {commands:?}");
    for Documented { command, lines } in commands {
        let mut arguments = words(&command);
        if arguments.remove(0) == "strait" {
            let output = strait(&arguments);
            let output = String::from_utf8(output.stdout).unwrap();
            assert!(prints(&output, &lines, false), "{command}\n{output}");
            continue;
        }
        let edge = demo.edge.to_string();
        let (tls, directory) = (demo.tls.to_string(), demo.directory.path().display());
        let certificates = format!("{directory}/certificates");
        let here = |text: &String| {
            text.replace("127.0.0.1:8080", &edge)
                .replace("127.0.0.1:8443", &tls)
                .replace(&format!("examples/{name}/certificates"), &certificates)
        };
        let arguments: Vec<_> = arguments.iter().map(here).collect();
        let lines: Vec<_> = lines.iter().map(here).collect();
        if command.starts_with("cat >") {
            let path = arguments[0].strip_prefix(&format!(">examples/{name}/"));
            let (_, text) = lines.split_last().unwrap();
            fs::write(demo.directory.path().join(path.unwrap()), text.join("\n")).unwrap();
            continue;
        }
        let whole = !arguments.contains(&"-i".to_owned());
        let mut output;
        let over_http2 = arguments.contains(&"--http2-prior-knowledge".to_owned());
        let client = if over_http2 { &mut http2 } else { &mut http1 };
        let first = Instant::now();
        loop {
            output = match arguments.iter().any(|text| text == "--cacert") {
                true => real_curl(&arguments),
                false => curl(client, &arguments).await,
            };
            if prints(&output, &lines, whole) || first.elapsed() > TRIES {
                break;
            }
        }
        assert!(prints(&output, &lines, whole), "{command}\n{output}");
    }
}

#[test]
fn every_example_is_valid() {
    for name in names() {
        let mut path = format!("examples/{name}");
        let directory = tempfile::tempdir().unwrap();
        if has_certificates(&name) {
            certificates(directory.path());
            path = format!("{path},{}", directory.path().join("secrets.yaml").display());
        }
        if examples().join(&name).join("mesh").is_dir() {
            path.push_str("/mesh");
        }
        let mut arguments = vec!["check".to_owned(), "--config".to_owned(), path];
        if name == "oauth2-proxy" {
            arguments.push(format!("--mesh-config=examples/{name}/mesh-config.yaml"));
        }
        let output = strait(&arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}\n{text}");
        let findings = match name.as_str() {
            // without the grant that its README adds
            "gateway-api-grants" => "0 errors, 1 warning",
            _ => "0 errors, 0 warnings",
        };
        assert!(text.contains(findings), "{name}\n{text}");
    }
}

#[test]
fn every_example_is_run_by_a_test() {
    let run = [
        "bookinfo",
        "canary",
        "clusters-canary",
        "clusters-failover",
        "clusters-gateways",
        "clusters-gloo",
        "clusters-karmada",
        "clusters-locality",
        "clusters-weights",
        "cors",
        "edge-gateway",
        "fault-and-retry",
        "gateway-api-canary",
        "gateway-api-edge",
        "gateway-api-failover",
        "gateway-api-grants",
        "gateway-api-grpc",
        "grpc",
        "jwt-at-the-edge",
        "mirror",
        "oauth2-proxy",
        "per-client-limits",
        "quickstart",
        "redirect-and-rewrite",
        "sidecar",
        "tcp",
        "tls-passthrough",
        "zero-trust",
    ];
    assert_eq!(names(), run);
}

#[tokio::test]
async fn bookinfo_does_what_its_readme_says() {
    check_readme("bookinfo").await;
}

#[tokio::test]
async fn canary_does_what_its_readme_says() {
    check_readme("canary").await;
}

#[tokio::test]
async fn clusters_canary_does_what_its_readme_says() {
    check_readme("clusters-canary").await;
}

#[tokio::test]
async fn clusters_failover_does_what_its_readme_says() {
    check_readme("clusters-failover").await;
}

#[tokio::test]
async fn clusters_gateways_does_what_its_readme_says() {
    check_readme("clusters-gateways").await;
}

#[tokio::test]
async fn clusters_gloo_does_what_its_readme_says() {
    check_readme("clusters-gloo").await;
}

#[tokio::test]
async fn clusters_karmada_does_what_its_readme_says() {
    check_readme("clusters-karmada").await;
}

#[tokio::test]
async fn clusters_locality_does_what_its_readme_says() {
    check_readme("clusters-locality").await;
}

#[tokio::test]
async fn clusters_weights_does_what_its_readme_says() {
    check_readme("clusters-weights").await;
}

#[tokio::test]
async fn cors_does_what_its_readme_says() {
    check_readme("cors").await;
}

#[tokio::test]
async fn fault_and_retry_does_what_its_readme_says() {
    check_readme("fault-and-retry").await;
}

#[tokio::test]
async fn gateway_api_canary_does_what_its_readme_says() {
    check_readme("gateway-api-canary").await;
}

#[tokio::test]
async fn gateway_api_edge_does_what_its_readme_says() {
    check_readme("gateway-api-edge").await;
}

#[tokio::test]
async fn gateway_api_failover_does_what_its_readme_says() {
    check_readme("gateway-api-failover").await;
}

#[tokio::test]
async fn gateway_api_grants_does_what_its_readme_says() {
    check_readme("gateway-api-grants").await;
}

#[tokio::test]
async fn gateway_api_grpc_does_what_its_readme_says() {
    check_readme("gateway-api-grpc").await;
}

#[tokio::test]
async fn grpc_does_what_its_readme_says() {
    check_readme("grpc").await;
}

#[tokio::test]
async fn edge_gateway_does_what_its_readme_says() {
    check_readme("edge-gateway").await;
}

#[tokio::test]
async fn jwt_at_the_edge_does_what_its_readme_says() {
    check_readme("jwt-at-the-edge").await;
}

#[test]
fn zero_trust_allows_what_its_table_expects() {
    let arguments = [
        "check",
        "--config=examples/zero-trust/mesh",
        "--access=examples/zero-trust/access.yaml",
    ];
    let output = strait(&arguments.map(str::to_owned));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("0 errors, 0 warnings"), "{text}");
}

#[test]
fn oauth2_proxy_is_asked_about_everything_but_the_login() {
    for (path, asked) in [("/", true), ("/oauth2/start", false)] {
        let arguments = [
            "explain",
            "--config=examples/oauth2-proxy/mesh",
            "--mesh-config=examples/oauth2-proxy/mesh-config.yaml",
            "--labels=istio=ingressgateway",
            "GET",
            &format!("http://127.0.0.1:8080{path}"),
        ];
        let output = strait(&arguments.map(str::to_owned));
        let text = String::from_utf8_lossy(&output.stdout);
        let line = "asks `oauth2-proxy` (HTTP, oauth2-proxy.example:4180)";
        assert_eq!(text.contains(line), asked, "{text}");
    }
}

#[tokio::test]
async fn mirror_does_what_its_readme_says() {
    check_readme("mirror").await;
}

#[tokio::test]
async fn per_client_limits_does_what_its_readme_says() {
    check_readme("per-client-limits").await;
}

#[tokio::test]
async fn quickstart_does_what_its_readme_says() {
    check_readme("quickstart").await;
}

#[tokio::test]
async fn redirect_and_rewrite_does_what_its_readme_says() {
    check_readme("redirect-and-rewrite").await;
}

#[tokio::test]
async fn tcp_does_what_its_readme_says() {
    check_readme("tcp").await;
}

#[tokio::test]
async fn tls_passthrough_does_what_its_readme_says() {
    check_readme("tls-passthrough").await;
}

/// Documented `curl` commands whose proxies no example starts, with the tests that run them instead.
const RUN_ELSEWHERE: &[(&str, &str)] = &[
    // the demo's own, run by its test
    ("README.md", "curl http://127.0.0.1:8080/"),
    ("docs/tracing.md", "curl http://127.0.0.1:8080/"),
    (
        "README.md",
        "curl -X POST http://127.0.0.1:15010/demo/clusters/c2/stop",
    ),
    // tests of taps ask for the same page
    ("docs/tap.md", "curl '127.0.0.1:15000/tap?status=5xx'"),
    // the page's own test posts a level
    (
        "docs/metrics.md",
        "curl -X POST 'http://127.0.0.1:15000/logging?level=debug'",
    ),
];

/// Returns every `curl` command of a text, up to the end of its line or code span.
fn curls(text: &str) -> Vec<String> {
    let commands = text.lines().flat_map(|line| {
        line.match_indices("curl ").filter_map(move |(at, _)| {
            let before = line[..at].chars().last();
            let command = &line[at..];
            match before {
                Some('`') => command.split('`').next().map(str::to_owned),
                Some(' ') if line.starts_with("    ") => Some(command.to_owned()),
                _ => None,
            }
        })
    });
    commands.collect()
}

#[test]
fn every_curl_command_in_the_documents_is_run_by_a_test() {
    let root = examples().join("..");
    let mut documents = vec!["README.md".to_owned()];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        documents.push(format!("docs/{name}"));
    }
    for document in documents {
        if !document.ends_with(".md") {
            continue;
        }
        for command in curls(&fs::read_to_string(root.join(&document)).unwrap()) {
            let listed = RUN_ELSEWHERE.contains(&(&document, &command));
            assert!(listed, "{document}: {command}");
        }
    }
    for name in names() {
        let readme = fs::read_to_string(examples().join(&name).join("README.md")).unwrap();
        let run: Vec<String> = documented(&name)
            .into_iter()
            .map(|one| one.command)
            .collect();
        for command in curls(&readme) {
            assert!(run.contains(&command), "examples/{name}: {command}");
        }
    }
}
