//! Exports of a gateway to other clusters: scenarios 49 to 55, 57 and 97.

use super::*;

/// Starts a gateway of c1 with workloads of ns1/web and these exports, without a VirtualService for the host.
pub(super) fn gateway_of(world: &World, local: usize, more: &[String]) -> Proxy {
    gateway_of_with(world, local, more, &[])
}

fn gateway_of_with(world: &World, local: usize, more: &[String], arguments: &[&str]) -> Proxy {
    let start = Start::new();
    let mut all = vec![
        gateway(&[start.edge()]),
        routes(
            "elsewhere",
            "[shop.example]",
            "- {route: [{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}]}",
        ),
        "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
         spec: {ports: [{name: http, port: 80}]}\n"
            .to_owned(),
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
         spec: {host: web, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n"
            .to_owned(),
        world.import(),
    ];
    let locals = [&world.l1, &world.l2];
    for (number, site) in locals.iter().take(local).enumerate() {
        all.push(slice(number, "", site.address()));
    }
    all.extend(more.iter().cloned());
    start
        .args(["--cluster", "c1"].iter().chain(arguments).copied())
        .file("mesh.yaml", documents(all))
        .start()
}

pub(super) fn export(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: ServiceExport\nmetadata: {{namespace: ns1, name: {name}}}\nspec: {spec}\n"
    )
}

/// Returns the status of a GET request, and the path that the workload received.
fn get(proxy: &Proxy, world: &World, path: &str) -> (u16, Option<String>) {
    let before = world.l1.paths().len();
    let mut client = Raw::connect(proxy.edge);
    let reply = ask(
        &mut client,
        &format!("GET {path} HTTP/1.1\r\nHost: web.ns1\r\n\r\n"),
    );
    (reply.status, world.l1.paths().get(before).cloned())
}

#[test]
fn scenario_49_exported_paths_are_rewritten_to_workload_paths() {
    let world = World::new();
    let stripped = export(
        "web",
        "{rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}], \
         pathRewrite: {from: '^/c1/web/?', to: '/'}}",
    );
    let proxy = gateway_of(&world, 1, &[stripped]);
    let seen = |path: &str| (200, Some(path.to_owned()));
    assert_eq!(get(&proxy, &world, "/c1/web"), seen("/"));
    assert_eq!(get(&proxy, &world, "/c1/web/x?q=1"), seen("/x?q=1"));
    assert_eq!(get(&proxy, &world, "/c1/web/c1/web/x"), seen("/c1/web/x"));
    assert_eq!(get(&proxy, &world, "/c1/webx"), (404, None));
    let hosts = world.l1.origin.seen();
    assert!(hosts.iter().all(|seen| seen.host() == "web.ns1"));
}

#[test]
fn scenarios_50_and_51_exact_paths_match_whole_and_no_rewrite_keeps_the_path() {
    let world = World::new();
    let exact = export(
        "web",
        "{rules: [{portNumber: 80, path: /c1/web, pathType: Exact}, \
         {portNumber: 81, path: /none, pathType: Prefix}]}",
    );
    let proxy = gateway_of(&world, 1, &[exact]);
    assert_eq!(
        get(&proxy, &world, "/c1/web"),
        (200, Some("/c1/web".to_owned()))
    );
    assert_eq!(get(&proxy, &world, "/c1/web/"), (404, None));
    assert_eq!(
        get(&proxy, &world, "/none/x"),
        (404, None),
        "the service has no such port"
    );
}

#[test]
fn scenarios_55_and_97_invalid_exports_add_no_route() {
    let outside = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: outside}\n\
                   spec: {type: ExternalName, externalName: example.com, ports: [{name: http, port: 80}]}\n";
    let rules = "rules: [{portNumber: 80, path: /x, pathType: Prefix}]";
    let backwards = format!("{{{rules}, pathRewrite: {{from: '(?<=a)b', to: /}}}}");
    let plain = format!("{{{rules}}}");
    let rows = [
        ("web", &plain, 200),
        ("web", &backwards, 404),
        ("outside", &plain, 404),
        ("missing", &plain, 404),
    ];
    for (name, spec, status) in rows {
        let world = World::new();
        let more = [outside.to_owned(), export(name, spec)];
        let proxy = gateway_of(&world, 1, &more);
        assert_eq!(get(&proxy, &world, "/x").0, status, "{name} {spec}");
    }
}

/// Sends a GET request that a proxy in front marks as that of this client.
fn get_for(proxy: &Proxy, path: &str, client: usize) -> Reply {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: web.ns1\r\nX-Forwarded-For: 10.0.0.{client}\r\n\r\n");
    ask(&mut Raw::connect(proxy.edge), &request)
}

