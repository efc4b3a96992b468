//! `strait run` process, and requests through it.

use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::arguments::Protocol;
use super::mesh::Mesh;
use super::progress::PATIENCE;
use super::server::Server;
use crate::compare::accounting::{cpu_time, resident_kib};
use crate::compare::client::free_port;
use crate::compare::failure::{Failure, context};
use crate::compare::process::{CommandLine, Launcher, Process};

/// Interval between readiness checks, and between requests that wait for a change.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// Timeout of a response.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Running proxy that follows a server.
#[derive(Debug)]
pub(super) struct StreamProxy {
    process: Process,
    /// Port that serves the mesh.
    pub(super) port: u16,
    /// Time from its start until it was ready and answered a request for the last service.
    pub(super) ready_after: Duration,
}

impl StreamProxy {
    pub(super) async fn start(
        launcher: &Launcher,
        strait: &Path,
        server: &Server,
        protocol: Protocol,
        mesh: &Mesh,
    ) -> Result<StreamProxy, Failure> {
        let admin = free_port()?;
        let line = CommandLine::new(strait, arguments(server, protocol, admin)?);
        let begin = Instant::now();
        let mut process = launcher.start("proxy", 1, &line)?;
        while status(admin, "localhost", "/healthz/ready").await != Some(200) {
            process.check_alive()?;
            if begin.elapsed() > PATIENCE {
                let log = process.output();
                return Err(Failure::new(format!("the proxy is not ready: {log}")));
            }
            sleep(PAUSE).await;
        }
        let ready_after = begin.elapsed();
        let port = mesh.gateway;
        let last = mesh.host(u32::MAX);
        match status(port, &last, "/").await {
            Some(200) => {}
            other => return Err(Failure::new(format!("{last} was answered with {other:?}"))),
        }
        Ok(StreamProxy {
            process,
            port,
            ready_after,
        })
    }

    pub(super) fn memory_mib(&self) -> u64 {
        resident_kib(self.process.pid()) / 1024
    }

    pub(super) fn cpu(&self) -> Duration {
        cpu_time(self.process.pid())
    }
}

fn arguments(server: &Server, protocol: Protocol, admin: u16) -> Result<Vec<OsString>, Failure> {
    let source: Vec<OsString> = match protocol {
        Protocol::Kubernetes => vec![
            "--control=kubernetes://".into(),
            "--kubeconfig".into(),
            server.file("proxy.kubeconfig").into(),
        ],
        Protocol::Xds => {
            let kubeconfig = std::fs::read_to_string(server.file("proxy.kubeconfig"));
            let kubeconfig = kubeconfig.map_err(context("proxy.kubeconfig"))?;
            let token = kubeconfig
                .lines()
                .find_map(|line| line.trim().strip_prefix("token: "));
            let token = token.ok_or_else(|| Failure::new("proxy.kubeconfig has no token"))?;
            let file = server.file("bench.token");
            std::fs::write(&file, token.trim()).map_err(context(file.display()))?;
            vec![
                format!("--control=xds://{}", server.address()).into(),
                "--control-ca".into(),
                server.file("ca.crt").into(),
                "--control-token".into(),
                file.into(),
            ]
        }
    };
    let rest = [
        "--admin",
        &format!("127.0.0.1:{admin}"),
        "--concurrency=1",
        "--access-log=off",
        "--namespace=bench",
    ]
    .map(OsString::from);
    let run = std::iter::once(OsString::from("run"));
    Ok(run.chain(source).chain(rest).collect())
}

/// Sends one request on a connection of its own and returns the status.
async fn status(port: u16, host: &str, path: &str) -> Option<u16> {
    let mut client = Client::open(port).await.ok()?;
    let answer = client.ask(host, path).await.ok()?;
    Some(answer.status)
}

/// Keep-alive connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
    response: Vec<u8>,
}

/// Parts of a response that are used here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    head: &'a str,
}

impl<'a> Answer<'a> {
    /// Returns the value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Client {
    pub(super) async fn open(port: u16) -> io::Result<Client> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        let response = Vec::with_capacity(1024);
        Ok(Client { stream, response })
    }

    /// Sends a request, and reads the whole response.
    pub(super) async fn ask(&mut self, host: &str, path: &str) -> io::Result<Answer<'_>> {
        timeout(ANSWER_LIMIT, self.exchange(host, path)).await??;
        let head = std::str::from_utf8(&self.response).map_err(io::Error::other)?;
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        Ok(Answer {
            status: status.ok_or_else(|| io::Error::other("no status"))?,
            head,
        })
    }

    async fn exchange(&mut self, host: &str, path: &str) -> io::Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await?;
        self.response.clear();
        let head = loop {
            let end = self.response.windows(4).position(|end| end == b"\r\n\r\n");
            match end {
                Some(head) => break head + 4,
                None => self.read().await?,
            }
        };
        let text = std::str::from_utf8(&self.response[..head]).map_err(io::Error::other)?;
        let answer = Answer {
            status: 0,
            head: text,
        };
        let length = answer.header("content-length");
        let length: usize = length.and_then(|n| n.parse().ok()).unwrap_or_default();
        while self.response.len() < head + length {
            self.read().await?;
        }
        Ok(())
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.response).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
