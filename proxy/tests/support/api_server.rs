//! Minimal Kubernetes API server over plain HTTP: discovery, lists and watches of objects that a test writes, with
//! injectable failures.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Initially served resources: plural, kind and apiVersion.
const RESOURCES: [(&str, &str, &str); 5] = [
    ("services", "Service", "v1"),
    ("secrets", "Secret", "v1"),
    ("endpointslices", "EndpointSlice", "discovery.k8s.io/v1"),
    ("gateways", "Gateway", "networking.istio.io/v1"),
    (
        "virtualservices",
        "VirtualService",
        "networking.istio.io/v1",
    ),
];

/// Running server, stopped with the test's runtime.
pub struct ApiServer {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    /// Current resource version; watches wait for its next change.
    version: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    resources: BTreeMap<String, (String, String)>,
    objects: BTreeMap<(String, String), Value>,
    /// Events so far: resource version, resource, event type and object.
    history: Vec<(u64, String, &'static str, Value)>,
    /// Newest resource version whose events have been dropped.
    compacted: u64,
    /// Error status for all requests of a resource, by its plural name.
    refused: BTreeMap<String, u16>,
    /// Only accepted token; `None` accepts any token.
    token: Option<String>,
    /// Current epoch; watches of an older epoch are closed.
    epoch: u64,
    lists: usize,
    /// Whether lists and watches get no response.
    stalls: bool,
}

impl ApiServer {
    /// Starts a server on a free port.
    pub async fn start() -> ApiServer {
        ApiServer::at(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn at(listener: TcpListener) -> ApiServer {
        let state = State {
            resources: RESOURCES
                .iter()
                .map(|(plural, kind, version)| {
                    (
                        (*plural).to_owned(),
                        ((*kind).to_owned(), (*version).to_owned()),
                    )
                })
                .collect(),
            ..State::default()
        };
        let (version, _) = watch::channel(1);
        let server = ApiServer {
            address: listener.local_addr().unwrap(),
            state: Arc::new(Mutex::new(state)),
            version,
        };
        let (state, version) = (Arc::clone(&server.state), server.version.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, version) = (Arc::clone(&state), version.clone());
                tokio::spawn(async move {
                    let answer = service_fn(|request| {
                        let stalls = state.lock().unwrap().stalls && names_objects(&request);
                        let answer = answer(&state, &version, &request);
                        async move {
                            if stalls {
                                std::future::pending::<()>().await;
                            }
                            Ok::<_, Infallible>(answer)
                        }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer)
                        .await;
                });
            }
        });
        server
    }

