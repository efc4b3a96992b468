//! Annotations that people have: a good value has its effect, a bad one is refused with the name of the annotation.

use inject::Settings;
use serde_json::{Value, json};

use super::{annotated, capture_args, container, injected, names, pod, refused, variable};

/// Annotation, a good value, and what shows its effect.
type Row = (&'static str, &'static str, fn(&Value) -> bool);

fn proxy(pod: &Value) -> &Value {
    container(pod, "strait-proxy")
}

const ROWS: &[Row] = &[
    ("sidecar.istio.io/interceptionMode", "TPROXY", |pod| {
        capture_args(pod).contains("--interception-mode=TPROXY")
            && variable(pod, "STRAIT_INTERCEPTION_MODE").as_deref() == Some("TPROXY")
            && proxy(pod)["securityContext"]["runAsUser"] == 0
            && proxy(pod)["securityContext"]["capabilities"]["add"] == json!(["NET_ADMIN"])
    }),
    ("sidecar.istio.io/interceptionMode", "NONE", |pod| {
        names(pod, "initContainers") == ["strait-proxy"]
            && variable(pod, "STRAIT_HTTP_PROXY_LISTENER").as_deref() == Some("127.0.0.1:15007")
    }),
    (
        "traffic.sidecar.istio.io/includeOutboundIPRanges",
        "10.0.0.0/8",
        |pod| capture_args(pod).contains("--include-outbound-cidrs=10.0.0.0/8"),
    ),
    (
        "traffic.sidecar.istio.io/includeOutboundIPRanges",
        "",
        |pod| capture_args(pod).contains("--include-outbound-cidrs="),
    ),
    (
        "traffic.sidecar.istio.io/excludeOutboundIPRanges",
        "169.254.0.0/16",
        |pod| capture_args(pod).contains("--exclude-outbound-cidrs=169.254.0.0/16"),
    ),
    (
        "traffic.sidecar.istio.io/includeInboundPorts",
        "8080",
        |pod| capture_args(pod).contains("--include-inbound-ports=8080"),
    ),
    ("traffic.sidecar.istio.io/includeInboundPorts", "*", |pod| {
        !capture_args(pod).contains("inbound-ports")
    }),
    (
        "traffic.sidecar.istio.io/excludeInboundPorts",
        "9000-9010",
        |pod| capture_args(pod).contains("--exclude-inbound-ports=9000-9010"),
    ),
    (
        "traffic.sidecar.istio.io/includeOutboundPorts",
        "443",
        |pod| capture_args(pod).contains("--include-outbound-ports=443"),
    ),
    (
        "traffic.sidecar.istio.io/excludeOutboundPorts",
        "3306",
        |pod| capture_args(pod).contains("--exclude-outbound-ports=3306"),
    ),
    (
        "traffic.sidecar.istio.io/excludeInterfaces",
        "eth1",
        |pod| capture_args(pod).contains("--exclude-interfaces=eth1"),
    ),
    ("status.sidecar.istio.io/port", "15099", |pod| {
        variable(pod, "STRAIT_HEALTH").as_deref() == Some("[::]:15099")
            && variable(pod, "STRAIT_METRICS").is_none()
            && proxy(pod)["readinessProbe"]["httpGet"]["port"] == 15_099
            && pod["metadata"]["annotations"]["prometheus.io/port"] == "15099"
            && capture_args(pod).contains("--exclude-inbound-ports=15099")
    }),
    ("status.sidecar.istio.io/port", "0", |pod| {
        proxy(pod).get("readinessProbe").is_none()
    }),
    (
        "readiness.status.sidecar.istio.io/initialDelaySeconds",
        "7",
        |pod| proxy(pod)["readinessProbe"]["initialDelaySeconds"] == 7,
    ),
    (
        "readiness.status.sidecar.istio.io/periodSeconds",
        "9",
        |pod| proxy(pod)["readinessProbe"]["periodSeconds"] == 9,
    ),
    (
        "readiness.status.sidecar.istio.io/failureThreshold",
        "5",
        |pod| proxy(pod)["readinessProbe"]["failureThreshold"] == 5,
    ),
    ("sidecar.istio.io/rewriteAppHTTPProbers", "false", |pod| {
        variable(pod, "STRAIT_APP_PROBERS").is_none()
    }),
    ("sidecar.istio.io/proxyCPU", "1500m", |pod| {
        proxy(pod)["resources"] == json!({"requests": {"cpu": "1500m"}})
            && variable(pod, "STRAIT_CONCURRENCY").as_deref() == Some("2")
    }),
    ("sidecar.istio.io/proxyMemory", "1Gi", |pod| {
        proxy(pod)["resources"] == json!({"requests": {"memory": "1Gi"}})
    }),
    ("sidecar.istio.io/proxyCPULimit", "2", |pod| {
        proxy(pod)["resources"] == json!({"limits": {"cpu": "2"}})
            && variable(pod, "STRAIT_CONCURRENCY").as_deref() == Some("2")
    }),
    ("sidecar.istio.io/proxyMemoryLimit", "64Mi", |pod| {
        proxy(pod)["resources"] == json!({"limits": {"memory": "64Mi"}})
    }),
    ("sidecar.istio.io/nativeSidecar", "false", |pod| {
        names(pod, "containers") == ["web", "strait-proxy"]
    }),
    ("sidecar.istio.io/logLevel", "warning", |pod| {
        variable(pod, "STRAIT_LOG_LEVEL").as_deref() == Some("warn")
    }),
    ("sidecar.istio.io/capNetBindService", "true", |pod| {
        proxy(pod)["securityContext"]["capabilities"]["add"] == json!(["NET_BIND_SERVICE"])
    }),
    (
        "sidecar.istio.io/userVolume",
        "{\"data\": {\"emptyDir\": {}}}",
        |pod| names(pod, "volumes").contains(&"data"),
    ),
    (
        "sidecar.istio.io/userVolumeMount",
        "{\"data\": {\"mountPath\": \"/data\"}}",
        |pod| {
            let mounts = proxy(pod)["volumeMounts"].as_array().unwrap();
            mounts.contains(&json!({"name": "data", "mountPath": "/data"}))
        },
    ),
    (
        "proxy.istio.io/config",
        "concurrency: 3\nholdApplicationUntilProxyStarts: true\n",
        |pod| variable(pod, "STRAIT_CONCURRENCY").as_deref() == Some("3"),
    ),
    (
        "proxy.istio.io/config",
        "{statusPort: 15090, proxyMetadata: {A: b}, interceptionMode: NONE}",
        |pod| {
            variable(pod, "STRAIT_HEALTH").as_deref() == Some("[::]:15090")
                && variable(pod, "A").as_deref() == Some("b")
                && names(pod, "initContainers") == ["strait-proxy"]
        },
    ),
    (
        "proxy.istio.io/config",
        "{terminationDrainDuration: 7s, drainDuration: 8s}",
        |pod| {
            variable(pod, "STRAIT_TERMINATION_DRAIN").as_deref() == Some("7s")
                && variable(pod, "STRAIT_DRAIN_TIME").as_deref() == Some("8s")
        },
    ),
    (
        "config.linkerd.io/skip-inbound-ports",
        "4190,9000-9010",
        |pod| capture_args(pod).contains("--exclude-inbound-ports=4190,9000-9010"),
    ),
    ("config.linkerd.io/skip-outbound-ports", "3306", |pod| {
        capture_args(pod).contains("--exclude-outbound-ports=3306")
    }),
    ("config.linkerd.io/skip-subnets", "10.9.0.0/16", |pod| {
        capture_args(pod).contains("--exclude-outbound-cidrs=10.9.0.0/16")
    }),
    ("strait.io/capture", "none", |pod| {
        names(pod, "initContainers") == ["strait-proxy"]
    }),
    ("strait.io/identity", "istio-ca", |pod| {
        variable(pod, "STRAIT_IDENTITY").as_deref() == Some("istio-ca")
            && pod["metadata"]["labels"]["security.istio.io/tlsMode"] == "istio"
            && names(pod, "volumes").contains(&"strait-token")
    }),
    ("strait.io/image", "registry.example/strait:9", |pod| {
        proxy(pod)["image"] == "registry.example/strait:9"
    }),
    ("strait.io/log-level", "debug", |pod| {
        variable(pod, "STRAIT_LOG_LEVEL").as_deref() == Some("debug")
    }),
    ("strait.io/access-log", "json", |pod| {
        variable(pod, "STRAIT_ACCESS_LOG").as_deref() == Some("json")
    }),
    ("strait.io/exit-with-pid", "/run/job.pid", |pod| {
        variable(pod, "STRAIT_EXIT_WITH_PID").as_deref() == Some("/run/job.pid")
    }),
];

