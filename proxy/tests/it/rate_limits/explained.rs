//! Limits in `strait explain` and in dumps.

use std::process::Command;

use super::{ALL, Edge, hourly, policy};

#[test]
fn explain_shows_the_limits_that_count_a_request() {
    let edge = Edge::start(&[]);
    let rules = [
        hourly(10, "{sourceCIDR: {type: Distinct, value: 0.0.0.0/0}}"),
        format!("{}, shadowMode: true", hourly(5, "{path: {value: /api}}")),
        hourly(1, "{headers: [{name: x-user, type: Distinct}]}"),
    ];
    let rules = rules.join("}, {");
    let fields =
        format!("rateLimit: {{local: {{rules: [{{{rules}}}]}}}}, requestBuffer: {{limit: 1Ki}}");
    edge.set(&[policy("own", ALL, &fields)]);
    let admin = edge.proxy.admin.to_string();
    let url = format!("http://a.test:{}/", edge.proxy.edge.port());
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["explain", "--admin", &admin, &url])
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    for part in [
        "limit       10 per 3600s for each client: counts this request  BackendTrafficPolicy/default/own (",
        "5 per 3600s, in shadow mode: does not: path  BackendTrafficPolicy/default/own (",
        "1 per 3600s for each client: does not: headers[x-user]  ",
        "body of at most 1024 bytes, unless it is gRPC  BackendTrafficPolicy/default/own (",
        "policies.yaml:",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let dump = edge.proxy.page("/config_dump");
    assert!(
        dump.contains("\"limits\": \"BackendTrafficPolicy/default/own")
            || dump.contains("\"limits\":\"Backend"),
        "{dump}"
    );
}
