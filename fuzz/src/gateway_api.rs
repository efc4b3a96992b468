//! Fuzz target: bytes choose objects of the Gateway API from a small vocabulary. Compiling keeps its promises (see
//! `compile`), conditions are well formed, and no route is served that its status does not accept.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use config_loader::catalog::View;
use config_loader::catalog::gateway_api::CONTROLLER;
use config_loader::catalog::gateway_api::status::{
    AddressSources, Condition, CrdBundle, ObjectStatus, StatusSettings, statuses,
};
use config_loader::{Diagnostics, ResourceSet, load_bytes};
use proxy::compile::{Inputs, compile};
use proxy::identity::Identity;
use proxy::snapshot::Snapshot;
use proxy::telemetry::StatsRegistry;
use proxy::tls::Store;
use traffic::registry::{Moment, Registry};

/// Objects that are drawn at most.
const OBJECTS_MAX: usize = 16;

/// Characters of a message at most.
const MESSAGE_MAX: usize = 1_024;

/// Draws objects, loads and compiles them, and judges them.
pub fn run(bytes: &[u8]) {
    let mut draws = Draws(bytes);
    let mut text = String::new();
    for _ in 0..OBJECTS_MAX {
        if draws.0.is_empty() {
            break;
        }
        text.push_str("---\n");
        text.push_str(&object(&mut draws));
        text.push('\n');
    }
    super::compile::run(text.as_bytes());
    let set = load_bytes("fuzz.yaml", text.as_bytes(), &mut Diagnostics::default());
    let sources = AddressSources::default();
    let settings = StatusSettings {
        controller: CONTROLLER,
        domain: "cluster.local",
        root_namespace: "istio-system",
        crds: &CrdBundle::default(),
        sources: &sources,
        held: &HashMap::default(),
    };
    let all: BTreeMap<String, ObjectStatus> = statuses(View::from(&set), settings)
        .into_iter()
        .map(|(id, status)| (id.to_string(), status))
        .collect();
    for (id, status) in &all {
        conditions(status).for_each(|one| check(id, one));
    }
    for route in served(&set) {
        let status = all.get(&route);
        let Some(ObjectStatus::Route(parents)) = status else {
            panic!("{route} is served, and has no status: {status:?}\n{text}");
        };
        let mut all = parents.iter().flat_map(|parent| &parent.conditions);
        let is_accepted = |one: &Condition| {
            // a rule that cannot be followed is served with 500
            one.name == "Accepted" && (one.holds == Some(true) || one.reason == "UnsupportedValue")
        };
        assert!(
            all.any(is_accepted),
            "{route} is served: {parents:?}\n{text}"
        );
    }
}

