//! Retry policies, as requests use them.

use config_loader::resource::istio::{RetryCondition, RetryPolicy as Written};

use crate::identity::Identity;
use traffic::filter::RetryPolicy;
use traffic::filter::retry::{BackOff, Condition, Conditions};

/// Returns the retry policy of outbound requests without a policy of their own, if the mesh has not switched it off.
pub(in crate::compile) fn of_mesh(identity: &Identity) -> Option<RetryPolicy> {
    match &identity.mesh_config.traffic.retries {
        Some(written) => Some(RetryPolicy {
            implied: true,
            ..policy(written)?
        }),
        None => Some(RetryPolicy::mesh_default(identity.mesh.compat_retry_503)),
    }
}

/// Returns a retry policy; `None` if there are no retries.
pub(in crate::compile) fn policy(written: &Written) -> Option<RetryPolicy> {
    (written.attempts > 0).then(|| RetryPolicy {
        attempts: written.attempts,
        per_try_timeout: written.per_try_timeout,
        conditions: conditions(written),
        back_off: BackOff {
            base: written.backoff,
        },
        // no balancer here sends a key to one endpoint, which alone would make the default no
        avoid_tried: written.ignore_previous_hosts,
        avoid_priorities: written.remote_localities,
        implied: false,
    })
}

fn conditions(written: &Written) -> Conditions {
    let mut conditions = Conditions::default();
    for condition in &written.retry_on {
        match known(*condition) {
            Ok(condition) => conditions.insert(condition),
            Err(status) => conditions.insert_status(status),
        }
    }
    conditions
}

/// Returns the condition, or the status code that is the condition.
fn known(condition: RetryCondition) -> Result<Condition, u16> {
    Ok(match condition {
        RetryCondition::Cancelled => Condition::Cancelled,
        RetryCondition::ConnectFailure => Condition::ConnectFailure,
        RetryCondition::DeadlineExceeded => Condition::DeadlineExceeded,
        RetryCondition::EnvoyRatelimited => Condition::EnvoyRatelimited,
        RetryCondition::FiveXx => Condition::FiveXx,
        RetryCondition::GatewayError => Condition::GatewayError,
        RetryCondition::Http3PostConnectFailure => Condition::Http3PostConnectFailure,
        RetryCondition::Internal => Condition::Internal,
        RetryCondition::RefusedStream => Condition::RefusedStream,
        RetryCondition::Reset => Condition::Reset,
        RetryCondition::ResetBeforeRequest => Condition::ResetBeforeRequest,
        RetryCondition::ResourceExhausted => Condition::ResourceExhausted,
        RetryCondition::Retriable4xx => Condition::Retriable4xx,
        RetryCondition::RetriableHeaders => Condition::RetriableHeaders,
        RetryCondition::RetriableStatusCodes => Condition::RetriableStatusCodes,
        RetryCondition::Status(status) => return Err(status),
        RetryCondition::Unavailable => Condition::Unavailable,
    })
}
