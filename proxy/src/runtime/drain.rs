//! Drain of the process: a trigger and its watches.
//!
//! `Announcing` serves as before and tells clients to use another proxy; `Draining` (soft) accepts no new work and
//! finishes what is in flight; `Stopped` (hard) stops at once. The stage only ever rises; `app::shutdown` decides when.
//! A task with work in flight holds a [`Running`]; the trigger waits until none is left.

use std::sync::Arc;

use tokio::sync::watch;

use super::sync::{AtomicUsize, Ordering};

/// Stage of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Accept new work.
    #[default]
    Serving,
    /// Serve open and new connections as before, and tell clients to use others: not ready, `connection: close`,
    /// GOAWAY. Outbound listeners of a sidecar announce nothing: the workload has no other proxy.
    Announcing,
    /// Sidecar only: inbound listeners drain, outbound listeners serve as before.
    DrainingInbound,
    /// Sidecar only: as before, and idle inbound connections close at once, since no request can reach the workload.
    WorkloadGone,
    /// Accept nothing new, finish requests in flight, tell clients to use another proxy.
    Draining,
    /// Stop at once, whatever is in flight.
    Stopped,
}

/// Makes a trigger and a watch of it.
pub fn pair() -> (Trigger, Watch) {
    let stage = Arc::new(watch::Sender::new(Stage::Serving));
    let (count, running) = watch::channel(());
    let watch = Watch {
        stage: stage.subscribe(),
        count: Arc::new(Count {
            running: AtomicUsize::new(0),
            ended: count,
        }),
    };
    let trigger = Trigger {
        stage,
        ended: running,
        count: Arc::clone(&watch.count),
    };
    (trigger, watch)
}

/// Starts and ends the drain. Clones share it.
#[derive(Clone, Debug)]
pub struct Trigger {
    stage: Arc<watch::Sender<Stage>>,
    ended: watch::Receiver<()>,
    count: Arc<Count>,
}

impl Trigger {
    /// Tells clients to use another proxy, and serves as before.
    pub fn announce(&self) {
        self.raise(Stage::Announcing);
    }

    /// Starts to drain; no effect if the drain has started.
    pub fn drain(&self) {
        self.raise(Stage::Draining);
    }

    /// Stops everything now.
    pub fn stop(&self) {
        self.raise(Stage::Stopped);
    }

    /// Current stage.
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Waits for a later stage than this one.
    pub async fn beyond(&self, stage: Stage) {
        // the sender is in `self`, so that waiting cannot fail
        let _ = self.stage.subscribe().wait_for(|now| *now > stage).await;
    }

    /// Number of [`Running`] values.
    pub fn running(&self) -> usize {
        self.count.running.load(Ordering::Acquire)
    }

    /// Waits until no [`Running`] value is left.
    pub async fn finished(&self) {
        let mut ended = self.ended.clone();
        while self.running() > 0 {
            if ended.changed().await.is_err() {
                return;
            }
        }
    }

    /// Raises the stage; no effect if it is as high already.
    pub fn raise(&self, to: Stage) {
        self.stage.send_if_modified(|stage| {
            let rises = *stage < to;
            *stage = (*stage).max(to);
            rises
        });
    }
}

/// Receiver of the stages of a drain.
#[derive(Clone, Debug)]
pub struct Watch {
    stage: watch::Receiver<Stage>,
    count: Arc<Count>,
}

impl Watch {
    /// Current stage.
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Waits for a later stage than this one.
    pub async fn beyond(&self, stage: Stage) {
        self.until(|now| now > stage).await;
    }

    /// Waits for [`Stage::Draining`] or later.
    pub async fn soft(&self) {
        self.until(|now| now >= Stage::Draining).await;
    }

    /// Waits for [`Stage::Stopped`].
    pub async fn hard(&self) {
        self.until(|now| now >= Stage::Stopped).await;
    }

    /// Keeps [`Trigger::finished`] waiting until the returned value is dropped.
    pub fn running(&self) -> Running {
        self.count.running.fetch_add(1, Ordering::AcqRel);
        Running(Arc::clone(&self.count))
    }

    async fn until(&self, reached: impl Fn(Stage) -> bool) {
        let mut watch = self.stage.clone();
        // A dropped trigger can never raise the stage: wait forever.
        if watch.wait_for(|now| reached(*now)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Work that has to end before a drain is complete.
#[derive(Debug)]
pub struct Running(Arc<Count>);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.ended.send_replace(());
        }
    }
}

#[derive(Debug)]
struct Count {
    running: AtomicUsize,
    ended: watch::Sender<()>,
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        pin!(future)
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn stages_rise_and_never_fall() {
        let (trigger, watch) = pair();
        trigger.announce();
        assert!(is_ready(watch.beyond(Stage::Serving)) && is_ready(trigger.beyond(Stage::Serving)));
        assert!(!is_ready(watch.beyond(Stage::Announcing)) && !is_ready(watch.soft()));
        trigger.drain();
        assert!(is_ready(watch.soft()) && !is_ready(watch.hard()));
        trigger.stop();
        trigger.drain();
        assert_eq!(watch.stage(), Stage::Stopped);
        assert!(is_ready(watch.soft()) && is_ready(watch.hard()));
    }

    #[tokio::test]
    async fn finished_when_last_running_is_dropped() {
        let (trigger, watch) = pair();
        let first = watch.running();
        let second = watch.clone().running();
        assert_eq!(trigger.running(), 2);
        let waiting = tokio::spawn({
            let trigger = trigger.clone();
            async move { trigger.finished().await }
        });
        drop(first);
        assert!(!is_ready(trigger.finished()));
        drop(second);
        waiting.await.unwrap();
    }
}

#[cfg(all(test, feature = "models"))]
mod models {
    use super::*;

    #[test]
    fn drop_of_the_last_guard_is_noticed() {
        loom::model(|| {
            let (trigger, watch) = pair();
            let mut ended = trigger.ended.clone();
            ended.mark_unchanged();
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let running = watch.running();
                    loom::thread::spawn(move || drop(running))
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(trigger.running(), 0);
            assert!(ended.has_changed().unwrap());
        });
    }
}
