use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

fn listener(port: u16) -> Arc<ListenerKey> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    Arc::new(ListenerKey::from(address))
}

fn wake_at(member: &ConnectionHandle, woken: &Arc<Woken>, due: Tick) {
    let waker = Waker::from(Arc::clone(woken));
    member.wake_at(&Context::from_waker(&waker), due);
}

async fn pass(connection_table: &ConnectionTable, ticks: u64) {
    for _ in 0..ticks {
        tokio::time::advance(TICK).await;
        connection_table.sweep();
    }
}

#[tokio::test(start_paused = true)]
async fn connection_is_woken_at_its_deadline_and_not_before() {
    let connection_table = Rc::new(ConnectionTable::new());
    let member = connection_table.join(listener(1));
    let woken = Arc::default();
    for delay in [1, 5, 63, 64, 65, 200, 1000] {
        wake_at(&member, &woken, Tick(member.now().0 + delay));
        pass(&connection_table, delay - 1).await;
        assert_eq!(woken.take(), 0, "before {delay}");
        pass(&connection_table, 1).await;
        assert_eq!(woken.take(), 1, "at {delay}");
        wake_at(&member, &woken, Tick::NEVER);
    }
}

#[tokio::test(start_paused = true)]
async fn last_set_deadline_applies() {
    let connection_table = Rc::new(ConnectionTable::new());
    let member = connection_table.join(listener(1));
    let woken = Arc::default();
    wake_at(&member, &woken, Tick(10));
    wake_at(&member, &woken, Tick(30));
    pass(&connection_table, 29).await;
    assert_eq!(woken.take(), 0);
    wake_at(&member, &woken, Tick(500));
    wake_at(&member, &woken, Tick(31));
    pass(&connection_table, 2).await;
    assert_eq!(woken.take(), 1);
}

#[tokio::test(start_paused = true)]
async fn late_sweep_wakes_all_due_connections() {
    let connection_table = Rc::new(ConnectionTable::new());
    let members: Vec<_> = (0..200)
        .map(|_| connection_table.join(listener(1)))
        .collect();
    let woken = Arc::default();
    for (delay, member) in (1..).zip(&members) {
        wake_at(member, &woken, Tick(delay));
    }
    tokio::time::advance(TICK * 150).await;
    connection_table.sweep();
    pass(&connection_table, 64).await;
    // Connections that are due stay due until they set another deadline; each was woken at least once.
    assert!(woken.take() >= 200);
}

