//! Watches: a stream of events, one JSON object per line.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use rand::RngExt;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use super::lines::{self, Encoding, Form, metadata_only};
use super::params::Params;
use super::respond::Body;
use super::route::Target;
use super::table;
use super::{Api, Call, set_revision};
use crate::access::Guard;
use crate::object;
use crate::selector::Selector;
use crate::status::{Cause, Failure};
use crate::store::{Event, Revision, Scan, StoreError};

/// Interval between bookmarks of an idle watch.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Limits of the queue of a slow client: number of events, and approximate bytes. Further events stay in the history.
const QUEUE_MAX: usize = 64;
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Maximum time without progress of a client, after which its watch is closed.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Number of events per read of the history, and of objects per scan.
const BATCH: usize = 256;

/// Validated watch, ready to start.
struct Watch {
    api: Api,
    target: Target,
    selector: Selector,
    form: Form,
    start: Start,
    has_bookmarks: bool,
    deadline: Instant,
    /// Whether a table has already sent its column definitions.
    has_named: bool,
    guard: Guard,
    lines: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    /// Bytes that may still be queued.
    room: Arc<Semaphore>,
}

/// Start position of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Current state first, then changes.
    State {
        /// Minimum revision of the state.
        at_least: Revision,
        /// Whether a bookmark marks the end of the state.
        is_marked: bool,
    },
    /// Changes after a revision.
    After(Revision),
}

impl Api {
    /// Starts a watch. The body ends when its lifetime is over, when the client disconnects, stalls or loses its
    /// permission, or when the watch falls behind the history.
    ///
    /// # Errors
    /// 400 or 422 for invalid parameters, 410 for an expired revision, as in Kubernetes.
    pub async fn watch(&self, call: &Call, form: Form, guard: Guard) -> Result<Body, Failure> {
        let params = &call.params;
        let mut fields = params.get("fieldSelector").to_owned();
        if let Some(name) = &call.target.name {
            fields = format!("metadata.name={name}");
        }
        let selector = Selector::read(params.get("labelSelector"), &fields, call.target.resource)?;
        let start = start(params)?;
        let (Start::After(revision)
        | Start::State {
            at_least: revision, ..
        }) = start;
        self.reach(revision).await?;
        let (lines, received) = mpsc::channel(QUEUE_MAX);
        let watch = Watch {
            api: self.clone(),
            target: call.target.clone(),
            selector,
            form,
            start,
            has_bookmarks: params.flag("allowWatchBookmarks")?,
            deadline: Instant::now() + lifetime(params)?,
            has_named: false,
            guard,
            lines,
            room: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)),
        };
        tokio::spawn(watch.run());
        let frames = stream::unfold(received, |mut received| async {
            let (line, _room) = received.recv().await?;
            Some((Ok::<_, Infallible>(Frame::data(line)), received))
        });
        Ok(StreamBody::new(frames).boxed_unsync())
    }
}

/// Returns the lifetime of a watch: `timeoutSeconds` up to 24 h, or a random time between 30 and 60 min.
///
/// # Errors
/// 400 if `timeoutSeconds` is not a number.
pub fn lifetime(params: &Params) -> Result<Duration, Failure> {
    let seconds = match params.number("timeoutSeconds")? {
        Some(seconds) if seconds > 0 => seconds.min(86_400),
        _ => rand::rng().random_range(1_800..3_600),
    };
    Ok(Duration::from_secs(seconds))
}

/// Parses the start position of a watch.
///
/// # Errors
/// 422 for invalid combinations of parameters, as in Kubernetes.
pub fn start(params: &Params) -> Result<Start, Failure> {
    let invalid = |field: &str, message: &str| {
        Err(Failure::invalid_options(
            "ListOptions",
            Cause::of_field(field, message),
        ))
    };
    let matching = params.get("resourceVersionMatch");
    let revision = params.resource_version()?;
    if params.has("sendInitialEvents") {
        if matching != "NotOlderThan" {
            let why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return invalid("resourceVersionMatch", why);
        }
        if params.flag("sendInitialEvents")? {
            return Ok(Start::State {
                at_least: revision.unwrap_or(0),
                is_marked: true,
            });
        }
        return Ok(match revision {
            Some(revision) if revision > 0 => Start::After(revision),
            _ => Start::After(0),
        });
    }
    if !matching.is_empty() {
        let why = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        return invalid("resourceVersionMatch", why);
    }
    Ok(match revision {
        Some(revision) if revision > 0 => Start::After(revision),
        _ => Start::State {
            at_least: 0,
            is_marked: false,
        },
    })
}

/// Error: the client has disconnected.
struct Gone;

impl Watch {
    async fn run(mut self) {
        let deadline = self.deadline;
        // The lifetime also bounds a watch whose client does not read.
        let _ = tokio::time::timeout_at(deadline, self.follow()).await;
    }

