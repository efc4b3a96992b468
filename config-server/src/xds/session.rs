//! Stream of one client: its requests, changes of the store, and responses.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use config_loader::proxy_state::{REJECTED_MAX, RejectedObject};
use config_loader::xds::{Node, REPORT_TYPE, ResourceType, resource_type};
use http::Method;
use prost_types::value::Kind;
use rand::RngExt;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::{Status, Streaming};

use super::encoded::{Encoded, Stored};
use super::form::{Asked, Form, Said};
use super::reported::ReportedProxy;
use super::shared::Shared;
use super::subscription::{Effect, Subscription};
use crate::access::{Guard, User};
use crate::api::Call;
use crate::api::params::Params;
use crate::api::route::Target;
use crate::resources::{self, Resource};
use crate::store::{Event, Revision, Scan, StoreError};

/// Number of events per read of the history.
const BATCH: usize = 256;

/// Range of the lifetime of a stream, in seconds. The client then reconnects and authenticates again.
const LIFETIME_SECONDS: std::ops::Range<u64> = 1_800..3_600;

/// Interval between reports that the proxy of a stream is still connected.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Maximum time to deliver the final status of a stream.
const END_MAX: Duration = Duration::from_secs(5);

/// Type URL of Pods.
const POD: &str = "core/v1/Pod";

/// Type URL of EndpointSlices.
const ENDPOINT_SLICE: &str = "discovery.k8s.io/v1/EndpointSlice";

/// Stream of one client.
pub(super) struct Session<F: Form> {
    shared: Shared,
    user: User,
    guard: Guard,
    proxy: ReportedProxy,
    responses: mpsc::Sender<Result<F::Response, Status>>,
    /// Namespace of the client, whose Secrets it may read.
    namespace: Option<String>,
    /// Whether the client says that it is a gateway.
    is_gateway: bool,
    /// Node name of the client, for messages.
    node: String,
    subscriptions: BTreeMap<String, Subscribed>,
    /// Revision up to which changes have been read from the history.
    seen: Revision,
}

/// Subscribed type, and the objects of its resources.
struct Subscribed {
    subscription: Subscription,
    target: Target,
}

/// Reason why a stream ends.
enum End {
    /// Disconnected client, or end of the lifetime.
    Closed,
    /// Error that is sent to the client.
    Failed(Status),
}

impl<F: Form> Session<F> {
    pub(super) fn new(
        shared: Shared,
        user: User,
        guard: Guard,
        responses: mpsc::Sender<Result<F::Response, Status>>,
    ) -> Session<F> {
        Session {
            proxy: ReportedProxy::new(&shared.proxies, &shared.metrics, &user),
            shared,
            user,
            guard,
            responses,
            namespace: None,
            is_gateway: false,
            node: String::new(),
            subscriptions: BTreeMap::new(),
            seen: 0,
        }
    }

    /// Serves the stream until its client disconnects or its lifetime ends.
    pub(super) async fn run(mut self, requests: Streaming<F::Request>) {
        let lifetime = Duration::from_secs(rand::rng().random_range(LIFETIME_SECONDS));
        let deadline = Instant::now() + lifetime;
        if let Ok(Err(End::Failed(status))) =
            tokio::time::timeout_at(deadline, self.serve(requests)).await
        {
            // The client may have disconnected, or may not be reading.
            let told = self.responses.send(Err(status));
            let _ = tokio::time::timeout(END_MAX, told).await;
        }
    }

