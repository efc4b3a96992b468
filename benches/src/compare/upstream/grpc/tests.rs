use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, Request};
use tokio::net::TcpListener;

use super::*;

/// Runs a client against the upstream.
fn with_upstream<F: Future>(client: impl FnOnce(SendRequest<Bytes>) -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (upstream, stream) = tokio::join!(listener.accept(), TcpStream::connect(address));
        let serve = answer(upstream.unwrap().0);
        let talk = async {
            let (sender, connection) = h2::client::handshake(stream.unwrap()).await.unwrap();
            tokio::select! {
                result = client(sender) => result,
                ended = connection => panic!("the connection ended: {ended:?}"),
            }
        };
        tokio::select! {
            result = talk => result,
            served = serve => panic!("the upstream ended: {served:?}"),
        }
    })
}

async fn send(sender: &mut SendRequest<Bytes>, message: &[u8]) -> ResponseFuture {
    let request = Request::post("http://upstream/any").body(()).unwrap();
    std::future::poll_fn(|context| sender.poll_ready(context))
        .await
        .unwrap();
    let (response, mut body) = sender.send_request(request, message.is_empty()).unwrap();
    if !message.is_empty() {
        body.send_data(Bytes::copy_from_slice(message), true)
            .unwrap();
    }
    response
}

/// Returns message and trailers.
async fn receive(response: ResponseFuture) -> (Vec<u8>, HeaderMap) {
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/grpc");
    let mut body = response.into_body();
    let mut message = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        message.extend_from_slice(&chunk);
    }
    (message, body.trailers().await.unwrap().unwrap())
}

#[test]
fn call_is_answered_with_a_message_and_status_0() {
    let (message, trailers) =
        with_upstream(async |mut sender| receive(send(&mut sender, &framed_message()).await).await);
    assert_eq!(message, framed_message());
    assert_eq!(trailers["grpc-status"], "0");
}

#[test]
fn call_with_a_cut_message_or_none_is_refused() {
    for sent in [&framed_message()[1..], &[]] {
        let (message, trailers) =
            with_upstream(async |mut sender| receive(send(&mut sender, sent).await).await);
        assert_eq!(message, b"");
        assert_eq!(trailers["grpc-status"], "3");
    }
}

/// The calls exceed the initial window of a connection in both directions.
#[test]
fn calls_go_on_when_windows_are_used_up() {
    const CALLS: usize = 2_000;
    const AT_ONCE: usize = 50;
    let right = with_upstream(async |mut sender| {
        let mut right = 0;
        for _ in 0..CALLS / AT_ONCE {
            let mut responses = Vec::new();
            for _ in 0..AT_ONCE {
                responses.push(send(&mut sender, &framed_message()).await);
            }
            for response in responses {
                right += usize::from(receive(response).await.0.len() == FRAMED_BYTES);
            }
        }
        right
    });
    assert_eq!(right, CALLS);
}

#[test]
fn reply_waits_for_room_in_the_window() {
    let mut calls = Calls::new();
    calls.window = FRAMED_BYTES as i64;
    for stream in [1, 3] {
        calls.arrived.insert(stream, FRAMED_BYTES);
        calls.finish(stream);
    }
    assert_eq!(calls.waiting, [3]);
    let credit = 1_000_u32.to_be_bytes();
    let update = Frame {
        kind: WINDOW_UPDATE,
        flags: 0,
        stream: 0,
        payload: &credit,
    };
    assert!(calls.take(&update).unwrap());
    assert!(calls.waiting.is_empty());
}

#[test]
fn ping_comes_back() {
    let mut calls = Calls::new();
    calls.out.clear();
    let ping = Frame {
        kind: PING,
        flags: 0,
        stream: 0,
        payload: b"12345678",
    };
    assert!(calls.take(&ping).unwrap());
    assert_eq!(calls.out, frame(PING, ACK, b"12345678"));
}

#[test]
fn peer_without_room_for_a_message_is_refused() {
    assert!(check_settings(&[0, 4, 0, 0, 255, 255]).is_ok());
    assert!(check_settings(&[0, 4, 0, 0, 0, 132]).is_err());
}

#[test]
fn frame_is_read_once_it_is_complete() {
    let bytes = frame(DATA, END_STREAM, b"abc");
    assert!(Frame::parse(&bytes[..11]).unwrap().is_none());
    let frame = Frame::parse(&bytes).unwrap().unwrap();
    assert!(frame.ends_stream());
    assert_eq!(frame.payload, b"abc");
    assert!(Frame::parse(&[1, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
}
