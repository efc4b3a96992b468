//! A request that the proxy itself sends while it serves a client's request: a copy for a mirror, or a call of a
//! service.
//!
//! It goes to an endpoint of a cluster through the worker's pools, and passes no route, no filter and no mirror, so that
//! it cannot cause another request of its own. It is never retried; only a connect that is still pending may go to another
//! endpoint. It counts as active at its endpoint until it is dropped; its outcome is
//! reported to outlier detection only by [`OwnRequest::report`].

use std::cell::Cell;
use std::rc::Rc;

use http::request::Parts;
use hyper::{Request, Response};

use crate::exchange::body::upstream::UpstreamBody;
use crate::exchange::select::target::PickedEndpoint;
use crate::exchange::select::watch::{EndpointWatch, MOVES_MAX, Moves};
use crate::exchange::worker::Worker;
use crate::pool::{ConnectionChoice, Failed, Incoming, Phase, Phases, PoolTarget, Pools};
use crate::upstream::http1::Message;
use crate::upstream::{Client, Protocol};
use traffic::cluster::Outcome;

/// The endpoint of a request of the proxy's own, and the connection settings for it.
pub(crate) struct OwnRequest {
    worker: Rc<Worker>,
    /// Client in the PROXY protocol header of a new connection.
    client: Client,
    picked: PickedEndpoint,
    protocol: Protocol,
}

impl OwnRequest {
    /// Counts a request as active at the picked endpoint. `protocol` is the upstream protocol that the head is written for.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        client: Client,
        picked: PickedEndpoint,
        protocol: Protocol,
    ) -> Self {
        picked.enter();
        Self {
            worker: Rc::clone(worker),
            client,
            picked,
            protocol,
        }
    }

    /// Reports an outcome of the request to outlier detection.
    pub(crate) fn report(&self, outcome: Outcome) {
        self.picked.report(outcome);
    }

    /// Sends the request and returns the response, whose body the caller reads. There is no timeout.
    ///
    /// # Errors
    ///
    /// Returns the error of the connect or of the exchange on the connection.
    pub(crate) async fn send(
        &mut self,
        mut parts: Parts,
        body: UpstreamBody,
        choice: ConnectionChoice,
    ) -> Result<Response<Incoming>, Failed> {
        let worker = Rc::clone(&self.worker);
        let host = self.picked.host(&worker, &parts);
        let mut unsent = match self.protocol {
            Protocol::Http1 => {
                let message = Message::new(worker.buffers.take(), &mut parts, body);
                Unsent::Http1(Some(message))
            }
            Protocol::Http2 => Unsent::Http2(Some(Request::from_parts(parts, body))),
        };
        let mut moves = 0;
        loop {
            let phases = Cell::new(Phases::default());
            let pool_target = PoolTarget {
                phases: Some(&phases),
                ..self.picked.pool_target(&self.client, self.protocol)
            };
            let pool_target = pool_target.asking_for(host.as_ref());
            let is_pending = || phases.get().phase != Phase::Connected;
            let sent = unsent.send(&worker.pools, pool_target, choice);
            let may = Moves {
                at_all: moves < MOVES_MAX,
                readdressed: false,
            };
            let watch = EndpointWatch::new(&worker, may);
            match watch.over(&self.picked, None, is_pending, sent).await {
                Ok(sent) => return sent,
                Err(instead) => {
                    moves += 1;
                    instead.enter();
                    let before = std::mem::replace(&mut self.picked, *instead);
                    before.endpoint().state.leave();
                }
            }
        }
    }
}

impl Drop for OwnRequest {
    fn drop(&mut self) {
        self.picked.endpoint().state.leave();
    }
}

/// A request in the form of its protocol; the option is empty once any part of it was sent.
enum Unsent {
    Http1(Option<Message<UpstreamBody>>),
    Http2(Option<Request<UpstreamBody>>),
}

impl Unsent {
    async fn send(
        &mut self,
        pools: &Pools,
        target: PoolTarget<'_>,
        choice: ConnectionChoice,
    ) -> Result<Response<Incoming>, Failed> {
        match self {
            Self::Http1(message) => pools.send_http1(target, message, choice).await,
            Self::Http2(request) => pools.send_http2(target, request, None, choice).await,
        }
    }
}
