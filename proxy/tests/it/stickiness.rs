//! Session affinity and traffic settings of services without a DestinationRule, and destinations that a gateway cannot
//! know.

use std::net::SocketAddr;

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{GET, Raw};

/// Returns an EndpointSlice of service `s` with one endpoint, on a node and in a zone.
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

/// Returns service `s` of these origins, the first on node `n0`, and so on; behind this Gateway with its routes.
fn mesh(front: &[String], origins: &[&Origin], spec: &str, rule: &str) -> String {
    let mut all = front.to_vec();
    all.extend([
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{{spec}, ports: \
             [{{name: http, port: 80}}], selector: {{app: s}}}}\n"
        ),
        rule.to_owned(),
    ]);
    for (number, origin) in origins.iter().enumerate() {
        all.push(slice(&format!("s{number}"), origin, &format!("n{number}")));
    }
    documents(all)
}

/// Returns a Gateway for HTTP that routes all requests to `s`.
fn http(edge: SocketAddr) -> Vec<String> {
    let to_s = "- {route: [{destination: {host: s}}]}";
    vec![gateway(&[edge]), routes("s", "['*']", to_s)]
}

/// Returns a Gateway for TCP that routes all connections to `s`.
fn tcp(edge: SocketAddr) -> Vec<String> {
    let (ip, port) = (edge.ip(), edge.port());
    vec![
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: edge}}\nspec:\n  selector: \
             {{istio: ingressgateway}}\n  servers:\n  - {{port: {{number: {port}, name: tcp, protocol: TCP}}, \
             bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: s}\nspec:\n  hosts: ['*']\n  \
         gateways: [edge]\n  tcp: [{route: [{destination: {host: s}}]}]\n"
            .to_owned(),
    ]
}

fn proxy(origins: &[Origin], spec: &str, rule: &str, arguments: &[&str]) -> Proxy {
    let start = Start::new();
    let origins: Vec<&Origin> = origins.iter().collect();
    let text = mesh(&http(start.edge()), &origins, spec, rule);
    let arguments = arguments.iter().copied();
    start.args(arguments).file("mesh.yaml", text).start()
}

/// Applies new configuration, and waits until this origin is added or removed.
fn reload(proxy: &Proxy, text: String, (origin, is_there): (&Origin, bool)) {
    proxy.write("mesh.yaml", text);
    let address = origin.address.to_string();
    eventually("it is in effect", || {
        proxy.page("/clusters").contains(&address) == is_there
    });
}

/// Returns the names of the origins that answer this many connections.
fn names(proxy: &Proxy, count: usize) -> Vec<String> {
    let name = |_| Raw::connect(proxy.edge).send(GET).reply().body;
    let names = (0..count).map(name);
    names.map(|name| String::from_utf8(name).unwrap()).collect()
}

const STICKY: &str = "sessionAffinity: ClientIP";

fn origins() -> [Origin; 4] {
    ["one", "two", "three", "four"].map(|name| Origin::named(Back::H1, name))
}

#[test]
fn service_with_session_affinity_keeps_a_client_at_one_endpoint() {
    let origins = origins();
    let rule = |balancer: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: s}}\nspec: {{host: s, \
             trafficPolicy: {{loadBalancer: {balancer}}}}}\n"
        )
    };
    for (spec, rule, sticky) in [
        (STICKY, String::new(), true),
        ("sessionAffinity: None", String::new(), false),
        (STICKY, rule("{simple: ROUND_ROBIN}"), true),
        // a rule with a key of its own goes before; these requests do not have it
        (
            STICKY,
            rule("{consistentHash: {httpHeaderName: x-user}}"),
            false,
        ),
    ] {
        let proxy = proxy(&origins, spec, &rule, &[]);
        let all = names(&proxy, 24);
        let same = all.iter().all(|name| *name == all[0]);
        assert_eq!(same, sticky, "{spec} {rule}: {all:?}");
    }
}

#[test]
fn session_affinity_survives_added_endpoints() {
    let all = origins();
    let [one, two, three, four] = &all;
    let proxy = proxy(&all[..2], STICKY, "", &["--trusted-hops", "1"]);
    let answers = |clients: std::ops::Range<u8>| -> Vec<String> {
        let mut stream = Raw::connect(proxy.edge);
        let ask = |client| {
            let told = format!("X-Forwarded-For: 203.0.113.{client}\r\n\r\n");
            let reply = stream
                .send(GET.replacen("\r\n\r\n", &format!("\r\n{told}"), 1))
                .reply();
            String::from_utf8(reply.body).unwrap()
        };
        clients.map(ask).collect()
    };
    let homes = answers(0..40);
    let text = mesh(&http(proxy.edge), &[one, two, three, four], STICKY, "");
    reload(&proxy, text, (four, true));
    assert_eq!(answers(0..40), homes);
    let others = answers(40..80);
    let new = others
        .iter()
        .filter(|name| ["three", "four"].contains(&name.as_str()));
    assert!(new.count() > 5, "{others:?}");
}

#[test]
fn moved_client_stays_when_its_first_endpoint_recovers() {
    let all = origins();
    for front in [http, tcp] {
        let start = Start::new();
        let every: Vec<&Origin> = all.iter().collect();
        let text = mesh(&front(start.edge()), &every, STICKY, "");
        let proxy = start.file("mesh.yaml", text.clone()).start();
        let home = names(&proxy, 1).remove(0);
        let place = ["one", "two", "three", "four"]
            .iter()
            .position(|name| *name == home);
        let home = every[place.expect("a name")];
        let left: Vec<&Origin> = all
            .iter()
            .filter(|origin| origin.address != home.address)
            .collect();
        reload(
            &proxy,
            mesh(&front(proxy.edge), &left, STICKY, ""),
            (home, false),
        );
        let moved = names(&proxy, 12);
        assert!(moved.iter().all(|name| *name == moved[0]), "{moved:?}");
        reload(&proxy, text, (home, true));
        assert!(names(&proxy, 12).iter().all(|name| *name == moved[0]));
    }
}

#[test]
fn traffic_distribution_prefer_same_node_keeps_traffic_on_the_node() {
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
fn passthrough_destination_gives_502() {
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
fn tcp_connection_with_passthrough_destination_is_closed() {
    let edge = free_address();
    let mut all: Vec<String> = tcp(edge)
        .iter()
        .map(|text| text.replace("{host: s}", "{host: s.test}"))
        .collect();
    all.push(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s}\nspec:\n  hosts: [s.test]\n  \
         resolution: NONE\n  ports: [{number: 1, name: tcp, protocol: TCP}]\n"
            .to_owned(),
    );
    let proxy = Start::new().file("mesh.yaml", documents(all)).start();
    assert!(Raw::connect(edge).send("hello").is_closed());
    eventually("it is logged", || {
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
