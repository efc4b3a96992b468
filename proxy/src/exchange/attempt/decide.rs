//! What follows an attempt: a retry, a replay in the next tier of clusters, or the end.

use super::failover_cause::cause;
use super::request::{AttemptResult, ForwardedRequest};
use crate::exchange::record::Record;
use crate::exchange::select::context::RequestContext;
use crate::telemetry::ReplayCause;
use traffic::filter::RetryPolicy;
use traffic::filter::retry::Reason;

impl ForwardedRequest<'_> {
    /// The retry policy of this request: the client's, else the route's.
    pub(super) fn policy<'a>(&'a self, context: &'a RequestContext<'_>) -> Option<&'a RetryPolicy> {
        let own = self.policy.as_deref();
        own.or(context.found.route().filters.retry.as_deref())
    }

    /// Why the policy asks for a retry, if it does.
    ///
    /// The default policy leaves a request to the next tier of clusters, if that is to serve it.
    pub(super) fn retry_reason(
        &self,
        context: &RequestContext<'_>,
        attempted: &AttemptResult,
        record: &Record,
    ) -> Option<Reason> {
        let policy = self.policy(context)?;
        let conditions = &policy.conditions;
        let reason = match attempted {
            Ok(response) => conditions.on_response(response.status(), response.headers()),
            Err(error) => conditions.on_failure(error.kind(), self.outgoing.is_sent()),
        };
        reason.filter(|_| {
            !policy.implied || self.failover_cause(context, attempted, record).is_none()
        })
    }

    /// Why the default policy asks for a retry in the last tier of clusters. In the tiers before it made none, because
    /// the request went on to the next tier instead.
    pub(super) fn default_retry_reason(
        &self,
        context: &RequestContext<'_>,
        attempted: &AttemptResult,
        record: &Record,
    ) -> Option<Reason> {
        let implied = self.policy(context).is_some_and(|policy| policy.implied);
        self.retry_reason(context, attempted, record)
            .filter(|_| implied)
    }

    /// Why the request goes on to the next tier of clusters, if it does.
    pub(super) fn failover_cause(
        &self,
        context: &RequestContext<'_>,
        attempted: &AttemptResult,
        record: &Record,
    ) -> Option<ReplayCause> {
        let federation = self.picked.federation()?;
        let idempotent = self.outgoing.is_idempotent();
        let cause = cause(
            attempted.into(),
            idempotent,
            record.is_grpc(),
            federation.replay,
        )?;
        self.picked.has_next_tier(context.worker).then_some(cause)
    }
}