#[tokio::test(start_paused = true)]
async fn closed_connections_are_removed_from_the_table() {
    let connection_table = Rc::new(ConnectionTable::new());
    for _ in 0..1000 {
        let member = connection_table.join(listener(1));
        let woken = Arc::default();
        wake_at(
            &member,
            &woken,
            member.now().after(Duration::from_secs(3600)),
        );
        wake_at(&member, &woken, member.now().after(Duration::from_secs(1)));
    }
    pass(&connection_table, SLOTS).await;
    assert_eq!(connection_table.members.get(), 0);
    assert_eq!(
        connection_table
            .wheel
            .borrow()
            .iter()
            .map(Vec::len)
            .sum::<usize>(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn drain_reaches_the_connections_of_its_listener() {
    let connection_table = Rc::new(ConnectionTable::new());
    let (one, other) = (
        connection_table.join(listener(1)),
        connection_table.join(listener(2)),
    );
    let woken = Arc::default();
    wake_at(&one, &woken, Tick::NEVER);
    wake_at(&other, &woken, Tick::NEVER);
    pass(&connection_table, 7).await;
    connection_table.drain(&listener(1));
    assert_eq!(woken.take(), 1);
    assert_eq!(one.draining(), Some(Tick(7)));
    assert_eq!(other.draining(), None);
    assert!(connection_table.join(listener(1)).draining().is_some());
    connection_table.reopen(&listener(1));
    assert!(connection_table.join(listener(1)).draining().is_none());
    assert!(one.draining().is_some());
}

/// Enforces a policy that forbids plain text, or one that forbids nothing.
fn enforce(connection_table: &ConnectionTable, is_strict: bool) {
    connection_table.enforce(|governed| is_strict && !governed.in_tls);
}

/// Adds a waiting connection of the first listener, under the policy of the second one.
fn governed(connection_table: &Rc<ConnectionTable>, woken: &Arc<Woken>) -> ConnectionHandle {
    let member = connection_table.join(listener(1));
    let local = SocketAddr::from(([127, 0, 0, 1], 2));
    member.govern(&listener(2), local);
    wake_at(&member, woken, Tick::NEVER);
    member
}

const USUAL: Duration = Duration::from_secs(60);
const FORBIDDEN: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn policy_drains_what_it_forbids_until_it_is_taken_back() {
    let connection_table = Rc::new(ConnectionTable::new());
    let woken = Arc::default();
    let member = governed(&connection_table, &woken);
    pass(&connection_table, 7).await;
    enforce(&connection_table, false);
    assert_eq!((woken.take(), member.draining()), (0, None));
    enforce(&connection_table, true);
    assert_eq!((woken.take(), member.draining()), (1, Some(Tick(7))));
    assert_eq!(member.drain_time(USUAL, FORBIDDEN), FORBIDDEN);
    assert_eq!(member.forbidden_from(FORBIDDEN), Tick(7).after(FORBIDDEN));
    pass(&connection_table, 1).await;
    enforce(&connection_table, true);
    assert_eq!((woken.take(), member.draining()), (0, Some(Tick(7))));
    enforce(&connection_table, false);
    assert_eq!((woken.take(), member.draining()), (1, None));
    assert!(!member.is_announced());
    assert_eq!(member.drain_time(USUAL, FORBIDDEN), USUAL);
    assert_eq!(member.forbidden_from(FORBIDDEN), Tick::NEVER);
}

#[tokio::test(start_paused = true)]
async fn connection_that_enters_tls_is_not_forbidden_as_plain_text() {
    let connection_table = Rc::new(ConnectionTable::new());
    let woken = Arc::default();
    let member = governed(&connection_table, &woken);
    enforce(&connection_table, true);
    assert!(member.draining().is_some());
    woken.take();
    member.enter_tls();
    assert_eq!((woken.take(), member.draining()), (1, None));
    enforce(&connection_table, true);
    assert_eq!((woken.take(), member.draining()), (0, None));
}

#[tokio::test(start_paused = true)]
async fn policy_that_is_taken_back_leaves_the_drain_of_the_listener() {
    let connection_table = Rc::new(ConnectionTable::new());
    let woken = Arc::default();
    let (before, while_forbidden) = (Tick(2), Tick(4));
    let first = governed(&connection_table, &woken);
    pass(&connection_table, before.0).await;
    connection_table.drain(&listener(1));
    connection_table.reopen(&listener(1));
    let second = governed(&connection_table, &woken);
    enforce(&connection_table, true);
    connection_table.announce(&listener(1));
    enforce(&connection_table, false);
    assert_eq!(first.draining(), Some(before));
    assert_eq!((second.is_announced(), second.draining()), (true, None));
    enforce(&connection_table, true);
    pass(&connection_table, while_forbidden.0 - before.0).await;
    connection_table.drain(&listener(1));
    enforce(&connection_table, false);
    assert_eq!(first.draining(), Some(before));
    assert_eq!(second.draining(), Some(while_forbidden));
}

#[test]
fn timer_of_a_connection_stays_small() {
    // including the two counts of its `Rc`
    let size = 2 * size_of::<usize>() + size_of::<ConnectionTimer>();
    assert!(size <= 64, "{size} bytes");
}

/// An event in the life of a worker's connections.
#[derive(Clone, Debug)]
enum Event {
    Join,
    /// Closes the connection at this index.
    Leave(usize),
    /// Sets the deadline of the connection at this index, in ticks from now.
    Deadline(usize, u64),
    /// Advances the clock by this many ticks before the next sweep: more than one after a stall.
    Pass(u64),
    Drain,
}

fn event() -> impl Strategy<Value = Event> {
    let ticks = || {
        prop_oneof![
            0..4_u64,
            0..70_u64,
            0..400_u64,
            Just(SLOTS),
            Just(SLOTS - 1)
        ]
    };
    prop_oneof![
        2 => Just(Event::Join),
        1 => any::<usize>().prop_map(Event::Leave),
        4 => (any::<usize>(), ticks()).prop_map(|(place, ahead)| Event::Deadline(place, ahead)),
        1 => any::<usize>().prop_map(|place| Event::Deadline(place, u64::MAX)),
        6 => ticks().prop_map(Event::Pass),
        1 => Just(Event::Drain),
    ]
}

/// A connection, its wake-ups, and its deadline as a plain list would hold it.
struct Watched {
    member: ConnectionHandle,
    woken: Arc<Woken>,
    due: Tick,
}

async fn compare_with_a_list(events: Vec<Event>) {
    let table = Rc::new(ConnectionTable::new());
    let mut watched: Vec<Watched> = Vec::new();
    let mut is_drained = false;
    for event in events {
        let count = watched.len().max(1);
        match event {
            Event::Join => {
                let (member, woken) = (table.join(listener(1)), Arc::default());
                wake_at(&member, &woken, Tick::NEVER);
                let due = Tick::NEVER;
                watched.push(Watched { member, woken, due });
            }
            Event::Leave(place) => drop(watched.drain(place % count..).next()),
            Event::Deadline(place, ahead) => {
                if let Some(one) = watched.get_mut(place % count) {
                    one.due = Tick(one.member.now().0.saturating_add(ahead));
                    wake_at(&one.member, &one.woken, one.due);
                }
            }
            Event::Pass(ticks) => {
                tokio::time::advance(TICK * u32::try_from(ticks).unwrap()).await;
                watched.iter().for_each(|one| _ = one.woken.take());
                let before = table.swept.get();
                table.sweep();
                // at most one wake-up per tick
                let now = table.now();
                for one in watched.iter().filter(|_| now > before) {
                    assert_eq!(
                        one.woken.take() > 0,
                        one.due <= now,
                        "{:?} at {now:?}",
                        one.due
                    );
                }
            }
            Event::Drain => {
                watched.iter().for_each(|one| _ = one.woken.take());
                table.drain(&listener(1));
                for one in watched.iter().filter(|one| one.member.draining().is_some()) {
                    let is_woken = one.woken.take() > 0;
                    assert!(is_woken || is_drained, "a drain reaches each connection");
                }
                assert!(watched.iter().all(|one| one.member.draining().is_some()));
                is_drained = true;
            }
        }
    }
}

proptest! {
    #[test]
    fn wheel_wakes_what_a_sorted_list_would_after_any_jump_of_the_clock(
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(compare_with_a_list(events));
    }
}
