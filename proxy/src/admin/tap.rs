//! `/tap`: finished requests as they end, for as long as the client reads.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame};
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::reply::{Query, Reply};
use super::state::AdminState;
use crate::telemetry::{
    Gauge, TAP_QUEUE_MAX, TAP_RATE_DEFAULT, TAPS_MAX, TapCounts, TapFilter, TapReader, TapStyle,
    TappedRequest, Telemetry, WorkerId, tap_line, tap_rate,
};

const USAGE: &str = "\
/tap?all                       finished requests as they end, as `strait tap` shows them
/tap?host=shop.example         only of a host; `*` matches any characters
  &path=/cart*                 path; with a query if the pattern has one
  &method=POST  &listener=8080  &header:x-user=u7
  &status=5xx                  or 503, or 500-504
  &flag=UH                     response flag
  &slower=200ms                at least this long
  &rule=shop  &destination=cart*  &cluster=c2  &endpoint=10.0.0.1:*
  &rate=50/s                   at most so many
  &max=100                     end after so many
  &format=json                 one object per line; `accept: text/event-stream` for events
";

/// Interval at which counts are told, if they have changed.
const TELL: Duration = Duration::from_secs(1);

/// Number of intervals without output after which a sign of life is sent.
const SILENT_MAX: u32 = 10;

/// Maximum number of requests in one piece of output.
const PIECE: usize = 64;

/// Renders the page.
pub(super) fn show(state: &AdminState, query: Query<'_>) -> Reply {
    if query.is_empty() {
        return Reply::text(StatusCode::OK, USAGE);
    }
    let wrong = |error| Reply::text(StatusCode::BAD_REQUEST, format!("{error}\n\n{USAGE}"));
    let asked = match Asked::read(query) {
        Ok(asked) => asked,
        Err(error) => return wrong(error),
    };
    let Ok(reader) = state.taps.open(asked.filter, asked.rate) else {
        let reason = format!("{TAPS_MAX} taps are open, which is the limit: close one of them\n");
        return Reply::text(StatusCode::TOO_MANY_REQUESTS, reason);
    };
    let telemetry = Arc::clone(state.stats.telemetry());
    let body = TapBody::new(reader, telemetry, asked.form, asked.max);
    let content_type = match asked.form {
        Form::Events => "text/event-stream",
        Form::Json => "application/x-ndjson",
        Form::Text => "text/plain; charset=utf-8",
    };
    Reply::stream(content_type, body)
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Events,
    Json,
    Text,
}

/// Query of a client.
struct Asked {
    filter: TapFilter,
    rate: traffic::registry::Rate,
    max: u64,
    form: Form,
}

impl Asked {
    fn read(query: Query<'_>) -> Result<Self, String> {
        let mut asked = Self {
            filter: TapFilter::default(),
            rate: tap_rate(&TAP_RATE_DEFAULT.to_string())?,
            max: u64::MAX,
            form: match query.accepts.events {
                true => Form::Events,
                false => Form::Text,
            },
        };
        for (name, value) in query.pairs() {
            match &*name {
                "all" => {}
                "format" => match &*value {
                    "json" => asked.form = Form::Json,
                    "text" => asked.form = Form::Text,
                    _ => return Err(format!("format: {value:?} is neither json nor text")),
                },
                "rate" => {
                    asked.rate = tap_rate(&value).map_err(|error| format!("rate: {error}"))?
                }
                "max" => {
                    let wrong = |_| format!("max: {value:?} is no number");
                    asked.max = value.parse().map_err(wrong)?;
                }
                _ => asked.filter.add(&name, &value)?,
            }
        }
        Ok(asked)
    }
}

/// Counts as JSON: `{"tap": {..}}`.
#[derive(Serialize)]
struct Told {
    tap: TapCounts,
}

/// Output of a tap.
struct TapBody {
    reader: TapReader,
    telemetry: Arc<Telemetry>,
    form: Form,
    /// Number of requests until the end.
    left: u64,
    tell: Interval,
    /// Counts that were told last; `None` before the first time.
    told: Option<TapCounts>,
    silent: u32,
    waiting: Vec<Arc<TappedRequest>>,
}

impl TapBody {
    fn new(reader: TapReader, telemetry: Arc<Telemetry>, form: Form, max: u64) -> Self {
        telemetry.counters.raise(WorkerId::CONTROL, Gauge::TapsOpen);
        let mut tell = interval(TELL);
        tell.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            reader,
            telemetry,
            form,
            left: max,
            tell,
            told: None,
            silent: 0,
            waiting: Vec::with_capacity(PIECE),
        }
    }

    /// Appends one value, as a line or an event.
    fn write(&self, name: &str, value: &impl Serialize, out: &mut String) {
        let json = serde_json::to_string(value).unwrap_or_default();
        // writing to a string cannot fail
        let _ = match self.form {
            Form::Events => writeln!(out, "event: {name}\ndata: {json}\n"),
            Form::Json | Form::Text => writeln!(out, "{json}"),
        };
    }

    /// Appends the counts if they have changed otherwise than by what was sent.
    fn tell(&mut self, out: &mut String) {
        let counts = self.reader.counts();
        let lost = |counts: TapCounts| (counts.over_rate, counts.dropped);
        if self.told.is_some_and(|told| lost(told) == lost(counts)) {
            return;
        }
        match (self.form, self.told) {
            (Form::Text, None) => out.push_str("# requests follow as they end\n"),
            (Form::Text, Some(_)) => {
                let (over_rate, dropped) = lost(counts);
                let _ = writeln!(
                    out,
                    "# {over_rate} more beyond the rate, {dropped} dropped: this reader is too slow (it may wait for {TAP_QUEUE_MAX})"
                );
            }
            (Form::Events | Form::Json, _) => self.write("tap", &Told { tap: counts }, out),
        }
        self.told = Some(counts);
    }

    fn requests(&mut self, out: &mut String) {
        let requests = std::mem::take(&mut self.waiting);
        for request in &requests {
            match self.form {
                Form::Text => {
                    out.push_str(&tap_line(request, TapStyle::Plain));
                    out.push('\n');
                }
                Form::Events | Form::Json => self.write("request", &**request, out),
            }
        }
        self.left -= requests.len() as u64;
        self.waiting = requests;
        self.waiting.clear();
    }

    /// Appends a sign of life, by which a client that is gone is noticed.
    fn alive(&mut self, out: &mut String) {
        self.silent += 1;
        if self.silent >= SILENT_MAX {
            out.push_str(match self.form {
                Form::Events => ":\n\n",
                Form::Json => "\n",
                Form::Text => "#\n",
            });
        }
    }
}

impl Body for TapBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let mut out = String::new();
        if this.told.is_none() {
            this.tell(&mut out);
        } else if this.left == 0 {
            return Poll::Ready(None);
        }
        let max = usize::try_from(this.left).unwrap_or(PIECE).min(PIECE);
        if max > 0 && this.reader.poll(cx, &mut this.waiting, max).is_ready() {
            this.requests(&mut out);
        }
        while this.tell.poll_tick(cx).is_ready() {
            this.tell(&mut out);
            this.alive(&mut out);
        }
        if this.left == 0 {
            this.tell(&mut out);
        }
        if out.is_empty() {
            return Poll::Pending;
        }
        this.silent = 0;
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }
}

impl Drop for TapBody {
    fn drop(&mut self) {
        let counters = &self.telemetry.counters;
        counters.lower(WorkerId::CONTROL, Gauge::TapsOpen);
    }
}
