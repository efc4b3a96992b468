//! Set of the streams of a connection that are ready to be polled.
//!
//! Each stream has one bit, which its waker sets; the first bit that is set while the task sleeps wakes the
//! connection's task. So all streams share one task, and waking a stream needs no queue entry and no allocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Wake, Waker};

/// Ready bits of the streams of one connection.
#[derive(Debug)]
pub(super) struct Ready {
    words: Box<[AtomicU64]>,
    /// Whether the task is awake or has been woken.
    woken: AtomicBool,
    task: Waker,
}

impl Ready {
    /// Returns a set for this many streams of the connection that `task` serves.
    pub(super) fn new(streams: usize, task: &Waker) -> Arc<Self> {
        Arc::new(Self {
            words: (0..streams.div_ceil(64).max(1))
                .map(|_| AtomicU64::new(0))
                .collect(),
            woken: AtomicBool::new(true),
            task: task.clone(),
        })
    }

    /// Whether the set wakes the same task.
    pub(super) fn is_of(&self, task: &Waker) -> bool {
        self.task.will_wake(task)
    }

    /// Returns the waker of the stream at `place`.
    pub(super) fn waker(self: &Arc<Self>, place: usize) -> Waker {
        Waker::from(Arc::new(StreamWaker {
            ready: Arc::clone(self),
            place,
        }))
    }

    /// Number of words, for [`Ready::take`].
    pub(super) fn words(&self) -> usize {
        self.words.len()
    }

    /// Takes the bits of one word.
    pub(super) fn take(&self, word: usize) -> u64 {
        if self.words[word].load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.words[word].swap(0, Ordering::SeqCst)
    }

    /// Sets the bit of a stream, and wakes the task unless it is awake.
    pub(super) fn mark(&self, place: usize) {
        let Some(word) = self.words.get(place / 64) else {
            return;
        };
        word.fetch_or(1 << (place % 64), Ordering::SeqCst);
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.task.wake_by_ref();
        }
    }

    /// Marks the task awake: until [`Ready::sleep`] no bit wakes it.
    pub(super) fn awake(&self) {
        self.woken.store(true, Ordering::SeqCst);
    }

    /// Marks the task asleep; wakes it at once if a bit is set.
    pub(super) fn sleep(&self) {
        self.woken.swap(false, Ordering::SeqCst);
        let any = |word: &AtomicU64| word.load(Ordering::SeqCst) != 0;
        if self.words.iter().any(any) && !self.woken.swap(true, Ordering::SeqCst) {
            self.task.wake_by_ref();
        }
    }
}

/// Waker of one stream.
struct StreamWaker {
    ready: Arc<Ready>,
    place: usize,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.ready.mark(self.place);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.mark(self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn task_is_woken_once_for_many_ready_streams() {
        let count = Arc::new(Count::default());
        let woken = || count.0.load(Ordering::SeqCst);
        let ready = Ready::new(130, &Waker::from(Arc::clone(&count)));
        let wakers: Vec<_> = (0..130).map(|place| ready.waker(place)).collect();
        // an awake task is not woken
        wakers[3].wake_by_ref();
        assert_eq!((woken(), ready.take(0)), (0, 1 << 3));
        ready.sleep();
        assert_eq!(woken(), 0);
        for waker in &wakers {
            waker.wake_by_ref();
        }
        assert_eq!(woken(), 1);
        ready.awake();
        assert_eq!(ready.words(), 3);
        assert_eq!(
            (ready.take(0), ready.take(1), ready.take(2)),
            (u64::MAX, u64::MAX, 3)
        );
        // a bit that is set when the task goes to sleep wakes it
        wakers[129].wake_by_ref();
        assert_eq!(woken(), 1);
        ready.sleep();
        assert_eq!(woken(), 2);
    }
}