#[test]
fn scenario_52_source_ip_hashing_gives_each_client_one_workload() {
    let world = World::new();
    let more = [
        slice(7, "", world.g2.address()),
        slice(8, "", world.g3.address()),
        export(
            "web",
            "{rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}], loadBalancer: hashing}",
        ),
    ];
    let proxy = gateway_of_with(&world, 2, &more, &["--trusted-hops", "1"]);
    let mut all = Vec::new();
    for client in 1..=10 {
        let mut theirs: Vec<_> = (0..100)
            .map(|_| who(&get_for(&proxy, "/c1/web/", client)))
            .collect();
        theirs.dedup();
        assert_eq!(theirs.len(), 1, "{client}: {theirs:?}");
        all.append(&mut theirs);
    }
    all.sort();
    all.dedup();
    assert!(all.len() > 1, "clients are spread: {all:?}");
}

#[test]
fn scenario_52_export_load_balancer_hashes_clients_to_workloads() {
    for spec in [
        "loadBalancer: HashingLoadBalancer",
        "loadBalancer: hashing",
        "sessionSticky: true",
    ] {
        let world = World::new();
        let sticky = export(
            "web",
            &format!("{{rules: [{{portNumber: 80, path: /c1/web, pathType: Prefix}}], {spec}}}"),
        );
        let proxy = gateway_of(&world, 2, &[sticky]);
        for _ in 0..20 {
            assert_eq!(get(&proxy, &world, "/c1/web/").0, 200);
        }
        let (one, two) = (world.l1.paths().len(), world.l2.paths().len());
        assert!(
            [(20, 0), (0, 20)].contains(&(one, two)),
            "{spec}: {one} and {two}"
        );
    }
}

#[test]
fn scenario_53_a_sticky_client_moves_once_when_its_workload_is_removed() {
    let world = World::new();
    let sticky = export(
        "web",
        "{rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}], sessionSticky: true}",
    );
    let proxy = gateway_of(&world, 2, &[sticky]);
    let ask_all = || (0..20).for_each(|_| assert_eq!(get(&proxy, &world, "/c1/web/").0, 200));
    ask_all();
    let (home, other) = match world.l1.paths().is_empty() {
        false => (&world.l1, &world.l2),
        true => (&world.l2, &world.l1),
    };
    assert_eq!((home.paths().len(), other.paths().len()), (20, 0));
    let text = std::fs::read_to_string(proxy.mesh().join("mesh.yaml")).unwrap();
    let gone = format!("port: {}", home.address().port());
    let left = text.split("---\n").filter(|part| !part.contains(&gone));
    proxy.write("mesh.yaml", left.collect::<Vec<_>>().join("---\n"));
    eventually("the other serves", || {
        assert_eq!(get(&proxy, &world, "/c1/web/").0, 200);
        !other.paths().is_empty()
    });
    let stayed = home.paths().len();
    ask_all();
    assert_eq!(home.paths().len(), stayed, "it has moved");
    proxy.write("mesh.yaml", text);
    eventually("both may serve", || {
        let clusters = proxy.page("/clusters");
        let address = home.address().to_string();
        clusters
            .lines()
            .any(|line| line.starts_with("exported|") && line.contains(&address))
    });
    ask_all();
    assert_eq!(home.paths().len(), stayed, "it does not go back");
}

#[test]
fn scenario_54_older_of_two_exports_with_one_path_is_used() {
    let world = World::new();
    let rule = "{rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}]}";
    let other = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: other}\nspec: {ports: [{name: http, port: 80}]}\n";
    let dated = "name: other, creationTimestamp: '2025-01-02T00:00:00Z'";
    let younger = export("other", rule).replacen("name: other", dated, 1);
    let proxy = gateway_of(&world, 1, &[younger, other.to_owned(), export("web", rule)]);
    assert_eq!(get(&proxy, &world, "/c1/web/").0, 200);
}

#[test]
fn scenario_57_an_export_never_leaves_its_cluster() {
    let world = World::new();
    let rule = "{rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}]}";
    let everywhere =
        policy("{lbType: ActiveActive, targets: [{clusterKey: c2}, {clusterKey: c3}]}");
    let proxy = gateway_of(&world, 0, &[export("web", rule), everywhere]);
    assert_eq!(get(&proxy, &world, "/c1/web/").0, 503);
    assert!(world.g2.paths().is_empty() && world.g3.paths().is_empty());
}

#[test]
fn an_export_is_balanced_round_robin_by_default() {
    let rules = "rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}]";
    for spec in [
        "",
        ", loadBalancer: round-robin",
        ", loadBalancer: RoundRobinLoadBalancer",
    ] {
        let world = World::new();
        let start = Start::new();
        let all = [
            gateway(&[start.edge()]),
            "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
             spec: {ports: [{name: http, port: 80}]}\n"
                .to_owned(),
            slice(1, "", world.l1.address()),
            slice(2, "", world.l2.address()),
            slice(3, "", world.g2.address()),
            slice(4, "", world.g3.address()),
            export("web", &format!("{{{rules}{spec}}}")),
        ];
        let proxy = start
            .args(["--cluster", "c1"])
            .file("mesh.yaml", documents(all))
            .start();
        let get = "GET /c1/web/ HTTP/1.1\r\nHost: web.ns1\r\n\r\n";
        let counts = count_of(&proxy, 40, get);
        assert!(
            counts.values().all(|count| *count == 10),
            "{spec}: {counts:?}"
        );
    }
}
