//! Watches of proxy reports, which are in memory: `kubectl get proxies -w`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::access::Guard;
use crate::api::Call;
use crate::api::lines::{Encoding, Form, line};
use crate::api::respond::Body;
use crate::api::watch::{Start, lifetime, start};
use crate::proxies::{self, Proxies, ProxyView};
use crate::selector::Selector;
use crate::status::Failure;

/// Maximum number of queued events of a slow client.
const QUEUE_MAX: usize = 64;
/// Maximum time without progress of a client, after which its watch is closed.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Time over which changes are combined.
const PAUSE: Duration = Duration::from_millis(100);

/// Namespace and name of a proxy.
type Key = (String, String);

/// Watch of proxy reports.
struct Watch {
    proxies: Arc<Proxies>,
    namespace: Option<String>,
    selector: Selector,
    encoding: Encoding,
    /// Proxies that the client has received.
    shown: BTreeSet<Key>,
    lines: mpsc::Sender<Bytes>,
}

/// Error: the client has disconnected.
struct Gone;

/// Starts a watch, which ends in the same cases as a watch of objects.
///
/// # Errors
/// 400 or 422 for invalid parameters, 410 for an expired revision, as in Kubernetes.
pub(super) fn watch(
    proxies: &Arc<Proxies>,
    call: &Call,
    form: Form,
    guard: Guard,
) -> Result<Body, Failure> {
    let (params, target) = (&call.params, &call.target);
    let mut fields = params.get("fieldSelector").to_owned();
    if let Some(name) = &target.name {
        fields = format!("metadata.name={name}");
    }
    let (lines, received) = mpsc::channel(QUEUE_MAX);
    let watch = Watch {
        proxies: Arc::clone(proxies),
        namespace: target.namespace.clone(),
        selector: Selector::read(params.get("labelSelector"), &fields, target.resource)?,
        encoding: Encoding {
            resource: target.resource,
            version: target.version,
            form,
            has_columns: matches!(form, Form::Table(_)),
        },
        shown: BTreeSet::new(),
        lines,
    };
    let start = start(params)?;
    let deadline = Instant::now() + lifetime(params)?;
    tokio::spawn(timeout_at(deadline, watch.run(start, guard)));
    let frames = stream::unfold(received, |mut received| async {
        let line = received.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(line)), received))
    });
    Ok(StreamBody::new(frames).boxed_unsync())
}

impl Watch {
    async fn run(mut self, start: Start, mut guard: Guard) {
        // The client sees the end of the watch.
        let _ = self.follow(start, &mut guard).await;
    }

    async fn follow(&mut self, start: Start, guard: &mut Guard) -> Result<(), Gone> {
        let mut told = self.proxies.subscribe();
        let mut seen = self.begin(start).await?;
        loop {
            told.borrow_and_update();
            let Some((now, keys)) = self.proxies.changed_after(seen) else {
                let message = format!("too old resource version: {seen}");
                let failure = Failure::expired(message);
                return self.write(line("ERROR", &failure.to_json())).await;
            };
            for key in keys {
                self.send(key, now).await?;
            }
            seen = now;
            tokio::select! {
                changed = told.changed() => if changed.is_err() { return Ok(()) },
                () = guard.revoked() => return Ok(()),
                () = self.lines.closed() => return Err(Gone),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends the state, if the client requested it. Returns the revision of the state.
    async fn begin(&mut self, start: Start) -> Result<u64, Gone> {
        let revision = self.proxies.revision();
        let all = self.proxies.list(self.namespace.as_deref());
        let is_marked = match start {
            Start::After(after) => {
                let changed = self.proxies.changed_after(after);
                let gone = changed.into_iter().flat_map(|(_, keys)| keys);
                self.shown = gone.chain(all.iter().map(key_of)).collect();
                return Ok(if after == 0 { revision } else { after });
            }
            Start::State { is_marked, .. } => is_marked,
        };
        for view in all {
            self.send(key_of(&view), revision).await?;
        }
        if is_marked {
            let bookmark = json!({
                "kind": self.encoding.resource.kind,
                "apiVersion": self.encoding.resource.api_version(self.encoding.version),
                "metadata": {
                    "resourceVersion": revision.to_string(),
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            });
            self.write(line("BOOKMARK", &bookmark)).await?;
        }
        Ok(revision)
    }

    /// Sends the event for a changed proxy, if it matches.
    async fn send(&mut self, key: Key, revision: u64) -> Result<(), Gone> {
        let is_asked = self.namespace.as_ref().is_none_or(|asked| *asked == key.0);
        let found = self.proxies.get(&key.0, &key.1).filter(|_| is_asked);
        let object = found.map(|view| proxies::to_json(&view, revision));
        let object = object.filter(|object| self.selector.selects(object));
        let (kind, object) = match object {
            Some(object) if self.shown.insert(key.clone()) => ("ADDED", object),
            Some(object) => ("MODIFIED", object),
            None if self.shown.remove(&key) && is_asked => {
                ("DELETED", gone(&key.0, &key.1, revision))
            }
            None => return Ok(()),
        };
        let line = self.encoding.line(kind, object);
        self.encoding.has_columns = false;
        self.write(line).await
    }

    async fn write(&mut self, line: Bytes) -> Result<(), Gone> {
        match timeout(STALL_MAX, self.lines.send(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}

fn key_of(view: &ProxyView) -> Key {
    (view.report.namespace.clone(), view.report.name.clone())
}

/// Returns the object of a `DELETED` event for a removed proxy.
fn gone(namespace: &str, name: &str, revision: u64) -> Value {
    json!({
        "kind": "Proxy",
        "metadata": {
            "namespace": namespace, "name": name, "resourceVersion": revision.to_string(),
        },
    })
}
