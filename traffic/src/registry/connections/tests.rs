use std::task::Poll;

use proptest::prelude::*;

use super::*;
use crate::registry::{ClusterState, ConnectionPermit, IdleMark, QueueTicket, Registry, Turn};

fn cluster(max: usize) -> Arc<ClusterState> {
    let cluster = Registry::default().cluster("outbound|80||a");
    cluster.connections.set_max(max);
    cluster
}

fn acquire(cluster: &Arc<ClusterState>, endpoint: u64) -> Option<ConnectionPermit> {
    ConnectionPermit::acquire(cluster, endpoint)
}

fn join(cluster: &Arc<ClusterState>, endpoint: u64) -> QueueTicket {
    QueueTicket::join(cluster, endpoint).expect("a place in line")
}

/// The outcome of a waiting request, if it was served.
fn turn(place: &QueueTicket) -> Option<Turn> {
    let mut turn = std::pin::pin!(place.wait());
    match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => None,
    }
}

fn own(places: &[&QueueTicket]) -> VecDeque<u64> {
    places.iter().map(|place| place.ticket()).collect()
}

#[test]
fn closed_connection_serves_the_first_waiter() {
    let cluster = cluster(2);
    let (one, two) = (acquire(&cluster, 1), acquire(&cluster, 1));
    assert!(one.is_some() && two.is_some() && acquire(&cluster, 1).is_none());
    let (first, second) = (join(&cluster, 1), join(&cluster, 1));
    assert!(turn(&first).is_none());
    drop(one);
    assert!(turn(&second).is_none());
    let Some(Turn::Connect(permit)) = turn(&first) else {
        panic!("not its turn");
    };
    assert_eq!(cluster.connections.open(), 2);
    drop((permit, two));
    assert!(matches!(turn(&second), Some(Turn::Connect(_))));
    assert_eq!(cluster.connections.open(), 0);
}

#[test]
fn cancelled_waiter_passes_on_its_turn() {
    let cluster = cluster(1);
    let held = acquire(&cluster, 1);
    let (first, second, third) = (join(&cluster, 1), join(&cluster, 1), join(&cluster, 1));
    drop(second);
    drop(held);
    drop(first);
    assert!(matches!(turn(&third), Some(Turn::Connect(_))));
    drop(third);
    assert_eq!(cluster.connections.open(), 0);
    assert!(!cluster.connections.is_crowded());
}

#[test]
fn endpoint_without_a_connection_gets_one_despite_the_limit() {
    let cluster = cluster(1);
    let (one, other) = (acquire(&cluster, 1), acquire(&cluster, 2));
    assert!(one.is_some() && other.is_some());
    assert!(ConnectionPermit::acquire_strictly(&cluster, 3).is_none());
    let (waits, waits_too) = (join(&cluster, 1), join(&cluster, 2));
    // the first waiter keeps waiting: the limit is still exceeded
    drop(other);
    assert!(turn(&waits).is_none());
    assert!(matches!(turn(&waits_too), Some(Turn::Connect(_))));
    drop(one);
    assert!(matches!(turn(&waits), Some(Turn::Connect(_))));
}

#[test]
fn first_waiter_is_skipped_a_limited_number_of_times() {
    let cluster = cluster(1);
    let held = acquire(&cluster, 1);
    let elsewhere = join(&cluster, 1);
    let here: Vec<QueueTicket> = (0..=PASSED_OVER_MAX).map(|_| join(&cluster, 1)).collect();
    let mut own = own(&here.iter().collect::<Vec<_>>());
    for place in here.iter().take(PASSED_OVER_MAX as usize) {
        let offer = cluster.connections.offer(1, &mut own);
        assert_eq!(offer, Offer::Give(place.ticket()));
        assert!(matches!(turn(place), Some(Turn::Reuse)));
    }
    let offer = cluster.connections.offer(1, &mut own);
    assert_eq!(offer, Offer::Close(Closing::ForAnother));
    let mut held = held.expect("a connection");
    held.mark_closing(Closing::ForAnother);
    drop(held);
    assert!(matches!(turn(&elsewhere), Some(Turn::Connect(_))));
}

#[test]
fn shared_connection_is_released_for_a_waiter_skipped_too_often() {
    let cluster = cluster(1);
    let _held = acquire(&cluster, 1);
    let more = join(&cluster, 1);
    let own = own(&[&more]);
    assert!(!cluster.connections.pass_over(&own));
    let elsewhere = join(&cluster, 1);
    let mut times = 1;
    while !cluster.connections.pass_over(&own) {
        times += 1;
    }
    assert_eq!(times, PASSED_OVER_MAX + 1);
    drop(elsewhere);
}

