//! Idle time of connections, and the order of their reuse.

use std::pin::pin;

use super::http1::lasting_origin;
use super::*;

const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Advances the clock at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn world(protocol: Protocol) -> (World, Rc<tokio::sync::Semaphore>) {
    let gate = Rc::new(tokio::sync::Semaphore::new(0));
    let address = match protocol {
        Protocol::Http1 => {
            let (address, connections) = lasting_origin();
            std::thread::spawn(move || connections.iter().collect::<Vec<_>>());
            address
        }
        Protocol::Http2 => one_by_one(Rc::clone(&gate)).await,
    };
    let mut world = World::of_name(&[address]);
    world.protocol = protocol;
    world.settings.idle_timeout = IDLE_TIMEOUT;
    (world, gate)
}

#[tokio::test]
async fn connection_past_its_idle_timeout_is_not_reused() {
    let run = async {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            for (waits, opened) in [(30, 1), (60, 2), (90, 2)] {
                let (world, gate) = world(protocol).await;
                gate.add_permits(2);
                drop(world.send().await.expect("an answer"));
                pass(Duration::from_secs(waits)).await;
                drop(world.send().await.expect("an answer"));
                let counted = world.count(Counter::UpstreamOpened);
                assert_eq!(counted, opened, "{protocol:?} {waits}");
                let evicted = world.count(Counter::PoolIdleTimeout);
                assert_eq!(evicted, opened - 1, "{protocol:?} {waits}");
            }
        }
    };
    tokio::task::LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn http2_idle_time_starts_at_the_end_of_the_last_request() {
    let run = async {
        let (world, gate) = world(Protocol::Http2).await;
        gate.add_permits(1);
        drop(world.send().await.expect("an answer"));
        let mut long = pin!(world.send());
        std::future::poll_fn(|cx| {
            assert!(long.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        pass(IDLE_TIMEOUT).await;
        world.pools.sweep(Instant::now());
        gate.add_permits(2);
        drop(long.await.expect("an answer"));
        world.pools.sweep(Instant::now());
        drop(world.send().await.expect("an answer"));
        assert_eq!(world.count(Counter::UpstreamOpened), 1);
        assert_eq!(world.count(Counter::PoolIdleTimeout), 0);
    };
    tokio::task::LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn most_recently_used_connection_is_reused_first() {
    let run = async {
        let (world, _) = world(Protocol::Http1).await;
        // a connection returns to the pool at the end of its response, which may be either's first
        let ended = RefCell::new(Vec::new());
        let local = |sent: Result<Response<Incoming>, Failed>| {
            let response = sent.expect("an answer");
            response.body().ends().local
        };
        let send = async || {
            let sent = world.send().await;
            ended.borrow_mut().push(local(sent));
        };
        tokio::join!(send(), send());
        let ended = ended.into_inner();
        assert_ne!(ended[0], ended[1]);
        for _ in 0..3 {
            assert_eq!(local(world.send().await), ended[1]);
        }
        assert_eq!(world.count(Counter::UpstreamOpened), 2);
    };
    tokio::task::LocalSet::new().run_until(run).await;
}
