//! What is known of a request once a route has taken it.

use std::rc::Rc;

use super::find_route::Found;
use super::target::Target;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::Origin;
use crate::exchange::worker::{SnapshotRef, Worker};

/// A request's surroundings: the worker, the client, the snapshot and the route.
pub struct RequestContext<'a> {
    /// The worker's parts.
    pub worker: &'a Rc<Worker>,
    /// The connection that the request came on.
    pub connection: &'a Rc<Connection>,
    /// The client's address and scheme, as far as they can be trusted.
    pub origin: &'a Origin,
    /// The snapshot that the request began with.
    pub snapshot: &'a SnapshotRef,
    /// The route that took it.
    pub found: &'a Found,
}

impl RequestContext<'_> {
    /// A target with the address that the client dialed, or named to us as its HTTP proxy, or with the pod that it chose so or
    /// by the authority of its request.
    pub fn dialed(&self, target: Target, authority: Option<&str>) -> Target {
        let target = target.of_pod(self.found.dialed_on(self.connection), authority);
        match self.found.dialed() {
            None => target.dialed_by(self.connection, self.worker),
            named => target.dialed(named, self.worker),
        }
    }
}
