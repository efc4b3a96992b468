//! Counts of a load, their text format, and the limits of every load.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;

/// Timeout of one connection or request.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Number of failures after which a connection stops, so that a broken proxy is not flooded.
pub(super) const FAILURES_MAX: u64 = 10;

/// Counts of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of successful requests or connections.
    pub done: u64,
    /// Number of failed requests or connections.
    pub failures: u64,
    /// Reason of the first failure.
    pub reason: Option<String>,
    /// Part of the load that counts, if that is not all of it.
    pub span: Option<Span>,
}

/// Part of a load that was sent while all connections were open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// CPU time of the process under load.
    pub cpu: Duration,
    /// Length of the part.
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
    /// Parses the output of `generate`.
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

    pub(super) fn line(&self) -> String {
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

    pub(super) fn fail(&mut self, reason: String) {
        self.failures += 1;
        self.reason.get_or_insert(reason);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.done += other.done;
        self.failures += other.failures;
        self.reason = self.reason.take().or(other.reason);
    }
}

/// Runs all futures concurrently on this thread and adds up their tallies.
pub(super) async fn at_once(
    lanes: impl Iterator<Item = impl Future<Output = Tally> + 'static>,
) -> Tally {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
