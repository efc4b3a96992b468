//! Watches one resource of a server.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::DynamicResourceScope;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher as watch;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::cluster_state::ClusterState;
use super::discovery::Resource;
use super::document;
use super::gateway_needs::{GatewayNeeds, danger_without};
use super::listing::Listing;
use super::pod_gate::{PodGate, Released};
use super::problems::{self, Refusal};
use super::referred::ReferredNamespaces;
use super::seen::Seen;
use super::settings::ApiServer;
use super::throttle::Throttle;
use crate::catalog::gateway_api::BUILT_IN;
use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::source::content::{self, Reader};
use crate::source::errors::SourceError;
use crate::source::stream::mirror::version;
use crate::source::stream::mirror::{Became, Item, Mirror};
use crate::source::stream::pauses;
use crate::source::stream::report::{Change, Key, Message, Report, Restored};

/// Objects per page of a list.
const PAGE: u32 = 500;

/// Field selector of the pods that are read: pods that have not terminated.
const RUNNING: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Longest wait at startup for the first list of Pods, Nodes or Namespaces. The proxy also works without them.
const STATE_WAIT: Duration = Duration::from_secs(10);

/// Number of consecutive errors after which they are reported. A server that restarts or has compacted its history
/// causes fewer.
const FAILURES_MAX: u32 = 3;

/// Pause before a refused resource is requested again, if the back-off gives none.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

/// Longest time for the server to return its revision before a list.
const REVISION_MAX: Duration = Duration::from_secs(2);

/// Largest number of changes in one report. A longer list is split.
const CHANGES_MAX: usize = 1_000;

/// Known objects of a resource. They outlive the connection.
pub(super) type Known = Arc<Mutex<Mirror<Form>>>;

/// Form in which a listed object is stored until it takes effect.
#[derive(Debug)]
pub(super) enum Form {
    /// Text of the object. In a list of thousands, text takes a tenth of the memory.
    Text(String),
    /// An EndpointSlice, whose endpoints may be held back until their pods are known.
    Slice(Box<DynamicObject>),
}

/// Events of a watch.
type Events = BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>>;

/// Locks the known objects of a resource.
pub(super) fn lock(known: &Known) -> MutexGuard<'_, Mirror<Form>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notifications from the watches about the server as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Alarms {
    /// The credentials are no longer accepted.
    pub(super) unauthorized: Arc<Notify>,
    /// A connection was lost.
    pub(super) interrupted: Arc<Notify>,
    /// Secrets and ConfigMaps of a further namespace are needed.
    pub(super) referred: Arc<Notify>,
}

/// Settings and shared state of the watch of one resource.
pub(super) struct Watch {
    /// Number of the server.
    pub(super) number: usize,
    pub(super) server: ApiServer,
    /// Whether the server is a config server.
    pub(super) is_config_server: bool,
    /// Whether the proxy can run without the resource if the credentials do not allow reading it.
    pub(super) is_optional: bool,
    /// Gateways of the server, and the kinds that they need.
    pub(super) needs: GatewayNeeds,
    /// Whether missing permission is reported.
    pub(super) is_missed: bool,
    /// Consumer of the objects.
    pub(super) reader: Reader,
    /// Whether these are Secrets or ConfigMaps of a further namespace, to which objects of the Gateway API refer.
    pub(super) is_referred: bool,
    /// Further namespaces whose Secrets and ConfigMaps are followed; `None` if none are.
    pub(super) referred: Option<ReferredNamespaces>,
    /// Duration in seconds after which the server is asked to end the watch.
    pub(super) seconds: u32,
    pub(super) resource: Resource,
    /// Namespace of the watch; `None` for all namespaces.
    pub(super) namespace: Option<String>,
    /// Label selector of the objects.
    pub(super) selector: Option<String>,
    pub(super) known: Known,
    /// Ordering of EndpointSlices and Pods.
    pub(super) gate: Arc<Mutex<PodGate>>,
    /// Time when the saved state was written; `None` without one.
    pub(super) saved_at: Option<SystemTime>,
    /// Time at which saved objects take the place of a list that did not arrive.
    pub(super) restore_at: Instant,
    pub(super) reports: mpsc::Sender<Message>,
    /// Pause requested by the server.
    pub(super) throttle: Throttle,
    /// Notifications about the server as a whole.
    pub(super) alarms: Alarms,
}

