//! Ejections and panic mode of services in several clusters: scenarios 81 to 83.

use super::*;

/// Runs a scenario with four workloads of the local cluster, three of which outlier detection ejects by this
/// trafficPolicy.
fn three_of_four_out(policy: &str) -> (Proxy, World, [Site; 2]) {
    let world = World::new();
    let more = [Site::new("L3"), Site::new("L4")];
    let rule = "{loadBalancer: {simple: ROUND_ROBIN}, outlierDetection: {consecutive5xxErrors: 1, interval: 1s, \
                baseEjectionTime: 60s, maxEjectionPercent: 100, minHealthPercent: 50}}";
    let slices = documents([
        slice(3, "", more[0].address()),
        slice(4, "", more[1].address()),
    ]);
    let proxy = world.proxy(Setup {
        policy,
        rule,
        more: slices.trim_start_matches("---\n"),
        ..Setup::default()
    });
    eject(&proxy, &[&world.l1, &world.l2, &more[0]]);
    (proxy, world, more)
}

#[test]
fn scenario_81_panic_mode_needs_all_clusters_unavailable() {
    let (proxy, _world, _more) = three_of_four_out("{lbType: Locality}");
    let quarters: &[(&str, usize)] = &[("L1", 250), ("L2", 250), ("L3", 250), ("L4", 250)];
    assert_shares(&count(&proxy, RUN), quarters);
    let backup = "{lbType: FailOver, targets: [{clusterKey: c2}]}";
    let (proxy, _world, _more) = three_of_four_out(backup);
    assert_shares(&count(&proxy, RUN), &[("L4", 1000)]);
}

#[test]
fn panic_mode_of_a_cluster_is_reported_only_without_other_clusters() {
    let panics = |proxy: &Proxy| {
        let told = proxy.page("/events").contains("enters panic mode");
        let shown = proxy.page("/clusters").contains("panic_mode=true");
        (
            proxy.metric("strait_panic_mode_entries_total", &[]),
            told,
            shown,
        )
    };
    let (proxy, _world, _more) = three_of_four_out("{lbType: Locality}");
    eventually("it panics", || panics(&proxy) == (1.0, true, true));
    let backup = "{lbType: FailOver, targets: [{clusterKey: c2}]}";
    let (proxy, world, more) = three_of_four_out(backup);
    assert_eq!(panics(&proxy), (0.0, false, false));
    eject(&proxy, &[&more[1]]);
    assert_shares(&count(&proxy, RUN), &[("g2", 1000)]);
    assert_eq!(panics(&proxy), (0.0, false, false));
    eject(&proxy, &[&world.g2]);
    let quarters: &[(&str, usize)] = &[("L1", 250), ("L2", 250), ("L3", 250), ("L4", 250)];
    assert_shares(&count(&proxy, RUN), quarters);
    eventually("now it panics", || panics(&proxy) == (1.0, true, true));
}

#[test]
fn scenario_82_the_only_gateway_of_a_cluster_is_ejected_despite_the_cap() {
    let world = World::new();
    let rule = "{loadBalancer: {simple: ROUND_ROBIN}, \
                outlierDetection: {consecutive5xxErrors: 1, interval: 1s, baseEjectionTime: 60s}}";
    let proxy = world.proxy(Setup {
        local: 0,
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}, {clusterKey: c3, weight: 50}]}",
        rule,
        ..Setup::default()
    });
    eject(&proxy, &[&world.g2]);
    assert_shares(&count(&proxy, RUN), &[("g3", 1000)]);
}

#[test]
fn scenario_83_a_gateway_is_ejected_per_service() {
    let gateway = Origin::start(Back::H1, |request| {
        let broken = request.uri().path().starts_with("/c2/web");
        async move {
            let mut response = Response::new(full("g2"));
            let status = if broken { 500 } else { 200 };
            *response.status_mut() = status.try_into().unwrap();
            response
        }
    });
    let world = World::new();
    let of = |name: &str, text: String| text.replace("name: web}", &format!("name: {name}}}"));
    let start = Start::new();
    let active = "{lbType: ActiveActive, targets: [{clusterKey: c2}]}";
    let setup = Setup {
        local: 0,
        policy: active,
        rule: EJECTS_AT_ONCE,
        ..Setup::default()
    };
    let address = world.g2.address();
    let import = world.import().replace("/c2/web", "/c2/fine");
    let rule = format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{namespace: ns1, name: fine}}\n\
         spec: {{host: fine, trafficPolicy: {EJECTS_AT_ONCE}}}\n"
    );
    let fine = routes(
        "fine",
        "[fine.example]",
        "- {retries: {attempts: 0}, route: [{destination: {host: fine.ns1.svc.cluster.local, port: {number: 80}}}]}",
    );
    let mesh = world.mesh(start.edge(), setup);
    let text = documents([
        mesh.as_str(),
        &of("fine", import),
        &of("fine", policy(active)),
        &rule,
        &fine,
    ]);
    let text = text.replace("---\n---\n", "---\n").replace(
        &format!("ip: {}, port: {}", address.ip(), address.port()),
        &format!(
            "ip: {}, port: {}",
            gateway.address.ip(),
            gateway.address.port()
        ),
    );
    let proxy = start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start();
    let get = |host: &str| {
        let mut client = Raw::connect(proxy.edge);
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        ask(&mut client, &request).status
    };
    assert_eq!(get("web.example"), 500);
    eventually("the broken service's gateway is ejected", || {
        get("web.example") == 503
    });
    (0..50).for_each(|_| assert_eq!(get("fine.example"), 200));
    assert_eq!(get("web.example"), 503);
}
