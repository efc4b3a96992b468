//! Services that several clusters serve: the scenarios of the specification, by number, on live sockets.
//!
//! Unless a test says otherwise: the proxy is in c1; service ns1/web has port 80; c2 and c3 serve it through their
//! gateways g2 and g3; L1 and L2 are workloads of c1.

mod addresses;
mod changes;
mod explained;
mod exports;
mod exports_tls;
mod foreign;
mod health;
mod hops;
mod http_routes;
mod imports;
mod imports_between;
mod logged;
mod metrics;
mod outcomes;
mod outside;
mod policies;
mod refused;
mod remote_clusters;
mod remote_clusters_reload;
mod replays;
mod request_loops;
mod requirements;
mod shares;
mod short_names;
mod slices;
mod stickiness;
mod tcp;
mod tiers;
mod traced;
mod upstream_imports;
mod visibility;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use http_body_util::BodyExt;
use hyper::Response;

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{Raw, Reply};

/// Number of requests of a run; shares are exact to within [`TOLERANCE`].
const RUN: usize = 1000;

/// Tolerance of a count in a run: 3.5 percentage points.
const TOLERANCE: usize = 35;

/// Traffic policy that ejects an endpoint after one failure.
const EJECTS_AT_ONCE: &str = "{loadBalancer: {simple: ROUND_ROBIN}, outlierDetection: {consecutive5xxErrors: 1, interval: 1s, \
     baseEjectionTime: 60s, maxEjectionPercent: 100}}";

/// Workload or gateway that answers with its name.
struct Site {
    origin: Origin,
    status: Arc<AtomicU16>,
}

impl Site {
    fn new(name: &'static str) -> Self {
        let status = Arc::new(AtomicU16::new(200));
        let now = Arc::clone(&status);
        let origin = Origin::start(Back::H1, move |request| {
            let status = now.load(Ordering::Relaxed);
            async move {
                let body = request.into_body().collect().await;
                let bytes = body.map_or(0, |body| body.to_bytes().len());
                let mut response = Response::new(full(name));
                *response.status_mut() = status.try_into().unwrap();
                response.headers_mut().insert("x-body-bytes", bytes.into());
                response
            }
        });
        Self { origin, status }
    }

    fn answers(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    fn address(&self) -> SocketAddr {
        self.origin.address
    }

    fn paths(&self) -> Vec<String> {
        self.origin
            .seen()
            .iter()
            .map(|seen| seen.path().to_owned())
            .collect()
    }
}

/// All endpoints that may serve ns1/web.
struct World {
    l1: Site,
    l2: Site,
    g2: Site,
    g3: Site,
}

/// Parameters of a scenario.
#[derive(Clone, Copy)]
struct Setup<'a> {
    /// Number of workloads of the local cluster.
    local: usize,
    /// Host of the requests.
    host: &'a str,
    /// Hosts of the VirtualService, in flow style.
    routed: &'a str,
    /// `spec` of the GlobalTrafficPolicy, in flow style; empty for none.
    policy: &'a str,
    /// `trafficPolicy` of the DestinationRule; empty for none.
    rule: &'a str,
    /// Additional documents.
    more: &'a str,
    /// Additional arguments of the proxy.
    arguments: &'a [&'a str],
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            local: 2,
            host: "web.ns1.svc.cluster.local",
            routed: "['*']",
            policy: "",
            rule: "{loadBalancer: {simple: ROUND_ROBIN}}",
            more: "",
            arguments: &[],
        }
    }
}

impl World {
    fn new() -> Self {
        Self {
            l1: Site::new("L1"),
            l2: Site::new("L2"),
            g2: Site::new("g2"),
            g3: Site::new("g3"),
        }
    }

    /// Returns the sites with these names.
    fn sites(&self, names: &[&str]) -> Vec<&Site> {
        let site = |name: &&str| match *name {
            "L1" => &self.l1,
            "L2" => &self.l2,
            "g2" => &self.g2,
            "g3" => &self.g3,
            other => panic!("no site is called {other}"),
        };
        names.iter().map(site).collect()
    }

    fn import(&self) -> String {
        let endpoint = |cluster: &str, at: SocketAddr| {
            format!(
                "{{clusterKey: default/default/default/{cluster}, \
                 target: {{host: '', ip: {}, port: {}, path: /{cluster}/web}}}}",
                at.ip(),
                at.port()
            )
        };
        format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
             spec: {{ports: [{{name: http, port: 80, endpoints: [{}, {}]}}]}}\n",
            endpoint("c2", self.g2.address()),
            endpoint("c3", self.g3.address())
        )
    }

    fn mesh(&self, edge: SocketAddr, setup: Setup<'_>) -> String {
        let mut all = vec![
            gateway(&[edge]),
            routes(
                "web",
                setup.routed,
                &format!(
                    "- {{retries: {{attempts: 0}}, route: [{{destination: {{host: {}, port: {{number: 80}}}}}}]}}",
                    setup.host
                ),
            ),
            self.import(),
            "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
             spec: {ports: [{name: http, port: 80}]}\n"
                .to_owned(),
        ];
        let locals = [&self.l1, &self.l2];
        for (number, local) in locals.iter().take(setup.local).enumerate() {
            all.push(slice(number, "", local.address()));
        }
        if !setup.policy.is_empty() {
            all.push(policy(setup.policy));
        }
        if !setup.rule.is_empty() {
            all.push(format!(
                "apiVersion: networking.istio.io/v1\nkind: DestinationRule\n\
                 metadata: {{namespace: ns1, name: web}}\nspec: {{host: web, trafficPolicy: {}}}\n",
                setup.rule
            ));
        }
        all.push(setup.more.to_owned());
        documents(all.iter().filter(|text| !text.is_empty()))
    }

    fn proxy(&self, setup: Setup<'_>) -> Proxy {
        let start = Start::new();
        let text = self.mesh(start.edge(), setup);
        let told: &[&str] = match setup.arguments.contains(&"--cluster") {
            true => &[],
            false => &["--cluster", "c1"],
        };
        start
            .args(told.iter().chain(setup.arguments).copied())
            .file("mesh.yaml", text)
            .start()
    }

    /// Returns the number of responses of a run by answering site, and of failures by status.
    fn run(&self, setup: Setup<'_>) -> BTreeMap<String, usize> {
        count(&self.proxy(setup), RUN)
    }
}

