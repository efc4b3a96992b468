//! A control stream at size: a config server, a proxy that follows it, watchers beside it, and real requests.
//!
//! | module | what lives there |
//! |---|---|
//! | `server` | `strait control` as a process, and its API over HTTP/2 with TLS |
//! | `mesh` | the objects that fill it, and the ones that are changed |
//! | `upstream` | every endpoint of the mesh: one socket that all addresses of 127.0.0.0/8 reach |
//! | `proxy` | `strait run` as a process, and requests through it |
//! | `watchers` | watches that only note when they have seen a change |
//! | `change` | one change after the other, from the write to the first request that follows it |
//! | `storm` | many changes per second under steady load |
//!
//! The server, the upstream and this program share one core, the proxy has the other.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tokio::time::Instant;

use crate::compare::Failure;
use crate::compare::failure::context;
use crate::compare::process::{Cancel, Launcher, pin_self, raise_open_files};

mod change;
mod mesh;
mod proxy;
mod server;
mod storm;
mod upstream;
mod watchers;

use mesh::Mesh;
use proxy::StreamProxy;
use server::Server;
use watchers::Watchers;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(180);

/// Open files that a run with 1,000 watchers may need, with the connections to the endpoints that are asked.
const OPEN_FILES: u64 = 16_384;

/// Measures a config server and a proxy that follows it: time to first ready, memory, the time from a write to traffic,
/// and requests during many changes.
///
/// Build both first: `cargo build --release -p proxy`. All traffic stays on 127.0.0.0/8.
#[derive(Clone, Debug, Parser)]
#[command(name = "stream", version)]
pub struct Arguments {
    /// Services, each with a VirtualService and ten endpoints.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub services: u32,

    /// Watches of other clients in the second series of changes.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub watchers: u32,

    /// Timed changes in each series, half of routes and half of endpoints.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub changes: u32,

    /// How the proxy follows the server.
    #[arg(long, value_enum, default_value_t = Protocol::Kubernetes)]
    pub protocol: Protocol,

    /// Seconds of the storm, which take turns with as many quiet ones.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub storm: u32,

    /// Changes per second in the storm.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub storm_rate: u32,

    /// Requests per second in the storm and in the quiet beside it.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,

    /// The binary of Strait. Default: `strait` beside this program.
    #[arg(long, value_name = "PATH")]
    pub strait: Option<PathBuf>,
}

/// A control stream's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// The list and watch of a Kubernetes API.
    Kubernetes,
    /// Aggregated discovery, incremental.
    Xds,
}

/// Runs everything, and prints what it found.
///
/// # Errors
/// When a program does not start, a write is refused, or a change does not arrive within three minutes.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let own = std::env::current_exe().map_err(context("cannot find this program"))?;
    let strait = arguments.strait.clone();
    let strait = strait.unwrap_or(own.with_file_name("strait"));
    let strait = std::path::absolute(&strait).map_err(context(strait.display()))?;
    raise_open_files(OPEN_FILES)?;
    pin_self(0)?;
    let directory = tempfile::tempdir_in(".").map_err(context("no temporary directory"))?;
    let directory = std::path::absolute(directory.path()).map_err(context("no directory"))?;
    let launcher = Launcher::new(directory.clone(), Cancel::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(context("cannot start a runtime"))?;
    runtime.block_on(measure(arguments, &launcher, &strait))
}

async fn measure(arguments: &Arguments, launcher: &Launcher, strait: &Path) -> Result<(), Failure> {
    let port = upstream::start().await?;
    let mesh = Mesh::new(arguments.services, port)?;
    let server = Server::start(launcher, strait).await?;
    let begin = Instant::now();
    mesh.fill(&server.connect().await?).await?;
    let (objects, seconds) = (mesh.objects(), begin.elapsed().as_secs_f64());
    say(&format!(
        "{objects} objects written in {seconds:.1} s, {:.0} a second, each durable; server {} MiB",
        f64::from(objects) / seconds,
        server.memory_mib()
    ))?;
    let proxy = StreamProxy::start(launcher, (strait, &server), arguments.protocol, &mesh).await?;
    say(&format!(
        "proxy ready after {:.2} s, of which {:.2} s CPU; proxy {} MiB, server {} MiB",
        proxy.ready_after.as_secs_f64(),
        proxy.cpu().as_secs_f64(),
        proxy.memory_mib(),
        server.memory_mib()
    ))?;
    let series = change::Series::new(arguments.changes, &mesh, &proxy);
    series.run(&server, None).await?;
    if arguments.watchers > 0 {
        let mut watchers = Watchers::start(&server, arguments.watchers).await?;
        series.run(&server, Some(&mut watchers)).await?;
        let memory = server.memory_mib();
        say(&format!("  server {memory} MiB with all watches"))?;
    }
    storm::run(arguments, &server, &proxy, &mesh).await?;
    say(&format!(
        "at the end: proxy {} MiB, server {} MiB",
        proxy.memory_mib(),
        server.memory_mib()
    ))
}

/// A line for the person who waits.
fn say(line: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{line}").map_err(context("cannot print"))
}