#[test]
fn good_values_have_their_effect_on_pods_and_namespaces() {
    let settings = Settings::default();
    for (name, value, shows) in ROWS {
        let done = injected(&annotated(name, value), &settings);
        assert!(shows(&done.pod), "{name}: {value}: {:#}", done.pod);
        let found: Vec<_> = done
            .findings
            .iter()
            .filter(|one| one.code != "IN007")
            .collect();
        assert!(found.is_empty(), "{name}: {found:?}");
        let mut context = super::context(&settings);
        context
            .namespace
            .annotations
            .insert((*name).to_owned(), (*value).to_owned());
        let Ok(inject::Outcome::Injected(of_namespace)) = inject::inject(&pod(json!({})), &context)
        else {
            panic!("{name}");
        };
        assert!(shows(&of_namespace.pod), "{name} of the namespace");
    }
}

#[test]
fn bad_values_are_refused_with_the_name_of_the_annotation() {
    for (name, value) in [
        ("sidecar.istio.io/interceptionMode", "BOTH"),
        (
            "traffic.sidecar.istio.io/includeOutboundIPRanges",
            "10.0.0.0",
        ),
        ("traffic.sidecar.istio.io/excludeOutboundIPRanges", "*"),
        ("traffic.sidecar.istio.io/includeInboundPorts", "http"),
        ("traffic.sidecar.istio.io/excludeInboundPorts", "*"),
        ("traffic.sidecar.istio.io/includeOutboundPorts", "0"),
        ("traffic.sidecar.istio.io/excludeOutboundPorts", "80,70000"),
        ("traffic.sidecar.istio.io/excludeInterfaces", "a/b"),
        ("status.sidecar.istio.io/port", "health"),
        (
            "readiness.status.sidecar.istio.io/initialDelaySeconds",
            "1s",
        ),
        ("readiness.status.sidecar.istio.io/periodSeconds", "-1"),
        ("readiness.status.sidecar.istio.io/failureThreshold", "x"),
        ("sidecar.istio.io/rewriteAppHTTPProbers", "yes"),
        ("sidecar.istio.io/proxyCPU", "much"),
        ("sidecar.istio.io/proxyMemory", "1 Gi"),
        ("sidecar.istio.io/proxyCPULimit", "-1"),
        ("sidecar.istio.io/proxyMemoryLimit", "1Xi"),
        ("sidecar.istio.io/nativeSidecar", "auto"),
        ("sidecar.istio.io/logLevel", "loud"),
        ("sidecar.istio.io/capNetBindService", "1"),
        ("sidecar.istio.io/userVolume", "{"),
        ("sidecar.istio.io/userVolumeMount", "[]"),
        ("proxy.istio.io/config", "concurrency: many"),
        ("inject.istio.io/templates", "sidecar,custom"),
        ("config.linkerd.io/skip-inbound-ports", "smtp"),
        ("config.linkerd.io/skip-outbound-ports", "x"),
        ("config.linkerd.io/skip-subnets", "x"),
        ("strait.io/capture", "cni"),
        ("strait.io/identity", "ca"),
        ("strait.io/log-level", "x"),
        ("strait.io/access-log", "x"),
        ("strait.io/exit-with-pid", ""),
        ("strait.io/inject", "yes"),
        ("traffic.sidecar.istio.io/kubevirtInterfaces", "k6t-eth0"),
    ] {
        let refusal = refused(&annotated(name, value), &Settings::default());
        assert!(refusal.message.contains(name), "{name}: {refusal}");
        assert!(!refusal.help.is_empty(), "{name}");
    }
}