    async fn serve(&mut self, mut requests: Streaming<F::Request>) -> Result<(), End> {
        let latest = self.shared.api.store.latest().await;
        self.seen = latest.map_err(unavailable)?;
        let mut changes = self.shared.api.store.history().subscribe();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            self.take_changes()?;
            self.respond().await?;
            self.proxy.apply_acks(self.accepted(), self.rejected());
            tokio::select! {
                request = requests.message() => match request {
                    Ok(Some(request)) => self.take_in(F::asked(request)).await?,
                    Ok(None) | Err(_) => return Err(End::Closed),
                },
                changed = changes.changed() => if changed.is_err() { return Err(End::Closed) },
                () = self.guard.revoked() => return Err(revoked()),
                _ = heartbeat.tick() => self.proxy.publish(),
                () = self.responses.closed() => return Err(End::Closed),
            }
        }
    }

    async fn take_in(&mut self, asked: Asked) -> Result<(), End> {
        if asked.type_url == REPORT_TYPE {
            self.proxy.apply_report(&asked.node.unwrap_or_default());
            return Ok(());
        }
        if let Some(node) = &asked.node {
            self.introduce(node)?;
        }
        if let Some(known) = self.subscriptions.get_mut(&asked.type_url) {
            match known.subscription.ask(&asked, F::IS_WHOLE) {
                Effect::None | Effect::Accepted => {}
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
            // ACK or NACK of a response for a type that is not served to this client.
            return Ok(());
        }
        let Some((of, target)) = served(&asked.type_url, self.namespace.as_deref()) else {
            // Clients may know more types than the server, which answers as Istio does.
            let said = Said {
                type_url: asked.type_url,
                nonce: "0".to_owned(),
                ..Said::default()
            };
            return self.send(said).await;
        };
        let is_allowed = watch_of(&target).check(&self.user);
        // Sidecars get no Secrets of an API server.
        let is_withheld =
            target.resource.is_secret() && self.user.namespace.is_some() && !self.is_gateway;
        if let Err(failure) = &is_allowed
            && !target.resource.is_secret()
        {
            return Err(End::Failed(Status::permission_denied(
                failure.message.clone(),
            )));
        }
        let url = asked.type_url.clone();
        let mut subscription = Subscription::new(of, &asked);
        if is_allowed.is_err() || is_withheld {
            // A client without permission for Secrets gets all other resources.
            return self.send(subscription.respond(self.seen, true)).await;
        }
        let subscribed = Subscribed {
            subscription,
            target,
        };
        self.subscriptions.insert(url.clone(), subscribed);
        self.read_state(&url, asked.versions).await
    }

    /// Applies the node of the first request.
    fn introduce(&mut self, node: &Node) -> Result<(), End> {
        let fields = node.metadata.as_ref().map(|metadata| &metadata.fields);
        let namespace = fields.and_then(|fields| fields.get("NAMESPACE"));
        self.namespace = match namespace.and_then(|value| value.kind.as_ref()) {
            Some(Kind::StringValue(namespace)) => Some(namespace.clone()),
            _ => None,
        };
        if self.user.namespace.is_some() && self.user.namespace != self.namespace {
            let (told, own) = (&self.namespace, &self.user.name);
            let told = told.as_deref().unwrap_or_default();
            return Err(End::Failed(Status::permission_denied(format!(
                "the proxy tells the namespace {told:?}, and its token is that of {own}: start it with the namespace of its pod"
            ))));
        }
        self.is_gateway = node.id.starts_with("router~");
        self.node.clone_from(&node.id);
        self.proxy.apply_node(node);
        Ok(())
    }

    /// Reads the state of a type for its next response. State of the world reads it with the response instead.
    async fn read_state(&mut self, url: &str, known: HashMap<String, String>) -> Result<(), End> {
        match F::IS_WHOLE {
            true => Ok(()),
            false => self.scan(url, known).await,
        }
    }

    async fn scan(&mut self, url: &str, known: HashMap<String, String>) -> Result<(), End> {
        let Some(subscribed) = self.subscriptions.get_mut(url) else {
            return Ok(());
        };
        let scan = Scan {
            prefix: subscribed.target.prefix(),
            ..Scan::default()
        };
        let store = &self.shared.api.store;
        let page = store.scan(scan).await.map_err(unavailable)?;
        let (of, target) = (&subscribed.subscription.of.clone(), &subscribed.target);
        let encoded = &self.shared.encoded;
        let entries = page.entries.iter();
        let sent = entries.filter_map(|entry| {
            let stored = Stored {
                key: &entry.key,
                revision: entry.revision,
                value: &entry.value,
            };
            encoded.of(of, target, stored)
        });
        subscribed.subscription.state(page.revision, sent, known);
        Ok(())
    }

    /// Applies new changes from the history.
    fn take_changes(&mut self) -> Result<(), End> {
        loop {
            let history = self.shared.api.store.history();
            let events = history.since(self.seen, BATCH);
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
                    subscribed.change(&event, &self.shared.encoded);
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }

    /// Sends pending changes of types whose last response was answered. A pod is sent before the endpoints that have it, and
    /// removed after them: an endpoint without its pod has no identity, and would get plain text.
    async fn respond(&mut self) -> Result<(), End> {
        let ready = self.subscriptions.iter();
        let ready = ready.filter(|(_, subscribed)| subscribed.subscription.is_ready());
        // Pods come first by the order of the URLs.
        let urls: Vec<String> = ready.map(|(url, _)| url.clone()).collect();
        for url in urls {
            let owes = |other: &str| match self.subscriptions.get(other) {
                Some(other) => other.subscription.owes_resources(),
                None => false,
            };
            let has_endpoints = url == POD && owes(ENDPOINT_SLICE);
            if url == ENDPOINT_SLICE && owes(POD) {
                continue;
            }
            if F::IS_WHOLE {
                self.scan(&url, HashMap::new()).await?;
            }
            let version = self.complete_without(&url);
            let Some(subscribed) = self.subscriptions.get_mut(&url) else {
                continue;
            };
            let subscription = &mut subscribed.subscription;
            let said = match has_endpoints {
                true if subscription.owes_removals_alone() => continue,
                true => subscription.respond_without_removals(version, F::IS_WHOLE),
                false => subscription.respond(version, F::IS_WHOLE),
            };
            self.send(said).await?;
        }
        Ok(())
    }

    /// Returns the revision up to which everything is sent once the pending changes of one type are.
    fn complete_without(&self, url: &str) -> Revision {
        let others = self.subscriptions.iter();
        let others = others.filter(|(other, _)| *other != url);
        let owed = others.filter_map(|(_, other)| other.subscription.owed_since());
        owed.min()
            .map_or(self.seen, |since| since.saturating_sub(1))
    }

    /// Returns the revision up to which the client has accepted everything, or rejected it by name.
    fn accepted(&self) -> Option<Revision> {
        let all = self.subscriptions.values();
        let pending = all.filter_map(|one| one.subscription.pending_since()).min();
        match pending {
            _ if self.subscriptions.is_empty() => None,
            None => Some(self.seen),
            Some(since) => since.checked_sub(1),
        }
    }

    /// Returns the objects that the client rejects.
    fn rejected(&self) -> Vec<RejectedObject> {
        let all = self.subscriptions.values().flat_map(|one| {
            let kind = one.subscription.of.kind().as_str();
            let rejected = one.subscription.rejected();
            rejected.map(move |(name, reason)| {
                let name = match name.contains('/') || name.is_empty() {
                    true => name.to_owned(),
                    false => format!("/{name}"),
                };
                RejectedObject::new(format!("{kind}/{name}"), true, vec![reason.to_owned()])
            })
        });
        all.take(REJECTED_MAX).collect()
    }

    async fn send(&mut self, said: Said) -> Result<(), End> {
        let response = F::said(said);
        tokio::select! {
            sent = self.responses.send(Ok(response)) => sent.map_err(|_| End::Closed),
            // The guard also ends a stream whose client does not read.
            () = self.guard.revoked() => Err(revoked()),
        }
    }
}

impl Subscribed {
    fn change(&mut self, event: &Event, encoded: &Encoded) {
        if !event.key.starts_with(&self.target.prefix()) {
            return;
        }
        if !encoded.has_effect(event, &self.subscription.of) {
            self.subscription.pass(event.revision);
            return;
        }
        let sent = event.value.as_ref().and_then(|value| {
            let stored = Stored {
                key: &event.key,
                revision: event.revision,
                value,
            };
            encoded.of(&self.subscription.of, &self.target, stored)
        });
        let name = name_of(&event.key, self.target.resource);
        self.subscription.change(event.revision, name, sent);
    }
}

/// Returns the xDS resource name of the object with that key.
fn name_of(key: &str, resource: &Resource) -> String {
    let mut parts = key.rsplitn(3, '/');
    let name = parts.next().unwrap_or_default();
    match parts.next() {
        Some(namespace) if resource.api.is_namespaced => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the type of a type URL, and the target of its objects. Secrets are limited to the namespace of the client.
pub(super) fn served(url: &str, namespace: Option<&str>) -> Option<(ResourceType, Target)> {
    let of = resource_type(url)?;
    let (group, version) = of
        .api_version
        .split_once('/')
        .unwrap_or(("", of.api_version));
    let (resource, version): (&'static Resource, _) =
        resources::served(group, version, of.row.api.plural)?;
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

/// Returns the equivalent watch of a Kubernetes client, which needs the same permission.
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

fn revoked() -> End {
    End::Failed(Status::unauthenticated(
        "the token of the stream was revoked, or its time is over",
    ))
}

fn unavailable(error: StoreError) -> End {
    End::Failed(Status::unavailable(error.to_string()))
}
