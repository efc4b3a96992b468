//! Localities, shifts and connection settings of Destinations: scenarios 73 to 75 and 94.

use super::*;

/// Workloads of ns1/web in a cluster: their sites, versions and zones.
struct Of<'a> {
    cluster: &'a str,
    workloads: &'a [(&'a Site, &'a str, &'a str)],
    status: &'a str,
}

impl Of<'_> {
    fn text(&self) -> String {
        let subsets: Vec<String> = self
            .workloads
            .iter()
            .map(|(site, version, zone)| {
                let at = site.address();
                format!(
                    "{{endpoints: [{{ipAddress: {}, labels: {{version: {version}}}, subLocality: {{zone: {zone}}}}}], \
                     ports: [{{port: {}, name: http, protocol: TCP}}]}}",
                    at.ip(),
                    at.port()
                )
            })
            .collect();
        let cluster = self.cluster;
        format!(
            "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo-mesh, name: web-{cluster}}}\n\
             spec: {{kubeService: {{ref: {{name: web, namespace: ns1, clusterName: {cluster}}}, region: r1, \
             ports: [{{port: 80, name: http, protocol: TCP}}], endpointSubsets: [{}]}}}}\n\
             status: {{{} appliedFederation: {{federatedHostname: web.ns1.svc.{cluster}.global, flatNetwork: true, \
             federatedToMeshes: [{{name: a, namespace: gloo-mesh}}], \
             tcpKeepalive: {{probes: 3, time: 10s, interval: 5s}}}}}}\n",
            subsets.join(", "),
            self.status
        )
    }
}

const IN_MESH_A: &[&str] = &["--gloo-mesh", "a.gloo-mesh"];

/// Returns the shift of scenario 74 with the applied policies.
fn shift(applied: &str) -> String {
    let to = |weight: u8, cluster: &str, subset: &str| {
        format!(
            "{{weight: {weight}, kubeService: {{name: web, namespace: ns1, clusterName: {cluster}{subset}}}}}"
        )
    };
    format!(
        "{applied} requiredSubsets: [{{trafficPolicyRef: {{name: p, namespace: gloo-mesh}}, trafficShift: {{destinations: [{}, {}, {}]}}}}],",
        to(75, "c2", ""),
        to(15, "c1", ", subset: {version: v1}"),
        to(10, "c1", ", subset: {version: v2}")
    )
}

/// Returns the number of responses by site for ns1/web in c1 with this status, while another cluster has the service,
/// too.
fn shifted(status: &str, more: &str) -> BTreeMap<String, usize> {
    let world = World::new();
    let other = Site::new("P1");
    mean(&shifting(&world, &other, (status, more)))
}

/// Starts a proxy of c1, where ns1/web has this status, while another cluster has the service, too.
fn shifting(world: &World, other: &Site, (status, more): (&str, &str)) -> Proxy {
    let locals = [(&world.l1, "v1", "a"), (&world.l2, "v2", "a")];
    let here = Of {
        cluster: "c1",
        workloads: &locals,
        status,
    };
    let there = Of {
        cluster: "c2",
        workloads: &[(other, "v1", "a")],
        status: "",
    };
    let more = documents([here.text(), there.text(), more.to_owned()]);
    world.proxy(Setup {
        // with `*` it would route the host of the Destination, too
        routed: "[web.example]",
        more: more.trim_start_matches("---\n"),
        arguments: IN_MESH_A,
        ..Setup::default()
    })
}

/// Number of runs whose mean is taken where shares are random; it deviates less than half as much as one run.
const RUNS: usize = 6;

/// Returns the number of responses by site, as the mean of several runs.
fn mean(proxy: &Proxy) -> BTreeMap<String, usize> {
    let mut counts = count(proxy, RUNS * RUN);
    counts.values_mut().for_each(|count| *count /= RUNS);
    counts
}

#[test]
fn scenario_74_a_shift_of_one_service_is_executed() {
    let counts = shifted(&shift(""), "");
    assert_shares(&counts, &[("P1", 750), ("L1", 150), ("L2", 100)]);
}