#[test]
fn annotations_without_effect_are_found() {
    for (name, value, code) in [
        (
            "sidecar.istio.io/proxyImage",
            "docker.io/istio/proxyv2:1.27",
            "IN003",
        ),
        ("sidecar.istio.io/proxyImage", "proxyv2", "IN003"),
        ("sidecar.istio.io/proxyCpu", "1", "IN005"),
        ("traffic.sidecar.istio.io/excludeInboundPort", "1", "IN005"),
        ("sidecar.istio.io/proxyImageType", "distroless", "IN007"),
        ("sidecar.istio.io/agentLogLevel", "debug", "IN007"),
        ("sidecar.istio.io/bootstrapOverride", "x", "IN007"),
        ("sidecar.istio.io/statsInclusionPrefixes", "x", "IN007"),
        ("prometheus.istio.io/merge-metrics", "true", "IN007"),
        ("linkerd.io/inject", "enabled", "IN007"),
        ("config.linkerd.io/proxy-cpu-limit", "1", "IN007"),
        ("sidecar.istio.io/inject", "maybe", "IN001"),
        (
            "proxy.istio.io/config",
            "image: {imageType: debug}",
            "IN007",
        ),
    ] {
        let done = injected(&annotated(name, value), &Settings::default());
        let codes: Vec<_> = done.findings.iter().map(|one| one.code).collect();
        assert_eq!(codes, [code], "{name}");
        assert!(done.findings[0].message.contains(name), "{name}");
        assert_eq!(
            container(&done.pod, "strait-proxy")["image"],
            Settings::default().image
        );
    }
    let near = injected(
        &annotated("sidecar.istio.io/proxyCpu", "1"),
        &Settings::default(),
    );
    assert_eq!(
        near.findings[0].help,
        "did you mean `sidecar.istio.io/proxyCPU`?"
    );
}

