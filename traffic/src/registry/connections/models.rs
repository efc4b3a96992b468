//! Models that explore every order in which threads open and close connections, wait for them and leave them idle.

use super::*;

fn of(max: usize) -> Arc<Connections> {
    let connections = Connections::default();
    connections.set_max(max);
    Arc::new(connections)
}

/// Opens a connection when allowed, perhaps after waiting, and closes it again.
fn come_and_go(connections: &Connections) {
    let context = Context::from_waker(Waker::noop());
    if let Err(ticket) = connections.join(1) {
        while connections.poll_turn(ticket, &context).is_pending() {
            loom::thread::yield_now();
        }
    }
    assert_eq!(connections.open(), 1);
    connections.leave(1, None);
}

#[test]
fn every_waiter_is_served_and_the_limit_holds() {
    loom::model(|| {
        let connections = of(1);
        let other = Arc::clone(&connections);
        let thread = loom::thread::spawn(move || come_and_go(&other));
        come_and_go(&connections);
        thread.join().unwrap();
        assert_eq!(connections.open(), 0);
        assert!(!connections.is_crowded());
    });
}

#[test]
fn cancelled_waiter_passes_on_its_permit() {
    loom::model(|| {
        let connections = of(1);
        connections.join(1).unwrap();
        let left = connections.join(1).unwrap_err();
        let stays = connections.join(1).unwrap_err();
        let other = Arc::clone(&connections);
        let thread = loom::thread::spawn(move || other.leave(1, None));
        connections.abandon(left);
        thread.join().unwrap();
        let context = Context::from_waker(Waker::noop());
        assert_eq!(
            connections.poll_turn(stays, &context),
            Poll::Ready(QueueOutcome::Leave)
        );
        connections.leave(1, None);
        assert_eq!(connections.open(), 0);
    });
}

#[test]
fn waiter_and_releaser_never_miss_each_other() {
    loom::model(|| {
        let connections = of(1);
        connections.join(1).unwrap();
        let other = Arc::clone(&connections);
        let waits = loom::thread::spawn(move || {
            other.join(1).unwrap_err();
            // the condition that `join` checks before it wakes workers
            idle(other.waiters_and_idle.load(Ordering::Relaxed)) > 0
        });
        let parks = is_crowded(connections.waiters_and_idle.fetch_add(1, Ordering::AcqRel));
        assert!(waits.join().unwrap() || parks);
    });
}
