//! This program's own load generator: what wrk and h2load cannot do, or not under control.
//!
//! Like them it runs as a process of its own, and prints what it counted at the end.

use std::future::Future;
use std::io::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, LocalSet};

use crate::compare::arguments::{Generate, GeneratedWork};
use crate::compare::failure::{Failure, context};

mod bulk;
mod handshake;
mod rotation;

/// How long one thing may take until it counts as failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Failures after which a connection gives up, so that a broken proxy is not hammered until the end.
const FAILURES_MAX: u64 = 10;

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Done as it must be.
    pub done: u64,
    /// Not done, or not as it must be.
    pub failures: u64,
    /// Why, the first time.
    pub reason: Option<String>,
    /// The part of the load that counts, if that is not all of it.
    pub span: Option<Span>,
}

/// The part of a load that was done while all connections were open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// CPU time of the process that the load was put on.
    pub cpu: Duration,
    /// Time that passed.
    pub elapsed: Duration,
}

impl Span {
    fn parse(line: &str) -> Option<Self> {
        let (cpu, elapsed) = line.strip_prefix("cpu_us ")?.split_once(" elapsed_us ")?;
        Some(Self {
            cpu: Duration::from_micros(cpu.parse().ok()?),
            elapsed: Duration::from_micros(elapsed.parse().ok()?),
        })
    }

    fn line(&self) -> String {
        let (cpu, elapsed) = (self.cpu.as_micros(), self.elapsed.as_micros());
        format!("cpu_us {cpu} elapsed_us {elapsed}\n")
    }
}

impl Tally {
    /// Reads what `generate` printed.
    pub fn parse(output: &str) -> Option<Self> {
        let mut lines = output.lines().peekable();
        let mut words = lines.next()?.split(' ');
        let (Some("done"), Some(done), Some("failures"), Some(failures), None) = (
            words.next(),
            words.next(),
            words.next(),
            words.next(),
            words.next(),
        ) else {
            return None;
        };
        let (done, failures) = (done.parse().ok()?, failures.parse().ok()?);
        let span = lines.peek().copied().and_then(Span::parse);
        if span.is_some() {
            lines.next();
        }
        Some(Self {
            done,
            failures,
            span,
            reason: lines.next().map(str::to_owned),
        })
    }

    fn line(&self) -> String {
        let mut line = format!("done {} failures {}\n", self.done, self.failures);
        if let Some(span) = &self.span {
            line.push_str(&span.line());
        }
        if let Some(reason) = &self.reason {
            line.push_str(reason);
            line.push('\n');
        }
        line
    }

    fn fail(&mut self, reason: String) {
        self.failures += 1;
        self.reason.get_or_insert(reason);
    }

    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.failures += other.failures;
        self.reason = self.reason.take().or(other.reason);
    }
}

/// Puts the load on, and prints the tally.
///
/// # Errors
/// When the certificate cannot be read or no thread can be started. What fails in the load is in the tally.
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

/// Runs all of them at once on this thread, and adds their tallies.
async fn at_once(lanes: impl Iterator<Item = impl Future<Output = Tally> + 'static>) -> Tally {
    let mut set = JoinSet::new();
    for lane in lanes {
        set.spawn_local(lane);
    }
    let mut tally = Tally::default();
    for of_one in set.join_all().await {
        tally.add(of_one);
    }
    tally
}

/// Does the same thing again and again until the deadline. What was begun is finished.
///
/// `Ok(false)` is something that had to be done and is not what is counted.
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
    fn tally_is_read_as_it_was_written() {
        let mut tally = Tally {
            done: 12,
            ..Tally::default()
        };
        assert_eq!(Tally::parse(&tally.line()), Some(tally.clone()));
        tally.add(Tally {
            done: 1,
            failures: 3,
            reason: Some("not resumed".to_owned()),
            span: None,
        });
        assert_eq!(Tally::parse(&tally.line()), Some(tally.clone()));
        tally.span = Some(Span {
            cpu: Duration::from_millis(10),
            elapsed: Duration::from_secs(2),
        });
        assert_eq!(Tally::parse(&tally.line()), Some(tally));
        assert_eq!(Tally::parse("compare: no such file"), None);
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
