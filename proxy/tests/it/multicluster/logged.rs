//! Access log: source cluster, destination cluster and tier of a request.

use serde_json::Value;

use super::*;

const LOCAL: &str = "default/default/default/c1";
const BACKUP: &str = "default/default/default/c2";

/// Returns the last line of the log, once it has this many lines.
fn last(proxy: &Proxy, lines: usize) -> Value {
    eventually("all are logged", || proxy.access_log().len() == lines);
    proxy.access_log().pop().unwrap()
}

/// Cluster, tier and number of attempts of a line.
fn way(line: &Value) -> (&str, Option<u64>, u64) {
    (
        line["destination_cluster"].as_str().unwrap_or_default(),
        line["destination_tier"].as_u64(),
        line["upstream_request_attempt_count"].as_u64().unwrap(),
    )
}

#[test]
fn a_line_has_the_cluster_the_tier_and_the_attempt_count() {
    let world = World::new();
    let failover = Setup {
        local: 1,
        policy: "{lbType: FailOver, targets: [{clusterKey: c2}]}",
        ..Setup::default()
    };
    let proxy = world.proxy(failover);
    count(&proxy, 1);
    assert_eq!(way(&last(&proxy, 1)), (LOCAL, Some(0), 1));
    world.l1.answers(503);
    count(&proxy, 1);
    assert_eq!(way(&last(&proxy, 2)), (BACKUP, Some(1), 2));

    world.l1.answers(200);
    let without = Setup {
        policy: "",
        ..failover
    };
    let proxy = world.proxy(without);
    count(&proxy, 1);
    assert_eq!(way(&last(&proxy, 1)), ("c1", None, 1));

    let nobody = Setup {
        local: 0,
        ..without
    };
    let proxy = world.proxy(nobody);
    count(&proxy, 1);
    assert_eq!(way(&last(&proxy, 1)), ("", None, 0));
}

#[test]
fn an_unknown_port_and_an_unknown_service_have_distinct_details() {
    let start = Start::new();
    let to = |host: &str, port: u16| {
        format!(
            "- {{match: [{{uri: {{exact: /{port}}}}}], \
             route: [{{destination: {{host: {host}, port: {{number: {port}}}}}}}]}}\n"
        )
    };
    let service = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
                   spec: {ports: [{name: http, port: 80}]}\n";
    let rules = to("web.ns1.svc.cluster.local", 81) + &to("missing.ns1.svc.cluster.local", 82);
    let text = documents([
        gateway(&[start.edge()]),
        routes("all", "['*']", &rules),
        service.to_owned(),
    ]);
    let proxy = start.file("mesh.yaml", text).start();
    let rows = [
        ("/81", "cluster_not_found{port_not_exported}"),
        ("/82", "cluster_not_found"),
    ];
    for (lines, (path, details)) in (1..).zip(rows) {
        let request = GET.replace("GET /", &format!("GET {path}"));
        assert_eq!(count_of(&proxy, 1, &request)["503"], 1, "{path}");
        let line = last(&proxy, lines);
        assert_eq!(line["response_code_details"], details);
        assert_eq!(line["response_flags"], "NC");
    }
}

#[test]
fn a_retry_without_an_endpoint_logs_the_reason() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        local: 0,
        host: "other.ns1.svc.cluster.local",
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c2}]}",
        rule: EJECTS_AT_ONCE,
        more: "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\n\
               spec: {hosts: [web.example], gateways: [edge], http: [{retries: {attempts: 2, retryOn: 5xx}, \
               route: [{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}]}]}\n",
        ..Setup::default()
    });
    world.g2.answers(503);
    count(&proxy, 1);
    let line = last(&proxy, 1);
    assert_eq!(
        line["response_code_details"],
        "no_healthy_upstream{all_ejected}"
    );
    assert_eq!(way(&line).2, 1);
}
