//! In-memory API server that responds slowly, fails at random, and repeats or cuts off responses.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::source::KubernetesClient;

pub(in crate::loader::tests) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Served resources: plural, kind and apiVersion.
pub(in crate::loader::tests) const RESOURCES: [(&str, &str, &str); 4] = [
    ("services", "Service", "v1"),
    ("endpointslices", "EndpointSlice", "discovery.k8s.io/v1"),
    (
        "virtualservices",
        "VirtualService",
        "networking.istio.io/v1",
    ),
    ("serviceentries", "ServiceEntry", "networking.istio.io/v1"),
];

/// All resources that can be served. The resources of `RESOURCES` are served from the start.
const KINDS: [(&str, &str, &str); 5] = {
    let [first, second, third, fourth] = RESOURCES;
    [first, second, third, fourth, ("pods", "Pod", "v1")]
};

/// Number of objects per list page, although clients request more.
const PAGE: usize = 3;

/// Maximum number of versions by which a list may be stale.
const BEHIND_MAX: u64 = 6;

/// One simulated server.
#[derive(Clone)]
pub(in crate::loader::tests) struct Api(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Newest version; a change wakes watches.
    version: watch::Sender<u64>,
}

struct State {
    rng: SmallRng,
    /// Log of all changes.
    log: Vec<Entry>,
    version: u64,
    /// Oldest version that is still known.
    compacted: u64,
    is_out: bool,
    /// Epoch of the watches. A watch of an older epoch is cut off.
    epoch: u64,
    /// Share of requests that fail, 0 to 1.
    trouble: f64,
    /// Generation of the connections. Connections of an older generation are dead: they transfer no data and do not
    /// close.
    connections: u64,
    /// Number of requests, and of watches, that get no response.
    unanswered: [usize; 2],
    /// Whether only the first API group is served.
    is_partial: bool,
    /// HTTP status of `/readyz`.
    readiness: u16,
    /// Resources that the credentials do not permit.
    forbidden: BTreeSet<&'static str>,
    /// Resources that the server does not serve.
    unserved: BTreeSet<&'static str>,
    /// Resources whose lists get no response.
    unlisted: BTreeSet<&'static str>,
}

struct Entry {
    version: u64,
    plural: &'static str,
    /// Namespace and name of the object.
    key: String,
    event: &'static str,
    object: Value,
}

impl Api {
    pub(in crate::loader::tests) fn new(seed: u64) -> Api {
        let state = State {
            rng: SmallRng::seed_from_u64(seed),
            log: Vec::new(),
            version: 1,
            compacted: 0,
            is_out: false,
            epoch: 0,
            trouble: 0.05,
            connections: 0,
            unanswered: [0; 2],
            is_partial: false,
            readiness: 200,
            forbidden: BTreeSet::new(),
            unserved: BTreeSet::from(["pods"]),
            unlisted: BTreeSet::new(),
        };
        Api(Arc::new(Shared {
            state: Mutex::new(state),
            version: watch::channel(1).0,
        }))
    }

    pub(in crate::loader::tests) fn client(&self) -> KubernetesClient {
        let api = self.clone();
        let service = tower::service_fn(move |request| {
            let api = api.clone();
            async move { api.answer(request).await }
        });
        KubernetesClient::to(service)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        state.version += 1;
        change(&mut state);
        self.0.version.send_replace(state.version);
    }

    /// Writes an object; `None` deletes it.
    pub(in crate::loader::tests) fn write(
        &self,
        plural: &'static str,
        key: &str,
        object: Option<Value>,
    ) {
        self.change(|state| {
            let before = state.objects(plural, state.version).remove(key);
            let (event, object) = match (before, object) {
                (None, None) => return,
                (None, Some(object)) => ("ADDED", object),
                (Some(_), Some(object)) => ("MODIFIED", object),
                (Some(before), None) => ("DELETED", before),
            };
            let mut object = object;
            let (namespace, name) = key.split_once('/').unwrap();
            object["metadata"]["namespace"] = json!(namespace);
            object["metadata"]["name"] = json!(name);
            object["metadata"]["resourceVersion"] = json!(state.version.to_string());
            state.log.push(Entry {
                version: state.version,
                plural,
                key: key.to_owned(),
                event,
                object,
            });
        });
    }