    /// Returns a kubeconfig with one context per server; the first is the current context.
    pub fn kubeconfig(servers: &[(&str, &ApiServer)], token: &str) -> String {
        let named = |key: &str, value: &dyn Fn(&str, &ApiServer) -> Value| -> Value {
            let entries = servers.iter().map(|(name, server)| {
                let mut entry = json!({"name": name});
                entry[key] = value(name, server);
                entry
            });
            entries.collect()
        };
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": named("cluster", &|_, server| json!({"server": format!("http://{}", server.address)})),
            "contexts": named("context", &|name, _| json!({"cluster": name, "user": "proxy"})),
            "users": [{"name": "proxy", "user": {"token": token}}],
            "current-context": servers[0].0,
        })
        .to_string()
    }

    fn change(&self, change: impl FnOnce(&mut State, u64)) {
        self.version.send_modify(|version| {
            *version += 1;
            change(&mut self.state.lock().unwrap(), *version);
        });
    }

    /// Creates or replaces an object of the resource `plural`.
    pub fn apply(&self, plural: &str, mut object: Value) {
        self.change(|state, version| {
            object["metadata"]["resourceVersion"] = json!(version.to_string());
            let key = key(plural, &object);
            let event = match state.objects.insert(key, object.clone()) {
                Some(_) => "MODIFIED",
                None => "ADDED",
            };
            state
                .history
                .push((version, plural.to_owned(), event, object));
        });
    }

    /// Deletes an object.
    pub fn delete(&self, plural: &str, namespace: &str, name: &str) {
        self.change(|state, version| {
            let key = (plural.to_owned(), format!("{namespace}/{name}"));
            let mut object = state.objects.remove(&key).expect("it exists");
            object["metadata"]["resourceVersion"] = json!(version.to_string());
            state
                .history
                .push((version, plural.to_owned(), "DELETED", object));
        });
    }

    /// Drops the event history and closes all watches, which then cannot resume.
    pub fn compact(&self) {
        self.change(|state, version| {
            state.compacted = version;
            state.history.clear();
            state.epoch += 1;
        });
    }

    /// Closes all watches.
    pub fn interrupt(&self) {
        self.change(|state, _| state.epoch += 1);
    }

    /// Answers all requests of a resource with this status, and closes its watches; `None` ends that.
    pub fn refuse(&self, plural: &str, status: Option<u16>) {
        self.change(|state, _| {
            state.epoch += 1;
            match status {
                Some(status) => state.refused.insert(plural.to_owned(), status),
                None => state.refused.remove(plural),
            };
        });
    }

    /// Accepts only this token from now on, and closes all watches.
    pub fn require_token(&self, token: &str) {
        self.change(|state, _| {
            state.epoch += 1;
            state.token = Some(token.to_owned());
        });
    }

    /// Adds a resource to the served ones.
    pub fn serve(&self, plural: &str, kind: &str, api_version: &str) {
        self.change(|state, _| {
            state
                .resources
                .insert(plural.to_owned(), (kind.to_owned(), api_version.to_owned()));
        });
    }

    /// Sets whether lists and watches get no response; discovery still does.
    pub fn stall(&self, stalls: bool) {
        self.state.lock().unwrap().stalls = stalls;
    }

    /// Returns the number of list requests.
    pub fn lists(&self) -> usize {
        self.state.lock().unwrap().lists
    }
}

/// Whether a request is for objects, as opposed to discovery.
fn names_objects(request: &Request<Incoming>) -> bool {
    let path = request.uri().path().trim_matches('/');
    let parts = path.split('/').count();
    parts > if path.starts_with("apis") { 3 } else { 2 }
}

fn key(plural: &str, object: &Value) -> (String, String) {
    let part = |name: &str| object["metadata"][name].as_str().unwrap_or("").to_owned();
    (
        plural.to_owned(),
        format!("{}/{}", part("namespace"), part("name")),
    )
}

