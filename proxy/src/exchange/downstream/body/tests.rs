use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use futures_util::future::poll_immediate;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn lane(left: Option<u64>, expects: bool) -> (Rc<Lane>, Arc<Count>) {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    (Lane::new(waker, left, expects), count)
}

#[tokio::test]
async fn body_is_unchanged_and_its_window_is_released() {
    let (lane, count) = lane(Some(5), false);
    let mut body = DownstreamBody::Stream(lane.inlet());
    assert_eq!(body.size_hint().exact(), Some(5));
    assert_eq!(lane.push(b"ab", false), 0);
    assert_eq!(lane.push(b"c", false), 0);
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "abc");
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(lane.take_released(), (3, 0));
    assert_eq!(body.size_hint().exact(), Some(2));
    assert!(!body.is_end_stream());
    lane.push(b"de", true);
    assert!(!body.is_end_stream());
    lane.watch(true);
    body.frame().await.unwrap().unwrap();
    // a reader that polls again is not woken
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn trailers_end_a_body_and_an_error_breaks_it() {
    let (first, _) = lane(None, false);
    let mut body = DownstreamBody::Stream(first.inlet());
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    first.push_trailers(trailers);
    assert!(!body.is_end_stream());
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_trailers().unwrap()["x-sum"], "1");
    assert!(body.is_end_stream());
    let (second, _) = lane(None, false);
    let mut body = DownstreamBody::Stream(second.inlet());
    second.push(b"ab", false);
    second.fail(Reason::CANCEL);
    assert!(body.frame().await.unwrap().is_ok());
    assert!(body.frame().await.unwrap().is_err());
}

#[tokio::test]
async fn dropped_body_accepts_no_more_data() {
    let (lane, count) = lane(None, false);
    let body = DownstreamBody::Stream(lane.inlet());
    lane.push(b"abc", false);
    drop(body);
    assert!(lane.is_abandoned());
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(lane.take_released(), (0, 3));
    assert_eq!(lane.push(b"defg", true), 4);
}