impl Watch {
    /// Returns the key, which is unique among the watches of the server.
    pub(super) fn key(&self) -> Key {
        match &self.namespace {
            Some(namespace) => format!("{} in {namespace}", self.resource.name()).into(),
            None => self.resource.name().into(),
        }
    }

    /// Returns the URL path of its requests.
    pub(super) fn path(&self) -> String {
        DynamicObject::url_path(&self.resource.api, self.namespace.as_deref())
    }

    /// Follows the resource until this future is dropped or the receiver of the reports is gone.
    pub(super) async fn run(self, client: Client) {
        let mut pauses = pauses::pauses();
        loop {
            let Some(refusal) = self.follow(&client).await else {
                return;
            };
            if self.resource.kind == Kind::Pod {
                self.gate().unreadable(self.namespace.as_deref());
            }
            let is_optional = self.is_optional || !self.is_needed(refusal);
            let found = self.refused(refusal, is_optional);
            if refusal == Refusal::Unauthorized {
                self.alarms.unauthorized.notify_one();
            } else if (self.is_missed || refusal != Refusal::Forbidden)
                && !self.report(Report::Trouble(self.key(), Some(found))).await
            {
                return;
            }
            match refusal {
                // It is begun again with the credentials that come then.
                Refusal::Unauthorized => {}
                Refusal::Forbidden if !is_optional => {
                    self.report(Report::Forbidden(self.key())).await;
                }
                // What cannot be listed is not waited for; what was saved is better than nothing.
                _ => {
                    if let Some(at) = self.saved_at.filter(|_| lock(&self.known).has_saved()) {
                        self.needs.list(self.resource.kind);
                        self.restore(at).await;
                    }
                    self.report(Report::Settled(self.key())).await;
                }
            }
            let pause = pauses.next().unwrap_or(REFUSED_PAUSE);
            tokio::time::sleep(pause.max(self.throttle.left())).await;
        }
    }

    /// Whether a refused resource is needed: one that only Gateways need is not, if there are none.
    fn is_needed(&self, refusal: Refusal) -> bool {
        let kind = self.resource.kind;
        let is_of_gateways = refusal == Refusal::Forbidden && danger_without(kind).is_some();
        !is_of_gateways || self.needs.refuse(kind, self.key())
    }

    /// Returns the diagnostic about a refused resource.
    fn refused(&self, refusal: Refusal, is_optional: bool) -> Diagnostic {
        match (&self.namespace, self.resource.kind, refusal) {
            (_, _, Refusal::Forbidden) if self.is_referred => {
                problems::refused_referred(&self.server, &self.key())
            }
            (Some(namespace), Kind::Secret, Refusal::Forbidden) => {
                problems::refused_secrets(&self.server, namespace, self.is_config_server)
            }
            (_, kind, Refusal::Forbidden) if kind.is_state() => {
                problems::refused_state(&self.server, &self.key(), kind)
            }
            (_, Kind::BackendTrafficPolicy, Refusal::Forbidden) => {
                let effect = "requests are not limited";
                problems::refused_optional(&self.server, &self.key(), effect)
            }
            (_, Kind::Ingress | Kind::IngressClass, Refusal::Forbidden) => {
                let effect = "Ingresses are not served";
                problems::refused_optional(&self.server, &self.key(), effect)
            }
            (_, kind, Refusal::Forbidden) if kind.is_gateway_api() => {
                let effect = danger_without(kind).unwrap_or("its objects have no effect");
                match is_optional {
                    true => problems::refused_optional(&self.server, &self.key(), effect),
                    false => problems::refused_needed(&self.server, &self.key(), effect),
                }
            }
            _ => problems::refused(&self.server, &self.key(), refusal),
        }
    }

    /// Time of the end of the wait for the first list of Pods, Nodes or Namespaces; `None` for other kinds.
    fn settle_at(&self) -> Option<Instant> {
        let is_state = self.resource.kind.is_state();
        is_state.then(|| self.restore_at.max(Instant::now() + STATE_WAIT))
    }

