//! How long a change takes from the config server's acknowledgement to the last of its watches.
//!
//! The program starts itself again as the server, fills it over its API, and follows it by many watches over HTTP/2 with TLS.
//! Arguments: the number of watches (1,000), of services (10,000) and of timed changes (200).

// A program that measures: numbers are small enough for floating point.
#![allow(clippy::cast_precision_loss)]

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use config_server::{Settings, start};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const SERVICES: &str = "/api/v1/namespaces/bench/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";
const ROUTES: &str = "/apis/networking.istio.io/v1/namespaces/bench/virtualservices";

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many writes are in flight while the server is filled.
const WRITES: usize = 200;

/// How many watches share a connection.
const PER_CONNECTION: usize = 10;

/// What is measured.
struct Arguments {
    watchers: usize,
    /// VirtualServices and Services, each Service with ten endpoints.
    services: usize,
    changes: usize,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, data] = &*arguments
        && command == "serve"
    {
        let mut settings = Settings::new(data.into(), ([127, 0, 0, 1], 0).into());
        settings.writes_status = false;
        start(&settings).await?.serve().await;
        return Ok(());
    }
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse());
    run(&Arguments {
        watchers: number(0, 1_000)?,
        services: number(1, 10_000)?,
        changes: number(2, 200)?,
    })
    .await
}

/// The server, in a process of its own, so that its memory is its own.
struct Server {
    child: Child,
    address: String,
    token: String,
    tls: TlsConnector,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    async fn start(data: &Path) -> Outcome<Server> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").arg(data).stdout(Stdio::null());
        let child = command.spawn()?;
        let deadline = Instant::now() + PATIENCE;
        // It is the last file that a server writes.
        let kubeconfig = loop {
            match std::fs::read_to_string(data.join("proxy.kubeconfig")) {
                Ok(_) => break std::fs::read_to_string(data.join("admin.kubeconfig"))?,
                Err(_) if Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        let value = |name: &str| -> Outcome<String> {
            let found = kubeconfig.lines().find_map(|l| l.trim().strip_prefix(name));
            Ok(found.ok_or("the kubeconfig is incomplete")?.to_owned())
        };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(data.join("ca.crt"))?)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Server {
            child,
            address: value("server: https://")?,
            token: value("token: ")?,
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    async fn connect(&self) -> Outcome<Connection> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let stream = self.tls.connect(name, stream).await?;
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Connection {
            sender,
            token: self.token.clone(),
        })
    }

    /// Its resident memory, in MiB.
    fn memory(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.ok_or("/proc has no VmRSS")?.parse::<u64>()? / 1024)
    }
}

#[derive(Clone)]
struct Connection {
    sender: http2::SendRequest<Full<Bytes>>,
    token: String,
}

impl Connection {
    async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: String,
    ) -> Outcome<Incoming> {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://localhost{path}"))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", kind)
            .body(Full::new(Bytes::from(body)))?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        let code = response.status();
        if code.is_success() {
            Ok(response.into_body())
        } else {
            Err(format!("{path} was answered with {code}").into())
        }
    }

    /// The latest revision of the server.
    async fn revision(&self) -> Outcome<String> {
        let path = format!("{ROUTES}?limit=1");
        let answer = self.send(Method::GET, &path, "", String::new()).await?;
        let text = answer.collect().await?.to_bytes();
        let list: Value = serde_json::from_slice(&text)?;
        let revision = list["metadata"]["resourceVersion"].as_str();
        Ok(revision.ok_or("the list has no revision")?.to_owned())
    }

    /// Sends a write. Returns when it was acknowledged.
    async fn write(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Outcome<Instant> {
        let answer = self.send(method, path, kind, body.to_string()).await?;
        let acknowledged = Instant::now();
        answer.collect().await?;
        Ok(acknowledged)
    }
}

fn objects(number: usize) -> [(&'static str, Value); 3] {
    let name = format!("service-{number}");
    let endpoints = (0..10).map(|endpoint| {
        let address = format!("10.{}.{}.{endpoint}", number / 250, number % 250);
        json!({"addresses": [address], "conditions": {"ready": true}})
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "ports": [{"name": "http", "port": 8080}], "endpoints": endpoints.collect::<Vec<_>>(),
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"name": "http", "port": 80}], "selector": {"app": name}},
    });
    let route = json!({"destination": {"host": format!("{name}.bench.svc.cluster.local")}});
    let routes = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": name},
        "spec": {"hosts": [format!("{name}.example")], "http": [{"route": [route]}]},
    });
    [(SERVICES, service), (SLICES, slice), (ROUTES, routes)]
}

