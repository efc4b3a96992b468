//! The set-up of the tables: resources written in one line each, compiled, and asked with requests written likewise.

use std::fmt::Write;
use std::sync::Arc;

use config_loader::{Diagnostics, ResourceSet, Severity, load_bytes};
use http::{HeaderMap, HeaderName, Method};

use crate::compile::Inputs;
use crate::compile::compile;
use crate::identity::{Identity, Mode};
use crate::snapshot::{HttpHosts, Listener, Security, Snapshot, VirtualHost};
use crate::telemetry::StatsRegistry;
use crate::tls::Store;
use traffic::filter::{Action, RedirectRequest};
use traffic::registry::{Moment, Registry};
use traffic::route::{RequestHead, RuleIdx, normalize_host, normalize_path};

/// A Gateway on port 80 for every host, which VirtualServices of the namespace `default` call `gw`.
pub(in crate::compile) const GATEWAY: &str = "Gateway default/gw {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}";

/// A service `s` in the namespace `default`, with the subsets that its rule defines.
pub(in crate::compile) const SERVICE: &str = "ServiceEntry default/s {hosts: [s.default.svc.cluster.local], \
    resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1, \
    labels: {version: v1}}, {address: 10.0.0.2, labels: {version: v2}}]}";

/// Compiled resources with what they were compiled for.
pub(in crate::compile) struct World {
    pub identity: Identity,
    pub registry: Registry,
    pub stats: StatsRegistry,
    pub snapshot: Arc<Snapshot>,
}

