//! `/live`: what the live page shows, once per second, as server-sent events. Only what is on the screen is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use clap::ValueEnum;
use http::StatusCode;
use http_body::{Body, Frame};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::activity::Activity;
use super::activity::links::links;
use super::activity::rates::{Column, RateRow, Rates, View, sort};
use super::reply::{Query, Reply};
use super::state::{AdminState, LIVE_PAGES_MAX, LiveSources};

/// Maximum number of rows of a table in one event.
const ROWS_MAX: usize = 200;

/// Interval of events.
const INTERVAL: Duration = Duration::from_secs(1);

const USAGE: &str = "\
/live?view=destination         rates once per second, as server-sent events: for the page at /
  view=host, rule, destination, cluster or endpoint, topology, none
  &sort=rate                   name, rate, failed, p50, p99, active; &reverse=1
  &search=cart                 only rows with this text
  &from=0&count=60             these rows
  &service=cart.internal       with the clusters of a service, and its endpoints
";

/// Renders the page.
pub(super) fn show(state: &AdminState, query: Query<'_>) -> Reply {
    if query.is_empty() {
        return Reply::text(StatusCode::OK, USAGE);
    }
    let shown = match Shown::read(query) {
        Ok(shown) => shown,
        Err(error) => return Reply::text(StatusCode::BAD_REQUEST, format!("{error}\n\n{USAGE}")),
    };
    let Ok(permit) = Arc::clone(&state.live.pages).try_acquire_owned() else {
        let reason = format!("{LIVE_PAGES_MAX} live pages are open, which is the limit\n");
        return Reply::text(StatusCode::TOO_MANY_REQUESTS, reason);
    };
    let mut tick = interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let body = LiveBody {
        sources: Arc::clone(&state.live),
        shown,
        before: None,
        tick,
        _permit: permit,
    };
    Reply::stream("text/event-stream", body)
}

/// Renders `/activity`: counts since the start, from which a reader makes rates.
pub(super) fn counts(state: &AdminState, _: Query<'_>) -> Reply {
    Reply::json(&(state.live.activity)())
}

/// Query of a live page: the part of the data on its screen.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    table: Option<View>,
    has_links: bool,
    sort: Column,
    is_reversed: bool,
    search: String,
    service: Option<String>,
    from: usize,
    count: usize,
}

impl Shown {
    fn read(query: Query<'_>) -> Result<Self, String> {
        let view = query.value("view").unwrap_or_default();
        let has_links = view == "topology";
        let table = match &*view {
            "topology" | "none" | "" => None,
            view => Some(
                View::from_str(view, false)
                    .map_err(|_| format!("view: no view is called {view:?}"))?,
            ),
        };
        let sort = match query.value("sort") {
            None => Column::default(),
            Some(column) => Column::from_str(&column, false)
                .map_err(|_| format!("sort: no column is called {column:?}"))?,
        };
        let number = |name: &str, default: usize| match query.value(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| format!("{name}: {text:?} is no number")),
        };
        Ok(Self {
            table,
            has_links,
            sort,
            is_reversed: query
                .value("reverse")
                .is_some_and(|value| !value.is_empty()),
            search: query.value("search").unwrap_or_default(),
            service: query.value("service"),
            from: number("from", 0)?,
            count: number("count", 60)?.min(ROWS_MAX),
        })
    }

    /// Makes an event of the rates between two readings.
    fn event(&self, before: &Activity, after: &Activity, sources: &LiveSources) -> Value {
        let is_first = std::ptr::eq(before, after);
        let rates = Rates::between(before, after).unwrap_or_default();
        let last = before.events.last().map(|event| event.number);
        let is_new = |number: u64| is_first || last.is_none_or(|last| number > last);
        let events = after.events.iter().filter(|event| is_new(event.number));
        let mut event = json!({
            "version": after.version,
            // 0 in the first event, which has no rates
            "interval_seconds": rates.interval_seconds,
            "generation": after.generation,
            "rejected": after.rejected,
            "active": after.requests_active,
            "rate": rates.rate,
            "failed": rates.failed,
            "changes": rates.changes,
            "events": events.collect::<Vec<_>>(),
        });
        if let Some(view) = self.table {
            self.add_rows(&rates, view, &mut event);
        }
        if self.has_links {
            let (links, is_cut) = links(&rates, after, &self.search);
            event["links"] = json!(links);
            event["is_cut"] = json!(is_cut);
        }
        if let Some(service) = &self.service {
            let row = rates.destinations.iter().find(|row| row.name == *service);
            event["service"] = json!({"row": row, "clusters": (sources.clusters_of)(service)});
        }
        event
    }

    fn add_rows(&self, rates: &Rates, view: View, event: &mut Value) {
        let has_text = |row: &&RateRow| {
            let of_service = self
                .service
                .as_deref()
                .is_none_or(|service| row.about.split(' ').next() == Some(service));
            of_service && (row.name.contains(&self.search) || row.about.contains(&self.search))
        };
        let mut rows: Vec<&RateRow> = rates.rows(view).iter().filter(has_text).collect();
        sort(&mut rows, self.sort, self.is_reversed);
        let total = rows.len();
        let rows: Vec<_> = rows.into_iter().skip(self.from).take(self.count).collect();
        event["total"] = json!(total);
        event["from"] = json!(self.from.min(total));
        event["rows"] = json!(rows);
    }
}

/// Events of a live page.
struct LiveBody {
    sources: Arc<LiveSources>,
    shown: Shown,
    before: Option<Activity>,
    tick: Interval,
    _permit: OwnedSemaphorePermit,
}

impl Body for LiveBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if this.tick.poll_tick(cx).is_pending() {
            return Poll::Pending;
        }
        let after = (this.sources.activity)();
        let before = this.before.as_ref().unwrap_or(&after);
        let event = this.shown.event(before, &after, &this.sources);
        this.before = Some(after);
        let text = format!("data: {event}\n\n");
        Poll::Ready(Some(Ok(Frame::data(text.into()))))
    }
}
