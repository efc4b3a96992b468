//! Fields whose effect no other test shows, on live sockets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base64::Engine as _;

use crate::balancing::{Named, mesh, names, proxy};
use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin, Unreachable};
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw};
use crate::support::tls::{Edge, server};
use crate::support::{eventually, until};

#[test]
fn connecting_ends_at_connect_timeout() {
    let unreachable = Unreachable::new();
    let start = Start::new();
    let policy = "{connectionPool: {tcp: {connectTimeout: 100ms}}}";
    let text = mesh(start.edge(), &[(unreachable.address, "")], policy);
    let proxy = start.file("mesh.yaml", text).start();
    let before = Instant::now();
    let reply = Raw::connect(proxy.edge).send(GET).reply();
    let elapsed = before.elapsed();
    assert_eq!(reply.status, 503);
    // without the setting it is 10 s
    let range = Duration::from_millis(100)..Duration::from_secs(5);
    assert!(range.contains(&elapsed), "{elapsed:?}");
}

#[test]
fn zone_aware_failover_says_which_region_takes_over() {
    let [near, far] = ["near", "far"].map(Named::new);
    for (endpoints, setting, expected) in [
        (
            [(&near, "q/a"), (&far, "p/a")],
            "failover: [{from: r, to: q}]",
            "near",
        ),
        (
            [(&near, "q/a"), (&far, "p/a")],
            "failover: [{from: r, to: p}]",
            "far",
        ),
    ] {
        let policy = format!(
            "{{loadBalancer: {{simple: ROUND_ROBIN, zoneAwareLbSetting: {{enabled: true, {setting}}}}}, \
             outlierDetection: {{consecutive5xxErrors: 5}}}}"
        );
        let proxy = proxy(&endpoints, &policy, &["--locality", "r/a"]);
        assert_eq!(names(&proxy, "", 10), [expected; 10], "{setting}");
    }
}

/// Returns a resource named `web` with its `spec` in flow style.
fn object(kind: &str, spec: &str) -> String {
    let version = match kind {
        "Service" => "v1",
        _ => "networking.istio.io/v1",
    };
    format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: web}}\nspec: {{{spec}}}\n")
}

/// Returns a WorkloadEntry with label `app`, and additional fields in its spec.
fn workload(name: &str, app: &str, at: SocketAddr, more: &str) -> String {
    let spec = format!(
        "address: {}, ports: {{http: {}}}, labels: {{app: {app}}}{more}",
        at.ip(),
        at.port()
    );
    object("WorkloadEntry", &spec).replacen("name: web", &format!("name: {name}"), 1)
}

/// Starts a gateway that routes everything to `web`, which these documents define.
fn to_web(more: &[String], arguments: &[&str]) -> Proxy {
    let start = Start::new();
    let rule = "- {retries: {attempts: 0}, route: [{destination: {host: web}}]}";
    let mut all = vec![gateway(&[start.edge()]), routes("all", "['*']", rule)];
    all.extend_from_slice(more);
    let arguments = arguments.iter().copied();
    start
        .args(arguments)
        .file("mesh.yaml", documents(all))
        .start()
}

/// Returns how many of 80 requests each origin answers; the last count is that of responses other than 200.
fn counts(proxy: &Proxy, origins: [&str; 2]) -> [usize; 3] {
    let mut client = Raw::connect(proxy.edge);
    let mut counts = [0; 3];
    for _ in 0..80 {
        let reply = client.send(GET).reply();
        let body = String::from_utf8(reply.body).unwrap();
        let origin = origins.iter().position(|name| *name == body);
        counts[origin.filter(|_| reply.status == 200).unwrap_or(2)] += 1;
    }
    counts
}

#[test]
fn selector_of_a_service_selects_workload_entries() {
    let [one, two] = ["one", "two"].map(|name| Origin::named(Back::H1, name));
    let entries = [
        workload("one", "web", one.address, ""),
        workload("two", "other", two.address, ""),
    ];
    for (app, expected) in [
        ("web", [80, 0, 0]),
        ("other", [0, 80, 0]),
        ("neither", [0, 0, 80]),
    ] {
        let spec = format!("selector: {{app: {app}}}, ports: [{{name: http, port: 80}}]");
        let mut all = vec![object("Service", &spec)];
        all.extend_from_slice(&entries);
        let proxy = to_web(&all, &[]);
        assert_eq!(counts(&proxy, ["one", "two"]), expected, "{app}");
    }
}

