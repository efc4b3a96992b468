//! Connections of an admin server: their number is limited, and an idle one makes room for a new one.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Duration, Instant};

/// Idle time after which a connection may be closed for a new one.
const IDLE_MIN: Duration = Duration::from_secs(1);

/// Open connections.
pub(super) struct AdminConnections {
    began: Instant,
    tasks: JoinSet<()>,
    known: VecDeque<(AbortHandle, Arc<Activity>)>,
}

/// Time of the last request of a connection, or of its begin.
#[derive(Debug)]
pub(super) struct Activity {
    began: Instant,
    milliseconds: AtomicU64,
    /// Number of responses that go on.
    streams: AtomicU64,
}

/// A response that goes on; its connection is not idle.
#[derive(Debug)]
pub(super) struct OpenStream(Arc<Activity>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.note();
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    /// Records that a response goes on, until the value is dropped.
    pub(super) fn stream(this: &Arc<Self>) -> OpenStream {
        this.streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(this))
    }

    /// Whether a response goes on.
    pub(super) fn streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed) > 0
    }

    /// Records a request.
    pub(super) fn note(&self) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.milliseconds.store(elapsed, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.milliseconds.load(Ordering::Relaxed))
    }
}

impl AdminConnections {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            tasks: JoinSet::new(),
            known: VecDeque::new(),
        }
    }

    /// Number of open connections.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Serves another connection.
    pub(super) fn add<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        serve: impl FnOnce(Arc<Activity>) -> F,
    ) {
        let activity = Arc::new(Activity {
            began: self.began,
            milliseconds: AtomicU64::new(0),
            streams: AtomicU64::new(0),
        });
        activity.note();
        let handle = self.tasks.spawn(serve(Arc::clone(&activity)));
        self.known.retain(|(handle, _)| !handle.is_finished());
        self.known.push_back((handle, activity));
    }

    /// Closes the connection that has been idle for longest, if it has been idle for [`IDLE_MIN`].
    pub(super) fn make_room(&mut self) {
        self.known.retain(|(handle, _)| !handle.is_finished());
        let numbered = self.known.iter().enumerate();
        let idle = numbered.filter(|(_, (_, activity))| !activity.streams());
        let idle = idle.map(|(at, (_, activity))| (activity.last(), at));
        if let Some((last, at)) = idle.min()
            && last.elapsed() >= IDLE_MIN
            && let Some((handle, _)) = self.known.remove(at)
        {
            handle.abort();
        }
    }

    /// Returns the time at which a connection may have been idle for long enough.
    pub(super) fn next_idle_at(&self) -> Instant {
        let known = self.known.iter().map(|(_, activity)| activity);
        let idle = known.filter(|activity| !activity.streams());
        let last = idle.map(|activity| activity.last()).min();
        last.unwrap_or_else(Instant::now) + IDLE_MIN
    }

    /// Waits for a connection to end; `None` when there is none.
    pub(super) async fn ended(&mut self) -> Option<Result<(), JoinError>> {
        let ended = self.tasks.join_next().await?;
        Some(ended.or_else(|error| {
            if error.is_cancelled() {
                Ok(())
            } else {
                Err(error)
            }
        }))
    }
}