#[test]
fn no_more_connections_are_closed_than_there_are_waiters() {
    let cluster = cluster(3);
    let held: Vec<_> = (0..3).map(|_| acquire(&cluster, 1)).collect();
    let _waits = join(&cluster, 1);
    let mut none = VecDeque::new();
    let offers = [(); 3].map(|()| cluster.connections.offer(1, &mut none));
    let close = Offer::Close(Closing::ForAnother);
    assert_eq!(offers, [close, Offer::Keep, Offer::Keep]);
    drop(held);
}

#[test]
fn lower_limit_closes_excess_connections_and_higher_limit_serves_waiters() {
    let cluster = cluster(usize::MAX);
    let mut held: Vec<_> = (0..4).filter_map(|_| acquire(&cluster, 1)).collect();
    assert!(!cluster.connections.is_crowded());
    cluster.connections.set_max(2);
    assert!(cluster.connections.is_crowded());
    assert!(acquire(&cluster, 1).is_none());
    let waits = join(&cluster, 1);
    let mut none = VecDeque::new();
    for _ in 0..2 {
        let offer = cluster.connections.offer(1, &mut none);
        assert_eq!(offer, Offer::Close(Closing::Excess));
        let mut one = held.pop().expect("a connection");
        one.mark_closing(Closing::Excess);
        drop(one);
        assert!(turn(&waits).is_none());
    }
    cluster.connections.set_max(3);
    assert!(matches!(turn(&waits), Some(Turn::Connect(_))));
}

#[tokio::test]
async fn wake_signal_fires_when_idle_connections_are_needed() {
    let cluster = cluster(1);
    let wake_signal = Arc::new(WakeSignal::default());
    cluster.connections.register_wake_signal(&wake_signal);
    let _held = acquire(&cluster, 1);
    let (mark, crowded) = IdleMark::new(&cluster);
    assert!(!crowded);
    let _waits = join(&cluster, 1);
    wake_signal.wait().await;
    drop(mark);
    // a connection that parks later sees the waiting request
    assert!(IdleMark::new(&cluster).1);
}

/// Steps of a random walk.
#[derive(Clone, Debug)]
enum Step {
    Open(u64),
    Close(usize),
    Leave(usize),
    Limit(usize),
    Free(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_u64).prop_map(Step::Open),
        2 => (0..16_usize).prop_map(Step::Close),
        1 => (0..16_usize).prop_map(Step::Leave),
        1 => (1..5_usize).prop_map(Step::Limit),
        2 => (0..16_usize).prop_map(Step::Free),
    ]
}

proptest! {
    /// At each step the counts equal the permits held, no request waits while there is room, and an endpoint with
    /// waiting requests has a connection; at the end all counts are zero.
    #[test]
    fn connections_are_counted_exactly(steps in proptest::collection::vec(step(), 1..120)) {
        let cluster = cluster(3);
        let mut held: Vec<ConnectionPermit> = Vec::new();
        let mut line: Vec<QueueTicket> = Vec::new();
        for step in steps {
            match step {
                Step::Open(endpoint) => match QueueTicket::join(&cluster, endpoint) {
                    Ok(place) => line.push(place),
                    Err(permit) => held.push(permit),
                },
                Step::Close(which) if which < held.len() => drop(held.remove(which)),
                Step::Leave(which) if which < line.len() => drop(line.remove(which)),
                Step::Limit(max) => cluster.connections.set_max(max),
                Step::Free(which) if which < held.len() => {
                    let endpoint = held[which].endpoint;
                    let mut own = line.iter().filter(|one| one.endpoint == endpoint);
                    let mut own = own.by_ref().map(QueueTicket::ticket).collect();
                    if let Offer::Close(closing) = cluster.connections.offer(endpoint, &mut own) {
                        let mut permit = held.remove(which);
                        permit.mark_closing(closing);
                    }
                }
                Step::Close(_) | Step::Leave(_) | Step::Free(_) => (),
            }
            let mut waiting = Vec::new();
            for place in std::mem::take(&mut line) {
                match turn(&place) {
                    Some(Turn::Connect(permit)) => held.push(permit),
                    Some(Turn::Reuse) => (),
                    None => waiting.push(place),
                }
            }
            line = waiting;
            let connections = &cluster.connections;
            prop_assert_eq!(connections.open(), held.len());
            prop_assert!(line.is_empty() || connections.open() >= connections.max());
            for place in &line {
                prop_assert!(held.iter().any(|one| one.endpoint == place.endpoint));
            }
            let crowded = !line.is_empty() || connections.open() > connections.max();
            prop_assert_eq!(connections.is_crowded(), crowded);
        }
        drop((held, line));
        prop_assert_eq!(cluster.connections.open(), 0);
        prop_assert!(!cluster.connections.is_crowded());
        prop_assert_eq!(cluster.connections.lock().promised, 0);
    }
}