fn conditions(status: &ObjectStatus) -> Box<dyn Iterator<Item = &Condition> + '_> {
    match status {
        ObjectStatus::Gateway {
            conditions,
            listeners,
            ..
        } => {
            let of_listeners = listeners.iter().flat_map(|one| &one.conditions);
            Box::new(conditions.iter().chain(of_listeners))
        }
        ObjectStatus::Route(parents) => {
            Box::new(parents.iter().flat_map(|parent| &parent.conditions))
        }
        ObjectStatus::Class(conditions) => Box::new(conditions.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Checks what the API requires of a condition.
fn check(id: &str, condition: &Condition) {
    let Condition {
        reason, message, ..
    } = condition;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric();
    assert!(
        !reason.is_empty() && reason.bytes().all(is_word),
        "{id}: {condition:?}"
    );
    assert!(
        message.chars().count() <= MESSAGE_MAX,
        "{id}: {condition:?}"
    );
}

/// Returns the HTTPRoutes and GRPCRoutes that a gateway serves.
fn served(resources: &ResourceSet) -> Vec<String> {
    let (registry, stats) = (Registry::default(), StatsRegistry::new(1));
    let inputs = Inputs {
        resources,
        identity: &Identity::default(),
        registry: &registry,
        stats: &stats,
        certificates: &Store::default(),
        now: Moment(1),
    };
    let snapshot = compile(&inputs, &Snapshot::default());
    let http = snapshot.listeners.values().flat_map(|one| one.all_http());
    let hosts = http.flat_map(|hosts| &hosts.virtual_hosts);
    let routes = hosts.flat_map(|host| &*host.routes);
    let objects = routes.map(|route| route.provenance.object.to_string());
    objects
        .filter(|object| object.starts_with("HTTPRoute/") || object.starts_with("GRPCRoute/"))
        .collect()
}

/// Bytes that choose; zeros follow the last one.
struct Draws<'a>(&'a [u8]);

impl Draws<'_> {
    /// Returns a number below `count`.
    fn below(&mut self, count: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(*first) % count
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    /// Returns a list of 1 to `most` entries, in flow style.
    fn list(&mut self, most: usize, entry: fn(&mut Self) -> String) -> String {
        let count = self.below(most) + 1;
        let entries: Vec<String> = (0..count).map(|_| entry(self)).collect();
        format!("[{}]", entries.join(", "))
    }
}

const HOSTS: [&str; 5] = ["a.test", "'*.test'", "'*.a.test'", "x.a.test", "b.test"];
const PORTS: [&str; 3] = ["80", "443", "8080"];

/// Returns `metadata` in one of two namespaces.
fn metadata(draws: &mut Draws<'_>) -> String {
    let (name, namespace) = (draws.one_of(&["x", "y"]), draws.one_of(&["a", "b"]));
    let created = draws.one_of(&["", ", creationTimestamp: '2024-01-01T00:00:00Z'"]);
    format!("metadata: {{name: {name}, namespace: {namespace}{created}}}")
}

fn object(draws: &mut Draws<'_>) -> String {
    let api = "apiVersion: gateway.networking.k8s.io/v1";
    let (kind, spec) = match draws.below(14) {
        0 | 1 => ("Gateway", gateway(draws)),
        2 => ("ListenerSet", listener_set(draws)),
        3..=5 => ("HTTPRoute", route(draws, http_rule)),
        6 => ("GRPCRoute", route(draws, grpc_rule)),
        7 => ("TLSRoute", route(draws, raw_rule)),
        8 => ("TCPRoute", route(draws, raw_rule)),
        9 => ("ReferenceGrant", grant(draws)),
        10 => ("BackendTLSPolicy", policy(draws)),
        11 => {
            let controller = draws.one_of(&[CONTROLLER, "a.test/b"]);
            let name = draws.one_of(&["strait", "other"]);
            return format!(
                "{{{api}, kind: GatewayClass, metadata: {{name: {name}}}, spec: {{controllerName: {controller}}}}}"
            );
        }
        12 => return core_object(draws),
        _ => return istio_object(draws),
    };
    format!(
        "{{{api}, kind: {kind}, {}, spec: {{{spec}}}}}",
        metadata(draws)
    )
}

fn gateway(draws: &mut Draws<'_>) -> String {
    let class = draws.one_of(&["strait", "strait", "strait", "other"]);
    let more = draws.one_of(&[
        "",
        "",
        ", addresses: [{value: 192.0.2.1}]",
        ", addresses: [{type: Hostname, value: a.test}]",
        ", allowedListeners: {namespaces: {from: All}}",
        ", allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {team: one}}}}",
        ", infrastructure: {parametersRef: {group: a.b, kind: C, name: d}}",
        ", tls: {frontend: {default: {validation: {caCertificateRefs: [{group: '', kind: ConfigMap, name: x}]}}}}",
        ", tls: {backend: {clientCertificateRef: {name: x, namespace: b}}}",
    ]);
    let listeners = draws.list(4, listener);
    format!("gatewayClassName: {class}, listeners: {listeners}{more}")
}

fn listener(draws: &mut Draws<'_>) -> String {
    let name = draws.one_of(&["one", "two", "three", "four"]);
    let port = draws.one_of(&PORTS);
    let certificates = "certificateRefs: [{name: x}, {name: y, namespace: b}]";
    let protocol = match draws.below(7) {
        0 | 1 => "HTTP".to_owned(),
        2 => format!("HTTPS, tls: {{{certificates}}}"),
        3 => format!("TLS, tls: {{mode: Terminate, {certificates}}}"),
        4 => "TLS, tls: {mode: Passthrough}".to_owned(),
        5 => "TCP".to_owned(),
        _ => "UDP".to_owned(),
    };
    let mut written = format!("{{name: {name}, port: {port}, protocol: {protocol}");
    if draws.below(2) == 1 {
        let _ = write!(written, ", hostname: {}", draws.one_of(&HOSTS));
    }
    written + draws.one_of(&[
        "}",
        "}",
        ", allowedRoutes: {namespaces: {from: All}}}",
        ", allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: one}}}}}",
        ", allowedRoutes: {kinds: [{kind: HTTPRoute}, {kind: TCPRoute}]}}",
        ", allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}}",
    ])
}

fn listener_set(draws: &mut Draws<'_>) -> String {
    let (name, namespace) = (draws.one_of(&["x", "y"]), draws.one_of(&["a", "b"]));
    let listeners = draws.list(3, listener);
    format!("parentRef: {{name: {name}, namespace: {namespace}}}, listeners: {listeners}")
}

fn parent(draws: &mut Draws<'_>) -> String {
    let name = draws.one_of(&["x", "y"]);
    let more = draws.one_of(&["", ", namespace: a", ", namespace: b"]);
    let part = draws.one_of(&[
        "",
        "",
        ", sectionName: one",
        ", sectionName: two",
        ", port: 80",
    ]);
    let kind = draws.one_of(&["", "", ", kind: ListenerSet", ", group: '', kind: Service"]);
    format!("{{name: {name}{more}{part}{kind}}}")
}

fn route(draws: &mut Draws<'_>, rule: fn(&mut Draws<'_>) -> String) -> String {
    let parents = draws.list(3, parent);
    let hosts = match draws.below(2) {
        0 => String::new(),
        _ => format!(
            ", hostnames: {}",
            draws.list(3, |draws| draws.one_of(&HOSTS).to_owned())
        ),
    };
    let rules = draws.list(3, rule);
    format!("parentRefs: {parents}{hosts}, rules: {rules}")
}