#[test]
fn ports_of_a_service_that_are_not_tcp_serve_no_requests() {
    let origin = Origin::named(Back::H1, "one");
    for (protocol, expected) in [
        ("TCP", [80, 0, 0]),
        ("UDP", [0, 0, 80]),
        ("SCTP", [0, 0, 80]),
    ] {
        let spec = format!(
            "selector: {{app: web}}, ports: [{{name: http, port: 80, protocol: {protocol}}}]"
        );
        let entry = workload("one", "web", origin.address, "");
        let proxy = to_web(&[object("Service", &spec), entry], &[]);
        assert_eq!(counts(&proxy, ["one", ""]), expected, "{protocol}");
    }
}

#[test]
fn weight_and_locality_of_workload_entries_count() {
    let [one, two] = ["one", "two"].map(|name| Origin::named(Back::H1, name));
    let spec = "selector: {app: web}, ports: [{name: http, port: 80}]";
    let local = "loadBalancer: {simple: ROUND_ROBIN}, outlierDetection: {consecutive5xxErrors: 5}";
    for (of_one, of_two, policy, expected) in [
        (
            ", weight: 3",
            ", weight: 1",
            "loadBalancer: {simple: ROUND_ROBIN}",
            [60, 20, 0],
        ),
        (", locality: r/a", ", locality: q/a", local, [80, 0, 0]),
        (", locality: q/a", ", locality: r/a", local, [0, 80, 0]),
    ] {
        let all = [
            object("Service", spec),
            object(
                "DestinationRule",
                &format!("host: web, trafficPolicy: {{{policy}}}"),
            ),
            workload("one", "web", one.address, of_one),
            workload("two", "web", two.address, of_two),
        ];
        let proxy = to_web(&all, &["--locality", "r/a"]);
        assert_eq!(counts(&proxy, ["one", "two"]), expected, "{of_one}");
    }
}

#[test]
fn network_of_workload_entries_orders_failover() {
    let [one, two] = ["one", "two"].map(|name| Origin::named(Back::H1, name));
    let rule = |setting: &str| {
        format!(
            "host: web, trafficPolicy: {{loadBalancer: {{{setting}: {{enabled: true, failoverPriority: \
             [topology.istio.io/network]}}}}, outlierDetection: {{consecutive5xxErrors: 5}}}}"
        )
    };
    for (setting, of_one, of_two, expected) in [
        ("localityLbSetting", "net", "other", [80, 0, 0]),
        ("localityLbSetting", "other", "net", [0, 80, 0]),
        ("zoneAwareLbSetting", "net", "other", [80, 0, 0]),
        ("zoneAwareLbSetting", "other", "net", [0, 80, 0]),
    ] {
        let [of_one, of_two] = [of_one, of_two].map(|network| format!(", network: {network}"));
        let all = [
            object(
                "Service",
                "selector: {app: web}, ports: [{name: http, port: 80}]",
            ),
            object("DestinationRule", &rule(setting)),
            workload("one", "web", one.address, &of_one),
            workload("two", "web", two.address, &of_two),
        ];
        let proxy = to_web(&all, &["--network", "net", "--locality", "r/a"]);
        assert_eq!(
            counts(&proxy, ["one", "two"]),
            expected,
            "{setting}{of_one}"
        );
    }
}

#[tokio::test]
async fn external_name_of_a_service_is_resolved() {
    let origin = Origin::named(Back::H1, "one");
    let spec = format!(
        "type: ExternalName, externalName: localhost, ports: [{{name: http, port: {}}}]",
        origin.address.port()
    );
    let proxy = to_web(&[object("Service", &spec)], &[]);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    until("the name is resolved", async || {
        client.get("/").await.status == 200
    })
    .await;
    assert_eq!(client.get("/").await.text(), "one");
}

#[tokio::test]
async fn data_of_a_secret_is_decoded() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.example"]);
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: cred}}\ndata: {{tls.crt: {}, tls.key: {}}}\n",
        encode(&pair.chain),
        encode(&pair.key)
    );
    let edge = Edge::start(ca, &[secret], |edge| {
        let tls = "{mode: SIMPLE, credentialName: cred}";
        vec![server(edge, "https", "['*']", tls)]
    });
    let visitor = edge.visitor();
    assert_eq!(visitor.certificate("a.example").await.unwrap(), pair.der);
    assert_eq!(visitor.status("a.example").await, 200);
}

