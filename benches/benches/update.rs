//! Time to compile one change among 15,000 objects, for each kind, and time of a change of one among many routes of the
//! Gateway API.
//!
//! Prints tables of medians. Objects that do not change keep their `Arc`, as in the store.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Instant;

use allocation_counter::measure;
use benches::changes::{Compiler, GATEWAY, Mesh, Running, spread};
use config_loader::{Diagnostics, ResourceSet, load_bytes};
use proxy::snapshot::Snapshot;
use rustix::time::{ClockId, clock_gettime};

/// Number of objects of each of three kinds.
const HOSTS: usize = 5_000;

/// Number of endpoints of a ServiceEntry.
const ENDPOINTS: usize = 20;

/// Number of changes of each kind.
const CHANGES: usize = 30;

/// Resources that occur once each, in addition to the Gateway.
const REST: &str = "apiVersion: v1
kind: Service
metadata: {name: s}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: s}
spec: {hosts: [s.example], gateways: [edge], http: [{route: [{destination: {host: s}}]}]}
";

/// Object that changes: its kind and two versions.
const CHANGED: &[(&str, [&str; 2])] = &[
    (
        "VirtualService",
        [
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v77}\nspec: {hosts: [h77.example], \
             gateways: [edge], http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: h77.example}}]}]}",
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v77}\nspec: {hosts: [h77.example], \
             gateways: [edge], http: [{match: [{uri: {prefix: /b}}], route: [{destination: {host: h77.example}}]}]}",
        ],
    ),
    (
        "DestinationRule",
        [
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: r77}\nspec: {host: h77.example, \
             trafficPolicy: {loadBalancer: {simple: RANDOM}}}",
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: r77}\nspec: {host: h77.example, \
             trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}}",
        ],
    ),
    (
        "ServiceEntry",
        [
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: e77}\nspec: {hosts: [h77.example], \
             resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.1.1}]}",
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: e77}\nspec: {hosts: [h77.example], \
             resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.1.2}]}",
        ],
    ),
    (
        "ServiceEntry, other ports",
        [
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: e77}\nspec: {hosts: [h77.example], \
             resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.1.1}]}",
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: e77}\nspec: {hosts: [h77.example], \
             resolution: STATIC, ports: [{number: 81, name: http, protocol: HTTP}], endpoints: [{address: 10.1.1.1}]}",
        ],
    ),
    (
        "EndpointSlice",
        [
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s-1, labels: {kubernetes.io/service-name: s}}\n\
             addressType: IPv4\nports: [{name: http, port: 80}]\nendpoints: [{addresses: [10.1.1.1]}]",
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s-1, labels: {kubernetes.io/service-name: s}}\n\
             addressType: IPv4\nports: [{name: http, port: 80}]\nendpoints: [{addresses: [10.1.1.2]}]",
        ],
    ),
    (
        "Ingress",
        [
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\n\
             spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}",
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\n\
             spec: {defaultBackend: {service: {name: s, port: {number: 81}}}}",
        ],
    ),
    (
        "IngressClass",
        [
            "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: c}\nspec: {controller: example.com/one}",
            "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: c}\nspec: {controller: example.com/two}",
        ],
    ),
    (
        "BackendTrafficPolicy",
        [
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p}\n\
             spec: {targetRefs: [{kind: Service, name: s}], requestBuffer: {limit: 1Ki}}",
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p}\n\
             spec: {targetRefs: [{kind: Service, name: s}], requestBuffer: {limit: 1Mi}}",
        ],
    ),
    (
        "ProxyConfig",
        [
            "apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: p}\nspec: {concurrency: 1}",
            "apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: p}\nspec: {concurrency: 2}",
        ],
    ),
    (
        "Telemetry",
        [
            "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {name: t}\n\
             spec: {accessLogging: [{providers: [{name: envoy}]}]}",
            "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {name: t}\n\
             spec: {accessLogging: [{providers: [{name: envoy}], disabled: true}]}",
        ],
    ),
    (
        "PeerAuthentication",
        [
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: p}\nspec: {mtls: {mode: STRICT}}",
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: p}\nspec: {mtls: {mode: DISABLE}}",
        ],
    ),
    (
        "GlobalTrafficPolicy",
        [
            "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {name: s}\nspec: {lbType: ActiveActive}",
            "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {name: s}\nspec: {lbType: Locality}",
        ],
    ),
    (
        "Gateway",
        [
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: more}\nspec: {servers: [{port: {number: 8081, \
             name: http, protocol: HTTP}, hosts: ['x.example']}]}",
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: more}\nspec: {servers: [{port: {number: 8081, \
             name: http, protocol: HTTP}, hosts: ['y.example']}]}",
        ],
    ),
];

