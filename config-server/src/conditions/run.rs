//! Has conditions written, as objects and findings change.

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

/// Changes are looked at when none has come for so long, and after so long at the latest.
const QUIET: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_millis(500);
/// The most messages that are taken in at once.
const MESSAGES_MAX: usize = 64;
/// The most writes of one round, and how many of them are made at once.
const WRITES_MAX: usize = 256;
const WRITES_AT_ONCE: usize = 32;

/// After a start, proxies report again within this time. Until it is over, a missing report changes no condition.
const PROXIES_GRACE: Duration = Duration::from_secs(30);
/// The least time between two looks at the proxies.
const PROXIES_PAUSE: Duration = Duration::from_millis(250);

/// The proxies whose reports become conditions.
#[derive(Debug)]
pub struct Reports {
    proxies: Arc<Proxies>,
    changes: watch::Receiver<u64>,
    /// When the next look at them is due; none before anything changes.
    due: Option<Instant>,
    last: Option<Instant>,
}

impl Reports {
    /// Of the proxies that report to this server, which has started now.
    pub fn new(proxies: Arc<Proxies>, now: Instant) -> Reports {
        Reports {
            changes: proxies.subscribe(),
            proxies,
            due: Some(now + PROXIES_GRACE),
            last: None,
        }
    }

    /// Waits until proxies report something new. May be dropped and called again.
    async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        let next = self
            .last
            .map_or_else(Instant::now, |last| last + PROXIES_PAUSE);
        self.due = Some(self.due.map_or(next, |due| due.min(next)));
    }

    /// The proxies, if it is time to look at them.
    fn take(&mut self, now: Instant) -> Option<Followers> {
        self.due.filter(|due| *due <= now)?;
        (self.due, self.last) = (None, Some(now));
        Some(Followers::new(self.proxies.list(None)))
    }
}

/// Writes conditions until nobody feeds it. Only the leader writes, where several servers do.
pub async fn run(
    mut engine: Engine,
    mut feed: mpsc::Receiver<Feed>,
    mut reports: Option<Reports>,
    writer: Writer,
    mut is_leader: watch::Receiver<bool>,
) {
    let mut is_complete = false;
    let mut waits: Option<(Instant, Instant)> = None;
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
            waits = Some((waits.map_or(now, |(first, _)| first), now));
            engine = off_thread(engine, move |engine| engine.take_in(changes)).await;
        }
        if waits.is_some_and(|waits| quiet_at(waits) > Instant::now()) {
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

fn quiet_at((first, last): (Instant, Instant)) -> Instant {
    (last + QUIET).min(first + DELAY_MAX)
}

/// When there is something to do besides waiting for changes.
fn wake(engine: &Engine, waits: Option<(Instant, Instant)>, writes: bool) -> Option<Instant> {
    match waits {
        Some(waits) => Some(quiet_at(waits)),
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

/// Runs what takes its time where it holds up no request.
async fn off_thread(mut engine: Engine, work: impl FnOnce(&mut Engine) + Send + 'static) -> Engine {
    let task = tokio::task::spawn_blocking(move || {
        work(&mut engine);
        engine
    });
    match task.await {
        Ok(engine) => engine,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and with it this future.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Writes what is due.
async fn write(engine: Engine, writer: &Writer) -> Engine {
    let (sender, due) = tokio::sync::oneshot::channel();
    let mut engine = off_thread(engine, move |engine| {
        let now = Instant::now();
        engine.settle(now);
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
        engine.note(key, &outcome, Instant::now());
    }
    engine
}
