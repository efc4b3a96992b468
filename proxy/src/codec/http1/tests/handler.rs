//! Handler that answers the requests of a simulated connection.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Sleep;

use crate::exchange::Connection;
use crate::exchange::downstream::body::{DownstreamBody, Duplex, Switched};
use crate::upstream::http1::Interim as _;

/// Scripted answer to a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Steps before the response.
    pub before: Vec<Part>,
    /// Amount of the request body that is read before the response.
    pub reads: Reads,
    /// Use of the rest of the request body during the response.
    pub keeps: Keeps,
    /// Interim responses before the response.
    pub interims: usize,
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Length of the body, if the body reports one.
    pub exact: Option<u64>,
    pub parts: Vec<Part>,
    /// Whether the body marks its last frame as the last.
    pub says_end: bool,
    /// Whether the answer is a local reply.
    pub is_local: bool,
    /// Whether the response comes long after the client has left.
    pub is_late: bool,
    /// Whether the answer switches protocols, if the request asks for it.
    pub switches: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    All,
    AtLeast(usize),
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Drops it before the response.
    Nothing,
    /// Keeps all of it, unread.
    Unread,
    /// Reads it while the response is sent, which ends after it.
    Reading,
}

/// A part of a body.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Pause(Duration),
    Yield,
    Data(Bytes),
    Trailers(HeaderMap),
    Fail,
}

/// End of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Unread,
    Whole,
    Broken,
}

/// A request as the handler sees it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub index: usize,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
    pub ending: Ending,
}

/// Answers to all requests, and the requests received.
#[derive(Debug)]
pub(crate) struct Script {
    pub answers: Vec<Answer>,
    pub seen: RefCell<Vec<Seen>>,
}

impl Script {
    /// Records a frame of a body; returns whether the body has ended.
    fn note<E>(&self, place: usize, frame: Option<Result<Frame<Bytes>, E>>) -> bool {
        let seen = &mut self.seen.borrow_mut()[place];
        assert_eq!(seen.ending, Ending::Unread, "nothing comes after the end");
        match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    assert!(seen.trailers.is_none(), "no data comes after trailers");
                    seen.body.extend_from_slice(&data);
                }
                Err(frame) => seen.trailers = frame.into_trailers().ok(),
            },
            Some(Err(_)) => seen.ending = Ending::Broken,
            None => seen.ending = Ending::Whole,
        }
        seen.ending != Ending::Unread
    }
}

/// Header with the number of the request.
const INDEX: HeaderName = HeaderName::from_static("x-index");

/// Answers a request.
pub(crate) async fn answer(
    script: Rc<Script>,
    connection: Rc<Connection>,
    request: Request<DownstreamBody>,
) -> Response<Reply> {
    let index = request.headers()[INDEX].to_str().unwrap().parse().unwrap();
    let place = script.seen.borrow().len();
    script.seen.borrow_mut().push(Seen {
        index,
        body: Vec::new(),
        trailers: None,
        ending: Ending::Unread,
    });
    let answer = script.answers[index].clone();
    let (parts, mut body) = request.into_parts();
    for _ in 0..answer.interims * usize::from(parts.version == Version::HTTP_11) {
        connection
            .interim
            .tell(StatusCode::EARLY_HINTS, HeaderMap::new());
    }
    for part in answer.before {
        match part {
            Part::Pause(pause) => tokio::time::sleep(pause).await,
            _ => tokio::task::yield_now().await,
        }
    }
    let switched = match answer.switches {
        true => body.take_switched(),
        false => None,
    };
    let mut is_over = answer.keeps == Keeps::Nothing && answer.reads == Reads::Nothing;
    while !is_over
        && match answer.reads {
            Reads::All => true,
            Reads::AtLeast(bytes) => script.seen.borrow()[place].body.len() < bytes,
            Reads::Nothing => false,
        }
    {
        let frame = body.frame().await;
        is_over = script.note(place, frame);
    }
    if answer.is_late {
        tokio::time::sleep(Duration::from_secs(500)).await;
    }
    connection.answered_here.set(answer.is_local);
    if let Some(Switched::Connection(receiver)) = switched {
        tokio::task::spawn_local(async move {
            if let Ok(handed_over) = receiver.await {
                echo(handed_over.connection).await;
            }
        });
    }
    let mut response = Response::new(Reply {
        script,
        place,
        parts: answer.parts.into(),
        exact: answer.exact,
        says_end: answer.says_end,
        reads: answer.keeps == Keeps::Reading,
        request: (!is_over && answer.keeps != Keeps::Nothing).then_some(body),
        sleep: None,
    });
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response.headers_mut().insert(INDEX, index.into());
    response
}

/// Echoes all bytes, to the end.
async fn echo(mut connection: Pin<Box<dyn Duplex>>) {
    let mut space = [0; 100];
    while let Ok(length @ 1..) = connection.read(&mut space).await {
        if connection.write_all(&space[..length]).await.is_err() {
            return;
        }
    }
    // the client may be gone
    let _ = connection.shutdown().await;
}

/// The body of a response.
pub(crate) struct Reply {
    script: Rc<Script>,
    place: usize,
    parts: VecDeque<Part>,
    exact: Option<u64>,
    says_end: bool,
    /// Whether the request body is read meanwhile.
    reads: bool,
    /// Rest of the request body.
    request: Option<DownstreamBody>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Reply {
    fn read(&mut self, cx: &mut Context<'_>) {
        while let Some(request) = self.request.as_mut().filter(|_| self.reads)
            && let Poll::Ready(frame) = Pin::new(request).poll_frame(cx)
        {
            if self.script.note(self.place, frame) {
                self.request = None;
            }
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = std::fmt::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::fmt::Error>>> {
        let this = &mut *self;
        this.read(cx);
        loop {
            if let Some(sleep) = &mut this.sleep {
                std::task::ready!(sleep.as_mut().poll(cx));
                this.sleep = None;
            }
            let Some(part) = this.parts.pop_front() else {
                let is_over = !this.reads || this.request.is_none();
                return if is_over {
                    Poll::Ready(None)
                } else {
                    Poll::Pending
                };
            };
            match part {
                Part::Pause(pause) => this.sleep = Some(Box::pin(tokio::time::sleep(pause))),
                Part::Yield => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Part::Data(data) => {
                    this.exact = this.exact.map(|exact| exact - data.len() as u64);
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Part::Trailers(trailers) => {
                    return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                }
                Part::Fail => return Poll::Ready(Some(Err(std::fmt::Error))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.says_end && self.parts.is_empty() && self.sleep.is_none() && !self.reads
    }

    fn size_hint(&self) -> SizeHint {
        self.exact.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
