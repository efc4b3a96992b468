//! Context of a request after a route was found.

use std::rc::Rc;

use hyper::Version;

use super::find_route::Found;
use super::target::{PickedEndpoint, Target};
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::Origin;
use crate::exchange::worker::{SnapshotRef, Worker};
use crate::upstream::Protocol;

/// Context of a request before its route is found.
#[derive(Clone, Copy)]
pub struct LookupContext<'a> {
    /// The snapshot that the request began with.
    pub snapshot: &'a SnapshotRef,
    /// The downstream connection.
    pub connection: &'a Rc<Connection>,
    /// Address and scheme of the client, as far as they can be trusted.
    pub origin: &'a Origin,
}

impl<'a> LookupContext<'a> {
    /// Returns the context of a request on this connection.
    pub fn new(
        snapshot: &'a SnapshotRef,
        connection: &'a Rc<Connection>,
        origin: &'a Origin,
    ) -> Self {
        Self {
            snapshot,
            connection,
            origin,
        }
    }
}

/// Context of a request: worker, client, snapshot and route.
pub struct RequestContext<'a> {
    /// The worker.
    pub worker: &'a Rc<Worker>,
    /// The downstream connection.
    pub connection: &'a Rc<Connection>,
    /// Address and scheme of the client, as far as they can be trusted.
    pub origin: &'a Origin,
    /// The snapshot that the request began with.
    pub snapshot: &'a SnapshotRef,
    /// The route of the request.
    pub found: &'a Found,
}

impl RequestContext<'_> {
    /// Adds the address that the client dialed, or named in a request to the HTTP proxy, to a target; also the pod that
    /// the client chose by that address or by the authority.
    pub fn dialed(&self, target: Target, authority: Option<&str>) -> Target {
        let target = target.of_pod(self.found.dialed_on(self.connection), authority);
        match self.found.dialed() {
            None => target.dialed_by(self.connection, self.worker),
            named => target.dialed(named, self.worker),
        }
    }

    /// Protocol of the request to an endpoint; `version` is that of the client's request, `upgrading` whether it is an
    /// upgrade.
    pub fn protocol(&self, picked: &PickedEndpoint, version: Version, upgrading: bool) -> Protocol {
        match self.found.route().filters.is_http2 {
            true => Protocol::Http2,
            false => picked.protocol(version, upgrading),
        }
    }
}