    async fn follow(&mut self) -> Result<(), Gone> {
        let prefix = self.target.prefix();
        let store = Arc::clone(&self.api.store);
        let history = store.history();
        let Some(mut seen) = self.begin(&prefix).await? else {
            return Ok(());
        };
        let mut changes = history.subscribe_to(&prefix);
        let mut bookmark = Instant::now() + BOOKMARK_EVERY;
        loop {
            changes.borrow_and_update();
            let newest = history.latest();
            loop {
                let events = match history.since_in(&prefix, seen, BATCH) {
                    Ok(events) => events,
                    Err(error) => return self.fail(&expired(error, seen)).await,
                };
                for event in &events {
                    seen = event.revision;
                    if event.key.starts_with(&prefix) {
                        self.send_change(event).await?;
                    }
                }
                if events.len() < BATCH {
                    break;
                }
            }
            seen = seen.max(newest);
            if Instant::now() >= bookmark {
                bookmark = Instant::now() + BOOKMARK_EVERY;
                if self.has_bookmarks {
                    self.send_bookmark(seen, false).await?;
                }
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
                () = self.guard.revoked() => return Ok(()),
                () = self.lines.closed() => return Err(Gone),
            }
        }
    }

    /// Sends the state, if the client requested it. Returns the revision of the state.
    async fn begin(&mut self, prefix: &str) -> Result<Option<Revision>, Gone> {
        let is_marked = match self.start {
            Start::After(0) => {
                return match self.api.store.latest().await {
                    Ok(latest) => Ok(Some(latest)),
                    Err(error) => {
                        self.fail(&error.into()).await?;
                        Ok(None)
                    }
                };
            }
            Start::After(revision) => return Ok(Some(revision)),
            Start::State { is_marked, .. } => is_marked,
        };
        let mut scan = Scan {
            prefix: prefix.to_owned(),
            limit: Some(BATCH),
            ..Scan::default()
        };
        loop {
            let page = match self.api.store.scan(scan.clone()).await {
                Ok(page) => page,
                Err(error) => {
                    let seen = scan.at.unwrap_or(0);
                    self.fail(&expired(error, seen)).await?;
                    return Ok(None);
                }
            };
            for entry in &page.entries {
                let object = object::read(entry, self.target.resource, self.target.version);
                if self.selector.selects(&object) {
                    let line = self.encoding().line("ADDED", object);
                    self.write(line).await?;
                }
            }
            scan.at = Some(page.revision);
            match page.entries.last() {
                Some(last) if page.remaining > 0 => scan.after = Some(last.key.to_string()),
                _ => break,
            }
        }
        let revision = scan.at.unwrap_or(0);
        if is_marked && self.has_bookmarks {
            self.send_bookmark(revision, true).await?;
        }
        Ok(Some(revision))
    }

    async fn send_change(&mut self, event: &Arc<Event>) -> Result<(), Gone> {
        let change = self.api.lines.of(event, self.target.resource);
        let (had, has) = if self.selector.is_everything() {
            (event.previous.is_some(), event.value.is_some())
        } else {
            let selects = |object: &Value| self.selector.selects(object);
            (
                change.before().is_some_and(selects),
                change.after().is_some_and(selects),
            )
        };
        let kind = match (had, has) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return Ok(()),
        };
        let line = change.line(kind, self.encoding());
        self.write(line).await
    }

    /// Returns the encoding of the next event.
    fn encoding(&mut self) -> Encoding {
        let is_table = matches!(self.form, Form::Table(_));
        Encoding {
            resource: self.target.resource,
            version: self.target.version,
            form: self.form,
            has_columns: is_table && !std::mem::replace(&mut self.has_named, true),
        }
    }

    async fn send_bookmark(&mut self, revision: Revision, is_end: bool) -> Result<(), Gone> {
        let mut object = json!({
            "kind": self.target.resource.kind, "apiVersion": self.target.api_version(),
            "metadata": {"resourceVersion": ""},
        });
        set_revision(&mut object, revision);
        if is_end {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.form {
            Form::Object => object,
            Form::MetadataOnly => metadata_only(&object),
            Form::Table(_) => table::table(
                object["metadata"].clone(),
                Vec::new(),
                self.target.resource,
                false,
            ),
        };
        self.write(lines::line("BOOKMARK", &object)).await
    }

    async fn fail(&mut self, failure: &Failure) -> Result<(), Gone> {
        self.write(lines::line("ERROR", &failure.to_json())).await
    }

    async fn write(&mut self, line: Bytes) -> Result<(), Gone> {
        let size = u32::try_from(line.len().min(QUEUE_BYTES_MAX)).map_err(|_| Gone)?;
        let room = Arc::clone(&self.room).acquire_many_owned(size);
        let send = async {
            let room = room.await.map_err(|_| Gone)?;
            self.lines.send((line, room)).await.map_err(|_| Gone)
        };
        let sent = tokio::time::timeout(STALL_MAX, send).await;
        sent.map_err(|_| Gone)?
    }
}

fn expired(error: StoreError, seen: Revision) -> Failure {
    match error {
        StoreError::Compacted => Failure::expired(format!("too old resource version: {seen}")),
        other => other.into(),
    }
}
