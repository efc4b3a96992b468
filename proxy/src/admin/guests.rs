//! The connections of a server under the pages: bounded; an idle connection does not keep others out.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Duration, Instant};

/// Idle time after which a connection may be closed for a new one.
const IDLE_MIN: Duration = Duration::from_secs(1);

/// Connections that are served.
pub(super) struct Guests {
    began: Instant,
    tasks: JoinSet<()>,
    known: VecDeque<(AbortHandle, Arc<Activity>)>,
}

/// When a connection began or had its last request.
#[derive(Debug)]
pub(super) struct Activity {
    began: Instant,
    milliseconds: AtomicU64,
}

impl Activity {
    /// A request came.
    pub(super) fn note(&self) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.milliseconds.store(elapsed, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.milliseconds.load(Ordering::Relaxed))
    }
}

impl Guests {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            tasks: JoinSet::new(),
            known: VecDeque::new(),
        }
    }

    /// Connections that are open.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Serves another one.
    pub(super) fn add<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        serve: impl FnOnce(Arc<Activity>) -> F,
    ) {
        let activity = Arc::new(Activity {
            began: self.began,
            milliseconds: AtomicU64::new(0),
        });
        activity.note();
        let handle = self.tasks.spawn(serve(Arc::clone(&activity)));
        self.known.retain(|(handle, _)| !handle.is_finished());
        self.known.push_back((handle, activity));
    }

    /// Closes the connection that was without a new request for longest, if it was for long enough.
    pub(super) fn make_room(&mut self) {
        self.known.retain(|(handle, _)| !handle.is_finished());
        let numbered = self.known.iter().enumerate();
        let idle = numbered.map(|(at, (_, activity))| (activity.last(), at));
        if let Some((last, at)) = idle.min()
            && last.elapsed() >= IDLE_MIN
            && let Some((handle, _)) = self.known.remove(at)
        {
            handle.abort();
        }
    }

    /// When one may have been idle for long enough, if it is not yet.
    pub(super) fn room_at(&self) -> Instant {
        let last = self.known.iter().map(|(_, activity)| activity.last()).min();
        last.unwrap_or_else(Instant::now) + IDLE_MIN
    }

    /// Waits for one to end; none when there is none.
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