fn mesh() -> String {
    let mut text = format!("{GATEWAY}---\n{REST}");
    for host in 0..HOSTS {
        let _ = write!(
            text,
            "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: v{host}}}\nspec: {{hosts: [h{host}.example], \
             gateways: [edge], http: [{{route: [{{destination: {{host: h{host}.example}}}}]}}]}}\n\
             ---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: r{host}}}\nspec: {{host: h{host}.example, \
             trafficPolicy: {{loadBalancer: {{consistentHash: {{httpHeaderName: x}}}}}}}}\n\
             ---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: e{host}}}\nspec:\n  hosts: [h{host}.example]\n  \
             resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  endpoints:\n"
        );
        for endpoint in 0..ENDPOINTS {
            let [_, high, middle, low] = ((host * ENDPOINTS + endpoint) as u32).to_be_bytes();
            let _ = writeln!(text, "  - {{address: 10.{high}.{middle}.{low}}}");
        }
    }
    text
}

fn load(text: &str) -> ResourceSet {
    load_bytes("mesh.yaml", text.as_bytes(), &mut Diagnostics::default())
}

/// Returns a set in which objects of another set replace those of the same name.
fn with(set: &ResourceSet, other: &ResourceSet) -> ResourceSet {
    let mut set = set.clone();
    macro_rules! put {
        ($($kind:ident)*) => {$(
            for (name, object) in &other.$kind {
                set.$kind.insert(name.clone(), object.clone());
            }
        )*};
    }
    put!(virtual_services destination_rules service_entries endpoint_slices peer_authentications
        global_traffic_policies gateways);
    set
}

/// HTTPRoutes in a file each, of which the last one changes.
struct Routes {
    /// Number of Gateways on the same port, each for hosts of its own.
    gateways: usize,
    count: usize,
    change: Change,
}

/// Change of an HTTPRoute.
#[derive(Clone, Copy)]
enum Change {
    /// The route comes or goes.
    Presence,
    /// Its rule gets another path.
    Rule,
    /// So does that of a route for every host.
    WideRule,
}

impl Routes {
    const ALL: [Routes; 6] = [
        Routes::new(1, 500, Change::Rule),
        Routes::new(1, 2_000, Change::Rule),
        Routes::new(1, 5_000, Change::Rule),
        Routes::new(100, 2_000, Change::Rule),
        Routes::new(1, 2_000, Change::WideRule),
        Routes::new(1, 2_000, Change::Presence),
    ];

    const fn new(gateways: usize, count: usize, change: Change) -> Routes {
        Routes {
            gateways,
            count,
            change,
        }
    }

    fn name(&self) -> &'static str {
        match self.change {
            Change::Presence => "comes or goes",
            Change::Rule => "rule",
            Change::WideRule => "rule for every host",
        }
    }

    /// Returns the files; those of the Gateways and of the Service come first.
    fn files(&self) -> Vec<String> {
        let gateways = (0..self.gateways).map(|number| {
            let hostname = match self.gateways {
                1 => String::new(),
                _ => format!(", hostname: '*.g{number}.example'"),
            };
            format!(
                "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: g{number}}}\n\
                 spec: {{gatewayClassName: strait, listeners: [{{name: a, protocol: HTTP, port: 8080{hostname}}}]}}\n"
            )
        });
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{name: http, port: 80}]}\n";
        let routes = (0..self.count).map(|number| self.route(number, "/a"));
        gateways.chain([service.to_owned()]).chain(routes).collect()
    }

    fn route(&self, number: usize, path: &str) -> String {
        let gateway = number % self.gateways;
        let is_wide = matches!(self.change, Change::WideRule) && number + 1 == self.count;
        let hosts = match is_wide {
            true => String::new(),
            false => format!("h{number}.g{gateway}.example"),
        };
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r{number}}}\n\
             spec: {{parentRefs: [{{name: g{gateway}}}], hostnames: [{hosts}], rules: [{{matches: [{{path: {{value: {path}}}}}], \
             backendRefs: [{{name: s, port: 80}}]}}]}}\n"
        )
    }

    /// Returns the milliseconds of each change: from the rename until the snapshot is compiled, and of compiling alone.
    fn changes(&self) -> Vec<[f64; 2]> {
        let last = |path| self.route(self.count - 1, path);
        let versions = match self.change {
            Change::Presence => ["# none\n".to_owned(), last("/a")],
            Change::Rule | Change::WideRule => [last("/b"), last("/a")],
        };
        let mut running = Running::load(Mesh::write(&self.files(), versions));
        running.compile();
        (0..CHANGES).map(|_| running.change()).collect()
    }
}