/// Returns a Service, import or Destination `web` of `ns1` in cluster c2 with additional port fields, and its host.
fn of_c2(kind: &str, at: SocketAddr, port: &str) -> (&'static str, Vec<String>) {
    let (ip, number) = (at.ip(), at.port());
    let together = "web.ns1.svc.clusterset.local";
    match kind {
        "flomesh" => {
            let import = format!(
                "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
                 spec: {{ports: [{{name: web, port: 80, {port}, endpoints: [{{clusterKey: default/default/default/c2, \
                 target: {{host: '', ip: {ip}, port: {number}, path: ''}}}}]}}]}}\n"
            );
            (together, vec![import])
        }
        "kubernetes" => {
            let import = format!(
                "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceImport\n\
                 metadata: {{namespace: ns1, name: web}}\n\
                 spec: {{type: ClusterSetIP, ports: [{{name: web, port: 80, {port}}}]}}\n"
            );
            (together, vec![import, slice_of("c2", at, "a")])
        }
        _ => {
            let destination = format!(
                "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\n\
                 metadata: {{namespace: gloo-mesh, name: web-c2}}\n\
                 spec: {{kubeService: {{ref: {{name: web, namespace: ns1, clusterName: c2}}, \
                 ports: [{{port: 80, name: web, {port}}}], \
                 endpointSubsets: [{{endpoints: [{{ipAddress: {ip}}}], ports: [{{port: {number}, name: web}}]}}]}}}}\n\
                 status: {{appliedFederation: {{federatedHostname: web.ns1.svc.c2.global, flatNetwork: true, \
                 federatedToMeshes: [{{name: a, namespace: gloo-mesh}}]}}}}\n"
            );
            ("web.ns1.svc.c2.global", vec![destination])
        }
    }
}

/// Returns an EndpointSlice of the import `web`, copied from a cluster.
fn slice_of(cluster: &str, at: SocketAddr, zone: &str) -> String {
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: ns1, name: of-{cluster}-{zone}, \
         labels: {{multicluster.kubernetes.io/service-name: web, multicluster.kubernetes.io/source-cluster: {cluster}}}}}\n\
         addressType: IPv4\nports: [{{name: web, port: {}}}]\nendpoints: [{{addresses: [{}], zone: {zone}}}]\n",
        at.port(),
        at.ip()
    )
}

/// Starts a gateway of c1 that routes everything to a host.
fn to_host(host: &str, more: &[String], arguments: &[&str]) -> Proxy {
    let start = Start::new();
    let rule = format!(
        "- {{retries: {{attempts: 0}}, route: [{{destination: {{host: {host}, port: {{number: 80}}}}}}]}}"
    );
    let mut all = vec![gateway(&[start.edge()]), routes("all", "['*']", &rule)];
    all.extend_from_slice(more);
    start
        .args(["--cluster", "c1", "--gloo-mesh", "a.gloo-mesh"])
        .args(arguments.iter().copied())
        .file("mesh.yaml", documents(all))
        .start()
}

#[test]
fn ports_of_other_clusters_speak_what_they_declare() {
    let origin = Origin::named(Back::H2, "one");
    for (kind, port, is_http2) in [
        ("flomesh", "appProtocol: kubernetes.io/h2c", true),
        ("flomesh", "appProtocol: http", false),
        ("flomesh", "appProtocol: http2, protocol: TCP", true),
        ("flomesh", "appProtocol: http2, protocol: UDP", false),
        ("kubernetes", "appProtocol: kubernetes.io/h2c", true),
        ("kubernetes", "appProtocol: http", false),
        ("kubernetes", "appProtocol: http2, protocol: TCP", true),
        ("kubernetes", "appProtocol: http2, protocol: UDP", false),
        ("gloo", "appProtocol: grpc", true),
        ("gloo", "appProtocol: http, protocol: HTTP2", false),
        ("gloo", "protocol: HTTP2", true),
        ("gloo", "protocol: TCP", false),
    ] {
        let (host, documents) = of_c2(kind, origin.address, port);
        let proxy = to_host(host, &documents, &[]);
        let reply = Raw::connect(proxy.edge).send(GET).reply();
        assert_eq!(reply.status == 200, is_http2, "{kind} {port}");
    }
}

#[test]
fn traffic_distribution_of_an_import_prefers_the_zone_in_the_region_of_the_cluster() {
    let [one, two] = ["one", "two"].map(|name| Origin::named(Back::H1, name));
    for (region, distribution, zone, expected) in [
        ("r", "PreferClose", "a", Some([80, 0, 0])),
        ("r", "PreferClose", "b", Some([0, 80, 0])),
        ("r", "", "a", None),
        ("q", "PreferClose", "a", None),
    ] {
        let (host, mut all) = of_c2("kubernetes", one.address, "protocol: TCP");
        let spec = format!("spec: {{trafficDistribution: '{distribution}', ");
        all[0] = all[0]
            .replace("spec: {", &spec)
            .replace("trafficDistribution: '', ", "");
        all.push(slice_of("c2", two.address, "b"));
        all.push(format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: Cluster\nmetadata: {{name: c2}}\n\
             spec: {{region: {region}, zone: z, group: g, gatewayHost: 10.2.0.9, gatewayPort: 8080}}\n"
        ));
        let proxy = to_host(host, &all, &["--locality", &format!("r/{zone}")]);
        let found = counts(&proxy, ["one", "two"]);
        match expected {
            Some(expected) => assert_eq!(found, expected, "{region} {distribution} {zone}"),
            None => assert!(found[..2].iter().all(|count| *count > 10), "{found:?}"),
        }
    }
}

