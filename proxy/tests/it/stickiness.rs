//! What services say about who takes a request, without a DestinationRule; and destinations that a gateway cannot know.

use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{GET, Raw};

/// An EndpointSlice of service `s` with one endpoint, on a node and in a zone.
fn slice(name: &str, origin: &Origin, node: &str) -> String {
    let at = origin.address;
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}, labels: \
         {{kubernetes.io/service-name: s}}}}\naddressType: IPv4\nports: [{{name: http, port: {}}}]\n\
         endpoints: [{{addresses: [{}], zone: a, nodeName: {node}}}]\n",
        at.port(),
        at.ip()
    )
}

/// Service `s` of these origins, the first on node `n0`, and so on.
fn proxy(origins: &[Origin], spec: &str, rule: &str, arguments: &[&str]) -> Proxy {
    let start = Start::new();
    let mut all = vec![
        gateway(&[start.edge()]),
        routes("s", "['*']", "- {route: [{destination: {host: s}}]}"),
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{{spec}, ports: \
             [{{name: http, port: 80}}], selector: {{app: s}}}}\n"
        ),
        rule.to_owned(),
    ];
    for (number, origin) in origins.iter().enumerate() {
        all.push(slice(&format!("s{number}"), origin, &format!("n{number}")));
    }
    let arguments = arguments.iter().copied();
    start
        .args(arguments)
        .file("mesh.yaml", documents(all))
        .start()
}

/// Names of the origins that answer this many connections.
fn names(proxy: &Proxy, count: usize) -> Vec<String> {
    let name = |_| Raw::connect(proxy.edge).send(GET).reply().body;
    let names = (0..count).map(name);
    names.map(|name| String::from_utf8(name).unwrap()).collect()
}

fn origins() -> [Origin; 4] {
    ["one", "two", "three", "four"].map(|name| Origin::named(Back::H1, name))
}

#[test]
fn service_with_session_affinity_keeps_a_client_at_one_endpoint() {
    let origins = origins();
    let affinity = "sessionAffinity: ClientIP";
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: s}\nspec: {host: s, \
        trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n";
    for (spec, rule, sticky) in [
        (affinity, "", true),
        ("sessionAffinity: None", "", false),
        // a rule that says how has the last word
        (affinity, rule, false),
    ] {
        let proxy = proxy(&origins, spec, rule, &[]);
        let all = names(&proxy, 24);
        let same = all.iter().all(|name| *name == all[0]);
        assert_eq!(same, sticky, "{spec} {rule}: {all:?}");
    }
}

#[test]
fn service_prefers_its_own_node_when_it_says_so() {
    let origins = origins();
    let arguments = [
        "--cluster",
        "r/a/g/c",
        "--labels",
        "kubernetes.io/hostname=n2",
    ];
    let spec = "trafficDistribution: PreferSameNode";
    let own = proxy(&origins, spec, "", &arguments);
    assert!(names(&own, 12).iter().all(|name| name == "three"));
    let zone = "trafficDistribution: PreferSameZone";
    let zone = proxy(&origins, zone, "", &arguments);
    assert!(names(&zone, 24).iter().any(|name| name != "three"));
}

#[test]
fn destination_that_only_the_client_knows_is_a_bad_gateway() {
    let origins = origins();
    let passthrough = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: s}\nspec: {host: s, \
        trafficPolicy: {loadBalancer: {simple: PASSTHROUGH}}}\n";
    let by_rule = proxy(&origins, "type: ClusterIP", passthrough, &[]);
    let by_entry = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("s", "['*']", "- {route: [{destination: {host: s.test}}]}"),
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s}\nspec:\n  hosts: [s.test]\n  \
             resolution: NONE\n  ports: [{number: 80, name: http, protocol: HTTP}]\n"
                .to_owned(),
        ])
    });
    for proxy in [by_rule, by_entry] {
        let reply = Raw::connect(proxy.edge).send(GET).reply();
        assert_eq!((reply.status, &*reply.body), (502, &b""[..]));
        let logged = proxy.logged("/");
        assert_eq!(logged["response_flags"], "NR");
        assert_eq!(logged["response_code_details"], "no_original_destination");
        let explained = proxy.page("/explain?method=GET&url=http://a.test/");
        assert!(explained.contains("requests get 502 NR"), "{explained}");
    }
}

#[test]
fn connection_to_where_only_the_client_knows_is_closed() {
    let edge = free_address();
    let (ip, port) = (edge.ip(), edge.port());
    let text = documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: edge}}\nspec:\n  selector: \
             {{istio: ingressgateway}}\n  servers:\n  - {{port: {{number: {port}, name: tcp, protocol: TCP}}, \
             bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: s}\nspec:\n  hosts: ['*']\n  \
         gateways: [edge]\n  tcp: [{route: [{destination: {host: s.test}}]}]\n"
            .to_owned(),
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s}\nspec:\n  hosts: [s.test]\n  \
         resolution: NONE\n  ports: [{number: 1, name: tcp, protocol: TCP}]\n"
            .to_owned(),
    ]);
    let proxy = Start::new().file("mesh.yaml", text).start();
    assert!(Raw::connect(edge).send("hello").is_closed());
    crate::support::eventually("it is logged", || {
        let mut lines = proxy.access_log().into_iter();
        lines.any(|line| {
            line["response_flags"] == "NR"
                && line["response_code_details"] == "no_original_destination"
        })
    });
}

#[test]
fn import_with_session_affinity_keeps_a_client_at_one_endpoint() {
    let origins = origins();
    for (affinity, sticky) in [("ClientIP", true), ("None", false)] {
        let endpoints: Vec<String> = origins
            .iter()
            .map(|origin| {
                let (ip, port) = (origin.address.ip(), origin.address.port());
                format!("{{clusterKey: r/z/g/c, target: {{host: {ip}, ip: {ip}, port: {port}}}}}")
            })
            .collect();
        let endpoints = endpoints.join(", ");
        let proxy = Proxy::with(|edge| {
            let host = "web.default.svc.clusterset.local";
            let rule = format!("- {{route: [{{destination: {{host: {host}}}}}]}}");
            documents([
                gateway(&[edge]),
                routes("s", "['*']", &rule),
                format!(
                    "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{name: web}}\nspec:\n  \
                     sessionAffinity: {affinity}\n  ports: [{{port: 80, protocol: TCP, endpoints: [{endpoints}]}}]\n"
                ),
            ])
        });
        let all = names(&proxy, 24);
        let same = all.iter().all(|name| *name == all[0]);
        assert_eq!(same, sticky, "{affinity}: {all:?}");
    }
}
