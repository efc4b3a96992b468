//! Virtual hosts of listeners of the Gateway API: the rules that they share, and what a change makes again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use config_loader::{Diagnostics, ResourceSet, load_bytes};

use crate::compile::tests::world::{World, ask, plain};
use crate::compile::{Inputs, ServiceCache, compile_again};
use crate::snapshot::{HttpHosts, Snapshot, VirtualHost};
use crate::tls::Store;
use traffic::registry::Moment;

const GATEWAY: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: main}
spec: {gatewayClassName: strait, listeners: [{name: a, protocol: HTTP, port: 80}, {name: b, protocol: HTTP, port: 80, hostname: '*.b.test'}]}
";

/// Returns a route to all listeners that redirects each of the paths to the host with its name.
fn route(name: &str, hosts: &[&str], paths: &[&str]) -> String {
    let hosts = hosts
        .iter()
        .fold(String::new(), |all, host| format!("{all}'{host}', "));
    let rules = paths.iter().fold(String::new(), |all, path| {
        format!(
            "{all}{{matches: [{{path: {{value: {path}}}}}], filters: [{{type: RequestRedirect, requestRedirect: {{hostname: {name}}}}}]}}, "
        )
    });
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: {name}}}\n\
         spec: {{parentRefs: [{{name: main}}], hostnames: [{hosts}], rules: [{rules}]}}\n"
    )
}

/// Compiler that goes on from what it has compiled before.
struct Compiler {
    world: World,
    cache: ServiceCache,
    resources: ResourceSet,
}

impl Compiler {
    fn new() -> Self {
        let mut compiler = Self {
            world: World::empty(),
            cache: ServiceCache::default(),
            resources: ResourceSet::default(),
        };
        compiler.put(GATEWAY);
        compiler
    }

    /// Loads objects in place of those with their names, without compiling.
    fn load(&mut self, text: &str) {
        let mut diagnostics = Diagnostics::default();
        let set = load_bytes("test.yaml", text.as_bytes(), &mut diagnostics);
        assert!(!diagnostics.has_errors(), "{:?}", diagnostics.into_sorted());
        let gateways = set.kubernetes_gateways.iter();
        for (name, object) in gateways {
            self.resources
                .kubernetes_gateways
                .insert(name.clone(), Arc::clone(object));
        }
        for (name, object) in &set.http_routes {
            self.resources
                .http_routes
                .insert(name.clone(), Arc::clone(object));
        }
    }

    fn put(&mut self, text: &str) {
        self.load(text);
        self.compile();
    }

    fn remove(&mut self, route: &str) {
        let name = self
            .resources
            .http_routes
            .keys()
            .find(|name| *name.name == *route);
        let name = name.unwrap().clone();
        self.resources.http_routes.remove(&name);
        self.compile();
    }

    fn compile(&mut self) {
        let inputs = Inputs {
            resources: &self.resources,
            identity: &self.world.identity,
            registry: &self.world.registry,
            stats: &self.world.stats,
            certificates: &Store::default(),
            now: Moment(1),
        };
        let snapshot = compile_again(&inputs, &self.world.snapshot, &mut self.cache);
        self.world.snapshot = Arc::new(snapshot);
    }

    fn snapshot(&self) -> &Arc<Snapshot> {
        &self.world.snapshot
    }
}

fn hosts(snapshot: &Snapshot) -> &HttpHosts {
    plain(snapshot.listeners.values().next().unwrap())
}

/// Returns the names of virtual hosts that are not those of before.
fn made_again(before: &Snapshot, now: &Snapshot) -> Vec<String> {
    let known = |host: &&Arc<VirtualHost>| {
        let before = hosts(before).named(&host.name);
        before.is_some_and(|before| Arc::ptr_eq(before, host))
    };
    let made = hosts(now).virtual_hosts.iter().filter(|host| !known(host));
    made.map(|host| host.name.to_string()).collect()
}

