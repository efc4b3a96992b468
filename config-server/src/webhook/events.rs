//! Events about pods that get no sidecar, at their owner: a refused pod does not exist.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Maximum number of events that wait; further ones are dropped.
const QUEUE_MAX: usize = 64;
/// Maximum length of the text of an event: the API server takes 1,024 bytes.
const NOTE_BYTES_MAX: usize = 1000;
/// Controller that events name.
const CONTROLLER: &str = "strait-injector";

/// Event, and the object that it is about.
pub(super) type Reported = (ObjectReference, Event);

/// Writer of events, which no answer waits for.
pub(super) struct Events(mpsc::Sender<Reported>);

impl Events {
    /// Starts to write events.
    pub(super) fn start(client: Client, tasks: &mut JoinSet<()>) -> Self {
        let (sender, mut queue) = mpsc::channel::<Reported>(QUEUE_MAX);
        tasks.spawn(async move {
            let recorder = Recorder::new(client, CONTROLLER.into());
            while let Some((object, event)) = queue.recv().await {
                if let Err(error) = recorder.publish(&event, &object).await {
                    tracing::debug!(%error, "an event cannot be written");
                }
            }
        });
        Self(sender)
    }

    /// Returns a writer whose events are dropped, or read by a test.
    #[cfg(test)]
    pub(super) fn queued() -> (Self, mpsc::Receiver<Reported>) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        (Self(sender), queue)
    }

    /// Reports that a pod of a namespace gets no sidecar, with the reason in `PascalCase`.
    pub(super) fn report(&self, namespace: &str, pod: &Value, reason: &str, mut note: String) {
        while note.len() > NOTE_BYTES_MAX {
            note.pop();
        }
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note),
            action: "Inject".to_owned(),
            secondary: None,
        };
        // a full queue has enough of the same
        let _ = self.0.try_send((owner(namespace, pod), event));
    }
}

/// Returns the controller that owns a pod, or its namespace.
fn owner(namespace: &str, pod: &Value) -> ObjectReference {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match owners.find(|owner| owner["controller"] == true) {
        Some(owner) => ObjectReference {
            api_version: text(&owner["apiVersion"]),
            kind: text(&owner["kind"]),
            name: text(&owner["name"]),
            namespace: Some(namespace.to_owned()),
            uid: text(&owner["uid"]),
            ..ObjectReference::default()
        },
        None => ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Namespace".to_owned()),
            name: Some(namespace.to_owned()),
            ..ObjectReference::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn event_is_about_the_controller_of_the_pod_or_its_namespace() {
        let owners = json!([{"kind": "X"}, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u",
            "controller": true}]);
        let pod = json!({"metadata": {"ownerReferences": owners}});
        let found = owner("shop", &pod);
        assert_eq!(found.kind.as_deref(), Some("ReplicaSet"));
        assert_eq!(found.namespace.as_deref(), Some("shop"));
        let found = owner("shop", &json!({"metadata": {}}));
        assert_eq!(found.kind.as_deref(), Some("Namespace"));
        assert_eq!(
            (found.name.as_deref(), found.namespace),
            (Some("shop"), None)
        );
    }

    #[test]
    fn long_note_is_cut() {
        let (events, mut queue) = Events::queued();
        events.report("shop", &json!({}), "SidecarRefused", "ä".repeat(600));
        let (_, event) = queue.try_recv().unwrap();
        assert_eq!(event.note.unwrap().len(), NOTE_BYTES_MAX);
    }
}
