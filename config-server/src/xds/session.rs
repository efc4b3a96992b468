//! One stream: its requests, the changes of the store, its responses.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use config_loader::xds::{ResourceType, resource_of, resource_type};
use http::Method;
use prost_types::value::Kind;
use rand::RngExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::{Status, Streaming};

use super::form::{Asked, Form, Said, Sent};
use super::subscription::{Effect, Subscription};
use crate::access::User;
use crate::api::params::Params;
use crate::api::route::Target;
use crate::api::{Api, Call};
use crate::object;
use crate::resources::{self, Resource};
use crate::store::{Event, Revision, Scan, StoreError};

/// How many events are taken from the history at a time.
const BATCH: usize = 256;

/// How long a stream is served, at least and at most: after that its client shows its credentials again.
const LIFETIME_SECONDS: std::ops::Range<u64> = 1_800..3_600;

/// One stream.
pub(super) struct Session<F: Form> {
    api: Api,
    user: User,
    responses: mpsc::Sender<Result<F::Response, Status>>,
    /// The namespace of the client, whose Secrets it may read.
    namespace: Option<String>,
    /// Its name, for messages.
    node: String,
    subscriptions: BTreeMap<String, Subscribed>,
    /// Changes up to this one are taken from the history.
    seen: Revision,
}

/// A type that is served, and where its objects are.
struct Subscribed {
    subscription: Subscription,
    target: Target,
}

/// Why a stream ends.
enum End {
    /// The client is gone, or its time is over.
    Closed,
    /// It is told why.
    Failed(Status),
}

impl<F: Form> Session<F> {
    pub(super) fn new(
        api: Api,
        user: User,
        responses: mpsc::Sender<Result<F::Response, Status>>,
    ) -> Session<F> {
        Session {
            api,
            user,
            responses,
            namespace: None,
            node: String::new(),
            subscriptions: BTreeMap::new(),
            seen: 0,
        }
    }

    /// Serves the stream until its client goes away, or its time is over.
    pub(super) async fn run(mut self, requests: Streaming<F::Request>) {
        let lifetime = Duration::from_secs(rand::rng().random_range(LIFETIME_SECONDS));
        let deadline = Instant::now() + lifetime;
        if let Ok(Err(End::Failed(status))) =
            tokio::time::timeout_at(deadline, self.serve(requests)).await
        {
            // The client may be gone.
            let _ = self.responses.send(Err(status)).await;
        }
    }

    async fn serve(&mut self, mut requests: Streaming<F::Request>) -> Result<(), End> {
        let latest = self.api.store.latest().await;
        self.seen = latest.map_err(unavailable)?;
        let mut changes = self.api.store.history().subscribe();
        loop {
            self.take_changes()?;
            self.respond().await?;
            tokio::select! {
                request = requests.message() => match request {
                    Ok(Some(request)) => self.take_in(F::asked(request)).await?,
                    Ok(None) | Err(_) => return Err(End::Closed),
                },
                changed = changes.changed() => if changed.is_err() { return Err(End::Closed) },
                () = self.responses.closed() => return Err(End::Closed),
            }
        }
    }

    async fn take_in(&mut self, asked: Asked) -> Result<(), End> {
        if let Some(node) = &asked.node {
            let fields = node.metadata.as_ref().map(|metadata| &metadata.fields);
            let namespace = fields.and_then(|fields| fields.get("NAMESPACE"));
            self.namespace = match namespace.and_then(|value| value.kind.as_ref()) {
                Some(Kind::StringValue(namespace)) => Some(namespace.clone()),
                _ => None,
            };
            self.node.clone_from(&node.id);
        }
        if let Some(known) = self.subscriptions.get_mut(&asked.type_url) {
            match known.subscription.ask(&asked, F::IS_WHOLE) {
                Effect::None => {}
                Effect::Rejected(reason) => {
                    let (node, user) = (&*self.node, &*self.user.name);
                    tracing::warn!(
                        node,
                        user,
                        type_url = asked.type_url,
                        reason,
                        "a proxy rejects resources"
                    );
                }
                Effect::Resubscribed => self.read_state(&asked.type_url, HashMap::new()).await?,
            }
            return Ok(());
        }
        if !asked.nonce.is_empty() {
            // The answer to a response about a type that is not served to this client.
            return Ok(());
        }
        let Some((of, target)) = served(&asked.type_url, self.namespace.as_deref()) else {
            // As Istio does: a client may know more types than the server.
            let said = Said {
                type_url: asked.type_url,
                nonce: "0".to_owned(),
                ..Said::default()
            };
            return self.send(said).await;
        };
        let is_allowed = self.user.check(&watch_of(&target));
        if let Err(failure) = &is_allowed
            && !target.resource.is_secret()
        {
            return Err(End::Failed(Status::permission_denied(
                failure.message.clone(),
            )));
        }
        let url = asked.type_url.clone();
        let mut subscription = Subscription::new(of, &asked);
        if is_allowed.is_err() {
            // A client without Secrets gets all else.
            return self.send(subscription.respond()).await;
        }
        let subscribed = Subscribed {
            subscription,
            target,
        };
        self.subscriptions.insert(url.clone(), subscribed);
        self.read_state(&url, asked.versions).await
    }

