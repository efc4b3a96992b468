//! Load comparison: the same load through Strait, nginx, HAProxy and Envoy, in one run on one machine.
//!
//! | module | contents |
//! |---|---|
//! | `arguments` | command line |
//! | `tool` | required programs, their versions, and how to install them |
//! | `process`, `accounting` | start of programs on a core, and their CPU time and memory |
//! | `upstream`, `client`, `tls` | the server behind the proxies, a small client, the certificate |
//! | `load`, `generator` | wrk and h2load, and our own generator for what they cannot do |
//! | `steady` | load at a fixed rate, by the generator of `crate::load` |
//! | `probe` | check that a proxy works before it is measured |
//! | `configure` | equivalent configurations, as text |
//! | `sidecars` | equivalent configurations of a client's and a service's sidecar |
//! | `bench` | environment of all scenarios: running proxies |
//! | `scenario` | the measurements |
//! | `report`, `target` | the Markdown tables, and the performance targets of Strait |
//!
//! The program may block and sleep: nothing here is in the path of a request.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

pub mod accounting;
pub mod arguments;
pub mod bench;
pub mod client;
pub mod configure;
mod environment;
pub(crate) mod failure;
mod figures;
pub mod generator;
pub mod load;
pub mod probe;
pub mod process;
mod progress;
pub mod report;
pub mod scenario;
pub mod sidecars;
pub mod statistics;
pub mod steady;
pub mod target;
pub mod tls;
pub mod tool;
pub mod upstream;

pub use failure::{Failure, exit_code};
pub use progress::say;

use arguments::{Arguments, Command};
use bench::Bench;
use failure::context;
use process::Cancel;
use report::Report;
use tool::Tools;

const DEBUG_BUILD: &str =
    "this is a debug build, and so is Strait beside it: its figures mean nothing";

/// Runs the command line.
///
/// A proxy that is missing or fails is skipped and noted in the report.
///
/// # Errors
/// When nothing can be measured, the report cannot be written, or the run was cancelled.
pub fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Some(Command::Upstream { addresses }) => {
            return upstream::serve(*addresses).map(|()| ExitCode::SUCCESS);
        }
        Some(Command::Generate(wanted)) => {
            return generator::generate(wanted).map(|()| ExitCode::SUCCESS);
        }
        Some(Command::Load(wanted)) => return Ok(crate::load::run(wanted)),
        None => {}
    }
    let tools = Tools::find(&arguments.wanted()?);
    for tool in tools.missing() {
        say(&tool::missing_hint(tool));
    }
    if let Some(tool) = tools.missing().find(|tool| tool.is_essential()) {
        return Err(Failure::new(format!(
            "nothing can be measured without {}",
            tool.binary()
        )));
    }
    let cancel = Cancel::default();
    watch_signals(cancel.clone())?;
    let directory = tempfile::Builder::new()
        .prefix("strait-compare-")
        .disable_cleanup(arguments.keep)
        .tempdir();
    let directory = directory.map_err(context("no temporary directory"))?;
    if arguments.keep {
        say(&format!(
            "files of this run: {}",
            directory.path().display()
        ));
    }
    let mut report = Report::new(environment::describe(&arguments, &tools));
    report.notes.extend(tools.missing().map(tool::missing_hint));
    if cfg!(debug_assertions) && arguments.strait.is_none() {
        report.notes.push(DEBUG_BUILD.to_owned());
        say(DEBUG_BUILD);
    }
    let bench = Bench::set_up(arguments, tools, directory.path(), cancel, &mut report)?;
    for scenario in bench.arguments.chosen() {
        say(&format!("scenario {}", scenario.name()));
        scenario.measure(&bench, &mut report)?;
        write_out(bench.arguments.out.as_deref(), &report)?;
    }
    let printed = write!(std::io::stdout(), "{}", report.markdown());
    printed.map_err(context("cannot print the report"))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the report. It is written after every scenario, so that an interrupted run leaves its results.
fn write_out(path: Option<&Path>, report: &Report) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, report.markdown()).map_err(context(path.display()))
}

/// Time in which a repeated signal counts as the same one.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// Handles signals: the first SIGINT, SIGTERM or SIGHUP stops the run in order, a second one immediately.
fn watch_signals(cancel: Cancel) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(context("cannot watch for signals"))?;
    let watch = move || {
        runtime.block_on(async {
            if next_signal().await.is_ok() {
                say("stopping; once more to stop at once");
                cancel.cancel();
                // `timeout` and some shells send a signal to the program and again to its group.
                tokio::time::sleep(SAME_SIGNAL).await;
                if next_signal().await.is_ok() {
                    std::process::exit(130);
                }
            }
        });
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .map_err(context("cannot start a thread"))?;
    Ok(())
}

async fn next_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = hangup.recv() => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
