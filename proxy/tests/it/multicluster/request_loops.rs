//! Clusters whose gateways route the same host by the same policy and export to each other: a request from another
//! cluster ends at the local cluster.

use super::*;

/// Returns the resources of every cluster: the route, the service, and a policy for c1 and c2.
fn everywhere(edge: SocketAddr, kind: &str) -> Vec<String> {
    vec![
        gateway(&[edge]),
        routes(
            "web",
            "[web.example]",
            "- {retries: {attempts: 0}, route: [{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}]}",
        ),
        "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{name: http, port: 80}]}\n"
            .to_owned(),
        policy(&format!(
            "{{lbType: {kind}, targets: [{{clusterKey: c1}}, {{clusterKey: c2}}]}}"
        )),
    ]
}

/// Returns an import from the gateway of that cluster.
fn import(cluster: &str, at: SocketAddr) -> String {
    let (ip, port) = (at.ip(), at.port());
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{ports: [{{name: http, port: 80, endpoints: [{{clusterKey: default/default/default/{cluster}, \
         target: {{host: '', ip: {ip}, port: {port}, path: /{cluster}/web}}}}]}}]}}\n"
    )
}

fn export(cluster: &str) -> String {
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: ServiceExport\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{rules: [{{portNumber: 80, path: /{cluster}/web, pathType: Prefix}}], \
         pathRewrite: {{from: '^/{cluster}/web/?', to: '/'}}}}\n"
    )
}

/// Starts the gateways of c1 and c2, each with an import from the other and additional documents.
fn pair(kind: &str, of_c1: &[String], of_c2: &[String]) -> [Proxy; 2] {
    let (one, two) = (Start::new(), Start::new());
    let (to_one, to_two) = (import("c1", one.edge()), import("c2", two.edge()));
    let start = |start: Start, cluster: &str, import: String, more: &[String]| {
        let mut all = everywhere(start.edge(), kind);
        all.push(import);
        all.extend(more.iter().cloned());
        let start = start.args(["--cluster", cluster]);
        start.file("mesh.yaml", documents(all)).start()
    };
    [
        start(one, "c1", to_two, of_c1),
        start(two, "c2", to_one, of_c2),
    ]
}

#[test]
fn gateways_with_one_virtual_service_never_return_remote_traffic() {
    let world = World::new();
    let [of_c1, _of_c2] = pair(
        "ActiveActive",
        &[slice(0, "", world.l1.address()), export("c1")],
        &[slice(0, "", world.l2.address()), export("c2")],
    );
    let expected = BTreeMap::from([("L1".to_owned(), 100), ("L2".to_owned(), 100)]);
    assert_eq!(count(&of_c1, 200), expected);
    for site in [&world.l1, &world.l2] {
        assert!(site.paths().iter().all(|path| path == "/"), "no prefix");
        let seen = site.origin.seen();
        assert!(
            seen.iter()
                .all(|seen| seen.header("x-strait-from-cluster").is_none())
        );
    }
}

#[test]
fn request_from_a_remote_cluster_is_served_locally_or_fails() {
    let world = World::new();
    // nothing is exported, so that the VirtualService applies to requests from the other cluster
    let local = slice(0, "", world.l2.address());
    let [of_c1, of_c2] = pair("ActiveActive", &[], &[local]);
    assert_eq!(count(&of_c1, 20), BTreeMap::from([("L2".to_owned(), 20)]));
    eventually("each came once", || of_c2.access_log().len() == 20);
    eventually("each is logged", || of_c1.access_log().len() >= 20);
    assert_eq!(of_c1.access_log().len(), 20, "and none came back");
    let [of_c1, of_c2] = pair("ActiveActive", &[], &[]);
    assert_eq!(count(&of_c1, 1), BTreeMap::from([("508".to_owned(), 1)]));
    eventually("it is logged", || of_c2.access_log().len() == 1);
    let line = &of_c2.access_log()[0];
    assert_eq!(line["response_code_details"], "loop_detected");
}

#[test]
fn failed_request_from_a_remote_cluster_is_not_sent_back() {
    let local = slice(0, "", free_address());
    let [of_c1, of_c2] = pair("FailOver", &[], &[local]);
    assert_eq!(count(&of_c1, 10), BTreeMap::from([("503".to_owned(), 10)]));
    eventually("all are logged", || {
        [&of_c1, &of_c2].map(|proxy| proxy.access_log().len()) == [10, 10]
    });
}

#[test]
fn request_to_a_remote_cluster_names_its_source_cluster() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        local: 0,
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c2}]}",
        ..Setup::default()
    });
    let request = "GET / HTTP/1.1\r\nHost: web.example\r\nx-b3: 1\r\n\r\n";
    assert_eq!(count_of(&proxy, 2, request).len(), 1);
    for seen in world.g2.origin.seen() {
        let from = seen.header("x-strait-from-cluster");
        assert_eq!(from, Some("default/default/default/c1"));
    }
}