    /// Cuts off all watches.
    pub(in crate::loader::tests) fn interrupt(&self) {
        self.change(|state| state.epoch += 1);
    }

    /// Compacts the log; watches that are behind get status 410.
    pub(in crate::loader::tests) fn compact(&self) {
        self.change(|state| state.compacted = state.version);
    }

    /// Starts or ends an outage, in which no request gets a response.
    pub(in crate::loader::tests) fn set_out(&self, is_out: bool) {
        self.change(|state| {
            state.is_out = is_out;
            state.epoch += 1;
        });
    }

    /// Ends all failures.
    pub(in crate::loader::tests) fn calm(&self) {
        self.set_out(false);
        self.set_young(false, 200);
        self.change(|state| {
            state.trouble = 0.0;
            state.unanswered = [0; 2];
            state.forbidden.clear();
        });
    }

    /// Makes all connections dead. The next `unanswered` requests and watches get no response either.
    pub(in crate::loader::tests) fn lose(&self, unanswered: [usize; 2]) {
        self.change(|state| {
            state.connections += 1;
            state.unanswered = unanswered;
        });
    }

    /// Sets whether only the first API group is served, and the status of `/readyz`.
    pub(in crate::loader::tests) fn set_young(&self, is_partial: bool, readiness: u16) {
        self.change(|state| {
            state.is_partial = is_partial;
            state.readiness = readiness;
        });
    }

    /// Grants or revokes permission to read a resource; watches of it end.
    pub(in crate::loader::tests) fn allow(&self, plural: &'static str, is_allowed: bool) {
        self.change(|state| {
            state.epoch += 1;
            match is_allowed {
                true => state.forbidden.remove(plural),
                false => state.forbidden.insert(plural),
            };
        });
    }

    /// Starts or stops serving a resource.
    pub(in crate::loader::tests) fn serve(&self, plural: &'static str, is_served: bool) {
        self.change(|state| {
            match is_served {
                true => state.unserved.remove(plural),
                false => state.unserved.insert(plural),
            };
        });
    }

    /// Stops answering lists of a resource.
    pub(in crate::loader::tests) fn stop_listing(&self, plural: &'static str) {
        self.change(|state| _ = state.unlisted.insert(plural));
    }

    /// Returns the objects of a resource by key.
    pub(in crate::loader::tests) fn truth(&self, plural: &'static str) -> BTreeMap<String, Value> {
        let state = self.state();
        state.objects(plural, state.version)
    }

    /// Answers a request.
    pub(in crate::loader::tests) async fn answer(
        self,
        request: Request<kube::client::Body>,
    ) -> io::Result<Response<Body>> {
        let query = Query::of(request.uri().query().unwrap_or(""));
        let connections = self.state().connections;
        let pause = self.state().pause(40);
        tokio::time::sleep(pause).await;
        let plural = request.uri().path().rsplit('/').next().unwrap_or("");
        let is_unlisted = !query.is_watch && self.state().unlisted.contains(plural);
        if is_unlisted || self.state().is_lost(connections, query.is_watch) {
            std::future::pending::<()>().await;
        }
        let mut state = self.state();
        let trouble = state.trouble;
        if state.is_out || state.rng.random_bool(trouble / 3.0) {
            return Err(io::Error::other("connection refused"));
        }
        if state.rng.random_bool(trouble) {
            let codes = [429, 500, 503, 504];
            let code = codes[state.rng.random_range(0..codes.len())];
            return Ok(failed(code));
        }
        let path = request.uri().path().trim_matches('/').to_owned();
        let parts: Vec<&str> = path.split('/').collect();
        match *parts {
            ["readyz"] => Ok(failed(state.readiness)),
            ["apis"] => {
                let mut found = groups();
                if state.is_partial {
                    found["groups"].as_array_mut().unwrap().truncate(1);
                }
                Ok(document(&found))
            }
            ["api", version] => Ok(document(&state.resources(version))),
            ["apis", group, version] => {
                Ok(document(&state.resources(&format!("{group}/{version}"))))
            }
            [.., plural] => {
                let Some((plural, _, _)) = state.served().find(|(known, _, _)| *known == plural)
                else {
                    return Ok(failed(404));
                };
                if state.forbidden.contains(plural) {
                    return Ok(failed(403));
                }
                if query.is_watch {
                    drop(state);
                    return Ok(self.watch(plural, query.version));
                }
                Ok(state.list(plural, query.token))
            }
            [] => Ok(failed(404)),
        }
    }

