//! Load generator: requests at a constant rate, without coordinated omission.
//!
//! | module | contents |
//! |---|---|
//! | `arguments`, `quantity`, `settings` | command line, and the settings of a run |
//! | `address`, `headers_file`, `request`, `protocol` | destination and contents of requests |
//! | `schedule`, `pacer` | due times of requests, and the timer for them |
//! | `queue`, `engine` | due requests, and the slots that send them |
//! | `dial`, `tls`, `http1`, `http2` | connections |
//! | `outcome` | outcome of a request |
//! | `record`, `verdict` | counts and latencies, and their limits |
//! | `threads`, `progress`, `open_files` | threads of a run, progress lines, and the limit of open files |
//! | `report`, `percentiles`, `plot` | result as text, JSON, histogram and image |
//!
//! Imports run downward in this order: `engine` depends on neither threads nor reports, so that `drill` can use it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use tokio::sync::watch;

pub mod address;
pub mod arguments;
pub mod dial;
pub mod engine;
pub mod error;
pub mod headers_file;
pub mod http1;
pub mod http2;
pub mod open_files;
pub mod outcome;
pub mod pacer;
pub mod percentiles;
pub mod plot;
pub mod progress;
pub mod protocol;
pub mod quantity;
pub mod queue;
pub mod record;
pub mod report;
pub mod request;
pub mod schedule;
pub mod settings;
pub mod threads;
pub mod tls;
pub mod verdict;

use arguments::Arguments;
use error::Error;
use progress::Display;
use report::Report;
use settings::Settings;

/// File name that denotes standard output.
const STANDARD_OUTPUT: &str = "-";

/// Runs the command line.
pub fn run(arguments: &Arguments) -> ExitCode {
    match measure(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nothing is left to say when even standard error is gone.
            let _ = writeln!(std::io::stderr(), "load: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<u8, Error> {
    let settings = Settings::new(arguments)?;
    open_files::make_room(u64::from(settings.connections))?;
    let (stop, stopped) = watch::channel(false);
    watch_signals(stop)?;
    let display = Display::new(arguments.quiet);
    let outcome = threads::run(&settings, &stopped, &mut |line| display.show(line));
    display.end();
    let outcome = outcome?;
    let checks = verdict::checks(&outcome.record, arguments.max_p99, arguments.max_failures);
    let report = Report {
        settings: &settings,
        outcome: &outcome,
        checks: &checks,
    };
    write_out(arguments, &report)?;
    let nothing = outcome.record.requests > 0 && outcome.record.succeeded() == 0;
    Ok(if nothing || checks.iter().any(|check| !check.met) {
        1
    } else if outcome.stopped {
        130
    } else {
        0
    })
}

fn write_out(arguments: &Arguments, report: &Report<'_>) -> Result<(), Error> {
    let latency = &report.outcome.record.latency;
    if let Some(path) = &arguments.histogram {
        write_file(path, &percentiles::text(latency))?;
    }
    if let Some(path) = &arguments.plot {
        write_file(path, &plot::svg(latency, &report.title()))?;
    }
    let mut printed = report.text();
    if let Some(path) = &arguments.json {
        let json = format!("{:#}\n", report.json());
        if path.as_os_str() == STANDARD_OUTPUT {
            printed = json;
        } else {
            write_file(path, &json)?;
        }
    }
    let written = write!(std::io::stdout(), "{printed}");
    written.map_err(|error| Error::Start(format!("the result cannot be printed: {error}")))
}

fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| Error::Start(format!("{}: {error}", path.display())))
}

/// Handles signals: the first SIGINT or SIGTERM ends the run with the results so far; a second one ends the program.
fn watch_signals(stop: watch::Sender<bool>) -> Result<(), Error> {
    let failed = |error| Error::Start(format!("cannot watch for signals: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(failed)?;
    let watch = move || {
        runtime.block_on(async {
            if next_signal().await.is_ok() {
                stop.send_replace(true);
                if next_signal().await.is_ok() {
                    std::process::exit(130);
                }
            }
        });
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .map_err(failed)?;
    Ok(())
}

async fn next_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