#[test]
fn a_shift_applies_only_where_its_policy_is_attached() {
    let local = [("L1", 500), ("L2", 500)];
    let shares = [("P1", 750), ("L1", 150), ("L2", 100)];
    let applied = |spec: &str| {
        shift(&format!(
            "appliedTrafficPolicies: [{{ref: {{name: p, namespace: gloo-mesh}}, spec: {spec}}}],"
        ))
    };
    assert_shares(&shifted(&applied("{httpRequestMatchers: []}"), ""), &shares);
    // a policy for some requests only
    let some = applied("{httpRequestMatchers: [{uri: {prefix: /a}}]}");
    assert_shares(&shifted(&some, ""), &local);
    // one that may be attached to another service
    let foreign = shift("").replacen(
        "name: web, namespace: ns1, clusterName: c2",
        "name: shop, namespace: ns1, clusterName: c2",
        1,
    );
    assert_shares(&shifted(&foreign, ""), &local);
    let routed = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {namespace: ns1, name: own}\n\
                  spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}\n";
    assert_shares(&shifted(&shift(""), routed), &local);
    // one for every host at the listener, whatever it takes
    let every = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: every}\n\
                 spec: {hosts: ['*'], gateways: [edge], http: [{match: [{uri: {prefix: /none}}], directResponse: {status: 418}}]}\n";
    assert_shares(&shifted(&shift(""), every), &local);
    let elsewhere = every.replace("[edge]", "[other]");
    assert_shares(&shifted(&shift(""), &elsewhere), &shares);
}

#[test]
fn scenario_74_a_shift_with_a_match_changes_matching_requests_only() {
    let (world, other) = (World::new(), Site::new("P1"));
    let applied = |spec: &str| {
        shift(&format!(
            "appliedTrafficPolicies: [{{ref: {{name: p, namespace: gloo-mesh}}, spec: {spec}}}],"
        ))
    };
    let matchers = "{httpRequestMatchers: [{uri: {prefix: /beta}, headers: [{name: tester}]}, {method: PUT}], \
                    sourceSelector: [{kubeWorkloadMatcher: {labels: {istio: ingressgateway}, clusters: [c1]}}]}";
    let proxy = shifting(&world, &other, (&applied(matchers), ""));
    let ask = |line: &str, headers: &str| {
        let request =
            format!("{line} HTTP/1.1\r\nHost: web.example\r\nContent-Length: 0\r\n{headers}\r\n");
        let mut counts = count_of(&proxy, RUNS * RUN, &request);
        counts.values_mut().for_each(|count| *count /= RUNS);
        counts
    };
    let shares = [("P1", 750), ("L1", 150), ("L2", 100)];
    assert_shares(&ask("GET /beta/1", "tester: yes\r\n"), &shares);
    assert_shares(&ask("PUT /", ""), &shares);
    let local = [("L1", 500), ("L2", 500)];
    assert_shares(&ask("GET /beta/1", ""), &local);
    assert_shares(&ask("GET /", "tester: yes\r\n"), &local);
    // it says why
    let at = format!("http://web.example:{}", proxy.edge.port());
    let page = |line: &str| proxy.page(&format!("/explain?url={at}{line}"));
    let taken = page("/beta&header=tester:%20yes");
    assert!(taken.contains("web.ns1.svc.c2.global"), "{taken}");
    let left = page("/beta");
    assert!(!left.contains("web.ns1.svc.c2.global"), "{left}");
    assert!(left.contains("policy headers[tester].present"), "{left}");
    // sources that the proxy is none of
    let others = matchers.replace("clusters: [c1]", "clusters: [c2]");
    let elsewhere = shifting(&world, &other, (&applied(&others), ""));
    let put = "PUT / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 0\r\n\r\n";
    assert_shares(&count_of(&elsewhere, RUN, put), &local);
}