#[test]
fn change_of_a_route_makes_its_hosts_again_however_many_there_are() {
    for count in [20, 200] {
        let mut compiler = Compiler::new();
        compiler.load(&route("any", &[], &["/any"]));
        compiler.load(&route("some", &["*.test"], &["/some"]));
        for number in 0..count {
            let name = format!("r{number}");
            compiler.load(&route(
                &name,
                &[&format!("{name}.test"), &format!("{name}.b.test")],
                &["/one"],
            ));
        }
        compiler.compile();
        for (name, of_route, expected) in [
            (
                "r7",
                &["r7.test", "r7.b.test"][..],
                &["r7.b.test", "r7.test"][..],
            ),
            ("any", &[], &["*", "*.b.test"]),
            ("some", &["*.test"], &["*.b.test", "*.test"]),
        ] {
            let before = Arc::clone(compiler.snapshot());
            compiler.put(&route(name, of_route, &["/two"]));
            let now = compiler.snapshot();
            assert_eq!(made_again(&before, now), expected, "{name} of {count}");
            assert!(
                Arc::ptr_eq(&hosts(&before).hosts, &hosts(now).hosts),
                "index of hosts"
            );
        }
        let before = Arc::clone(compiler.snapshot());
        compiler.put(&route("more", &["more.test", "r1.test"], &["/more"]));
        assert_eq!(
            made_again(&before, compiler.snapshot()),
            ["more.test", "r1.test"]
        );
        let before = Arc::clone(compiler.snapshot());
        compiler.remove("more");
        assert_eq!(made_again(&before, compiler.snapshot()), ["r1.test"]);
        assert_eq!(ask(compiler.snapshot(), 80, "more.test/more"), "404");
    }
}

#[test]
fn rules_are_kept_once_for_all_hosts_that_they_serve() {
    let paths: Vec<String> = (0..16).map(|number| format!("/p{number}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut compiler = Compiler::new();
    for number in 0..4 {
        compiler.load(&route(&format!("wide{number}"), &[], &paths));
    }
    let mut expected = 4 * paths.len();
    for number in 0..10 {
        let names = (0..16).map(|host| format!("h{host}.r{number}.test"));
        let names: Vec<String> = names.collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        compiler.load(&route(&format!("r{number}"), &names, &paths[..4]));
        expected += 4;
    }
    compiler.compile();
    let all = &hosts(compiler.snapshot()).virtual_hosts;
    assert_eq!(all.len(), 10 * 16 + 2);
    let distinct = all
        .iter()
        .map(|host| (host.routes.as_ptr(), host.routes.len()));
    let distinct: BTreeMap<_, _> = distinct.collect();
    // both listeners have the routes without hosts
    assert_eq!(distinct.values().sum::<usize>(), expected);
    let rules = all.iter().map(|host| host.table.rules().as_ptr());
    assert_eq!(rules.collect::<BTreeSet<_>>().len(), distinct.len());
}

#[test]
fn wider_hosts_of_the_listener_follow_in_order() {
    let mut compiler = Compiler::new();
    let mut text = String::new();
    for (name, host, paths) in [
        ("any", None, &["/any", "/some", "/one"][..]),
        ("some", Some("*.test"), &["/some", "/one"]),
        ("close", Some("*.b.test"), &["/close", "/one"]),
        ("one", Some("x.b.test"), &["/one"]),
        ("far", Some("x.a.test"), &["/one"]),
    ] {
        let hosts: Vec<&str> = host.into_iter().collect();
        write!(text, "---\n{}", route(name, &hosts, paths)).unwrap();
    }
    compiler.put(&text);
    let found = |request: &str| {
        let found = ask(compiler.snapshot(), 80, request);
        let host = found
            .split("//")
            .nth(1)
            .and_then(|rest| rest.split(['/', ':']).next());
        host.unwrap_or(&found).to_owned()
    };
    for (request, expected) in [
        ("x.b.test/one", "one"),
        ("x.b.test/close", "close"),
        // at this listener both are for its own hosts, and the first by name decides
        ("x.b.test/some", "any"),
        ("x.b.test/any", "any"),
        ("x.b.test/none", "404"),
        ("x.a.test/one", "far"),
        ("x.a.test/close", "404"),
        ("x.a.test/some", "some"),
        ("x.a.test/any", "any"),
        ("other/one", "any"),
    ] {
        assert_eq!(found(request), expected, "{request}");
    }
}