    fn watch(&self, plural: &'static str, version: u64) -> Response<Body> {
        let state = self.state();
        let from = From {
            plural,
            version,
            epoch: state.epoch,
            connections: state.connections,
        };
        drop(state);
        let (api, versions) = (self.clone(), self.0.version.subscribe());
        let stream = futures_util::stream::unfold(
            (api, versions, Some(from)),
            async |(api, mut versions, from)| {
                let mut from = from?;
                loop {
                    versions.borrow_and_update();
                    let pause = api.state().pause(300);
                    tokio::time::sleep(pause).await;
                    if api.state().connections != from.connections {
                        std::future::pending::<()>().await;
                    }
                    let (text, is_over) = api.state().events(&mut from);
                    if !text.is_empty() || is_over {
                        let frame = http_body::Frame::data(Bytes::from(text));
                        return Some((Ok(frame), (api, versions, Some(from).filter(|_| !is_over))));
                    }
                    versions.changed().await.ok()?;
                }
            },
        );
        Response::new(BodyExt::boxed_unsync(StreamBody::new(stream)))
    }
}

/// Parsed query of a request.
pub(in crate::loader::tests) struct Query {
    pub(in crate::loader::tests) is_watch: bool,
    version: u64,
    /// Continue token: the version of a list, and the number of objects already sent.
    token: Option<(u64, usize)>,
}

impl Query {
    pub(in crate::loader::tests) fn of(query: &str) -> Query {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut found = Query {
            is_watch: false,
            version: 0,
            token: None,
        };
        for (name, value) in pairs.by_ref() {
            match name {
                "watch" => found.is_watch = true,
                "resourceVersion" => found.version = value.parse().unwrap_or(0),
                "continue" => {
                    let (version, count) = value.split_once('-').unwrap_or(("0", "0"));
                    found.token = Some((version.parse().unwrap(), count.parse().unwrap()));
                }
                _ => {}
            }
        }
        found
    }
}

/// Position at which a watch resumes.
struct From {
    plural: &'static str,
    version: u64,
    epoch: u64,
    connections: u64,
}

impl State {
    /// Whether a request over a connection of this generation gets no response.
    fn is_lost(&mut self, connections: u64, is_watch: bool) -> bool {
        let unanswered = &mut self.unanswered[usize::from(is_watch)];
        let is_unanswered = *unanswered > 0;
        *unanswered = unanswered.saturating_sub(1);
        is_unanswered || self.connections != connections
    }

    /// Iterates over the served resources.
    fn served(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let kinds = KINDS.into_iter();
        kinds.filter(|(plural, _, _)| !self.unserved.contains(plural))
    }

    /// Returns the served resources of an API version.
    fn resources(&self, api_version: &str) -> Value {
        resource_list(api_version, self.served())
    }

