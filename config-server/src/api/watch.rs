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
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::params::Params;
use super::respond::Body;
use super::route::Target;
use super::table::{self, Include};
use super::{Api, Call, set_revision};
use crate::object;
use crate::selector::Selector;
use crate::status::{Cause, Failure};
use crate::store::{Event, Revision, Scan, StoreError};

/// How often a watch tells its revision when nothing happens.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The most events that wait for a slow client; the others wait in the history.
const QUEUE_MAX: usize = 64;
/// How many events are taken from the history at a time.
const BATCH: usize = 256;

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Object,
    /// As rows of a table.
    Table(Include),
    /// With their metadata only.
    MetadataOnly,
}

/// A watch that has been checked and can begin.
struct Watch {
    api: Api,
    target: Target,
    selector: Selector,
    form: Form,
    start: Start,
    has_bookmarks: bool,
    deadline: Instant,
    rows: u64,
    lines: mpsc::Sender<Bytes>,
}

/// Where a watch begins.
enum Start {
    /// With the state; the flag says whether a bookmark ends it.
    State {
        /// At least as new as this.
        at_least: Revision,
        /// Whether a bookmark tells where the state ends.
        is_marked: bool,
    },
    /// With the changes after a revision.
    After(Revision),
}

impl Api {
    /// Starts a watch. The body ends when its time is over, when its client goes away, or when it has fallen behind the
    /// history.
    ///
    /// # Errors
    /// As Kubernetes does.
    pub async fn watch(&self, call: &Call, form: Form) -> Result<Body, Failure> {
        let params = &call.params;
        let mut fields = params.get("fieldSelector").to_owned();
        if let Some(name) = &call.target.name {
            fields = format!("metadata.name={name}");
        }
        let selector = Selector::read(params.get("labelSelector"), &fields)?;
        let start = start(params)?;
        let (Start::After(revision)
        | Start::State {
            at_least: revision, ..
        }) = start;
        self.reach(revision).await?;
        let seconds = match params.number("timeoutSeconds")? {
            Some(seconds) if seconds > 0 => seconds.min(86_400),
            _ => rand::rng().random_range(1_800..3_600),
        };
        let (lines, received) = mpsc::channel(QUEUE_MAX);
        let watch = Watch {
            api: self.clone(),
            target: call.target.clone(),
            selector,
            form,
            start,
            has_bookmarks: params.flag("allowWatchBookmarks")?,
            deadline: Instant::now() + Duration::from_secs(seconds),
            rows: 0,
            lines,
        };
        tokio::spawn(watch.run());
        let frames = stream::unfold(received, |mut received| async {
            let line = received.recv().await?;
            Some((Ok::<_, Infallible>(Frame::data(line)), received))
        });
        Ok(StreamBody::new(frames).boxed_unsync())
    }
}

/// Reads where a watch begins.
fn start(params: &Params) -> Result<Start, Failure> {
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

/// The client went away.
struct Gone;

impl Watch {
    async fn run(mut self) {
        let deadline = self.deadline;
        // A client that does not read holds nothing after its time is over.
        let _ = tokio::time::timeout_at(deadline, self.follow()).await;
    }

    async fn follow(&mut self) -> Result<(), Gone> {
        let mut seen = match self.begin().await? {
            Some(seen) => seen,
            None => return Ok(()),
        };
        let mut latest = self.api.store.history().subscribe();
        let mut bookmark = Instant::now() + BOOKMARK_EVERY;
        loop {
            let newest = *latest.borrow_and_update();
            loop {
                let events = self.api.store.history().since(seen, BATCH);
                let events = match events {
                    Ok(events) => events,
                    Err(error) => return self.fail(&expired(error, seen)).await,
                };
                let is_all = events.len() < BATCH;
                for event in events {
                    seen = event.revision;
                    self.send_change(&event).await?;
                }
                if is_all {
                    break;
                }
            }
            seen = seen.max(newest);
            tokio::select! {
                changed = latest.changed() => if changed.is_err() { return Ok(()) },
                () = sleep_until(bookmark) => {
                    bookmark = Instant::now() + BOOKMARK_EVERY;
                    if self.has_bookmarks {
                        self.send_bookmark(seen, false).await?;
                    }
                }
                () = self.lines.closed() => return Err(Gone),
            }
        }
    }

    /// Sends the state, if it is asked for. Returns the revision as of which it is.
    async fn begin(&mut self) -> Result<Option<Revision>, Gone> {
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
        let scan = Scan {
            prefix: self.target.prefix(),
            ..Scan::default()
        };
        let page = match self.api.store.scan(scan).await {
            Ok(page) => page,
            Err(error) => {
                self.fail(&error.into()).await?;
                return Ok(None);
            }
        };
        for entry in &page.entries {
            let object = object::read(entry, self.target.resource, self.target.version);
            if self.selector.selects(&object) {
                self.send("ADDED", object).await?;
            }
        }
        if is_marked && self.has_bookmarks {
            self.send_bookmark(page.revision, true).await?;
        }
        Ok(Some(page.revision))
    }

    async fn send_change(&mut self, event: &Arc<Event>) -> Result<(), Gone> {
        if !event.key.starts_with(&self.target.prefix()) {
            return Ok(());
        }
        let read = |value: &Option<Bytes>| {
            let (resource, version) = (self.target.resource, self.target.version);
            let bytes = value.as_ref()?;
            let object = object::decode(bytes, event.revision, resource, version);
            self.selector.selects(&object).then_some(object)
        };
        let change = match (read(&event.previous), read(&event.value)) {
            (None, Some(new)) => Some(("ADDED", new)),
            (Some(_), Some(new)) => Some(("MODIFIED", new)),
            (Some(old), None) => Some(("DELETED", old)),
            (None, None) => None,
        };
        match change {
            Some((kind, object)) => self.send(kind, object).await,
            None => Ok(()),
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
        self.write("BOOKMARK", &object).await
    }

    async fn send(&mut self, kind: &str, object: Value) -> Result<(), Gone> {
        let object = match self.form {
            Form::Object => object,
            Form::MetadataOnly => metadata_only(&object),
            Form::Table(include) => {
                let resource = self.target.resource;
                let revision = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let rows = vec![table::row(&object, resource, include)];
                self.rows += 1;
                table::table(revision, rows, resource, self.rows == 1)
            }
        };
        self.write(kind, &object).await
    }

    async fn fail(&mut self, failure: &Failure) -> Result<(), Gone> {
        self.write("ERROR", &failure.to_json()).await
    }

    async fn write(&mut self, kind: &str, object: &Value) -> Result<(), Gone> {
        let mut line = json!({"type": kind}).to_string();
        line.pop();
        line.push_str(",\"object\":");
        line.push_str(&object.to_string());
        line.push_str("}\n");
        self.lines.send(Bytes::from(line)).await.map_err(|_| Gone)
    }
}

/// An object with its metadata only.
pub fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn expired(error: StoreError, seen: Revision) -> Failure {
    match error {
        StoreError::Compacted => Failure::expired(format!("too old resource version: {seen}")),
        other => other.into(),
    }
}