    /// Follows the resource until the server refuses it. All other errors are transient: the watch resumes where it
    /// ended, or starts with a new list. Returns `None` if the receiver of the reports is gone.
    async fn follow(&self, client: &Client) -> Option<Refusal> {
        let mut events = self.events(client);
        let mut saved_at = self.saved_at;
        let mut settle_at = self.settle_at();
        let mut seen = Seen::default();
        let mut listing = Listing::default();
        let mut failures: u32 = 0;
        let mut pauses = pauses::pauses();
        loop {
            let deadline = self.gate_deadline();
            let event = tokio::select! {
                event = events.next() => event?,
                () = tokio::time::sleep_until(deadline.unwrap_or(self.restore_at)), if deadline.is_some() => {
                    if self.expire().await { continue } else { return None }
                }
                () = tokio::time::sleep_until(settle_at.unwrap_or(self.restore_at)), if settle_at.is_some() => {
                    settle_at = None;
                    self.settle_unlisted().await;
                    continue;
                }
                () = tokio::time::sleep_until(listing.deadline), if listing.is_begun => return Some(Refusal::Endless),
                () = tokio::time::sleep_until(self.restore_at), if saved_at.is_some() => {
                    if let Some(at) = saved_at.take() { self.restore(at).await; }
                    continue;
                }
            };
            match event {
                Ok(event) => {
                    if listing.is_too_long(&event) {
                        return Some(Refusal::Endless);
                    }
                    if let Some((kind, needed)) = self.needed(&event) {
                        if !self.hold(kind, needed).await {
                            return None;
                        }
                        (events, listing) = (self.events(client), Listing::default());
                        continue;
                    }
                    let is_complete = matches!(event, Event::InitDone);
                    let is_news = !matches!(event, Event::Init | Event::InitApply(_));
                    let has_failed = is_news && mem::take(&mut failures) >= FAILURES_MAX;
                    if is_news {
                        // Not before: the beginning of a list that fails is no success.
                        pauses.reset();
                    }
                    if matches!(event, Event::Init) {
                        seen.restart(self.revision(client).await);
                    }
                    seen.note(&event);
                    if !self.take_in(event).await || !self.report_seen(&seen).await {
                        return None;
                    }
                    if is_complete {
                        (saved_at, settle_at) = (None, None);
                        self.report_list().await;
                    } else if has_failed {
                        self.report(Report::Trouble(self.key(), None)).await;
                    }
                }
                Err(error) => {
                    failures += 1;
                    if let Some(refusal) = self.failed(&error, failures).await {
                        return Some(refusal);
                    }
                    let pause = pauses.next().unwrap_or(REFUSED_PAUSE);
                    tokio::time::sleep(pause.max(self.throttle.left())).await;
                }
            }
        }
    }

    /// Releases endpoints that were held back for too long. Returns whether the receiver of the reports is still there.
    async fn expire(&self) -> bool {
        let released = self.gate().expire(Instant::now());
        self.hand_on(self.released(released)).await
    }

    /// Lets the proxy start without the list of an optional resource.
    async fn settle_unlisted(&self) {
        let (server, resource) = (self.server.name(), &*self.key());
        tracing::warn!(
            server,
            resource,
            "not listed yet: endpoints are used without what it says of them"
        );
        self.report(Report::Settled(self.key())).await;
    }

    /// Returns a refused kind that the Gateway of an event needs, with the key of its watch.
    fn needed(&self, event: &Event<DynamicObject>) -> Option<(Kind, Key)> {
        let is_gateway = self.resource.kind == Kind::KubernetesGateway;
        is_gateway.then(|| self.needs.note(event)).flatten()
    }

    /// Waits until a kind that Gateways need is listed. A proxy that starts waits for it as well. Returns whether the receiver
    /// of the reports is still there.
    async fn hold(&self, kind: Kind, needed: Key) -> bool {
        let danger = danger_without(kind).unwrap_or_default();
        let effect = format!("{danger}, so that no further Gateway is read");
        let found = problems::refused_needed(&self.server, &needed, &effect);
        let reports = [
            Report::Trouble(self.key(), Some(found)),
            Report::Watching(vec![Arc::clone(&needed)]),
            Report::Forbidden(needed),
        ];
        for report in reports {
            if !self.report(report).await {
                return false;
            }
        }
        self.needs.listed(kind).await;
        true
    }

    /// Reports a complete list.
    async fn report_list(&self) {
        self.needs.list(self.resource.kind);
        self.report(Report::Trouble(self.key(), None)).await;
        self.report(Report::Listed(self.key())).await;
        self.report(Report::Settled(self.key())).await;
    }