impl World {
    /// A gateway in `istio-system` that has seen nothing.
    pub(in crate::compile) fn empty() -> Self {
        let labels = [("istio", "ingressgateway"), ("app", "edge")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Self {
            identity: Identity {
                namespace: "istio-system".to_owned(),
                labels: labels.into(),
                ..Identity::default()
            },
            registry: Registry::default(),
            stats: StatsRegistry::new(1),
            snapshot: Arc::default(),
        }
    }

    /// The usual gateway and service, and further resources.
    pub(in crate::compile) fn of(resources: &[&str]) -> Self {
        let usual = [GATEWAY, SERVICE];
        Self::only(&[&usual[..], resources].concat())
    }

    /// These resources alone.
    pub(in crate::compile) fn only(resources: &[&str]) -> Self {
        let mut world = Self::empty();
        world.put(&load(resources));
        world
    }

    /// These resources alone, for the sidecar of a workload `app: web` in the namespace `default`.
    pub(in crate::compile) fn sidecar(resources: &[&str]) -> Self {
        let mut world = Self::empty();
        world.identity = Identity {
            mode: Mode::Sidecar,
            labels: [("app".to_owned(), "web".to_owned())].into(),
            ..Identity::default()
        };
        world.put(&load(resources));
        world
    }

    /// Compiles resources on top of what is in effect, and puts them into effect.
    pub(in crate::compile) fn put(&mut self, resources: &ResourceSet) {
        let mut snapshot = self.compile(resources, &self.snapshot);
        snapshot.generation = self.snapshot.generation + 1;
        self.snapshot = Arc::new(snapshot);
    }

    /// Compiles resources with parts of a snapshot before.
    pub(in crate::compile) fn compile(
        &self,
        resources: &ResourceSet,
        previous: &Snapshot,
    ) -> Snapshot {
        let inputs = Inputs {
            resources,
            identity: &self.identity,
            registry: &self.registry,
            stats: &self.stats,
            certificates: &Store::default(),
            now: Moment(1),
        };
        compile(&inputs, previous)
    }

    /// Asks requests of the listener on port 80, and compares the answers. A request is `[METHOD] authority/target`,
    /// then `| name: value` for each header; an answer is that of [`ask`].
    pub(in crate::compile) fn check(&self, rows: &[(&str, &str)]) {
        self.check_at(80, rows);
    }

    /// Asks requests of the listener on a port.
    pub(in crate::compile) fn check_at(&self, port: u16, rows: &[(&str, &str)]) {
        for (request, expected) in rows {
            assert_eq!(&ask(&self.snapshot, port, request), expected, "{request}");
        }
    }
}

/// Loads resources, each written as `Kind namespace/name[@YEAR] spec`, the spec in YAML's flow style. An EndpointSlice
/// belongs to the Service with its name up to the first `-`; an `EndpointSlice.CLUSTER` was copied from that cluster.
pub(in crate::compile) fn load(resources: &[&str]) -> ResourceSet {
    let mut text = String::new();
    for resource in resources {
        if resource.is_empty() {
            text.push_str("#\n#\n#\n#\n#\n");
            continue;
        }
        let mut words = resource.splitn(3, ' ');
        let mut word = || words.next().expect("kind, name and spec");
        let (kind, name, spec) = (word(), word(), word());
        let (name, year) = name.split_once('@').unwrap_or((name, ""));
        let (namespace, name) = name.split_once('/').expect("namespace and name");
        let created = match year {
            "" => String::new(),
            year => format!(", creationTimestamp: '{year}-01-01T00:00:00Z'"),
        };
        let version = match kind {
            kind if kind.starts_with("EndpointSlice") => "discovery.k8s.io/v1",
            "Service" => "v1",
            "GlobalTrafficPolicy" | "ServiceExport" | "ServiceImport" => "flomesh.io/v1alpha1",
            "ServiceImport.multicluster" => "multicluster.flomesh.io/v1alpha1",
            _ => "networking.istio.io/v1",
        };
        let (kind, source) = kind.split_once('.').unwrap_or((kind, ""));
        let mut metadata = format!("namespace: {namespace}, name: {name}{created}");
        if kind == "EndpointSlice" {
            let service = name.split('-').next().unwrap_or_default();
            let source = match source {
                "" => String::new(),
                source => format!(", multicluster.kubernetes.io/source-cluster: {source}"),
            };
            write!(
                metadata,
                ", labels: {{kubernetes.io/service-name: {service}{source}}}"
            )
            .unwrap();
            // a slice has its fields at the top
            let fields = spec.trim_start_matches('{').trim_end_matches('}');
            let (open, close) = ('{', '}');
            writeln!(
                text,
                "---\n{open}apiVersion: {version}, kind: {kind}, metadata: {{{metadata}}},\n{fields}\n#\n{close}"
            )
            .unwrap();
            continue;
        }
        writeln!(
            text,
            "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{{metadata}}}\nspec: {spec}"
        )
        .unwrap();
    }
    let mut diagnostics = Diagnostics::default();
    let set = load_bytes("test.yaml", text.as_bytes(), &mut diagnostics);
    let errors: Vec<_> = diagnostics
        .into_sorted()
        .into_iter()
        .filter(|found| found.severity == Severity::Error)
        .map(|found| (found.code, found.field, found.message))
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    set
}

/// Returns the result of a request: `404`, `301 LOCATION`, `200 BODY`, or the destinations as `WEIGHT HOST:PORT` with
/// `/SUBSET`, `?` for one that is unknown, and ` -> PATH` for a rewrite.
pub(in crate::compile) fn ask(snapshot: &Snapshot, port: u16, request: &str) -> String {
    let mut parts = request.split(" | ");
    let line = parts.next().unwrap_or_default();
    let (method, url) = line.split_once(' ').unwrap_or(("GET", line));
    let at = url.find('/').expect("a request has a path");
    let (authority, target) = url.split_at(at);
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let mut headers = HeaderMap::new();
    for header in parts {
        let (name, value) = header.split_once(": ").expect("a header has a value");
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let method: Method = method.parse().unwrap();
    let head = RequestHead {
        is_http2: false,
        method: &method,
        scheme: "http",
        authority,
        host: &normalize_host(authority),
        path: &normalize_path(path).unwrap(),
        query,
        headers: &headers,
        claims: None,
    };
    let mut listeners = snapshot.listeners.values();
    let Some(listener) = listeners.find(|listener| listener.key.address.port() == port) else {
        return "closed".to_owned();
    };
    match find(listener, &head) {
        None => "404".to_owned(),
        Some((host, rule)) => answer(snapshot, listener, host, rule, &head),
    }
}

/// The answer to `GET /` for a host on a connection of a listener.
pub(in crate::compile) fn ask_host(
    world: &World,
    listener: &Listener,
    security: Security<'_>,
    host: &str,
) -> String {
    let (method, headers) = (Method::GET, HeaderMap::new());
    let head = RequestHead {
        is_http2: false,
        method: &method,
        scheme: "https",
        authority: host,
        host,
        path: "/",
        query: None,
        headers: &headers,
        claims: None,
    };
    let found = listener
        .http(security)
        .and_then(|hosts| rule_of(hosts, &head));
    match found {
        None => "404".to_owned(),
        Some((host, rule)) => answer(&world.snapshot, listener, host, rule, &head),
    }
}

/// The virtual hosts of a listener in plain text.
pub(in crate::compile) fn plain(listener: &Listener) -> &HttpHosts {
    listener.http(Security::Plain).expect("plain HTTP")
}

fn find<'l>(listener: &'l Listener, head: &RequestHead<'_>) -> Option<(&'l VirtualHost, RuleIdx)> {
    rule_of(listener.http(Security::Plain)?, head)
}

/// The rule for a request, with its virtual host.
pub(in crate::compile) fn rule_of<'h>(
    hosts: &'h HttpHosts,
    head: &RequestHead<'_>,
) -> Option<(&'h VirtualHost, RuleIdx)> {
    let mut tables = hosts
        .find(head.host)
        .into_iter()
        .chain(hosts.wider(head.host));
    tables.find_map(|host| Some((&**host, host.table.find(head)?)))
}