    fn pause(&mut self, longest_ms: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(0..longest_ms))
    }

    /// Whether a random fault happens: on average in one of `often` calls while there is trouble.
    fn happens(&mut self, often: f64) -> bool {
        self.trouble > 0.0 && self.rng.random_bool(1.0 / often)
    }

    /// Returns the objects at a version.
    fn objects(&self, plural: &str, version: u64) -> BTreeMap<String, Value> {
        let mut objects = BTreeMap::new();
        let until = self.log.iter().filter(|entry| entry.plural == plural);
        for entry in until.take_while(|entry| entry.version <= version) {
            match entry.event {
                "DELETED" => _ = objects.remove(&entry.key),
                _ => _ = objects.insert(entry.key.clone(), entry.object.clone()),
            }
        }
        objects
    }

    /// Returns a page of a list, sometimes of an older version.
    fn list(&mut self, plural: &str, token: Option<(u64, usize)>) -> Response<Body> {
        let (version, skipped) = match token {
            Some((version, _)) if version < self.compacted => return failed(410),
            Some(token) => token,
            None => {
                let oldest = self.version.saturating_sub(BEHIND_MAX).max(self.compacted);
                let version = match self.happens(4.0) {
                    true => self.rng.random_range(oldest..=self.version),
                    false => self.version,
                };
                (version, 0)
            }
        };
        let objects = self.objects(plural, version);
        let page: Vec<&Value> = objects.values().skip(skipped).take(PAGE).collect();
        let count = skipped + page.len();
        let next = match count < objects.len() {
            true => format!("{version}-{count}"),
            false => String::new(),
        };
        document(&json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": {"resourceVersion": version.to_string(), "continue": next}, "items": page,
        }))
    }

    /// Returns the events since `from` as lines, and whether the watch ends.
    fn events(&mut self, from: &mut From) -> (String, bool) {
        if from.version < self.compacted {
            let expired = status(410);
            return (
                format!("{}\n", json!({"type": "ERROR", "object": expired})),
                true,
            );
        }
        let mut text = String::new();
        for number in 0..self.log.len() {
            let entry = &self.log[number];
            if entry.version <= from.version || entry.plural != from.plural {
                continue;
            }
            let line = format!("{}\n", json!({"type": entry.event, "object": entry.object}));
            let version = entry.version;
            if self.happens(15.0) {
                // The connection ends in the middle of a message.
                text += &line[..line.len() / 2];
                return (text, true);
            }
            text += &line;
            if self.happens(6.0) {
                text += &line;
            }
            from.version = version;
        }
        if self.happens(5.0) {
            let kind = KINDS.iter().find(|(plural, _, _)| *plural == from.plural);
            let (_, kind, api_version) = kind.unwrap();
            from.version = self.version;
            let object = json!({
                "kind": kind, "apiVersion": api_version,
                "metadata": {"resourceVersion": self.version.to_string()},
            });
            text += &format!("{}\n", json!({"type": "BOOKMARK", "object": object}));
        }
        (text, self.epoch != from.epoch || self.happens(12.0))
    }
}

pub(in crate::loader::tests) fn groups() -> Value {
    let versions = RESOURCES.iter().map(|(_, _, version)| *version);
    let groups = versions.filter_map(|version| {
        let (group, short) = version.split_once('/')?;
        let version = json!({"groupVersion": version, "version": short});
        Some(json!({"name": group, "preferredVersion": version, "versions": [version]}))
    });
    let groups: Vec<Value> = groups.collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(in crate::loader::tests) fn resources(api_version: &str) -> Value {
    resource_list(api_version, RESOURCES.into_iter())
}

fn resource_list(
    api_version: &str,
    served: impl Iterator<Item = (&'static str, &'static str, &'static str)>,
) -> Value {
    let of = served.filter(|(_, _, version)| *version == api_version);
    let resources: Vec<Value> = of
        .map(|(plural, kind, _)| {
            json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list", "watch"]})
        })
        .collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources})
}

pub(in crate::loader::tests) fn document(value: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(value.to_string()));
    Response::new(BodyExt::boxed_unsync(
        body.map_err(|never: Infallible| match never {}),
    ))
}

fn status(code: u16) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": "", "message": "as the simulation has it",
    })
}

/// Creates an error response with this status.
pub(in crate::loader::tests) fn failed(code: u16) -> Response<Body> {
    let mut response = document(&status(code));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}