    /// Takes the state of a type from the store.
    async fn read_state(&mut self, url: &str, known: HashMap<String, String>) -> Result<(), End> {
        let Some(subscribed) = self.subscriptions.get_mut(url) else {
            return Ok(());
        };
        let scan = Scan {
            prefix: subscribed.target.prefix(),
            ..Scan::default()
        };
        let page = self.api.store.scan(scan).await.map_err(unavailable)?;
        let (of, target) = (&subscribed.subscription.of, &subscribed.target);
        let entries = page.entries.iter();
        let sent: Vec<Sent> = entries
            .filter_map(|entry| sent(of, &object::read(entry, target.resource, target.version)))
            .collect();
        subscribed
            .subscription
            .state(page.revision, sent.into_iter(), known);
        Ok(())
    }

    /// Takes the changes in since the last time.
    fn take_changes(&mut self) -> Result<(), End> {
        loop {
            let events = self.api.store.history().since(self.seen, BATCH);
            let events = events.map_err(|error| match error {
                StoreError::Compacted => End::Failed(Status::aborted(
                    "the stream is too far behind: connect again, with the versions that are known",
                )),
                other => unavailable(other),
            })?;
            let is_all = events.len() < BATCH;
            for event in events {
                self.seen = event.revision;
                for subscribed in self.subscriptions.values_mut() {
                    subscribed.change(&event);
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }

    /// Sends what is owed to types whose last response was answered.
    async fn respond(&mut self) -> Result<(), End> {
        let ready = self.subscriptions.iter();
        let ready = ready.filter(|(_, subscribed)| subscribed.subscription.is_ready());
        let urls: Vec<String> = ready.map(|(url, _)| url.clone()).collect();
        for url in urls {
            if F::IS_WHOLE {
                self.read_state(&url, HashMap::new()).await?;
            }
            if let Some(subscribed) = self.subscriptions.get_mut(&url) {
                let said = subscribed.subscription.respond();
                self.send(said).await?;
            }
        }
        Ok(())
    }

    async fn send(&self, said: Said) -> Result<(), End> {
        let response = F::said(said);
        self.responses
            .send(Ok(response))
            .await
            .map_err(|_| End::Closed)
    }
}

impl Subscribed {
    fn change(&mut self, event: &Event) {
        if !event.key.starts_with(&self.target.prefix()) {
            return;
        }
        let (resource, version) = (self.target.resource, self.target.version);
        let read = |value: &Bytes| object::decode(value, event.revision, resource, version);
        let new = event.value.as_ref().map(read);
        let Some(any) = new.clone().or_else(|| event.previous.as_ref().map(read)) else {
            return;
        };
        let sent = new.and_then(|object| sent(&self.subscription.of, &object));
        let name = name_of(&any);
        self.subscription.change(event.revision, name, sent);
    }
}

/// What is sent of an object; none of one that is being deleted.
fn sent(of: &ResourceType, object: &Value) -> Option<Sent> {
    if object::is_deleting(object) {
        return None;
    }
    match resource_of(of, object) {
        Ok((name, resource)) => Some(Sent {
            version: object::meta(object, "resourceVersion").to_owned(),
            name,
            resource,
        }),
        Err(reason) => {
            let name = name_of(object);
            tracing::warn!(
                kind = of.name,
                name,
                reason,
                "an object cannot be sent over xDS"
            );
            None
        }
    }
}

fn name_of(object: &Value) -> String {
    let (namespace, name) = (
        object::meta(object, "namespace"),
        object::meta(object, "name"),
    );
    match namespace.is_empty() {
        true => name.to_owned(),
        false => format!("{namespace}/{name}"),
    }
}

/// The type of that URL, and where its objects are: Secrets in the namespace of the client only.
fn served(url: &str, namespace: Option<&str>) -> Option<(ResourceType, Target)> {
    let of = resource_type(url)?;
    let (group, version) = of
        .api_version
        .split_once('/')
        .unwrap_or(("", of.api_version));
    let (resource, version): (&'static Resource, _) =
        resources::find(group, version, of.row.api.plural)?;
    let namespace = resource
        .is_secret()
        .then(|| namespace.unwrap_or_default().to_owned());
    let target = Target {
        resource,
        version,
        namespace,
        name: None,
        is_status: false,
    };
    Some((of, target))
}

/// The watch of a Kubernetes client for the same objects, which needs the same permission.
fn watch_of(target: &Target) -> Call {
    Call {
        content_type: String::new(),
        user_agent: String::new(),
        method: Method::GET,
        target: target.clone(),
        params: Params::read(Some("watch=true")),
        body: Bytes::new(),
    }
}

fn unavailable(error: StoreError) -> End {
    End::Failed(Status::unavailable(error.to_string()))
}
