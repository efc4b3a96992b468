use std::sync::mpsc;

use http_body_util::BodyExt;
use tokio::task::yield_now;

use super::*;

/// Starts an origin that answers on every connection and never closes one; passes all of them to the test.
pub(super) fn lasting_origin() -> (SocketAddr, mpsc::Receiver<std::net::TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let handle = stream.try_clone().expect("a handle");
            if give.send(handle).is_err() {
                return;
            }
            std::thread::spawn(move || {
                while stream.peek(&mut [0]).is_ok_and(|read| read > 0) {
                    answer_one(stream.try_clone().expect("a handle"));
                }
            });
        }
    });
    (address, take)
}

#[tokio::test]
async fn connection_is_reused_for_the_next_request() {
    let (address, _connections) = lasting_origin();
    let world = World::of_name(&[address]);
    for _ in 0..3 {
        let response = world.get().await.expect("an answer");
        response.into_body().collect().await.expect("a body");
    }
    assert_eq!(world.count(Counter::UpstreamOpened), 1);
    assert_eq!(world.count(Counter::PoolReused), 2);
}

#[tokio::test]
async fn connections_closed_while_idle_are_skipped() {
    let (address, connections) = lasting_origin();
    let world = World::of_name(&[address]);
    let run = async {
        let (first, second) = tokio::join!(world.send(), world.send());
        drop((first.expect("an answer"), second.expect("an answer")));
        assert_eq!(world.count(Counter::UpstreamOpened), 2);
        for connection in [connections.recv(), connections.recv()] {
            let connection = connection.expect("a connection");
            connection
                .shutdown(std::net::Shutdown::Both)
                .expect("to close");
        }
        yield_now().await;
        let sent = world.send().await.expect("an answer");
        assert_eq!(sent.status(), 200);
        assert_eq!(world.count(Counter::PoolPeerClosed), 2);
        assert_eq!(world.count(Counter::UpstreamOpened), 3);
    };
    tokio::task::LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn unread_response_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let world = World::of_name(&[listener.local_addr().expect("an address")]);
    let origin = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhalf")
            .expect("to answer");
        let mut rest = Vec::new();
        // ends when the other side closes
        drop(stream.read_to_end(&mut rest));
        rest
    });
    let response = world.get().await.expect("an answer");
    drop(response);
    let heard = origin.join().expect("an origin");
    assert!(heard.starts_with(b"GET / HTTP/1.1\r\n"));
    assert_eq!(world.count(Counter::UpstreamClosed), 1);
}
