//! A rule's retries and mirrors, as requests use them.

use std::sync::Arc;

use config_loader::resource::istio::{
    Destination, HttpAction, HttpRule, RetryCondition, RetryPolicy as Written,
};
use config_loader::resource::{Line, Percent};

use traffic::filter::RetryPolicy;
use traffic::filter::retry::{BackOff, Condition, Conditions};

/// Returns the retry policy of a rule; that of the mesh if the rule has none, `None` if the rule does not retry.
pub(in crate::compile) fn policy(
    rule: &HttpRule,
    mesh: &Arc<RetryPolicy>,
) -> Option<Arc<RetryPolicy>> {
    if !matches!(rule.action, HttpAction::Route(_)) {
        return None;
    }
    let Some(written) = rule.retries.as_deref() else {
        return Some(Arc::clone(mesh));
    };
    (written.attempts > 0).then(|| {
        Arc::new(RetryPolicy {
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

/// Returns the mirrors of a rule: share, destination and line.
pub(in crate::compile) fn mirrors(
    rule: &HttpRule,
) -> impl Iterator<Item = (Percent, &Destination, Line)> {
    let one = rule.mirror.as_deref().map(|mirror| {
        let share = rule.mirror_percentage.unwrap_or(Percent::ALL);
        (share, mirror, rule.line)
    });
    let several = rule.mirrors.iter();
    one.into_iter()
        .chain(several.map(|mirror| (mirror.percentage, &mirror.destination, mirror.line)))
}