    /// Counts an error, the last of `failures` consecutive ones. Returns the refusal that it means, if any.
    async fn failed(&self, error: &watcher::Error, failures: u32) -> Option<Refusal> {
        let (server, resource) = (self.server.name(), self.key());
        let reason = problems::watch_reason(error);
        match reason {
            SourceError::Stalled => {
                tracing::warn!(server, resource = &*resource, %error, "watch stalled, and is started again");
            }
            _ => tracing::debug!(server, resource = &*resource, %error, "watch interrupted"),
        }
        self.report(Report::Failed(reason)).await;
        if matches!(reason, SourceError::Other | SourceError::Unreachable) {
            self.alarms.interrupted.notify_one();
        }
        let refusal = problems::watch_refusal(error);
        if refusal.is_none() && failures == FAILURES_MAX {
            let found = problems::interrupted(&self.server, &self.key(), error);
            self.report(Report::Trouble(self.key(), Some(found))).await;
        }
        refusal
    }

    /// Reports the newest revision, unless a list is in progress.
    async fn report_seen(&self, seen: &Seen) -> bool {
        match seen.told() {
            Some(revision) => self.report(Report::Seen(self.key(), revision)).await,
            None => true,
        }
    }

    /// Returns the server's revision before a list, which the list includes even if all of its objects are older.
    /// `None` if the server does not respond, or its revisions are not numbers.
    async fn revision(&self, client: &Client) -> Option<u64> {
        let first = ListParams::default().limit(1);
        let api = self.api::<DynamicObject>(client);
        let asked = tokio::time::timeout(REVISION_MAX, api.list_metadata(&first));
        let list = asked.await.ok()?.ok()?;
        list.metadata.resource_version?.parse().ok()
    }

    /// Returns the events of the watch.
    fn events(&self, client: &Client) -> Events {
        let mut config = watcher::Config {
            label_selector: self.selector.clone(),
            page_size: Some(PAGE),
            timeout: Some(self.seconds),
            ..watcher::Config::default()
        };
        let kind = self.resource.kind;
        if kind == Kind::Pod {
            config.field_selector = Some(RUNNING.to_owned());
        }
        if !kind.is_state() {
            return watch(self.api(client), config).boxed();
        }
        let events = watch(self.api::<ClusterState>(client), config);
        let events = events.map_ok(move |event| match event {
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
            Event::Apply(object) => Event::Apply(object.into_object(kind)),
            Event::Delete(object) => Event::Delete(object.into_object(kind)),
            Event::InitApply(object) => Event::InitApply(object.into_object(kind)),
        });
        events.boxed()
    }

    fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: kube::Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        let client = client.clone();
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &self.resource.api),
            None => Api::all_with(client, &self.resource.api),
        }
    }

    /// Has the Secrets and ConfigMaps followed that an object of the Gateway API refers to. Returns whether the receiver of
    /// the reports is still there.
    async fn note_referred(&self, event: &Event<DynamicObject>) -> bool {
        let (Some(referred), Event::Apply(object) | Event::InitApply(object)) =
            (&self.referred, event)
        else {
            return true;
        };
        let fresh = referred.note(self.resource.kind, object);
        if fresh.is_empty() {
            return true;
        }
        // before this list is complete, so that startup waits for them
        let is_heard = self.report(Report::Watching(fresh)).await;
        self.alarms.referred.notify_one();
        is_heard
    }

    /// Reports the changes of an event. Returns whether the receiver of the reports is still there.
    async fn take_in(&self, event: Event<DynamicObject>) -> bool {
        if !self.note_referred(&event).await {
            return false;
        }
        let event = match event {
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
            Event::Apply(object) => Event::Apply(self.item(object)),
            Event::Delete(object) => Event::Delete(self.item(object)),
            Event::InitApply(object) => Event::InitApply(self.item(object)),
        };
        let is_list = matches!(event, Event::InitDone);
        let (saved, changes) = {
            let mut known = lock(&self.known);
            let saved = match event {
                Event::InitDone => known.take_saved(),
                _ => Vec::new(),
            };
            (saved, known.apply(event))
        };
        if !saved.is_empty() && !self.report(Report::LastGood(saved)).await {
            return false;
        }
        let changes = changes.into_iter().flat_map(|became| self.change(became));
        let is_heard = self.hand_on(changes).await;
        if is_list && self.resource.kind == Kind::Pod {
            self.gate().listed(self.namespace.as_deref());
        }
        is_heard
    }

    /// Reports changes. Returns whether the receiver is still there.
    async fn hand_on(&self, changes: impl IntoIterator<Item = Change>) -> bool {
        let mut changes = changes.into_iter();
        loop {
            let part: Vec<Change> = changes.by_ref().take(CHANGES_MAX).collect();
            if part.is_empty() {
                return true;
            }
            if !self.report(Report::Changes(part)).await {
                return false;
            }
        }
    }

    /// Applies the saved objects in place of a list.
    async fn restore(&self, at: SystemTime) {
        let saved = lock(&self.known).restore().into_iter();
        let changes = saved
            .map(|(name, text)| (name, Some(text.into())))
            .collect();
        let key = Some(self.key());
        self.report(Report::Restored(Restored { key, at, changes }))
            .await;
    }

    fn item(&self, object: DynamicObject) -> Item<Form> {
        let resource_version = object.metadata.resource_version.as_deref();
        let version = version(resource_version.unwrap_or_default());
        Item {
            name: document::name(&self.server, &self.resource, &object),
            version,
            content: match self.reader {
                Reader::StatusWriter => version,
                // What cannot be written has no text either.
                Reader::Proxy => serde_json::to_value(&object)
                    .map_or(0, |object| content::of(self.resource.kind, &object)),
            },
            object: document::counts(&self.server, &self.resource, &object)
                .then(|| self.form(object)),
        }
    }

    fn form(&self, object: DynamicObject) -> Form {
        match self.resource.kind {
            Kind::EndpointSlice => Form::Slice(Box::new(object)),
            _ => Form::Text(self.text(&self.resource, object)),
        }
    }

    /// Returns the changes that take effect for one object, including endpoints and pods that it releases.
    fn change(&self, became: Became<Form>) -> Vec<Change> {
        match (self.resource.kind, became) {
            (_, Became::Set(name, Form::Slice(object))) => {
                let now = Instant::now();
                let released = self.gate().slice(&name, *object, &self.resource, now);
                self.released(released)
            }
            (Kind::EndpointSlice, Became::Gone(name)) => {
                let released = self.gate().slice_gone(&name);
                let own = [(name, None)].into_iter();
                own.chain(self.released(released)).collect()
            }
            (Kind::Pod, Became::Set(name, Form::Text(text))) => {
                let released = self.gate().pod(&name);
                let own = [(name, Some(text.into()))].into_iter();
                own.chain(self.released(released)).collect()
            }
            (Kind::Pod, Became::Gone(name)) => {
                let may_go = self.gate().pod_gone(&name);
                may_go.then_some((name, None)).into_iter().collect()
            }
            (_, Became::Gone(name)) => vec![(name, None)],
            (_, Became::Set(name, Form::Text(text))) => vec![(name, Some(text.into()))],
        }
    }

    fn text(&self, resource: &Resource, mut object: DynamicObject) -> String {
        if self.is_config_server && resource.kind == Kind::KubernetesGateway {
            let label = (BUILT_IN.to_owned(), "true".to_owned());
            object.labels_mut().extend([label]);
        }
        let text = document::text(&self.server, resource, object);
        // What cannot be written cannot be read either: the reader says so.
        text.unwrap_or_default()
    }

    /// Returns the changes of released slices and pods.
    fn released(&self, released: Released) -> Vec<Change> {
        for pod in released.missing {
            let server = self.server.name();
            let pod = document::namespaced_name(&pod);
            tracing::warn!(
                server,
                pod,
                "pod is not known: its endpoints are used without its labels and identity"
            );
        }
        let slices = released.slices.into_iter();
        let slices = slices.map(|(name, slice, resource)| {
            let text = self.text(&resource, slice);
            (name, Some(text.into()))
        });
        let gone = released.gone.into_iter().map(|name| (name, None));
        slices.chain(gone).collect()
    }

    fn gate(&self) -> MutexGuard<'_, PodGate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the earliest deadline of held endpoints, if this watch has the EndpointSlices.
    fn gate_deadline(&self) -> Option<Instant> {
        let is_of_slices = self.resource.kind == Kind::EndpointSlice;
        is_of_slices.then(|| self.gate().deadline()).flatten()
    }

    /// Sends a report. Returns whether the receiver is still there.
    async fn report(&self, report: Report) -> bool {
        self.reports.send((self.number, report)).await.is_ok()
    }
}
