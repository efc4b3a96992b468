//! One request, until the head of its response is received.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue};
use hyper::body::Body;
use hyper::{Method, Request, Response, Version};

use super::super::failure::Fault;
use super::super::http1::Interim;
use super::hold::StreamHandle;
use super::incoming::Incoming;
use super::link::{Link, State};
use super::slot::ReceivedResponse;
use traffic::error::{BoxError, Error};
use wire::http2::Reason;

/// Failure of a request without a response.
#[derive(Debug)]
pub struct Failed {
    /// Reason.
    pub error: Error,
    /// Whether any byte of the request may have been written.
    pub sent: bool,
}

/// A request that waits for its response.
#[must_use = "nothing is sent until it is polled"]
pub struct Call<'a, B> {
    link: &'a Rc<Link>,
    /// Taken when the stream opens.
    request: &'a mut Option<Request<B>>,
    /// Hold on the stream, once it is open.
    hold: Option<StreamHandle>,
    /// Rest of the body, until it is sent.
    body: Option<B>,
    interim: Option<&'a Arc<dyn Interim>>,
}

impl<'a, B> Call<'a, B>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    pub(super) fn new(
        link: &'a Rc<Link>,
        request: &'a mut Option<Request<B>>,
        interim: Option<&'a Arc<dyn Interim>>,
    ) -> Self {
        Self {
            link,
            request,
            hold: None,
            body: None,
            interim,
        }
    }

    /// Opens the stream, once the connection accepts it.
    fn begin(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        let state = &mut *self.link.0.borrow_mut();
        if state.engine.open() == 0 {
            // the last check before the first byte
            state.look();
        }
        if state.end.is_none() && state.engine.is_full() {
            if !state.for_room.iter().any(|one| one.will_wake(cx.waker())) {
                state.for_room.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        let fault = match state.end {
            None if !state.engine.can_request() => Some(Fault::Refused),
            end => end,
        };
        let request = match fault {
            None => self.request.take().ok_or(Fault::Downstream),
            Some(fault) => Err(fault),
        };
        let request = match request {
            Ok(request) => request,
            Err(fault) => {
                return Poll::Ready(Err(Failed {
                    error: fault.before_response(),
                    sent: false,
                }));
            }
        };
        let (place, body) = state.open(request);
        self.hold = Some(StreamHandle::new(self.link, place));
        self.body = body;
        Poll::Ready(Ok(()))
    }

    /// Polls for the head of the response, and passes on interim responses.
    fn poll_head(
        &mut self,
        hold: StreamHandle,
        cx: &Context<'_>,
    ) -> Poll<Result<Response<Incoming>, Failed>> {
        let place = hold.place;
        let mut state = self.link.0.borrow_mut();
        let slot = &mut state.slots[place];
        let interims = std::mem::take(&mut slot.interims);
        if let Some(interim) = self.interim {
            for (status, headers) in interims {
                interim.tell(status, headers);
            }
        }
        if let Some(head) = slot.head.take() {
            let done = slot.is_done();
            drop(state);
            if let Some(body) = self.body.take() {
                tokio::task::spawn_local(Rest {
                    hold: hold.for_the_rest(),
                    body,
                });
            }
            let incoming = match done {
                true => Incoming::empty(),
                false => Incoming::new(hold, head.content_length),
            };
            let mut response = Response::new(incoming);
            *response.status_mut() = head.status;
            *response.headers_mut() = head.headers;
            *response.version_mut() = Version::HTTP_2;
            return Poll::Ready(Ok(response));
        }
        if let Some(fault) = slot.fault {
            let sent = state.engine.is_sent(place);
            drop(state);
            return Poll::Ready(Err(Failed {
                error: fault.before_response(),
                sent,
            }));
        }
        slot.wait_to_read(cx.waker());
        drop(state);
        self.hold = Some(hold);
        Poll::Pending
    }
}

impl<B> Future for Call<'_, B>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<Incoming>, Failed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.hold.is_none() {
            std::task::ready!(this.begin(cx))?;
        }
        let hold = this
            .hold
            .take()
            .expect("a call that has begun has its stream");
        if let Some(body) = &mut this.body
            && poll_send(&hold, body, cx).is_ready()
        {
            this.body = None;
        }
        this.poll_head(hold, cx)
    }
}

/// Sends available bytes of a body as the peer accepts them; ready when there is nothing more to send.
fn poll_send<B>(hold: &StreamHandle, body: &mut B, cx: &mut Context<'_>) -> Poll<()>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let place = hold.place;
    loop {
        {
            let state = &mut *hold.link.0.borrow_mut();
            if !state.engine.is_sending(place) {
                return Poll::Ready(());
            }
            let full = state.engine.is_full();
            if full || !state.engine.wants(place) {
                if full && state.engine.wants(place) {
                    state.engine.wait_for_room(place);
                }
                state.slots[place].wait_to_write(cx.waker());
                return Poll::Pending;
            }
        }
        // nothing is borrowed while the body is polled: it may run any code
        let frame = std::task::ready!(Pin::new(&mut *body).poll_frame(cx));
        let end = body.is_end_stream();
        let state = &mut *hold.link.0.borrow_mut();
        state.lend_buffer();
        let over = match frame.map(|frame| frame.map(|frame| frame.into_data())) {
            Some(Ok(Ok(data))) => {
                if !data.is_empty() || end {
                    state.engine.data(place, data, end);
                }
                end
            }
            Some(Ok(Err(frame))) => {
                state.engine.finish(place, frame.into_trailers().ok());
                true
            }
            None => {
                state.engine.finish(place, None);
                true
            }
            Some(Err(error)) => {
                let error: BoxError = error.into();
                tracing::debug!(%error, "request body broke off");
                state.engine.cancel(place, Reason::CANCEL);
                state.slots[place].fail(Fault::Downstream);
                true
            }
        };
        state.flush();
        if over {
            return Poll::Ready(());
        }
    }
}

/// Sends the rest of a request whose response has begun.
struct Rest<B> {
    hold: StreamHandle,
    body: B,
}

impl<B> Future for Rest<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        poll_send(&this.hold, &mut this.body, cx)
    }
}

impl State {
    /// Provides an output buffer, if there is none.
    pub(super) fn lend_buffer(&mut self) {
        let Self { engine, memory, .. } = self;
        engine.output().lend_buffer(|| memory.take_buffer());
    }

    /// Opens a stream for a request; returns its place, and the body that is still to be sent.
    fn open<B: Body>(&mut self, mut request: Request<B>) -> (usize, Option<B>) {
        announce_length(&mut request);
        self.lend_buffer();
        let (parts, body) = request.into_parts();
        let end = body.is_end_stream();
        let place = self
            .engine
            .request(&parts.method, &parts.uri, &parts.headers, end);
        let place = place.expect("the caller has checked that a stream can be opened");
        self.engine.recycle(parts.headers);
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, ReceivedResponse::default);
        }
        self.slots[place].holders = 1;
        if !self.engine.can_request() {
            // that was the last stream number
            self.limit.end();
        }
        self.wake_driver();
        (place, (!end).then_some(body))
    }
}

/// Adds a known length, as over HTTP/1; 0 only for methods that usually have a body.
fn announce_length<B: Body>(request: &mut Request<B>) {
    let Some(length) = request.body().size_hint().exact() else {
        return;
    };
    let usual = !matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::DELETE | Method::CONNECT
    );
    if (length > 0 || usual) && !request.headers().contains_key(CONTENT_LENGTH) {
        let length = HeaderValue::from(length);
        request.headers_mut().insert(CONTENT_LENGTH, length);
    }
}