/// Returns a Service or import `web` of these origins, with a session affinity timeout in seconds.
fn sticky(kind: &str, origins: &[SocketAddr], seconds: u8) -> (&'static str, Vec<String>) {
    let together = "web.ns1.svc.clusterset.local";
    let spec = format!(
        "sessionAffinity: ClientIP, sessionAffinityConfig: {{clientIP: {{timeoutSeconds: {seconds}}}}}"
    );
    let slices = origins
        .iter()
        .map(|at| slice_of("c2", *at, &format!("z{}", at.port())));
    match kind {
        "flomesh" => {
            let endpoints: Vec<String> = origins
                .iter()
                .map(|at| {
                    let (ip, port) = (at.ip(), at.port());
                    format!(
                        "{{clusterKey: r/z/g/c2, target: {{host: '', ip: {ip}, port: {port}, path: ''}}}}"
                    )
                })
                .collect();
            let endpoints = endpoints.join(", ");
            let import = format!(
                "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
                 spec: {{{spec}, ports: [{{port: 80, protocol: TCP, endpoints: [{endpoints}]}}]}}\n"
            );
            (together, vec![import])
        }
        "kubernetes" => {
            let import = format!(
                "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceImport\n\
                 metadata: {{namespace: ns1, name: web}}\n\
                 spec: {{type: ClusterSetIP, {spec}, ports: [{{name: web, port: 80}}]}}\n"
            );
            (together, std::iter::once(import).chain(slices).collect())
        }
        _ => {
            let service = format!(
                "apiVersion: v1\nkind: Service\nmetadata: {{namespace: ns1, name: web}}\n\
                 spec: {{{spec}, selector: {{app: web}}, ports: [{{name: web, port: 80}}]}}\n"
            );
            let own = slices.map(|slice| {
                slice
                    .replace(
                        "multicluster.kubernetes.io/service-name",
                        "kubernetes.io/service-name",
                    )
                    .replace(", multicluster.kubernetes.io/source-cluster: c2", "")
            });
            let own = own.collect::<Vec<_>>();
            (
                "web.ns1.svc.cluster.local",
                std::iter::once(service).chain(own).collect(),
            )
        }
    }
}

#[test]
fn session_affinity_ends_after_its_timeout() {
    let origins = ["one", "two", "three", "four"].map(|name| Origin::named(Back::H1, name));
    let all = origins.each_ref().map(|origin| origin.address);
    for kind in ["core", "flomesh", "kubernetes"] {
        for (seconds, stay) in [(60, true), (1, false)] {
            let (host, before) = sticky(kind, &all[..1], seconds);
            let proxy = to_host(host, &before, &["--trusted-hops", "1"]);
            let answers = || -> Vec<String> {
                let mut stream = Raw::connect(proxy.edge);
                let ask = |client| {
                    let told = format!("\r\nX-Forwarded-For: 203.0.113.{client}\r\n\r\n");
                    let reply = stream.send(GET.replacen("\r\n\r\n", &told, 1)).reply();
                    String::from_utf8(reply.body).unwrap()
                };
                (0..30).map(ask).collect()
            };
            assert_eq!(answers(), vec!["one"; 30], "{kind}");
            let asked = Instant::now();
            let (_, after) = sticky(kind, &all, seconds);
            let rule = format!(
                "- {{retries: {{attempts: 0}}, route: [{{destination: {{host: {host}, port: {{number: 80}}}}}}]}}"
            );
            let mut text = vec![gateway(&[proxy.edge]), routes("all", "['*']", &rule)];
            text.extend(after);
            proxy.write("mesh.yaml", documents(text));
            let last = all[3].to_string();
            eventually("the others are there", || {
                proxy.page("/clusters").contains(&last)
            });
            eventually(
                "the shorter timeout and the second that entries may stay longer are over",
                || asked.elapsed() > Duration::from_millis(2100),
            );
            let same = answers().iter().all(|name| name == "one");
            assert_eq!(same, stay, "{kind} {seconds}");
        }
    }
}
