//! Queue of due requests, and of slots that wait for one.
//!
//! There is one queue per thread. A slot sends one request at a time: an HTTP/1.1 connection has one slot, an HTTP/2
//! connection has several.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

/// Maximum number of requests that wait for a slot; a further one fails immediately. Each takes 48 bytes.
pub const WAITING_MAX: usize = 1_000_000;

/// Order in which free slots get requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Least recently used slot first, so that all slots get the same number of requests.
    Fair,
    /// Most recently used slot first, so that no more connections are opened than needed.
    Recent,
}

/// Request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the request in the run.
    pub number: u64,
    /// Time at which the request is due.
    pub due: Instant,
    /// Time at which the generator detected that the request was due.
    pub noticed: Instant,
    /// Whether no slot was free at that time.
    pub waited: bool,
}

/// Queue of one thread.
#[derive(Debug)]
pub struct Queue {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    jobs: VecDeque<Job>,
    /// Waiting slots, each at most once.
    free: VecDeque<usize>,
    slots: Vec<Slot>,
    order: Order,
    closed: bool,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    waker: Option<Waker>,
    /// Whether the slot is in `free`, possibly without a waker.
    listed: bool,
}

impl Queue {
    /// Creates a queue for this many slots.
    pub fn new(slots: usize, order: Order) -> Self {
        let state = State {
            jobs: VecDeque::new(),
            free: VecDeque::with_capacity(slots),
            slots: vec![Slot::default(); slots],
            order,
            closed: false,
        };
        Self {
            state: RefCell::new(state),
        }
    }

    /// Adds a request, and wakes a slot if one is free.
    ///
    /// # Errors
    /// Returns the request if [`WAITING_MAX`] requests wait already.
    pub fn push(&self, mut job: Job) -> Result<(), Job> {
        let mut state = self.state.borrow_mut();
        if state.jobs.len() >= WAITING_MAX {
            return Err(job);
        }
        let free = state.take_free();
        job.waited = free.is_none();
        state.jobs.push_back(job);
        drop(state);
        if let Some(waker) = free {
            waker.wake();
        }
        Ok(())
    }

    /// Returns the next request for this slot; `None` once the queue is closed and empty.
    pub async fn next(&self, slot: usize) -> Option<Job> {
        poll_fn(|cx| self.poll_next(slot, cx)).await
    }

    /// Polls like [`Queue::next`], for a slot that waits for another event as well.
    pub fn poll_next(&self, slot: usize, cx: &mut Context<'_>) -> Poll<Option<Job>> {
        let mut state = self.state.borrow_mut();
        if let Some(job) = state.jobs.pop_front() {
            state.slots[slot].waker = None;
            return Poll::Ready(Some(job));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        let entry = &mut state.slots[slot];
        entry.waker = Some(cx.waker().clone());
        if !std::mem::replace(&mut entry.listed, true) {
            state.free.push_back(slot);
        }
        Poll::Pending
    }

    /// Removes a slot from the waiting slots; it asks again later.
    pub fn leave(&self, slot: usize) {
        self.state.borrow_mut().slots[slot].waker = None;
    }

    /// Closes the queue: no requests can be added. Waiting requests are still sent.
    pub fn close(&self) {
        let mut state = self.state.borrow_mut();
        state.closed = true;
        let wakers: Vec<_> = state
            .slots
            .iter_mut()
            .filter_map(|slot| slot.waker.take())
            .collect();
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }
}

impl State {
    fn take_free(&mut self) -> Option<Waker> {
        loop {
            let slot = match self.order {
                Order::Fair => self.free.pop_front()?,
                Order::Recent => self.free.pop_back()?,
            };
            let slot = &mut self.slots[slot];
            slot.listed = false;
            if let Some(waker) = slot.waker.take() {
                return Some(waker);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Queue with slots that count how often they are woken.
    struct Slots(Queue, Vec<Arc<Count>>);

    impl Slots {
        fn new(count: usize, order: Order) -> Self {
            Self(
                Queue::new(count, order),
                (0..count).map(|_| Arc::default()).collect(),
            )
        }

        fn ask(&self, slot: usize) -> Poll<Option<u64>> {
            let waker = Waker::from(Arc::clone(&self.1[slot]));
            let mut cx = Context::from_waker(&waker);
            self.0
                .poll_next(slot, &mut cx)
                .map(|job| job.map(|job| job.number))
        }

        fn push(&self, number: u64) {
            let now = Instant::now();
            let job = Job {
                number,
                due: now,
                noticed: now,
                waited: false,
            };
            self.0.push(job).unwrap();
        }

        fn woken(&self) -> Vec<u32> {
            self.1
                .iter()
                .map(|count| count.0.load(Ordering::Relaxed))
                .collect()
        }
    }

    #[test]
    fn free_slots_take_turns_or_the_last_one_is_used_again() {
        for (order, expected) in [(Order::Fair, [1, 0]), (Order::Recent, [0, 1])] {
            let slots = Slots::new(2, order);
            assert!(slots.ask(0).is_pending() && slots.ask(1).is_pending());
            slots.push(1);
            assert_eq!(slots.woken(), expected);
        }
    }

    #[test]
    fn request_without_a_free_slot_waits_and_says_so() {
        let queue = Queue::new(1, Order::Fair);
        let now = Instant::now();
        let job = Job {
            number: 1,
            due: now,
            noticed: now,
            waited: false,
        };
        queue.push(job).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(job)) = queue.poll_next(0, &mut cx) else {
            panic!("it waits")
        };
        assert!(job.waited);
    }

    #[test]
    fn slot_that_finds_a_request_by_itself_is_not_woken_for_another_one() {
        let slots = Slots::new(2, Order::Fair);
        assert!(slots.ask(0).is_pending() && slots.ask(1).is_pending());
        slots.push(1);
        // slot 1 comes first, although slot 0 was woken
        assert_eq!(slots.ask(1), Poll::Ready(Some(1)));
        assert!(slots.ask(0).is_pending());
        slots.push(2);
        assert_eq!(slots.woken(), [2, 0]);
        assert_eq!(slots.ask(0), Poll::Ready(Some(2)));
    }

    #[test]
    fn slot_that_left_is_not_woken() {
        let slots = Slots::new(2, Order::Fair);
        assert!(slots.ask(0).is_pending() && slots.ask(1).is_pending());
        slots.0.leave(0);
        slots.push(1);
        assert_eq!(slots.woken(), [0, 1]);
    }

    #[test]
    fn closed_queue_is_emptied_first() {
        let slots = Slots::new(1, Order::Fair);
        slots.push(1);
        slots.0.close();
        assert_eq!(slots.ask(0), Poll::Ready(Some(1)));
        assert_eq!(slots.ask(0), Poll::Ready(None));
    }

    #[test]
    fn waiting_slot_learns_that_the_queue_is_closed() {
        let slots = Slots::new(1, Order::Fair);
        assert!(slots.ask(0).is_pending());
        slots.0.close();
        assert_eq!(slots.woken(), [1]);
    }
}
