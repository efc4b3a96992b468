//! Probes and hooks that the proxy answers.

use inject::{Settings, uninject};
use serde_json::{Value, json};

use super::{container, injected, pod, refused, variable};

fn with_container(container: Value) -> Value {
    let mut pod = pod(json!({}));
    pod["spec"]["containers"] = json!([container]);
    pod
}

fn probers(pod: &Value) -> Value {
    variable(pod, "STRAIT_APP_PROBERS")
        .map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

#[test]
fn probes_and_hooks_are_answered_by_the_proxy() {
    let mut original = with_container(json!({
        "name": "web", "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"periodSeconds": 3, "httpGet": {"path": "/ready", "port": "http", "scheme": "HTTPS", "httpHeaders": [{"name": "a", "value": "b"}]}},
        "livenessProbe": {"tcpSocket": {"port": 8080}, "timeoutSeconds": 4},
        "startupProbe": {"grpc": {"port": 9090}},
        "lifecycle": {"postStart": {"exec": {"command": ["x"]}}, "preStop": {"httpGet": {"port": 8080}}},
    }));
    original["spec"]["initContainers"] = json!([
        {"name": "once", "readinessProbe": {"tcpSocket": {"port": 1}}},
        {"name": "side", "restartPolicy": "Always", "livenessProbe": {"tcpSocket": {"port": 9000}}},
    ]);
    let done = injected(&original, &Settings::default());
    let web = container(&done.pod, "web");
    let get = |path: &str| json!({"path": path, "port": 15021, "scheme": "HTTP"});
    assert_eq!(
        web["readinessProbe"],
        json!({"periodSeconds": 3, "httpGet": get("/app-health/web/readyz")})
    );
    assert_eq!(
        web["livenessProbe"],
        json!({"httpGet": get("/app-health/web/livez"), "timeoutSeconds": 4})
    );
    assert_eq!(
        web["lifecycle"]["postStart"],
        json!({"exec": {"command": ["x"]}})
    );
    assert_eq!(
        web["lifecycle"]["preStop"],
        json!({"httpGet": get("/app-lifecycle/web/prestopz")})
    );
    assert_eq!(
        container(&done.pod, "once")["readinessProbe"],
        json!({"tcpSocket": {"port": 1}})
    );
    let expected = json!({
        "/app-health/side/livez": {"tcpSocket": {"port": 9000}},
        "/app-health/web/readyz": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTPS", "httpHeaders": [{"name": "a", "value": "b"}]}},
        "/app-health/web/livez": {"tcpSocket": {"port": 8080}, "timeoutSeconds": 4},
        "/app-health/web/startupz": {"grpc": {"port": 9090}},
        "/app-lifecycle/web/prestopz": {"httpGet": {"port": 8080}},
    });
    assert_eq!(probers(&done.pod), expected);
    assert_eq!(uninject(&done.pod), Ok(original));
}

#[test]
fn probes_that_the_kubelet_reaches_itself_stay() {
    let probe = json!({"httpGet": {"path": "/", "port": 9000}});
    for settings in [
        json!({"inboundPorts": {"exclude": "9000"}}),
        json!({"inboundPorts": {"include": "8080"}}),
        json!({"capture": "none"}),
        json!({"rewriteProbes": false}),
    ] {
        let settings = Settings::default().with(&settings).unwrap();
        let done = injected(
            &with_container(json!({"name": "web", "readinessProbe": probe})),
            &settings,
        );
        assert_eq!(
            container(&done.pod, "web")["readinessProbe"],
            probe,
            "{settings:?}"
        );
        assert_eq!(probers(&done.pod), Value::Null);
    }
    let hosted = json!({"httpGet": {"host": "example.com", "port": 80}});
    let done = injected(
        &with_container(json!({"name": "web", "livenessProbe": hosted})),
        &Settings::default(),
    );
    assert_eq!(container(&done.pod, "web")["livenessProbe"], hosted);
    assert_eq!(done.findings[0].code, "IN006");
}

#[test]
fn probe_of_an_unknown_port_is_refused() {
    for port in [json!("http"), json!(0), json!(70_000), Value::Null] {
        let pod =
            with_container(json!({"name": "web", "readinessProbe": {"tcpSocket": {"port": port}}}));
        let refusal = refused(&pod, &Settings::default());
        assert_eq!(refusal.reason, "unknown_port");
        assert!(
            refusal
                .message
                .contains("container `web`: `readinessProbe`"),
            "{refusal}"
        );
    }
}

#[test]
fn container_that_another_webhook_adds_gets_its_probes_rewritten_too() {
    let original =
        with_container(json!({"name": "web", "readinessProbe": {"tcpSocket": {"port": 80}}}));
    let mut pod = injected(&original, &Settings::default()).pod;
    let added = json!({"name": "late", "readinessProbe": {"tcpSocket": {"port": 81}}});
    pod["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .push(added);
    let again = injected(&pod, &Settings::default()).pod;
    let all = probers(&again);
    assert_eq!(all.as_object().unwrap().len(), 2, "{all}");
    assert_eq!(
        container(&again, "late")["readinessProbe"]["httpGet"]["port"],
        15021
    );
}

#[test]
fn record_that_is_too_long_is_refused() {
    let headers: Vec<Value> = (0..1000)
        .map(|n| json!({"name": format!("h{n}"), "value": "x".repeat(40)}))
        .collect();
    let pod = with_container(
        json!({"name": "web", "readinessProbe": {"httpGet": {"port": 80, "httpHeaders": headers}}}),
    );
    assert_eq!(
        refused(&pod, &Settings::default()).reason,
        "record_too_long"
    );
}