fn http_rule(draws: &mut Draws<'_>) -> String {
    let matches = draws.list(2, |draws| {
        let kind = draws.one_of(&["Exact", "PathPrefix", "RegularExpression"]);
        let path = draws.one_of(&["/", "/a", "/a/", "/a/b", "/a.*"]);
        let more = draws.one_of(&[
            "",
            ", method: GET",
            ", headers: [{name: v, value: '1'}]",
            ", headers: [{name: v, type: RegularExpression, value: '[12]'}, {name: V, value: '2'}]",
            ", queryParams: [{name: q, value: '1'}]",
        ]);
        format!("{{path: {{type: {kind}, value: '{path}'}}{more}}}")
    });
    let more = draws.one_of(&[
        "",
        ", timeouts: {request: 1s, backendRequest: 10ms}",
        ", retry: {codes: [500], attempts: 1}",
        ", sessionPersistence: {}",
    ]);
    let filters = filters(draws);
    format!("{{matches: {matches}{filters}{}{more}}}", backends(draws))
}

fn grpc_rule(draws: &mut Draws<'_>) -> String {
    let matched = draws.one_of(&[
        "{}",
        "{method: {service: a.B}}",
        "{method: {service: a.B, method: C}}",
        "{method: {type: RegularExpression, method: 'C|D'}}",
        "{headers: [{name: v, value: '1'}]}",
    ]);
    let filters = filters(draws);
    format!("{{matches: [{matched}]{filters}{}}}", backends(draws))
}

fn raw_rule(draws: &mut Draws<'_>) -> String {
    let backends = draws.list(2, backend);
    format!("{{backendRefs: {backends}}}")
}

fn filters(draws: &mut Draws<'_>) -> String {
    match draws.below(3) {
        0 => String::new(),
        _ => format!(", filters: {}", draws.list(2, filter)),
    }
}