#[test]
fn scenario_73_workload_labels_define_a_subset_without_a_rule() {
    let world = World::new();
    let locals = [(&world.l1, "v1", "a"), (&world.l2, "v2", "a")];
    let here = Of {
        cluster: "c1",
        workloads: &locals,
        status: &shift("").replace(
            "name: web, namespace: ns1, clusterName: c2",
            "name: shop, namespace: ns1, clusterName: c2",
        ),
    };
    let run = |more: &str| {
        let proxy = world.proxy(Setup {
            host: "web.ns1.svc.cluster.local, subset: version-v2",
            rule: "",
            more,
            ..Setup::default()
        });
        count(&proxy, 50)
    };
    let own = here.text();
    assert_eq!(run(&own), BTreeMap::from([("L2".to_owned(), 50)]));
    // a rule that has a subset of that name is asked first
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
                spec: {host: web, subsets: [{name: version-v2, labels: {version: v1}}]}\n";
    let both = documents([own.as_str(), rule]);
    assert_eq!(
        run(both.trim_start_matches("---\n")),
        BTreeMap::from([("L1".to_owned(), 50)])
    );
}

#[test]
fn scenario_75_zones_of_a_destination_fail_over_by_their_capacity() {
    let world = World::new();
    let sites = ["A1", "A2", "B1", "B2"].map(Site::new);
    let [a1, a2, b1, b2] = &sites;
    let workloads = [
        (a1, "v1", "a"),
        (a2, "v1", "a"),
        (b1, "v1", "b"),
        (b2, "v1", "b"),
    ];
    let there = Of {
        cluster: "c2",
        workloads: &workloads,
        status: "",
    };
    let rule = format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: global}}\n\
         spec: {{host: web.ns1.svc.c2.global, trafficPolicy: {EJECTS_AT_ONCE}}}\n"
    );
    let more = documents([there.text(), rule]);
    let proxy = world.proxy(Setup {
        host: "web.ns1.svc.c2.global",
        rule: "",
        more: more.trim_start_matches("---\n"),
        arguments: &["--gloo-mesh", "a.gloo-mesh", "--locality", "r1/a"],
        ..Setup::default()
    });
    assert_shares(&count(&proxy, RUN), &[("A1", 500), ("A2", 500)]);
    eject(&proxy, &[a1]);
    assert_shares(&mean(&proxy), &[("A2", 700), ("B1", 150), ("B2", 150)]);
}

/// Returns the time in hundredths of a second until the next keepalive probe of the connection to this address, if any.
fn probed_in(to: SocketAddr) -> Option<u64> {
    let SocketAddr::V4(to) = to else {
        panic!("tests are on IPv4")
    };
    let address = u32::from_le_bytes(to.ip().octets());
    let wanted = format!("{address:08X}:{:04X}", to.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut timers = table.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_it = *columns.get(2)? == wanted && *columns.get(3)? == "01";
        let (kind, when) = columns.get(5)?.split_once(':')?;
        (is_it && kind == "02").then(|| u64::from_str_radix(when, 16).unwrap())
    });
    timers.next()
}

#[test]
fn scenario_94_tcp_keepalive_of_a_destination_probes_remote_connections() {
    let run = |more: &str| {
        let world = World::new();
        let other = Site::new("P1");
        let locals = [(&world.l1, "v1", "a")];
        let (here, there) = (
            Of {
                cluster: "c1",
                workloads: &locals,
                status: "",
            },
            Of {
                cluster: "c2",
                workloads: &[(&other, "v1", "a")],
                status: "",
            },
        );
        let more = documents([here.text(), there.text(), more.to_owned()]);
        let proxy = world.proxy(Setup {
            local: 1,
            policy: "{lbType: ActiveActive, targets: [{clusterKey: c1}, {clusterKey: c2}]}",
            more: more.trim_start_matches("---\n"),
            rule: "",
            arguments: IN_MESH_A,
            ..Setup::default()
        });
        let counts = count(&proxy, 20);
        assert_shares(&counts, &[("L1", 10), ("P1", 10)]);
        eventually("the timer runs", || probed_in(other.address()).is_some());
        (
            probed_in(other.address()).unwrap(),
            probed_in(world.l1.address()),
        )
    };
    let (other, own) = run("");
    assert!((1..=1_000).contains(&other), "within 10 s: {other}");
    assert_eq!(own, None, "workloads of the local cluster are left alone");
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
                spec: {host: web, trafficPolicy: {connectionPool: {tcp: {tcpKeepalive: {time: 7200s}}}}}\n";
    let (other, own) = run(rule);
    assert!(other > 600_000, "a rule counts first: {other}");
    assert!(own.is_some_and(|own| own > 600_000));
}
