use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

/// Polls a direction once.
async fn once(
    direction: &mut Direction,
    from: &mut DuplexStream,
    to: &mut DuplexStream,
) -> (bool, u64) {
    let mut space = [0; 64];
    let mut moved = 0;
    let polled = poll_fn(|cx| {
        let ends = Ends {
            from: &mut *from,
            to: &mut *to,
        };
        let polled = direction.poll(cx, ends, &mut space, &mut moved);
        Poll::Ready(matches!(polled, Poll::Ready(Ok(()))))
    });
    (polled.await, moved)
}

#[tokio::test]
async fn full_buffer_pauses_reading() {
    let (mut client, mut from) = duplex(1024);
    let (mut to, mut server) = duplex(10);
    let mut direction = Direction::default();
    client.write_all(&[7; 200]).await.unwrap();
    let (done, moved) = once(&mut direction, &mut from, &mut to).await;
    assert_eq!((done, moved), (false, 10));
    assert_eq!(direction.pending.len(), 54, "the rest of one piece");
    assert_eq!(once(&mut direction, &mut from, &mut to).await, (false, 0));

    let mut taken = [0; 10];
    let mut total = 10;
    for _ in 0..19 {
        server.read_exact(&mut taken).await.unwrap();
        total += once(&mut direction, &mut from, &mut to).await.1;
    }
    assert_eq!(total, 200);
    assert!(direction.pending.is_empty(), "waiting costs no memory");
}

#[tokio::test]
async fn end_of_stream_is_forwarded_after_the_last_byte() {
    let (mut client, mut from) = duplex(64);
    let (mut to, mut server) = duplex(64);
    let mut direction = Direction {
        pending: Bytes::from_static(b"ahead "),
        ..Direction::default()
    };
    client.write_all(b"bye").await.unwrap();
    drop(client);
    assert_eq!(once(&mut direction, &mut from, &mut to).await, (true, 9));
    assert_eq!(once(&mut direction, &mut from, &mut to).await, (true, 0));
    drop(to);
    let mut all = Vec::new();
    server.read_to_end(&mut all).await.unwrap();
    assert_eq!(all, b"ahead bye");
}
