//! Request on its way upstream, and one attempt to send it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use hyper::Response;
use hyper::body::Body;

use super::deadline::Deadline;
use super::send::{self, Outgoing};
use crate::exchange::message::headers::AttemptHeaders;
use crate::exchange::record::{Record, health};
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::target::{PickedEndpoint, Tried};
use crate::exchange::select::watch::{EndpointWatch, MOVES_MAX, Moves};
use crate::pool::{self, Phase, Phases};
use crate::snapshot::Destination;
use traffic::error::{Error, Kind};
use traffic::filter::RetryPolicy;

/// Most bytes that are read of a response that is not passed on, so that its connection can be used again. The proxy does
/// not wait for further bytes: if the response is not complete, its connection is closed.
const DRAIN_BYTES_MAX: usize = 64 * 1024;

/// Result of an attempt.
pub type AttemptResult = Result<Response<pool::Incoming>, Error>;

/// Request that is sent upstream, with the settings of its attempts.
pub struct ForwardedRequest<'a> {
    /// Destination of the route.
    pub destination: &'a Destination,
    /// Endpoint of the current attempt.
    pub picked: PickedEndpoint,
    /// Head and body.
    pub outgoing: Outgoing,
    /// Timeouts, if there are any.
    pub deadline: Option<Box<Deadline>>,
    /// Retry policy of the client, in place of the route's.
    pub policy: Option<Box<RetryPolicy>>,
    /// Number of pending connects that were given up for another endpoint.
    pub moves: u8,
}

impl ForwardedRequest<'_> {
    /// Makes one attempt, within the timeouts of the request, and reports its outcome to outlier detection. If the endpoint
    /// leaves or becomes unavailable before the attempt has a connection, the attempt goes to another endpoint, preferably
    /// to one that is not among `tried`.
    #[expect(
        clippy::manual_async_fn,
        reason = "the parameters of an `async fn` are copied once more"
    )]
    pub fn attempt(
        &mut self,
        context: &RequestContext<'_>,
        record: &mut Record,
        tried: Option<&Tried>,
    ) -> impl Future<Output = AttemptResult> {
        async move {
            record.phases.set(Phases::default());
            loop {
                let ended = {
                    let Self {
                        picked,
                        outgoing,
                        deadline,
                        ..
                    } = self;
                    let picked = &*picked;
                    let phases = &record.phases;
                    let may = Moves {
                        at_all: self.moves < MOVES_MAX,
                        readdressed: outgoing.is_saved(),
                    };
                    let mut watch = EndpointWatch::new(context.worker, may);
                    let mut attempt = pin!(send::run(context, picked, outgoing, phases));
                    // moved: what is borrowed would be stored as well
                    let within = poll_fn(move |cx| {
                        if let Poll::Ready(attempted) = attempt.as_mut().poll(cx) {
                            return Poll::Ready(Ok(attempted));
                        }
                        let phase = phases.get().phase;
                        if let Some(deadline) = deadline
                            && let Poll::Ready(kind) = deadline.poll(cx, phase != Phase::Connecting)
                        {
                            return Poll::Ready(Ok(Err(Error::new(kind))));
                        }
                        match phase {
                            Phase::Connected => Poll::Pending,
                            _ => watch.poll(cx, picked, tried).map(Err),
                        }
                    });
                    within.await
                };
                match ended {
                    Ok(attempted) => {
                        if let Some(outcome) = health::outcome(&attempted, record.is_grpc()) {
                            self.picked.report(outcome);
                        }
                        return attempted;
                    }
                    Err(instead) => {
                        record.phases.update(Phases::moved);
                        if !self.go_instead(context, *instead, record) {
                            return Err(Error::new(Kind::DownstreamBody));
                        }
                    }
                }
            }
        }
    }

    /// Directs an attempt that has no connection to another endpoint; false if the request cannot be remade for it.
    #[cold]
    fn go_instead(
        &mut self,
        context: &RequestContext<'_>,
        picked: PickedEndpoint,
        record: &mut Record,
    ) -> bool {
        self.moves += 1;
        record.replace_endpoint(picked.clone());
        let before = std::mem::replace(&mut self.picked, picked);
        self.picked.is_reached_as(&before) || self.remake(context, record)
    }

    /// Directs the request to another endpoint.
    ///
    /// # Errors
    ///
    /// Reason why the request cannot be sent again.
    pub fn redirect(
        &mut self,
        context: &RequestContext<'_>,
        picked: PickedEndpoint,
        record: &mut Record,
    ) -> Result<(), Kind> {
        record.record_attempt(picked.clone());
        self.picked = picked;
        if let Some(deadline) = &mut self.deadline {
            deadline.next_attempt();
        }
        let remade = self.remake(context, record);
        remade.then_some(()).ok_or(Kind::DownstreamBody)
    }

    fn remake(&mut self, context: &RequestContext<'_>, record: &Record) -> bool {
        let headers = AttemptHeaders {
            number: record.attempts(),
            time: self.deadline.as_ref().and_then(|deadline| deadline.left()),
            grpc: record.is_grpc(),
            trace: record.trace().copied(),
            request_id: record.changed_request_id(),
        };
        let hop = self.picked.endpoint().hop.as_ref();
        self.outgoing.rewind(context, hop, &headers)
    }
}

/// Reads the received part of a response that is not passed on, so that its connection can be used again.
pub(super) async fn drain(attempted: AttemptResult) {
    let Ok(mut response) = attempted else {
        return;
    };
    let mut bytes = 0;
    let body = response.body_mut();
    poll_fn(|cx| {
        while bytes <= DRAIN_BYTES_MAX && !body.is_end_stream() {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    bytes += frame.data_ref().map_or(0, |data| data.len())
                }
                _ => break,
            }
        }
        Poll::Ready(())
    })
    .await;
}
