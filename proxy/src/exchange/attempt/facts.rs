//! Facts about a forwarded request, which the retry machine decides by.

use std::time::Duration;

use super::machine::Facts;
use super::request::ForwardedRequest;
use crate::exchange::record::Record;
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::target::PickedEndpoint;
use crate::identity::Replay;
use crate::runtime::clock;
use crate::snapshot::Route;
use traffic::cluster::Admission;
use traffic::filter::RetryPolicy;
use traffic::filter::retry::Reason;

/// A forwarded request with its surroundings.
pub(super) struct RequestFacts<'a> {
    pub(super) context: &'a RequestContext<'a>,
    pub(super) forwarded: &'a ForwardedRequest<'a>,
    pub(super) record: &'a Record,
}

impl Facts for RequestFacts<'_> {
    /// Retry policy of the client, else of the route.
    fn policy(&self) -> Option<&RetryPolicy> {
        let own = self.forwarded.policy.as_deref();
        own.or(self.context.found.route().filters.retry.as_deref())
    }

    fn replays(&self) -> Option<Replay> {
        Some(self.forwarded.picked.federation()?.replay)
    }

    fn has_next_tier(&self) -> bool {
        self.forwarded.picked.has_next_tier(self.context.worker)
    }

    fn is_grpc(&self) -> bool {
        self.record.is_grpc()
    }

    fn is_idempotent(&self) -> bool {
        self.forwarded.outgoing.is_idempotent()
    }

    fn is_sent(&self) -> bool {
        self.forwarded.outgoing.is_sent()
    }

    fn can_rewind(&self) -> bool {
        self.forwarded.outgoing.can_rewind()
    }

    fn can_move(&self) -> bool {
        let body_max = self.context.worker.setting(|all| all.failover_replay_bytes);
        self.forwarded.outgoing.can_move(body_max)
    }

    fn is_hashed(&self) -> bool {
        is_hashed(&self.forwarded.picked, self.context.found.route())
    }

    fn time_left(&self) -> Option<Duration> {
        self.forwarded.deadline.as_ref()?.request_left()
    }

    fn admit(&self, reason: Reason) -> Admission {
        admit(&self.forwarded.picked, reason)
    }
}

/// Whether a hash leads to the same endpoint again. That of a federated service may be in a cluster that is gone, and that
/// of a rule with several destinations does not count, as in Istio.
pub(in crate::exchange) fn is_hashed(picked: &PickedEndpoint, route: &Route) -> bool {
    let split = route.split.as_ref();
    let is_split = split.is_some_and(|split| split.entries().nth(1).is_some());
    picked.cluster().hash_key().is_some() && !picked.is_member() && !is_split
}

/// Asks the retry limit of the cluster of an endpoint for one more retry.
pub(in crate::exchange) fn admit(picked: &PickedEndpoint, reason: Reason) -> Admission {
    let cluster = picked.cluster();
    let now = || cluster.state.journal.at(clock::now());
    cluster.admit_retry(reason.is_unprocessed(), now)
}
