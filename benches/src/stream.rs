//! Control stream at scale: a config server, a proxy that follows it, additional watchers, and real requests.
//!
//! | module | contents |
//! |---|---|
//! | `arguments`, `progress` | command line, and output during a run |
//! | `server` | `strait control` as a process, and its API over HTTP/2 with TLS |
//! | `priority` | scheduling priority of requests on the shared core |
//! | `mesh` | objects that the server is filled with, and their changes |
//! | `upstream` | endpoints of the mesh: one socket for all addresses of 127.0.0.0/8 |
//! | `proxy` | `strait run` as a process, and requests through it |
//! | `watchers` | watches that only record when they have seen a change |
//! | `change` | changes one after the other, each timed from the write to the first request that follows it |
//! | `storm` | many changes per second under steady load |
//!
//! The server, the upstream and this program share one core; the proxy has the other. Threads that send and answer
//! requests have a higher priority than the others on that core.

use std::path::Path;

use tokio::time::Instant;

use crate::compare::Failure;
use crate::compare::failure::context;
use crate::compare::process::{Cancel, Launcher, pin_self, raise_open_files};
use crate::compare::tool::strait_binary;

mod arguments;
mod change;
mod mesh;
mod priority;
mod progress;
mod proxy;
mod server;
mod storm;
mod upstream;
mod watchers;

pub use arguments::{Arguments, Protocol};

use mesh::Mesh;
use priority::Normal;
use progress::say;
use proxy::StreamProxy;
use server::Server;
use watchers::Watchers;

/// Number of open files that a run with 1,000 watchers may need, including the connections to endpoints.
const OPEN_FILES: u64 = 16_384;

/// Runs all measurements, and prints the results.
///
/// # Errors
/// When a program does not start, a write is rejected, or a change does not arrive within three minutes.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let strait = strait_binary(arguments.strait.as_deref())?;
    raise_open_files(OPEN_FILES)?;
    pin_self(0)?;
    let normal = Normal::lower_thread_priority()?;
    let directory = tempfile::tempdir_in(".").map_err(context("no temporary directory"))?;
    let directory = std::path::absolute(directory.path()).map_err(context("no directory"))?;
    let launcher = Launcher::new(directory.clone(), Cancel::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(context("cannot start a runtime"))?;
    runtime.block_on(measure(arguments, &normal, &launcher, &strait))
}

async fn measure(
    arguments: &Arguments,
    normal: &Normal,
    launcher: &Launcher,
    strait: &Path,
) -> Result<(), Failure> {
    let port = upstream::start(normal)?;
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
    let proxy = StreamProxy::start(launcher, strait, &server, arguments.protocol, &mesh).await?;
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
    storm::run(arguments, normal, &server, &proxy, &mesh).await?;
    say(&format!(
        "at the end: proxy {} MiB, server {} MiB",
        proxy.memory_mib(),
        server.memory_mib()
    ))
}
