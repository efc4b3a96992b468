//! Client: sends requests at a steady rate, and prints which workloads respond.

use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{interval, timeout};

use super::{BackendArgs, end};
use crate::command::load::{Counts, FAILED, Target, line, rows, send};
use crate::command::{EXIT_DONE, EXIT_INPUT};

/// Interval between two lines of output.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Sends requests until all are sent or a signal arrives. Returns the exit code.
///
/// # Errors
///
/// Fails when the client cannot start.
pub(super) fn run(args: &BackendArgs, target: Target) -> Result<u8, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let mut end = end::End::listen()?;
        let counts = Counts::default();
        let running = Rc::new(());
        tokio::select! {
            () = send(target, args.rate, args.requests, &counts, &running) => (),
            () = report(&counts) => (),
            () = end.signal() => (),
        }
        // every request that was sent is counted, by its own timeout at the latest
        let rest = async {
            let mut ticks = interval(Duration::from_millis(10));
            while Rc::strong_count(&running) > 1 {
                ticks.tick().await;
            }
        };
        drop(timeout(args.timeout + LINE_INTERVAL, rest).await);
        Ok(sum_up(&counts))
    })
}

/// Prints a line each second.
async fn report(counts: &Counts) {
    let mut ticks = interval(LINE_INTERVAL);
    let mut before = BTreeMap::new();
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let now = counts.all();
        say(&line("1 s:", &rows(&now, &before)));
        for reason in counts.take_reasons() {
            say(&format!("  failed: {reason}\n"));
        }
        before = now;
    }
}

fn sum_up(counts: &Counts) -> u8 {
    for reason in counts.take_reasons() {
        say(&format!("  failed: {reason}\n"));
    }
    let all = counts.all();
    say(&line("total:", &rows(&all, &BTreeMap::new())));
    match all.get(FAILED) {
        Some(0) | None => EXIT_DONE,
        Some(_) => EXIT_INPUT,
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // without a terminal, there is no reader
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