#[test]
fn annotations_of_the_pod_win_over_those_of_the_namespace() {
    let settings = Settings::default();
    let mut context = super::context(&settings);
    let name = "sidecar.istio.io/logLevel";
    context
        .namespace
        .annotations
        .insert(name.to_owned(), "debug".to_owned());
    let Ok(inject::Outcome::Injected(done)) = inject::inject(&annotated(name, "error"), &context)
    else {
        panic!("not injected");
    };
    assert_eq!(
        variable(&done.pod, "STRAIT_LOG_LEVEL").as_deref(),
        Some("error")
    );
}

#[test]
fn metrics_of_the_workload_stay_as_they_are() {
    let done = injected(
        &annotated("prometheus.io/port", "9102"),
        &Settings::default(),
    );
    let annotations = &done.pod["metadata"]["annotations"];
    assert_eq!(annotations["prometheus.io/port"], "9102");
    assert!(annotations.get("prometheus.io/scrape").is_none());
}

#[test]
fn drains_fit_into_the_grace_period() {
    for (grace, native, pre_drain, drain, code) in [
        (Some(5), true, None, "2s", Some("IN020")),
        (None, true, None, "27s", None),
        (Some(3600), false, Some("5s"), "3592s", None),
        (Some(1), false, Some("0s"), "1s", Some("IN020")),
    ] {
        let mut pod = annotated("sidecar.istio.io/nativeSidecar", &native.to_string());
        if let Some(grace) = grace {
            pod["spec"]["terminationGracePeriodSeconds"] = grace.into();
        }
        let done = injected(&pod, &Settings::default());
        assert_eq!(
            variable(&done.pod, "STRAIT_PRE_DRAIN").as_deref(),
            pre_drain,
            "{grace:?}"
        );
        assert_eq!(
            variable(&done.pod, "STRAIT_TERMINATION_DRAIN").as_deref(),
            Some(drain),
            "{grace:?}"
        );
        assert_eq!(done.findings.first().map(|one| one.code), code, "{grace:?}");
    }
}
