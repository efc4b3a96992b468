use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;

use http::{HeaderValue, Request};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::*;
use crate::upstream::Buffers;

/// Result of polling a body.
#[derive(Clone)]
enum Act {
    Data(&'static str),
    Fail,
    Trailers(&'static [(&'static str, &'static str)]),
    /// Pending once, then woken.
    Wait,
}

/// A body that follows a script.
struct Script {
    acts: VecDeque<Act>,
    /// Whether the last frame is known to be the last.
    knows_its_end: bool,
    ended: bool,
}

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = match self.acts.pop_front() {
            None => {
                self.ended = true;
                return Poll::Ready(None);
            }
            Some(Act::Wait) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Act::Fail) => Err(io::ErrorKind::BrokenPipe.into()),
            Some(Act::Data(text)) => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
            Some(Act::Trailers(lines)) => {
                let lines = lines.iter().map(|(name, value)| {
                    let value = HeaderValue::from_static(value);
                    (http::HeaderName::from_static(name), value)
                });
                Ok(Frame::trailers(lines.collect()))
            }
        };
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.knows_its_end && self.acts.is_empty()
    }
}

fn message(length: Option<&str>, acts: &[Act], knows_its_end: bool) -> Message<Script> {
    let mut request = Request::post("/");
    if let Some(length) = length {
        request = request.header("content-length", length);
    }
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    let body = Script {
        acts: acts.iter().cloned().collect(),
        knows_its_end,
        ended: false,
    };
    Message::new(Rc::new(Buffers::default()).take(), &mut parts, body)
}

/// Returns the bytes that reach the peer, and the result of sending.
async fn send(message: &mut Message<Script>) -> (String, Result<(), Fault>) {
    let (ours, mut peer) = UnixStream::pair().unwrap();
    let mut stream = Stream::Unix(ours);
    let sent = poll_fn(|cx| message.poll_send(Pin::new(&mut stream), cx)).await;
    drop(stream);
    let mut text = String::new();
    peer.read_to_string(&mut text).await.unwrap();
    (text, sent)
}

const CHUNKED: &str = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
const LENGTH_5: &str = "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n";

#[tokio::test]
async fn bodies_are_encoded_with_their_framing() {
    use Act::{Data, Trailers, Wait};
    const TRAILERS: Act = Trailers(&[("x-sum", "7"), ("content-length", "9"), ("host", "b")]);
    for (length, acts, expected) in [
        (None, &[Data("abc")][..], "3\r\nabc\r\n0\r\n\r\n"),
        (None, &[], "0\r\n\r\n"),
        // an empty chunk would end the body
        (
            None,
            &[
                Data(""),
                Data("a"),
                Data(""),
                Wait,
                Data(""),
                Data("0123456789"),
                Data(""),
            ],
            "1\r\na\r\na\r\n0123456789\r\n0\r\n\r\n",
        ),
        (
            None,
            &[Wait, Data("a"), Wait, Wait, Data("b"), Wait],
            "1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
        ),
        (
            None,
            &[Data("a"), TRAILERS],
            "1\r\na\r\n0\r\nx-sum: 7\r\n\r\n",
        ),
        (None, &[TRAILERS], "0\r\nx-sum: 7\r\n\r\n"),
        (Some("5"), &[Data("abcde")], "abcde"),
        (
            Some("5"),
            &[Data("ab"), Wait, Data(""), Data("cde"), Wait],
            "abcde",
        ),
        (Some("5"), &[Data("abcde"), Wait, Data("")], "abcde"),
        (Some("5"), &[Data("abcde"), TRAILERS], "abcde"),
    ] {
        let head = if length.is_some() { LENGTH_5 } else { CHUNKED };
        for knows_its_end in [false, true] {
            if knows_its_end && acts.is_empty() {
                continue; // no body at all
            }
            let mut message = message(length, acts, knows_its_end);
            let (text, sent) = send(&mut message).await;
            sent.unwrap();
            assert_eq!(text, format!("{head}{expected}"));
            assert!(
                message.body.is_end_stream(),
                "its end was seen: {expected:?}"
            );
            assert!(message.is_begun());
        }
    }
}

#[tokio::test]
async fn content_length_zero_fits_a_body_that_ends_later() {
    let acts = [Act::Wait, Act::Data(""), Act::Wait];
    let (text, sent) = send(&mut message(Some("0"), &acts, false)).await;
    sent.unwrap();
    assert_eq!(text, "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
}

/// Such a request cannot be recalled once sent: the upstream would process it.
#[tokio::test]
async fn content_length_zero_is_sent_when_the_body_has_ended() {
    let acts = [Act::Wait, Act::Wait, Act::Data("late")];
    let mut message = message(Some("0"), &acts, false);
    let (text, sent) = send(&mut message).await;
    assert!(matches!(sent, Err(Fault::Body(_))), "{sent:?}");
    assert_eq!(text, "");
    assert!(!message.is_begun());
}

#[tokio::test]
async fn body_with_a_wrong_content_length_is_an_error() {
    use Act::{Data, Fail, Trailers, Wait};
    for (length, acts, most) in [
        (Some("5"), &[Data("abcdef")][..], ""),
        (Some("5"), &[Data("abc"), Data("def")], "abc"),
        (Some("5"), &[Data("abcde"), Wait, Data("f")], "abcde"),
        (Some("5"), &[Data("abcd"), Wait], "abcd"),
        (Some("5"), &[Data("abcd"), Trailers(&[])], "abcd"),
        (Some("0"), &[Data("a")], ""),
        (Some("5"), &[Data("abc"), Wait, Fail], "abc"),
        (None, &[Data("abc"), Wait, Fail], "3\r\nabc\r\n"),
    ] {
        let (text, sent) = send(&mut message(length, acts, false)).await;
        let Err(Fault::Body(error)) = sent else {
            panic!("{text:?} ended with {sent:?}");
        };
        assert_eq!(error.kind(), Kind::DownstreamBody);
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert!(most.starts_with(body), "{body:?} of {most:?}");
    }
}

#[tokio::test]
async fn message_without_a_body_can_be_resent() {
    let mut empty = message(None, &[], true);
    for _ in 0..2 {
        assert!(!empty.is_begun());
        let (text, sent) = send(&mut empty).await;
        sent.unwrap();
        assert_eq!(text, "POST / HTTP/1.1\r\n\r\n");
        assert!(empty.is_begun());
        assert!(empty.rewind());
    }
    for length in [None, Some("1")] {
        let mut message = message(length, &[Act::Data("a")], true);
        assert!(!message.rewind());
        send(&mut message).await.1.unwrap();
        assert!(!message.rewind());
        assert!(message.is_begun());
    }
}

#[tokio::test]
async fn message_is_resent_whole_after_a_closed_socket() {
    let mut message = message(None, &[Act::Data("abc"), Act::Wait, Act::Data("d")], true);
    let (ours, peer) = UnixStream::pair().unwrap();
    drop(peer);
    let mut stream = Stream::Unix(ours);
    let sent = poll_fn(|cx| message.poll_send(Pin::new(&mut stream), cx)).await;
    assert!(matches!(sent, Err(Fault::Socket(_))), "{sent:?}");
    assert!(!message.is_begun());
    let (text, sent) = send(&mut message).await;
    sent.unwrap();
    assert_eq!(text, format!("{CHUNKED}3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"));
}
