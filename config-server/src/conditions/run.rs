//! Task that writes conditions as objects and findings change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::{mpsc, watch};

use super::engine::Engine;
use super::follow::Feed;
use super::programmed::Followers;
use super::writer::Writer;
use crate::clock;
use crate::proxies::Proxies;

/// Debounce of changes: time without a new change, and maximum delay.
const QUIET: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_millis(500);
/// Maximum number of messages per read of the feed.
const MESSAGES_MAX: usize = 64;
/// Limits of one round: number of writes, and of concurrent writes.
const WRITES_MAX: usize = 256;
const WRITES_AT_ONCE: usize = 32;

/// Grace period after a start in which proxies report again. Until it ends, a missing report changes no condition.
const PROXIES_GRACE: Duration = Duration::from_secs(30);
/// Minimum time between two evaluations of the proxy reports.
const PROXIES_PAUSE: Duration = Duration::from_millis(250);

/// Source of the proxy reports for conditions.
#[derive(Debug)]
pub struct Reports {
    proxies: Arc<Proxies>,
    changes: watch::Receiver<u64>,
    /// Time of the next evaluation; `None` until a report changes.
    due: Option<Instant>,
    last: Option<Instant>,
}

impl Reports {
    /// Returns the source for the proxies of a server that starts at `now`.
    pub fn new(proxies: Arc<Proxies>, now: Instant) -> Reports {
        Reports {
            changes: proxies.subscribe(),
            proxies,
            due: Some(now + PROXIES_GRACE),
            last: None,
        }
    }

    /// Waits until a proxy report changes. Cancellation safe.
    async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        let next = self
            .last
            .map_or_else(Instant::now, |last| last + PROXIES_PAUSE);
        self.due = Some(self.due.map_or(next, |due| due.min(next)));
    }

    /// Returns the proxy reports if their evaluation is due.
    fn take(&mut self, now: Instant) -> Option<Followers> {
        self.due.filter(|due| *due <= now)?;
        (self.due, self.last) = (None, Some(now));
        Some(Followers::new(self.proxies.list(None)))
    }
}

/// Writes conditions until the feed is closed. Among several servers only the leader writes.
pub async fn run(
    mut engine: Engine,
    mut feed: mpsc::Receiver<Feed>,
    mut reports: Option<Reports>,
    writer: Writer,
    mut is_leader: watch::Receiver<bool>,
) {
    let mut is_complete = false;
    let mut waits: Option<Burst> = None;
    loop {
        let wake = wake(&engine, waits, is_complete && *is_leader.borrow());
        let look = reports.as_ref().and_then(|reports| reports.due);
        let wake = [wake, look].into_iter().flatten().min();
        let mut messages = Vec::new();
        tokio::select! {
            count = feed.recv_many(&mut messages, MESSAGES_MAX) => {
                if count == 0 {
                    return;
                }
            }
            () = until(wake) => {}
            Ok(()) = is_leader.changed() => {}
            () = changed(&mut reports) => {}
        }
        let now = Instant::now();
        if let Some(followers) = reports.as_mut().and_then(|reports| reports.take(now)) {
            engine = off_thread(engine, move |engine| engine.set_followers(followers)).await;
        }
        let mut changes = Vec::new();
        for message in messages {
            match message {
                Feed::Changes(more) => changes.extend(more),
                Feed::Complete => is_complete = true,
            }
        }
        if !changes.is_empty() {
            let first = waits.map_or(now, |burst| burst.first);
            waits = Some(Burst { first, last: now });
            engine = off_thread(engine, move |engine| engine.take_in(changes)).await;
        }
        if waits.is_some_and(|burst| burst.deadline() > Instant::now()) {
            continue;
        }
        waits = None;
        if is_complete && *is_leader.borrow() {
            engine = write(engine, &writer).await;
        }
    }
}

async fn changed(reports: &mut Option<Reports>) {
    match reports {
        Some(reports) => reports.changed().await,
        None => std::future::pending().await,
    }
}

/// Times of the first and the last of several changes that are handled together.
#[derive(Clone, Copy)]
struct Burst {
    first: Instant,
    last: Instant,
}

impl Burst {
    /// Returns the time to handle the changes: [`QUIET`] after the last one, at most [`DELAY_MAX`] after the first.
    fn deadline(self) -> Instant {
        (self.last + QUIET).min(self.first + DELAY_MAX)
    }
}

/// Returns the time of the next work apart from changes.
fn wake(engine: &Engine, waits: Option<Burst>, writes: bool) -> Option<Instant> {
    match waits {
        Some(burst) => Some(burst.deadline()),
        None if writes => engine.deadline(Instant::now()),
        None => None,
    }
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

/// Runs slow work on a blocking thread, so that it delays no request.
async fn off_thread(mut engine: Engine, work: impl FnOnce(&mut Engine) + Send + 'static) -> Engine {
    let task = tokio::task::spawn_blocking(move || {
        work(&mut engine);
        engine
    });
    match task.await {
        Ok(engine) => engine,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and drops this future.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Writes the conditions that are due.
async fn write(engine: Engine, writer: &Writer) -> Engine {
    let (sender, due) = tokio::sync::oneshot::channel();
    let mut engine = off_thread(engine, move |engine| {
        let now = Instant::now();
        engine.refresh_findings(now);
        let _ = sender.send(engine.due(now, WRITES_MAX, &clock::now()));
    })
    .await;
    let writes = due.await.unwrap_or_default();
    let mut outcomes = stream::iter(writes)
        .map(|write| async move {
            let outcome = writer.write(&write).await;
            (write.key, outcome)
        })
        .buffer_unordered(WRITES_AT_ONCE);
    while let Some((key, outcome)) = outcomes.next().await {
        engine.record_outcome(key, &outcome, Instant::now());
    }
    engine
}
