//! One row of the list of pages.

use http::Method;

use super::reply::{Query, Reply};
use super::state::AdminState;

/// Set of pages that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSet {
    /// Every page.
    All,
    /// Pages for probes and scrapers: they change nothing and show nothing of the configuration.
    Health,
    /// The metrics alone.
    Metrics,
}

/// Paths of [`PageSet::Health`].
const HEALTH: [&str; 4] = [
    "/healthz/ready",
    "/healthz/live",
    "/stats/prometheus",
    "/metrics",
];

/// Paths of [`PageSet::Metrics`].
const METRICS: [&str; 2] = ["/stats/prometheus", "/metrics"];

impl PageSet {
    pub(super) fn has(self, page: &Page) -> bool {
        let paths = match self {
            Self::All => return true,
            Self::Health => &HEALTH[..],
            Self::Metrics => &METRICS,
        };
        paths.contains(&page.path) && page.method == Method::GET
    }
}

/// A page that answers one method. A page with two methods has two rows.
pub(super) struct Page {
    /// `GET` (which includes HEAD) or `POST`.
    pub(super) method: Method,
    /// Exact path.
    pub(super) path: &'static str,
    /// Help text: what the page shows or does.
    pub(super) help: &'static str,
    /// Answers a request.
    pub(super) answer: fn(&AdminState, Query<'_>) -> Reply,
}

/// Makes the row of a page that shows something.
pub(super) const fn get(
    path: &'static str,
    help: &'static str,
    answer: fn(&AdminState, Query<'_>) -> Reply,
) -> Page {
    Page {
        method: Method::GET,
        path,
        help,
        answer,
    }
}

/// Makes the row of a page that changes something.
pub(super) const fn post(
    path: &'static str,
    help: &'static str,
    answer: fn(&AdminState, Query<'_>) -> Reply,
) -> Page {
    Page {
        method: Method::POST,
        path,
        help,
        answer,
    }
}