/// Returns 10 HTTPRoutes with 112 matches each for every host, and 20 with 16 hosts each.
fn wide_routes() -> String {
    let mut text = Routes::new(1, 0, Change::Rule).files().join("---\n");
    for route in 0..30 {
        let (hosts, matches) = match route {
            0..10 => (0, 112),
            _ => (16, 1),
        };
        let hosts = (0..hosts).map(|host| format!("h{host}.r{route}.example, "));
        let hosts: String = hosts.collect();
        let rules = (0..matches).step_by(56).map(|first| {
            let paths = (first..matches.min(first + 56))
                .map(|path| format!("{{path: {{value: /r{route}/{path}}}}}, "));
            let paths: String = paths.collect();
            format!("{{matches: [{paths}], backendRefs: [{{name: s, port: 80}}]}}, ")
        });
        let rules: String = rules.collect();
        let _ = write!(
            text,
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r{route}}}\n\
             spec: {{parentRefs: [{{name: g0}}], hostnames: [{hosts}], rules: [{rules}]}}\n"
        );
    }
    text
}

/// Prints the time and the memory of compiling routes for every host beside many hosts, and the time of a change of one of
/// many routes.
fn gateway_api(out: &mut impl io::Write) -> io::Result<()> {
    let set = load(&wide_routes());
    let (compiler, begin) = (Compiler::default(), Instant::now());
    let mut snapshot = Snapshot::default();
    let allocated = measure(|| snapshot = compiler.snapshot(&set, &Snapshot::default()));
    let (took, bytes) = (
        begin.elapsed().as_secs_f64() * 1000.0,
        allocated.bytes_current,
    );
    writeln!(
        out,
        "\n10 HTTPRoutes of 112 matches for every host, 20 of 16 hosts: {took:.1} ms, {:.1} MB",
        bytes as f64 / 1e6
    )?;
    writeln!(
        out,
        "\n| HTTPRoutes | Gateways | one changed | ms until in effect | ms of compiling |"
    )?;
    writeln!(out, "| ---: | ---: | --- | ---: | ---: |")?;
    for routes in Routes::ALL {
        let times = routes.changes();
        let [whole, compiling] =
            [0, 1].map(|column| spread(times.iter().map(move |time| time[column])));
        let (count, gateways, name) = (routes.count, routes.gateways, routes.name());
        writeln!(
            out,
            "| {count} | {gateways} | {name} | {whole} | {compiling} |"
        )?;
        out.flush()?;
    }
    Ok(())
}

/// CPU time of this thread in milliseconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1000.0 + time.tv_nsec as f64 / 1e6
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    if std::env::args().any(|argument| argument == "gateway_api") {
        return gateway_api(&mut out);
    }
    let set = load(&mesh());
    writeln!(
        out,
        "| one of 15,000 changes | ms of compiling | ms of CPU time |"
    )?;
    writeln!(out, "| --- | ---: | ---: |")?;
    for (kind, versions) in CHANGED {
        let versions = versions.map(|text| with(&set, &load(text)));
        let mut compiler = Compiler::default();
        let mut snapshot = compiler.again(&versions[0], &Snapshot::default());
        let mut took = Vec::new();
        for number in 1..=CHANGES {
            let (begin, used) = (Instant::now(), cpu());
            let next = compiler.again(&versions[number % 2], &snapshot);
            took.push([begin.elapsed().as_secs_f64() * 1000.0, cpu() - used]);
            snapshot = next;
        }
        let [wall, used] = [0, 1].map(|column| spread(took.iter().map(|took| took[column])));
        writeln!(out, "| {kind} | {wall} | {used} |")?;
        out.flush()?;
    }
    gateway_api(&mut out)
}
