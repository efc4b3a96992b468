//! Precedence of HTTPRoutes and GRPCRoutes: random routes against a model that sorts their matches and checks each of
//! them, and against VirtualServices that mean the same.

use std::cmp::Reverse;
use std::fmt::Write;

use config_loader::{Diagnostics, load_bytes};
use http::{HeaderMap, HeaderName, Method};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use regex::Regex;

use crate::compile::tests::world::{World, ask, plain, rule_of};
use traffic::route::{RequestHead, normalize_host};

const HOSTS: [&str; 7] = [
    "*",
    "*.test",
    "*.b.test",
    "*.a.b.test",
    "a.b.test",
    "x.a.b.test",
    "c.test",
];
const PATHS: [&str; 8] = ["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/s.A", "/s.A/M"];
const REGEXES: [&str; 5] = ["/a.*", "/[ab]/[bc]", "/a/b|/s[.]A", "/.*", "/s[.][AB]/M.*"];
const VALUES: [&str; 3] = ["u", "v", "uv"];
const VALUE_REGEXES: [&str; 3] = ["u|v", "u.*", "[^v]+"];
const METHODS: [&str; 2] = ["GET", "POST"];

/// Text, or a regular expression for the whole text.
#[derive(Clone)]
enum Text {
    Exact(&'static str),
    Regex(&'static str),
}

impl Text {
    fn draw(rng: &mut SmallRng) -> Self {
        match rng.random_bool(0.6) {
            true => Self::Exact(VALUES.choose(rng).unwrap()),
            false => Self::Regex(VALUE_REGEXES.choose(rng).unwrap()),
        }
    }

    fn holds(&self, text: Option<&str>) -> bool {
        match (self, text) {
            (_, None) => false,
            (Self::Exact(value), Some(text)) => *value == text,
            (Self::Regex(regex), Some(text)) => is_whole(regex, text),
        }
    }

    fn written(&self, name: &str) -> String {
        match self {
            Self::Exact(value) => format!("{{name: {name}, value: '{value}'}}"),
            Self::Regex(regex) => {
                format!("{{name: {name}, type: RegularExpression, value: '{regex}'}}")
            }
        }
    }

    /// Returns the condition of a VirtualService.
    fn of_istio(&self) -> String {
        match self {
            Self::Exact(value) => format!("{{exact: '{value}'}}"),
            Self::Regex(regex) => format!("{{regex: '{regex}'}}"),
        }
    }
}

fn is_whole(regex: &str, text: &str) -> bool {
    Regex::new(&format!("^(?:{regex})$"))
        .unwrap()
        .is_match(text)
}

#[derive(Clone)]
enum Path {
    Exact(&'static str),
    Prefix(&'static str),
    Regex(&'static str),
    /// Service and method of a call.
    Call(Option<&'static str>, Option<&'static str>),
}

/// Kind of a path, then its length, and the length of the method of a call.
type PathRank = (u8, Reverse<usize>, Reverse<usize>);

impl Path {
    fn draw(rng: &mut SmallRng) -> Self {
        match rng.random_range(0..3) {
            0 => Self::Exact(PATHS.choose(rng).unwrap()),
            1 => Self::Prefix(PATHS.choose(rng).unwrap()),
            _ => Self::Regex(REGEXES.choose(rng).unwrap()),
        }
    }

    fn rank(&self) -> PathRank {
        let rank = |kind, length| (kind, Reverse(length), Reverse(0));
        match self {
            Self::Exact(path) => rank(0, path.len()),
            Self::Prefix(path) => rank(1, path.trim_end_matches('/').len()),
            Self::Regex(regex) => rank(2, regex.len()),
            Self::Call(Some(service), Some(method)) => rank(0, service.len() + method.len() + 2),
            Self::Call(Some(service), None) => rank(1, service.len() + 1),
            Self::Call(None, method) => (1, Reverse(0), Reverse(method.map_or(0, str::len))),
        }
    }

    fn holds(&self, path: &str) -> bool {
        match self {
            Self::Exact(value) => *value == path,
            Self::Prefix(prefix) => {
                let rest = path.strip_prefix(prefix.trim_end_matches('/'));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Self::Regex(regex) => is_whole(regex, path),
            Self::Call(None, None) => true,
            Self::Call(service, method) => {
                let mut parts = path.splitn(3, '/').skip(1);
                let (Some(first), Some(second)) = (parts.next(), parts.next()) else {
                    return service.is_some_and(|service| *path == *format!("/{service}"))
                        && method.is_none();
                };
                service.is_none_or(|service| service == first)
                    && method.is_none_or(|method| method == second)
            }
        }
    }
}

#[derive(Clone)]
struct Match {
    path: Path,
    method: Option<&'static str>,
    headers: Vec<(&'static str, Text)>,
    query: Vec<(&'static str, Text)>,
}

fn values(rng: &mut SmallRng, names: [&'static str; 2]) -> Vec<(&'static str, Text)> {
    let chosen: Vec<&str> = names
        .into_iter()
        .filter(|_| rng.random_bool(0.25))
        .collect();
    chosen
        .into_iter()
        .map(|name| (name, Text::draw(rng)))
        .collect()
}

impl Match {
    fn draw(rng: &mut SmallRng, is_grpc: bool) -> Self {
        let path = match is_grpc {
            false => Path::draw(rng),
            true => {
                let service = rng.random_bool(0.7).then_some("s.A");
                Path::Call(service, rng.random_bool(0.5).then_some("M"))
            }
        };
        let method = METHODS.choose(rng).copied();
        Self {
            path,
            method: method.filter(|_| !is_grpc && rng.random_bool(0.3)),
            headers: values(rng, ["x-1", "x-2"]),
            query: match is_grpc {
                true => Vec::new(),
                false => values(rng, ["p", "q"]),
            },
        }
    }

    fn holds(&self, request: &Request) -> bool {
        let is_call = matches!(self.path, Path::Call(..));
        let find = |all: &[(&'static str, &'static str)], name: &str| {
            all.iter()
                .find(|(one, _)| *one == name)
                .map(|(_, value)| *value)
        };
        let mut headers = self.headers.iter();
        let mut query = self.query.iter();
        (!is_call || request.is_call)
            && self.path.holds(request.path)
            && self.method.is_none_or(|method| method == request.method)
            && headers.all(|(name, text)| text.holds(find(&request.headers, name)))
            && query.all(|(name, text)| text.holds(find(&request.query, name)))
    }

    /// Steps 2 to 5 of the precedence.
    fn rank(&self) -> (PathRank, Reverse<bool>, Reverse<usize>, Reverse<usize>) {
        (
            self.path.rank(),
            Reverse(self.method.is_some()),
            Reverse(self.headers.len()),
            Reverse(self.query.len()),
        )
    }

    fn written(&self) -> String {
        let list = |all: &[(&str, Text)]| {
            let all = all.iter().map(|(name, text)| text.written(name));
            all.collect::<Vec<_>>().join(", ")
        };
        let path = |kind: &str, value: &str| format!("path: {{type: {kind}, value: '{value}'}}");
        let mut text = match &self.path {
            Path::Exact(value) => path("Exact", value),
            Path::Prefix(value) => path("PathPrefix", value),
            Path::Regex(value) => path("RegularExpression", value),
            Path::Call(None, None) => String::new(),
            Path::Call(service, method) => {
                let of =
                    |name: &str, part: &Option<&str>| part.map(|part| format!("{name}: {part}"));
                let parts = [of("service", service), of("method", method)];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                format!("method: {{{}}}", parts.join(", "))
            }
        };
        let mut add = |field: String| {
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(&field);
        };
        if let Some(method) = self.method {
            add(format!("method: {method}"));
        }
        add(format!("headers: [{}]", list(&self.headers)));
        if !self.query.is_empty() {
            add(format!("queryParams: [{}]", list(&self.query)));
        }
        format!("{{{text}}}")
    }
}

struct Route {
    is_grpc: bool,
    namespace: &'static str,
    name: String,
    year: Option<u32>,
    hosts: Vec<&'static str>,
    rules: Vec<Vec<Match>>,
}

impl Route {
    fn draw(rng: &mut SmallRng, number: usize) -> Self {
        let is_grpc = rng.random_bool(0.3);
        let mut hosts: Vec<&str> = (0..rng.random_range(0..3))
            .map(|_| *HOSTS[1..].choose(rng).unwrap())
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        Self {
            is_grpc,
            // `/` is between the last signs of these
            namespace: ["m", "m-n", "m0"].choose(rng).unwrap(),
            name: format!("r{number}"),
            year: rng.random_bool(0.7).then(|| rng.random_range(2020..2023)),
            hosts,
            rules: (0..rng.random_range(1..4))
                .map(|_| {
                    let matches = 0..rng.random_range(1..4);
                    matches.map(|_| Match::draw(rng, is_grpc)).collect()
                })
                .collect(),
        }
    }

    fn written(&self) -> String {
        let kind = if self.is_grpc {
            "GRPCRoute"
        } else {
            "HTTPRoute"
        };
        let created = self.year.map_or_else(String::new, |year| {
            format!(", creationTimestamp: '{year}-01-01T00:00:00Z'")
        });
        let hosts: Vec<String> = self.hosts.iter().map(|host| format!("'{host}'")).collect();
        let mut text = format!(
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nmetadata: {{namespace: {}, name: {}{created}}}\n\
             spec:\n  parentRefs: [{{name: gw, namespace: default}}]\n  hostnames: [{}]\n  rules:\n",
            self.namespace,
            self.name,
            hosts.join(", ")
        );
        for (number, matches) in self.rules.iter().enumerate() {
            let matches: Vec<String> = matches.iter().map(Match::written).collect();
            let name = self.rule(number);
            writeln!(
                text,
                "  - {{name: {name}, matches: [{}]}}",
                matches.join(", ")
            )
            .unwrap();
        }
        text
    }

    fn rule(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }
}

#[derive(Debug)]
struct Request {
    is_call: bool,
    host: &'static str,
    path: &'static str,
    method: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    query: Vec<(&'static str, &'static str)>,
}

impl Request {
    fn draw(rng: &mut SmallRng) -> Self {
        let hosts = [
            "a.b.test",
            "x.a.b.test",
            "y.a.b.test",
            "z.b.test",
            "c.test",
            "d.com",
        ];
        let paths = [
            "/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/b/c", "/s.A", "/s.A/M", "/s.B/M",
        ];
        let is_call = rng.random_bool(0.4);
        let mut some = |names: [&'static str; 2]| {
            let names = names.into_iter().filter(|_| rng.random_bool(0.6));
            let names: Vec<&str> = names.collect();
            let pairs = names
                .into_iter()
                .map(|name| (name, *VALUES.choose(rng).unwrap()));
            pairs.collect::<Vec<_>>()
        };
        let (headers, query) = (some(["x-1", "x-2"]), some(["p", "q"]));
        Self {
            is_call,
            host: hosts.choose(rng).unwrap(),
            path: match is_call {
                true => paths[7..].choose(rng).unwrap(),
                false => paths.choose(rng).unwrap(),
            },
            method: METHODS.choose(rng).unwrap(),
            headers,
            query,
        }
    }

    fn query(&self) -> Option<String> {
        let pairs = self
            .query
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let pairs: Vec<String> = pairs.collect();
        (!pairs.is_empty()).then(|| pairs.join("&"))
    }

    /// Returns the name of the rule that the compiled listener chooses.
    fn found(&self, world: &World) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let (method, query): (Method, _) = (self.method.parse().unwrap(), self.query());
        let head = RequestHead {
            is_http2: self.is_call,
            method: &method,
            scheme: "http",
            authority: self.host,
            host: &normalize_host(self.host),
            path: self.path,
            query: query.as_deref(),
            headers: &headers,
            claims: None,
        };
        let listener = world.snapshot.listeners.values().next().unwrap();
        let (host, rule) = rule_of(plain(listener), &head)?;
        Some(host.route(rule).name.to_string())
    }
}

fn covers(host: &str, name: &str) -> bool {
    match host.strip_prefix('*') {
        Some(suffix) => name.len() > suffix.len() && name.ends_with(suffix),
        None => host == name,
    }
}

/// Returns the rule that the text of the API selects: sorts all matches for the host, and checks each.
fn expected(routes: &[Route], request: &Request) -> Option<String> {
    let mut candidates = Vec::new();
    for route in routes {
        let all = match route.hosts.is_empty() {
            true => &["*"][..],
            false => &route.hosts,
        };
        for host in all.iter().filter(|host| covers(host, request.host)) {
            let of_host = (host.starts_with('*'), Reverse(host.len()));
            let age = (route.year, format!("{}/{}", route.namespace, route.name));
            for (number, matches) in route.rules.iter().enumerate() {
                for (position, one) in matches.iter().enumerate() {
                    let rank = (of_host, one.rank(), age.clone(), number, position);
                    candidates.push((rank, one, route.rule(number)));
                }
            }
        }
    }
    candidates.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let mut candidates = candidates.into_iter();
    let found = candidates.find(|(_, one, _)| one.holds(request));
    found.map(|(.., rule)| rule)
}

fn world_of(text: &str) -> World {
    let mut diagnostics = Diagnostics::default();
    let set = load_bytes("test.yaml", text.as_bytes(), &mut diagnostics);
    assert!(
        !diagnostics.has_errors(),
        "{text}\n{:?}",
        diagnostics.into_sorted()
    );
    let mut world = World::empty();
    world.put(&set);
    world
}

const GATEWAY: &str = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: default, name: gw}\n\
    spec: {gatewayClassName: strait, listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]}\n";

#[test]
fn first_match_by_the_order_of_the_api_is_chosen() {
    let (mut served, mut unserved) = (0, 0);
    for seed in 0..40 {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let count = rng.random_range(1..16);
        let routes: Vec<Route> = (0..count).map(|number| Route::draw(rng, number)).collect();
        let mut text = GATEWAY.to_owned();
        routes
            .iter()
            .for_each(|route| text.push_str(&route.written()));
        let world = world_of(&text);
        for _ in 0..250 {
            let request = Request::draw(rng);
            let expected = expected(&routes, &request);
            assert_eq!(
                request.found(&world),
                expected,
                "seed {seed}: {request:?}\n{text}"
            );
            match expected {
                Some(_) => served += 1,
                None => unserved += 1,
            }
        }
    }
    assert!(served > 3_000 && unserved > 500, "{served} {unserved}");
}

/// Returns the matches of a rule of a VirtualService that together mean the same.
fn of_istio(one: &Match) -> Vec<String> {
    let paths = match one.path {
        Path::Exact(path) => vec![format!("uri: {{exact: '{path}'}}")],
        Path::Regex(regex) => vec![format!("uri: {{regex: '{regex}'}}")],
        Path::Prefix("/") => vec!["uri: {prefix: /}".to_owned()],
        Path::Prefix(prefix) => {
            let prefix = prefix.trim_end_matches('/');
            vec![
                format!("uri: {{exact: '{prefix}'}}"),
                format!("uri: {{prefix: '{prefix}/'}}"),
            ]
        }
        Path::Call(..) => unreachable!("only HTTPRoutes are compared"),
    };
    let list = |all: &[(&str, Text)]| {
        let all = all
            .iter()
            .map(|(name, text)| format!("{name}: {}", text.of_istio()));
        all.collect::<Vec<_>>().join(", ")
    };
    let mut more = format!(
        "headers: {{{}}}, queryParams: {{{}}}",
        list(&one.headers),
        list(&one.query)
    );
    if let Some(method) = one.method {
        write!(more, ", method: {{exact: {method}}}").unwrap();
    }
    let paths = paths.into_iter();
    paths.map(|path| format!("{{{path}, {more}}}")).collect()
}

#[test]
fn http_route_and_virtual_service_that_mean_the_same_choose_the_same_destinations() {
    let services: Vec<String> = (0..4)
        .map(|number| {
            format!(
                "---\napiVersion: v1\nkind: Service\nmetadata: {{namespace: default, name: s{number}}}\n\
                 spec: {{ports: [{{name: http, port: 80}}]}}\n"
            )
        })
        .collect();
    let services = services.concat();
    let mut forwarded = 0;
    for seed in 0..60 {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let mut route = Route::draw(rng, 0);
        route.is_grpc = false;
        let rules: Vec<(Vec<Match>, [u32; 2])> = (0..rng.random_range(1..10))
            .map(|_| {
                let matches = 0..rng.random_range(1..4);
                let matches = matches.map(|_| Match::draw(rng, false)).collect();
                (matches, [rng.random_range(1..5), rng.random_range(1..5)])
            })
            .collect();
        let mut of_api = format!(
            "{services}---\n{GATEWAY}---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n\
             metadata: {{namespace: default, name: r}}\nspec:\n  parentRefs: [{{name: gw}}]\n  hostnames: [a.b.test, c.test]\n  rules:\n"
        );
        let mut sorted = Vec::new();
        for (number, (matches, weights)) in rules.iter().enumerate() {
            let names = [number % 4, (number + 1) % 4];
            let written: Vec<String> = matches.iter().map(Match::written).collect();
            let pairs = || names.iter().zip(weights);
            let backends = pairs()
                .map(|(name, weight)| format!("{{name: s{name}, port: 80, weight: {weight}}}"));
            let backends: Vec<String> = backends.collect();
            writeln!(
                of_api,
                "  - {{matches: [{}], backendRefs: [{}]}}",
                written.join(", "),
                backends.join(", ")
            )
            .unwrap();
            let destinations = pairs().map(|(name, weight)| {
                format!(
                    "{{destination: {{host: s{name}, port: {{number: 80}}}}, weight: {weight}}}"
                )
            });
            let destinations = destinations.collect::<Vec<_>>().join(", ");
            for (position, one) in matches.iter().enumerate() {
                sorted.push(((one.rank(), number, position), one, destinations.clone()));
            }
        }
        sorted.sort_by_key(|(one, ..)| *one);
        let mut of_istio = format!(
            "{services}---\napiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{namespace: default, name: gw}}\n\
             spec: {{servers: [{{port: {{number: 80, name: http, protocol: HTTP}}, hosts: ['*']}}]}}\n\
             ---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{namespace: default, name: v}}\n\
             spec:\n  hosts: [a.b.test, c.test]\n  gateways: [gw]\n  http:\n"
        );
        for (_, one, destinations) in &sorted {
            let matches = self::of_istio(one).join(", ");
            writeln!(
                of_istio,
                "  - {{match: [{matches}], route: [{destinations}]}}"
            )
            .unwrap();
        }
        let worlds = [world_of(&of_api), world_of(&of_istio)];
        for _ in 0..200 {
            let request = Request::draw(rng);
            let query = request
                .query()
                .map_or_else(String::new, |query| format!("?{query}"));
            let mut line = format!("{} {}{}{query}", request.method, request.host, request.path);
            for (name, value) in &request.headers {
                write!(line, " | {name}: {value}").unwrap();
            }
            let [one, other] = worlds
                .each_ref()
                .map(|world| ask(&world.snapshot, 80, &line));
            assert_eq!(one, other, "seed {seed}: {line}\n{of_api}\n{of_istio}");
            forwarded += usize::from(one != "404");
        }
    }
    assert!(forwarded > 1_500, "{forwarded}");
}