#[tokio::test]
async fn expect_100_continue_is_answered_once() {
    let (lane, count) = lane(None, true);
    let mut body = DownstreamBody::Stream(lane.inlet());
    assert!(!lane.take_continue_wanted());
    for _ in 0..2 {
        poll_fn(|cx| {
            assert!(Pin::new(&mut body).poll_frame(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(lane.take_continue_wanted());
    assert!(!lane.take_continue_wanted());
}

fn tunnel(lane: &Rc<Lane>) -> Tunnel {
    match DownstreamBody::Stream(lane.inlet()).take_switched() {
        Some(Switched::Stream(tunnel)) => tunnel,
        other => panic!("no tunnel: {other:?}"),
    }
}

#[tokio::test]
async fn tunnel_is_cut_off_unless_both_directions_have_ended() {
    for (client_ends, endpoint_ends) in [(false, false), (true, false), (false, true)] {
        let (lane, _) = lane(None, false);
        let switched = Switched::Stream(tunnel(&lane));
        let HandedOver {
            mut connection,
            mut cut_off,
        } = switched.ready().await.unwrap();
        lane.push(b"", client_ends);
        if endpoint_ends {
            connection.shutdown().await.unwrap();
        }
        assert!(poll_immediate(&mut cut_off).await.is_none());
        lane.fail(Reason::CANCEL);
        let error = poll_immediate(&mut cut_off).await.unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
    let (lane, _) = lane(None, false);
    let switched = Switched::Stream(tunnel(&lane));
    let mut whole = switched.ready().await.unwrap();
    lane.push(b"", true);
    whole.connection.shutdown().await.unwrap();
    lane.fail(Reason::CANCEL);
    assert!(poll_immediate(&mut whole.cut_off).await.is_none());
}

#[tokio::test]
async fn connection_is_handed_over_once() {
    let (sender, receiver) = oneshot::channel();
    let waker = Waker::noop().clone();
    let lane = Lane::with_connection(waker, Some(0), false, Some(receiver));
    let mut body = DownstreamBody::Stream(lane.inlet());
    assert!(
        body.is_end_stream(),
        "no body comes before the other protocol"
    );
    let Some(Switched::Connection(receiver)) = body.take_switched() else {
        panic!("no connection");
    };
    assert!(body.take_switched().is_none());
    let (ours, theirs) = tokio::io::duplex(8);
    let handed_over = HandedOver {
        connection: Box::pin(theirs),
        cut_off: CutOff::never(),
    };
    sender.send(handed_over).unwrap();
    let mut connection = receiver.await.unwrap().connection;
    connection.write_all(b"abc").await.unwrap();
    drop(connection);
    let mut ours = ours;
    let mut text = String::new();
    ours.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "abc");
}

#[tokio::test]
async fn owned_bytes_arrive_and_are_bounded_by_their_reader() {
    let (lane, _) = lane(None, false);
    let mut body = DownstreamBody::Stream(lane.inlet());
    lane.push_owned(BytesMut::from(&b"ab"[..]), false);
    assert!(!lane.is_full());
    lane.push_owned(
        BytesMut::from(vec![b'c'; INBOUND_BYTES_MAX].as_slice()),
        false,
    );
    assert!(lane.is_full());
    let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
    let data = frame.unwrap().unwrap().into_data().unwrap();
    assert_eq!(data.len(), INBOUND_BYTES_MAX + 2);
    assert!(data.starts_with(b"abc") && !lane.is_full());
    lane.push(b"", true);
    let end = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
    assert!(end.is_none());
    drop(body);
    lane.push_owned(BytesMut::from(&b"ab"[..]), false);
    assert!(!lane.is_full() && lane.is_abandoned());
}

#[tokio::test]
async fn chunked_body_is_one_until_its_end_was_asked_for() {
    for (left, is_at_end) in [(None, false), (Some(0), true)] {
        let (_sender, receiver) = oneshot::channel();
        let waker = Waker::noop().clone();
        let lane = Lane::with_connection(waker, left, false, Some(receiver));
        let mut body = DownstreamBody::Stream(lane.inlet());
        lane.push(b"", true);
        assert_eq!(body.is_end_stream(), is_at_end, "{left:?}");
        let end = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        assert!(end.is_none() && body.is_end_stream(), "{left:?}");
    }
}

#[tokio::test]
async fn tunnel_carries_bytes_in_both_directions_within_bounds() {
    let (lane, _) = lane(None, false);
    let mut tunnel = tunnel(&lane);
    lane.push(b"abc", false);
    let mut space = [0; 2];
    assert_eq!(tunnel.read(&mut space).await.unwrap(), 2);
    assert_eq!(lane.take_released(), (2, 0));
    let large = vec![7; OUTBOUND_BYTES_MAX + 1];
    let written = tunnel.write(&large).await.unwrap();
    assert_eq!(written, OUTBOUND_BYTES_MAX);
    poll_fn(|cx| {
        assert!(Pin::new(&mut tunnel).poll_write(cx, b"x").is_pending());
        Poll::Ready(())
    })
    .await;
    assert!(matches!(lane.take_outbound(), Some(Outbound::Data(data)) if data.len() == written));
    assert!(lane.take_outbound().is_none());
    tunnel.write_all(b"x").await.unwrap();
    tunnel.shutdown().await.unwrap();
    assert!(matches!(lane.take_outbound(), Some(Outbound::Data(_))));
    assert!(matches!(lane.take_outbound(), Some(Outbound::End)));
    lane.push(b"", true);
    let mut rest = Vec::new();
    tunnel.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"c");
}

#[tokio::test]
async fn dropped_tunnel_is_reset() {
    let (lane, _) = lane(None, false);
    let tunnel = tunnel(&lane);
    drop(tunnel);
    assert!(matches!(lane.take_outbound(), Some(Outbound::Broken)));
}