fn filter(draws: &mut Draws<'_>) -> String {
    match draws.below(8) {
        0 => "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: '%1'}], remove: [b]}}".to_owned(),
        1 => "{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: a, value: b}]}}".to_owned(),
        2 => format!("{{type: RequestMirror, requestMirror: {{backendRef: {}, percent: 50}}}}", backend(draws)),
        3 => "{type: RequestRedirect, requestRedirect: {scheme: https, path: {type: ReplacePrefixMatch, replacePrefixMatch: /z}}}".to_owned(),
        4 => "{type: URLRewrite, urlRewrite: {hostname: z.test, path: {type: ReplaceFullPath, replaceFullPath: /z}}}".to_owned(),
        5 => "{type: CORS, cors: {allowOrigins: ['https://*.a.test'], exposeHeaders: ['*'], allowCredentials: true}}".to_owned(),
        6 => "{type: ExtensionRef, extensionRef: {group: a.b, kind: C, name: d}}".to_owned(),
        _ => "{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}".to_owned(),
    }
}

fn backends(draws: &mut Draws<'_>) -> String {
    match draws.below(4) {
        0 => String::new(),
        1 => {
            let filters = draws.list(2, filter);
            let backend = backend(draws);
            let backend = backend.trim_end_matches('}');
            format!(", backendRefs: [{backend}, filters: {filters}}}]")
        }
        _ => format!(", backendRefs: {}", draws.list(3, backend)),
    }
}

fn backend(draws: &mut Draws<'_>) -> String {
    let name = draws.one_of(&["x", "y", "none"]);
    let port = draws.one_of(&["80", "80", "81"]);
    let more = draws.one_of(&[
        "",
        "",
        ", namespace: a",
        ", namespace: b",
        ", kind: Pod",
        ", group: multicluster.x-k8s.io, kind: ServiceImport",
    ]);
    format!("{{name: {name}, port: {port}{more}}}")
}

fn grant(draws: &mut Draws<'_>) -> String {
    let kind = draws.one_of(&[
        "HTTPRoute",
        "GRPCRoute",
        "TLSRoute",
        "TCPRoute",
        "Gateway",
        "ListenerSet",
    ]);
    let namespace = draws.one_of(&["a", "b"]);
    let to = draws.one_of(&["Service", "Service, name: x", "Secret", "ConfigMap"]);
    format!(
        "from: [{{group: gateway.networking.k8s.io, kind: {kind}, namespace: {namespace}}}], to: [{{group: '', kind: {to}}}]"
    )
}

fn policy(draws: &mut Draws<'_>) -> String {
    let name = draws.one_of(&["x", "y"]);
    let section = draws.one_of(&["", ", sectionName: http"]);
    let authorities = draws.one_of(&[
        "wellKnownCACertificates: System",
        "caCertificateRefs: [{group: '', kind: ConfigMap, name: x}]",
        "caCertificateRefs: [{group: '', kind: Pod, name: x}]",
    ]);
    format!(
        "targetRefs: [{{group: '', kind: Service, name: {name}{section}}}], validation: {{hostname: a.test, {authorities}}}"
    )
}

fn core_object(draws: &mut Draws<'_>) -> String {
    let (kind, rest) = match draws.below(4) {
        0 => ("Service", "spec: {ports: [{name: http, port: 80}]}"),
        1 => ("ConfigMap", "data: {ca.crt: none}"),
        2 => (
            "Secret",
            "type: kubernetes.io/tls, stringData: {tls.crt: a, tls.key: b}",
        ),
        _ => {
            let (name, team) = (draws.one_of(&["a", "b"]), draws.one_of(&["one", "two"]));
            return format!(
                "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, labels: {{team: {team}}}}}}}"
            );
        }
    };
    format!(
        "{{apiVersion: v1, kind: {kind}, {}, {rest}}}",
        metadata(draws)
    )
}

fn istio_object(draws: &mut Draws<'_>) -> String {
    let (kind, spec) = match draws.below(3) {
        0 => {
            let port = draws.one_of(&PORTS);
            let server =
                format!("{{port: {{number: {port}, name: http, protocol: HTTP}}, hosts: ['*']}}");
            ("Gateway", format!("servers: [{server}]"))
        }
        1 => (
            "VirtualService",
            "hosts: [a.test], gateways: [x], http: [{route: [{destination: {host: x}}]}]"
                .to_owned(),
        ),
        _ => (
            "DestinationRule",
            "host: x, trafficPolicy: {tls: {mode: SIMPLE}}".to_owned(),
        ),
    };
    format!(
        "{{apiVersion: networking.istio.io/v1, kind: {kind}, {}, spec: {{{spec}}}}}",
        metadata(draws)
    )
}