fn answer(
    state: &Arc<Mutex<State>>,
    version: &watch::Sender<u64>,
    request: &Request<Incoming>,
) -> Response<Body> {
    let locked = state.lock().unwrap();
    let sent = request.headers().get("authorization");
    let sent = sent.and_then(|value| value.to_str().ok()).unwrap_or("");
    if locked
        .token
        .as_ref()
        .is_some_and(|token| sent != format!("Bearer {token}"))
    {
        return failed(401);
    }
    let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let (api_version, rest) = match &*parts {
        ["apis"] => return document(&groups(&locked)),
        ["api", version, rest @ ..] => ((*version).to_owned(), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return failed(404),
    };
    let (namespace, plural) = match rest {
        [] => return document(&resources(&locked, &api_version)),
        ["namespaces", namespace, plural] => (Some((*namespace).to_owned()), (*plural).to_owned()),
        [plural] => (None, (*plural).to_owned()),
        _ => return failed(404),
    };
    if let Some(status) = locked.refused.get(&plural) {
        return failed(*status);
    }
    let query = request.uri().query().unwrap_or("");
    let asked = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    match asked("watch") {
        Some(_) => {
            let from = asked("resourceVersion").and_then(|from| from.parse().ok());
            let (epoch, from) = (locked.epoch, from.unwrap_or(0));
            drop(locked);
            let from = From {
                plural,
                namespace,
                version: from,
                epoch,
            };
            events(Arc::clone(state), version.subscribe(), from)
        }
        None => {
            drop(locked);
            list(
                &mut state.lock().unwrap(),
                *version.borrow(),
                &plural,
                namespace,
            )
        }
    }
}

fn groups(state: &State) -> Value {
    let versions = state.resources.values().map(|(_, version)| version);
    let mut groups = BTreeMap::<&str, Vec<&String>>::new();
    for version in versions.filter(|version| version.contains('/')) {
        let group = version.split_once('/').unwrap().0;
        groups.entry(group).or_default().push(version);
    }
    let group = |(name, versions): (&str, Vec<&String>)| {
        let version = |version: &&String| json!({"groupVersion": version, "version": version.split_once('/').unwrap().1});
        let versions: Vec<Value> = versions.iter().map(version).collect();
        json!({"name": name, "preferredVersion": versions[0], "versions": versions})
    };
    let groups: Vec<Value> = groups.into_iter().map(group).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn resources(state: &State, api_version: &str) -> Value {
    let of = state
        .resources
        .iter()
        .filter(|(_, (_, version))| version == api_version);
    let resources: Vec<Value> = of
        .map(|(plural, (kind, _))| {
            json!({
                "name": plural, "singularName": "", "namespaced": true, "kind": kind,
                "verbs": ["get", "list", "watch"],
            })
        })
        .collect();
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources,
    })
}

fn list(
    state: &mut State,
    version: u64,
    plural: &str,
    namespace: Option<String>,
) -> Response<Body> {
    state.lists += 1;
    let of = state.objects.iter().filter(|((resource, _), object)| {
        resource == plural && is_in(object, namespace.as_deref())
    });
    let items: Vec<&Value> = of.map(|(_, object)| object).collect();
    document(&json!({
        "kind": "List", "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()}, "items": items,
    }))
}

fn is_in(object: &Value, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace)
}

/// Position from which a watch resumes.
struct From {
    plural: String,
    namespace: Option<String>,
    version: u64,
    epoch: u64,
}

fn events(state: Arc<Mutex<State>>, versions: watch::Receiver<u64>, from: From) -> Response<Body> {
    let stream = futures_util::stream::unfold(
        (state, versions, Some(from)),
        async |(state, mut versions, from)| {
            let mut from = from?;
            loop {
                versions.borrow_and_update();
                let (lines, is_over) = next_events(&state.lock().unwrap(), &mut from);
                if !lines.is_empty() || is_over {
                    let from = Some(from).filter(|_| !is_over);
                    return Some((lines, (state, versions, from)));
                }
                versions.changed().await.ok()?;
            }
        },
    );
    let frames = stream.map(|lines| Ok(Frame::data(Bytes::from(lines))));
    Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)))
}

/// Returns the events since the position, one JSON object per line, and whether the watch ends.
fn next_events(state: &State, from: &mut From) -> (String, bool) {
    if from.version < state.compacted {
        let expired = status(410);
        return (
            format!("{}\n", json!({"type": "ERROR", "object": expired})),
            true,
        );
    }
    let mut lines = String::new();
    for (version, plural, event, object) in &state.history {
        let counts = *version > from.version && *plural == from.plural;
        if counts && is_in(object, from.namespace.as_deref()) {
            from.version = *version;
            lines += &format!("{}\n", json!({"type": event, "object": object}));
        }
    }
    (lines, state.epoch != from.epoch)
}

fn document(value: &Value) -> Response<Body> {
    let body = BodyExt::boxed_unsync(Full::new(Bytes::from(value.to_string())));
    Response::builder()
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

fn status(code: u16) -> Value {
    let reason = StatusCode::from_u16(code).unwrap();
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason.canonical_reason(), "message": reason.canonical_reason(),
    })
}

fn failed(code: u16) -> Response<Body> {
    let mut response = document(&status(code));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}
