//! Capture by Istio's CNI plugin, the gateway template, and containers of the user that are merged into the proxy.

use inject::{Settings, uninject};
use serde_json::{Value, json};

use super::{annotated, container, injected, names, pod, variable};

/// Conditions under which Istio's CNI plugin sets rules up for a pod.
fn is_captured_by_plugin(pod: &Value) -> bool {
    let annotation = |name: &str| pod["metadata"]["annotations"][name].as_str();
    let label = &pod["metadata"]["labels"]["sidecar.istio.io/inject"];
    let proxy = container(pod, "istio-proxy");
    let env = proxy["env"].as_array().into_iter().flatten();
    let is_disabled = env
        .into_iter()
        .any(|one| one["name"] == "DISABLE_ENVOY" && one["value"] == "true");
    proxy.is_object()
        && container(pod, "istio-init").is_null()
        && annotation("sidecar.istio.io/status").is_some()
        && label != "false"
        && annotation("sidecar.istio.io/inject") != Some("false")
        && (proxy["args"][0] != "proxy" || proxy["args"][1] == "sidecar")
        && !is_disabled
}

#[test]
fn istio_cni_finds_what_it_looks_for() {
    let settings = Settings::default().with_one("capture=istio-cni").unwrap();
    let original = annotated("config.linkerd.io/skip-outbound-ports", "3306");
    let done = injected(&original, &settings);
    assert!(is_captured_by_plugin(&done.pod), "{:#}", done.pod);
    assert_eq!(
        names(&done.pod, "initContainers"),
        ["strait-validate", "istio-proxy"]
    );
    let annotations = &done.pod["metadata"]["annotations"];
    assert_eq!(
        annotations["traffic.sidecar.istio.io/excludeOutboundPorts"],
        "3306"
    );
    for name in ["strait-validate", "istio-proxy"] {
        let security = &container(&done.pod, name)["securityContext"];
        assert_eq!(
            (&security["runAsUser"], &security["capabilities"]),
            (&json!(1337), &json!({"drop": ["ALL"]}))
        );
    }
    assert_eq!(injected(&done.pod, &settings).pod, done.pod);
    assert_eq!(uninject(&done.pod), Ok(original));
}

#[test]
fn gateway_takes_the_place_of_the_container_with_image_auto() {
    let mut original = pod(json!({
        "labels": {"istio": "ingress", "sidecar.istio.io/inject": "true", "istio.io/rev": "strait"},
        "annotations": {"inject.istio.io/templates": "gateway"},
    }));
    original["spec"]["containers"] = json!([{
        "name": "istio-proxy", "image": "auto", "env": [{"name": "TZ", "value": "UTC"}],
        "ports": [{"name": "http-envoy-prom", "containerPort": 15090}],
        "resources": {"requests": {"cpu": "100m"}},
    }]);
    let done = injected(&original, &Settings::default());
    let proxy = container(&done.pod, "istio-proxy");
    assert_eq!(names(&done.pod, "containers"), ["istio-proxy"]);
    assert!(names(&done.pod, "initContainers").is_empty());
    assert_eq!(
        (&proxy["image"], &proxy["args"]),
        (&json!(Settings::default().image), &json!(["run"]))
    );
    let env = proxy["env"].as_array().unwrap();
    assert!(env.contains(&json!({"name": "STRAIT_MODE", "value": "gateway"})));
    assert!(env.contains(&json!({"name": "TZ", "value": "UTC"})));
    assert_eq!(proxy["securityContext"]["runAsUser"], 1337);
    assert_eq!(
        proxy["resources"]["requests"],
        json!({"cpu": "100m", "memory": "32Mi"})
    );
    let sysctl = json!([{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]);
    assert_eq!(done.pod["spec"]["securityContext"]["sysctls"], sysctl);
    assert_eq!(uninject(&done.pod), Ok(original));
}

#[test]
fn container_of_the_user_is_merged_but_for_what_the_proxy_depends_on() {
    let mut original = pod(json!({}));
    let of_user = json!({
        "name": "istio-proxy", "image": "auto", "args": ["x"], "resources": {"requests": {"cpu": "1200m"}, "limits": {"memory": "1Gi"}},
        "env": [{"name": "STRAIT_MODE", "value": "gateway"}, {"name": "A", "value": "b"}],
        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
        "volumeMounts": [{"name": "x", "mountPath": "/x"}],
    });
    original["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .insert(0, of_user);
    let done = injected(&original, &Settings::default());
    let proxy = container(&done.pod, "strait-proxy");
    assert_eq!(names(&done.pod, "containers"), ["web"]);
    assert_eq!(proxy["args"], json!(["run"]));
    assert_eq!(
        variable(&done.pod, "STRAIT_MODE").as_deref(),
        Some("sidecar")
    );
    assert_eq!(variable(&done.pod, "A").as_deref(), Some("b"));
    assert_eq!(proxy["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(
        variable(&done.pod, "STRAIT_CONCURRENCY").as_deref(),
        Some("2")
    );
    assert_eq!(
        proxy["lifecycle"],
        json!({"preStop": {"sleep": {"seconds": 3}}})
    );
    assert!(proxy["volumeMounts"].as_array().unwrap().len() > 1);
    assert_eq!(done.findings[0].code, "IN004");
    assert_eq!(uninject(&done.pod), Ok(original));
}

#[test]
fn start_of_the_workload_waits_for_a_proxy_beside_it() {
    let settings = Settings::default()
        .with(&json!({"holdApplication": true, "nativeSidecar": false}))
        .unwrap();
    let done = injected(&pod(json!({})), &settings);
    assert_eq!(names(&done.pod, "containers"), ["strait-proxy", "web"]);
    let hook = &container(&done.pod, "strait-proxy")["lifecycle"]["postStart"];
    assert_eq!(hook["exec"]["command"], json!(["/strait", "wait"]));
}