fn answer(
    snapshot: &Snapshot,
    listener: &Listener,
    host: &VirtualHost,
    rule: RuleIdx,
    head: &RequestHead<'_>,
) -> String {
    let route = host.route(rule);
    match &route.filters.action {
        Action::DirectResponse(direct) => {
            let body = String::from_utf8_lossy(&direct.body);
            format!("{} {body}", direct.status.as_u16())
        }
        Action::Redirect(redirect) => {
            let location = redirect.location(&RedirectRequest {
                scheme: head.scheme,
                authority: head.authority,
                path: head.path,
                query: head.query,
                listener_port: listener.key.address.port(),
            });
            let location = location.unwrap();
            format!("{} {}", redirect.code.as_u16(), location.to_str().unwrap())
        }
        Action::Forward => {
            let mut text = destinations(snapshot, host, rule);
            if let Some(path) = route.filters.rewrite_path(head.path, head.query) {
                write!(text, " -> {path}").unwrap();
            }
            text
        }
    }
}

fn destinations(snapshot: &Snapshot, host: &VirtualHost, rule: RuleIdx) -> String {
    let split = host.route(rule).split.as_ref();
    let entries = split.into_iter().flat_map(|split| split.entries());
    let each = entries.map(|(weight, destination)| {
        let name: Vec<&str> = destination.name.splitn(4, '|').collect();
        if name.len() < 4 || name[0] == "inbound" {
            return format!("{weight} {}", destination.name);
        }
        let short = name[3]
            .strip_suffix(".svc.cluster.local")
            .unwrap_or(name[3]);
        let subset = match name[2] {
            "" => String::new(),
            subset => format!("/{subset}"),
        };
        let unknown = match snapshot.cluster(destination.cluster) {
            Some(cluster) => {
                assert_eq!(*cluster.name(), destination.name);
                ""
            }
            None => "?",
        };
        format!("{weight} {short}:{}{subset}{unknown}", name[1])
    });
    each.collect::<Vec<_>>().join(", ")
}
