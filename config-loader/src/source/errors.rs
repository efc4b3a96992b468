//! Error counts by source and reason.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Reason for the failure of a list, a watch or a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceError {
    /// The server no longer has the revision at which the watch resumes (410 Gone).
    Expired,
    /// The credentials lack permission (403).
    Forbidden,
    /// The response cannot be parsed.
    Malformed,
    /// The server does not serve the resource (404, 405).
    NotServed,
    /// Any other error of the connection or stream.
    Other,
    /// The server returned an error (5xx).
    ServerError,
    /// The server stopped in the middle of a message.
    Stalled,
    /// The server rate-limits requests (429).
    Throttled,
    /// The server did not respond in time.
    Timeout,
    /// The response exceeds the size limit.
    TooLarge,
    /// The server rejects the credentials (401).
    Unauthorized,
    /// No connection to the server can be made.
    Unreachable,
}

impl SourceError {
    /// Returns the value of the `reason` label in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceError::Expired => "expired",
            SourceError::Forbidden => "forbidden",
            SourceError::Malformed => "malformed",
            SourceError::NotServed => "not_served",
            SourceError::Other => "other",
            SourceError::ServerError => "server_error",
            SourceError::Stalled => "stalled",
            SourceError::Throttled => "throttled",
            SourceError::Timeout => "timeout",
            SourceError::TooLarge => "too_large",
            SourceError::Unauthorized => "unauthorized",
            SourceError::Unreachable => "unreachable",
        }
    }

    /// Maps an HTTP status code to a reason.
    pub(super) fn of_status(code: u16) -> SourceError {
        match code {
            401 => SourceError::Unauthorized,
            403 => SourceError::Forbidden,
            404 | 405 => SourceError::NotServed,
            408 | 504 => SourceError::Timeout,
            410 => SourceError::Expired,
            429 => SourceError::Throttled,
            500.. => SourceError::ServerError,
            _ => SourceError::Other,
        }
    }
}

/// Error counts by source and reason. One source per `--control` server.
#[derive(Clone, Debug, Default)]
pub struct SourceErrors(Arc<Mutex<Counts>>);

type Counts = BTreeMap<(Arc<str>, SourceError), u64>;

impl SourceErrors {
    /// Counts an error.
    pub(super) fn count(&self, source: &Arc<str>, error: SourceError) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((Arc::clone(source), error)).or_default() += 1;
    }

    /// Returns all counts, by source and reason.
    pub fn counts(&self) -> Vec<(Arc<str>, SourceError, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.iter();
        counts
            .map(|((source, error), count)| (Arc::clone(source), *error, *count))
            .collect()
    }
}
