//! How often sources failed, and why.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a list, a watch or a stream of a server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceError {
    /// The server forgot the revision from which a watch goes on.
    Expired,
    /// The credentials do not allow it.
    Forbidden,
    /// What the server sent cannot be read.
    Malformed,
    /// The server does not serve it.
    NotServed,
    /// The connection, or the stream, ended with any other error.
    Other,
    /// The server answered with an error of its own.
    ServerError,
    /// Nothing more came in the middle of a message.
    Stalled,
    /// The server asked for fewer requests.
    Throttled,
    /// The server did not answer in time.
    Timeout,
    /// What the server sent is larger than what is read.
    TooLarge,
    /// The server does not accept the credentials.
    Unauthorized,
    /// The server cannot be connected to.
    Unreachable,
}

impl SourceError {
    /// Its name in metrics.
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

    /// What a status code of HTTP means.
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

/// How often sources failed, by source and reason. There are as many sources as `--control` names.
#[derive(Clone, Debug, Default)]
pub struct SourceErrors(Arc<Mutex<Counts>>);

type Counts = BTreeMap<(Arc<str>, SourceError), u64>;

impl SourceErrors {
    /// Counts an error.
    pub(super) fn count(&self, source: &Arc<str>, error: SourceError) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((Arc::clone(source), error)).or_default() += 1;
    }

    /// All counts, by source and reason.
    pub fn counts(&self) -> Vec<(Arc<str>, SourceError, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.iter();
        counts
            .map(|((source, error), count)| (Arc::clone(source), *error, *count))
            .collect()
    }
}