/// Creates all objects.
async fn fill(connection: &Connection, services: usize) -> Outcome<()> {
    let mut tasks = JoinSet::new();
    for number in 0..services {
        for (path, object) in objects(number) {
            if tasks.len() >= WRITES {
                tasks.join_next().await.ok_or("no write is in flight")???;
            }
            let connection = connection.clone();
            tasks.spawn(async move {
                connection
                    .write(Method::POST, path, "application/json", &object)
                    .await
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// One watch, which tells when it has seen a change: its number is a label of the object.
async fn watch(mut body: Incoming, seen: mpsc::UnboundedSender<(usize, Instant)>) -> Outcome<()> {
    const LABEL: &[u8] = b"\"bench\":\"";
    let mut rest: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        rest.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let now = Instant::now();
            let line: Vec<u8> = rest.drain(..=end).collect();
            let found = line.windows(LABEL.len()).position(|part| part == LABEL);
            let digits = found
                .map(|at| &line[at + LABEL.len()..])
                .unwrap_or_default();
            let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
            let number = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
            if found.is_some() && seen.send((number, now)).is_err() {
                break;
            }
        }
    }
    Ok(())
}

/// Starts watches, and times changes until the last of them has seen each.
async fn measure(server: &Server, arguments: &Arguments, watchers: usize) -> Outcome<()> {
    let writer = server.connect().await?;
    let since = writer.revision().await?;
    let (sender, mut seen) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let mut left = watchers;
    while left > 0 {
        let connection = server.connect().await?;
        for _ in 0..left.min(PER_CONNECTION) {
            let path = format!("{ROUTES}?watch=1&resourceVersion={since}");
            let body = connection
                .send(Method::GET, &path, "", String::new())
                .await?;
            tasks.spawn(watch(body, sender.clone()));
            left -= 1;
        }
    }
    // Since the acknowledgement arrived, and since the write was sent.
    let (mut since_answer, mut since_send) = (Vec::new(), Vec::new());
    for round in 0..arguments.changes {
        // Another value than those of earlier rounds: a patch that changes nothing is no event.
        let number = watchers * 1_000_000 + round;
        let patch = json!({"metadata": {"labels": {"bench": number.to_string()}}});
        let path = format!("{ROUTES}/service-{}", round * 7 % arguments.services);
        let kind = "application/merge-patch+json";
        let sent = Instant::now();
        let acknowledged = writer.write(Method::PATCH, &path, kind, &patch).await?;
        let mut last = acknowledged;
        let mut missing = watchers;
        while missing > 0 {
            let next = tokio::time::timeout(PATIENCE, seen.recv()).await;
            let (change, at) = next?.ok_or("the watches ended")?;
            if change == number {
                missing -= 1;
                last = last.max(at);
            }
        }
        since_answer.push(last.saturating_duration_since(acknowledged));
        since_send.push(last.saturating_duration_since(sent));
    }
    let measured = [
        (&mut since_answer, "acknowledgement"),
        (&mut since_send, "sending of the write"),
    ];
    for (times, since) in measured {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        say(&format!(
            "{watchers} watches: the last one after p50 {:.1?}, p99 {:.1?}, max {:.1?} since the {since}",
            at(50),
            at(99),
            at(100)
        ))?;
    }
    say(&format!("server {} MiB", server.memory()?))
}

async fn run(arguments: &Arguments) -> Outcome<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path()).await?;
    let started = Instant::now();
    fill(&server.connect().await?, arguments.services).await?;
    let (count, took) = (arguments.services * 3, started.elapsed());
    let rate = count as f64 / took.as_secs_f64();
    say(&format!(
        "{count} objects written in {took:.1?}, {rate:.0} a second, each durable; server {} MiB",
        server.memory()?
    ))?;
    measure(&server, arguments, 1).await?;
    measure(&server, arguments, arguments.watchers).await
}

fn say(line: &str) -> Outcome<()> {
    Ok(writeln!(io::stdout(), "{line}")?)
}
