//! Own load generator, for loads that wrk and h2load cannot make, or not with enough control.
//!
//! Like them it runs as a separate process, and prints its counts at the end.

use std::future::Future;
use std::io::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::compare::arguments::{Generate, GeneratedWork};
use crate::compare::failure::{Failure, context};

mod bulk;
mod handshake;
mod rotation;
mod tally;

use tally::{FAILURES_MAX, PATIENCE, at_once};
pub use tally::{Span, Tally};

/// Runs the load, and prints the tally.
///
/// # Errors
/// When the certificate cannot be read or no thread can be started. Failures in the load are counted in the tally.
pub fn generate(wanted: &Generate) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(context("cannot start the load generator"))?;
    let tally = LocalSet::new().block_on(&runtime, all(wanted))?;
    write!(std::io::stdout(), "{}", tally.line()).map_err(context("cannot print the tally"))
}

async fn all(wanted: &Generate) -> Result<Tally, Failure> {
    let deadline = Instant::now() + Duration::from_secs(wanted.seconds);
    let connections = 0..wanted.connections;
    Ok(match wanted.work {
        GeneratedWork::Full | GeneratedWork::Resumed => {
            let callers = connections.map(|_| handshake::Caller::new(wanted).map(Rc::new));
            let callers: Vec<_> = callers.collect::<Result<_, _>>()?;
            let handshakes = callers.into_iter().map(|caller| {
                again(deadline, move || {
                    let caller = Rc::clone(&caller);
                    async move { caller.once().await }
                })
            });
            at_once(handshakes).await
        }
        GeneratedWork::Bulk => {
            let port = wanted.port;
            at_once(connections.map(|_| again(deadline, move || bulk::session(port)))).await
        }
        GeneratedWork::Rotation => rotation::run(wanted).await,
    })
}

/// Repeats `work` until the deadline, and finishes work that has started.
///
/// `Ok(false)` is preparatory work that does not count.
async fn again<F>(deadline: Instant, work: impl Fn() -> F) -> Tally
where
    F: Future<Output = Result<bool, String>>,
{
    let mut tally = Tally::default();
    while Instant::now() < deadline && tally.failures < FAILURES_MAX {
        let outcome = tokio::time::timeout(PATIENCE, work()).await;
        match outcome.unwrap_or_else(|_| Err("took too long".to_owned())) {
            Ok(counts) => tally.done += u64::from(counts),
            Err(reason) => tally.fail(reason),
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(work: impl Fn() -> Result<bool, String>) -> Tally {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let deadline = Instant::now() + Duration::from_millis(20);
        runtime.block_on(again(deadline, || std::future::ready(work())))
    }

    #[test]
    fn load_ends_at_the_deadline() {
        let tally = run(|| Ok(true));
        assert!(tally.done > 0 && tally.failures == 0);
        assert_eq!(run(|| Ok(false)), Tally::default());
    }

    #[test]
    fn load_on_something_broken_ends_early() {
        let tally = run(|| Err("refused".to_owned()));
        assert_eq!((tally.done, tally.failures), (0, FAILURES_MAX));
        assert_eq!(tally.reason.as_deref(), Some("refused"));
    }
}
