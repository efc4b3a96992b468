//! Retry policies.

use crate::diagnostic::codes::istio::{VS097, VS098, VS101};
use crate::diagnostic::suggest;
use crate::raw::{self, Field};
use crate::resource::istio::{RetryCondition, RetryPolicy};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// HTTP statuses that have a name.
const STATUSES: [std::ops::RangeInclusive<u16>; 12] = [
    100..=103,
    200..=208,
    226..=226,
    300..=305,
    307..=308,
    400..=418,
    421..=426,
    428..=429,
    431..=431,
    451..=451,
    500..=508,
    510..=511,
];

/// Returns the retry policy.
pub(in crate::validate::istio) fn retries(
    field: &Field<raw::istio::HttpRetry>,
    check: &mut Check<'_>,
) -> Option<RetryPolicy> {
    let raw = field.get()?;
    let attempts = scalar::int32(&raw.attempts, "attempts", VS097, check);
    if attempts.unwrap_or(0) == 0 && !raw.attempts.is_invalid() && !is_negative(&raw.attempts) {
        off_but_configured(raw, check);
    }
    let retry_on = retry_on(&raw.retry_on, check);
    Some(RetryPolicy {
        attempts: attempts.unwrap_or(0),
        per_try_timeout: scalar::duration(&raw.per_try_timeout, check),
        retry_on: retry_on.unwrap_or_else(|| RetryPolicy::RETRY_ON_DEFAULT.to_vec()),
        remote_localities: shared::flag(&raw.retry_remote_localities),
        ignore_previous_hosts: raw.retry_ignore_previous_hosts.get().copied(),
        backoff: scalar::duration(&raw.backoff, check).unwrap_or(RetryPolicy::BACKOFF_DEFAULT),
        line: check.line(field.span()),
    })
}

fn is_negative(field: &Field<i64>) -> bool {
    field.get().is_some_and(|attempts| *attempts < 0)
}

fn off_but_configured(raw: &raw::istio::HttpRetry, check: &mut Check<'_>) {
    let settings = [
        ("perTryTimeout", shared::text_span(&raw.per_try_timeout)),
        ("retryOn", shared::text_span(&raw.retry_on)),
        (
            "retryRemoteLocalities",
            shared::block(&raw.retry_remote_localities),
        ),
    ];
    if let Some((name, span)) = settings.iter().find(|(_, span)| !span.is_none()) {
        check
            .error(
                VS098,
                *span,
                format!("retries are off, since attempts is 0, but `{name}` is set"),
            )
            .help("set `attempts` to 1 or more, or leave `retries: {}` to switch retries off");
    }
}

/// Returns the retry conditions, if there are any.
fn retry_on(field: &Field<String>, check: &mut Check<'_>) -> Option<Vec<RetryCondition>> {
    let list = shared::text(field)?;
    let conditions = list.split(',').filter_map(|token| {
        let found = condition(token);
        if found.is_none() {
            report(token, field, check);
        }
        found
    });
    Some(conditions.collect())
}

fn condition(token: &str) -> Option<RetryCondition> {
    let word = RetryCondition::WORDS
        .iter()
        .find(|(word, _)| *word == token);
    if let Some((_, condition)) = word {
        return Some(*condition);
    }
    let status = token.parse().ok().filter(|_| token.len() == 3)?;
    let known = STATUSES.iter().any(|range| range.contains(&status));
    known.then_some(RetryCondition::Status(status))
}

fn report(token: &str, field: &Field<String>, check: &mut Check<'_>) {
    let trimmed = token.trim();
    let found = check.error(
        VS101,
        field.span(),
        format!("`{token}` is not a retry condition"),
    );
    if trimmed != token && condition(trimmed).is_some() {
        found.help(format!("write `{trimmed}` without blanks around it"));
        return;
    }
    let words = RetryCondition::WORDS.iter().map(|(word, _)| *word);
    match suggest::nearest(trimmed, words.clone()) {
        Some(near) => found.help(format!("did you mean `{near}`?")),
        None => found.help(format!(
            "write {}, or an HTTP status",
            words.collect::<Vec<_>>().join(", ")
        )),
    };
}