/// Returns an EndpointSlice of ns1/web with one endpoint, of another cluster if `cluster` is not empty.
fn slice(number: usize, cluster: &str, at: SocketAddr) -> String {
    let annotations = match cluster {
        "" => String::new(),
        name => format!(", annotations: {{endpointslice.karmada.io/provision-cluster: {name}}}"),
    };
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: ns1, name: web-{cluster}{number}, \
         labels: {{kubernetes.io/service-name: web}}{annotations}}}\naddressType: IPv4\n\
         ports: [{{name: http, port: {}}}]\nendpoints: [{{addresses: [{}], conditions: {{ready: true}}}}]\n",
        at.port(),
        at.ip()
    )
}

/// Returns the GlobalTrafficPolicy of ns1/web.
fn policy(spec: &str) -> String {
    let spec = ["c1", "c2", "c3", "c9"]
        .iter()
        .fold(spec.to_owned(), |spec, name| {
            let long = format!("clusterKey: default/default/default/{name}");
            spec.replace(&format!("clusterKey: {name}"), &long)
        });
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {{namespace: ns1, name: web}}\nspec: {spec}\n"
    )
}

fn ask(client: &mut Raw, request: &str) -> Reply {
    client.send(request).reply()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: web.example\r\n\r\n";

fn who(reply: &Reply) -> String {
    match reply.status {
        200 => String::from_utf8(reply.body.clone()).unwrap(),
        status => status.to_string(),
    }
}

/// Returns the Destination of ns1/web in c2 with these workloads and their versions.
fn web_in_c2(workloads: &[(SocketAddr, &str)], flat: bool) -> String {
    let subsets: Vec<String> = workloads
        .iter()
        .map(|(at, version)| {
            format!(
                "{{endpoints: [{{ipAddress: {}, labels: {{version: {version}}}}}], \
                 ports: [{{port: {}, name: http, protocol: TCP}}]}}",
                at.ip(),
                at.port()
            )
        })
        .collect();
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo-mesh, name: web-c2}}\n\
         spec: {{kubeService: {{ref: {{name: web, namespace: ns1, clusterName: c2}}, \
         ports: [{{port: 80, name: http, protocol: TCP}}], endpointSubsets: [{}]}}}}\n\
         status: {{appliedFederation: {{federatedHostname: web.ns1.svc.c2.global, flatNetwork: {flat}, \
         federatedToMeshes: [{{name: a, namespace: gloo-mesh}}]}}}}\n",
        subsets.join(", ")
    )
}

/// Returns the number of responses to this many requests on one connection, by answering site.
fn count(proxy: &Proxy, requests: usize) -> BTreeMap<String, usize> {
    count_of(proxy, requests, GET)
}

fn count_of(proxy: &Proxy, requests: usize, request: &str) -> BTreeMap<String, usize> {
    let mut client = Raw::connect(proxy.edge);
    let mut counts = BTreeMap::new();
    for _ in 0..requests {
        *counts.entry(who(&ask(&mut client, request))).or_default() += 1;
    }
    counts
}

/// Sends requests until these sites are ejected, then makes the sites healthy again.
fn eject(proxy: &Proxy, sites: &[&Site]) {
    sites.iter().for_each(|site| site.answers(500));
    eventually("they are ejected", || {
        count(proxy, 40);
        let clusters = proxy.page("/clusters");
        sites.iter().all(|site| {
            let address = site.address().to_string();
            let mut lines = clusters.lines();
            lines.any(|line| line.contains(&address) && line.contains("ejected"))
        })
    });
    sites.iter().for_each(|site| site.answers(200));
}

/// Asserts that shares are as expected: 0 and 100 percent exactly, others within the tolerance.
#[track_caller]
fn assert_shares(counts: &BTreeMap<String, usize>, expected: &[(&str, usize)]) {
    for (name, share) in expected {
        let count = counts.get(*name).copied().unwrap_or_default();
        let slack = if *share % RUN == 0 { 0 } else { TOLERANCE };
        assert!(
            count.abs_diff(*share) <= slack,
            "{name} has {count}, not {share}: {counts:?}"
        );
    }
    let known: usize = expected
        .iter()
        .filter_map(|(name, _)| counts.get(*name))
        .sum();
    assert_eq!(known, counts.values().sum::<usize>(), "{counts:?}");
}
