//! Time to compile one change among 15,000 objects, for each kind.
//!
//! Prints a table of medians. Objects that do not change keep their `Arc`, as in the store.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Instant;

use benches::changes::{Compiler, GATEWAY, spread};
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
        "BackendTrafficPolicy",
        [
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p}\n\
             spec: {targetRefs: [{kind: Service, name: s}], requestBuffer: {limit: 1Ki}}",
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p}\n\
             spec: {targetRefs: [{kind: Service, name: s}], requestBuffer: {limit: 1Mi}}",
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

/// CPU time of this thread in milliseconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1000.0 + time.tv_nsec as f64 / 1e6
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
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
    Ok(())
}
