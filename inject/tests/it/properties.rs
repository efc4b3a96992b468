//! Properties of the injection, over random pods.

use inject::{Outcome, Settings, inject, uninject};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::context;

/// Value that is there, null, or missing.
fn maybe(value: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![3 => value.prop_map(Some), 1 => Just(Some(Value::Null)), 1 => Just(None)]
}

fn object(fields: Vec<(&'static str, Option<Value>)>) -> Value {
    let fields = fields
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(fields.collect())
}

fn texts(
    names: &'static [(&'static str, &'static [&'static str])],
) -> impl Strategy<Value = Value> {
    let fields = names.iter().map(|(name, values)| {
        prop::option::of(prop::sample::select(*values))
            .prop_map(move |value| (*name, value.map(Value::from)))
    });
    fields.collect::<Vec<_>>().prop_map(object)
}

fn probe() -> impl Strategy<Value = Value> {
    prop_oneof![
        (1..70_000_u32)
            .prop_map(|port| json!({"httpGet": {"path": "/x", "port": port}, "periodSeconds": 3})),
        (1..65_536_u32)
            .prop_map(|port| json!({"initialDelaySeconds": 1, "tcpSocket": {"port": port}})),
        Just(json!({"grpc": {"port": 9000, "service": null}})),
        Just(json!({"httpGet": {"port": "http"}})),
        Just(json!({"exec": {"command": ["true"]}})),
        Just(json!({"future": {"port": 1}})),
    ]
}

fn container(name: &'static str) -> impl Strategy<Value = Value> {
    let hooks = (maybe(probe()), maybe(probe()))
        .prop_map(|(start, stop)| object(vec![("postStart", start), ("preStop", stop)]));
    let fields = (
        maybe(probe()),
        maybe(probe()),
        maybe(hooks),
        maybe(Just(json!([{"name": "http", "containerPort": 8080}]))),
        any::<bool>(),
    );
    fields.prop_map(move |(ready, live, hooks, ports, is_sidecar)| {
        object(vec![
            ("name", Some(name.into())),
            ("livenessProbe", live),
            ("readinessProbe", ready),
            ("lifecycle", hooks),
            ("restartPolicy", is_sidecar.then(|| "Always".into())),
            ("ports", ports),
            ("futureField", Some(json!({"y": [1, {"z": null}]}))),
        ])
    })
}

fn containers(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    names
        .iter()
        .map(|name| container(name))
        .collect::<Vec<_>>()
        .prop_map(Value::from)
}

const ANNOTATIONS: &[(&str, &[&str])] = &[
    ("kubectl.kubernetes.io/default-container", &["web"]),
    ("prometheus.io/scrape", &["true"]),
    ("sidecar.istio.io/nativeSidecar", &["true", "false"]),
    (
        "sidecar.istio.io/interceptionMode",
        &["REDIRECT", "TPROXY", "NONE"],
    ),
    ("sidecar.istio.io/logLevel", &["debug"]),
    ("strait.io/capture", &["init", "istio-cni", "none"]),
    ("strait.io/identity", &["istio-ca", "csi", "none"]),
    ("status.sidecar.istio.io/port", &["0", "15099"]),
    ("traffic.sidecar.istio.io/excludeInboundPorts", &["80", ""]),
];

const LABELS: &[(&str, &[&str])] = &[
    ("app", &["web"]),
    ("version", &["v1"]),
    ("sidecar.istio.io/inject", &["true"]),
    ("istio.io/rev", &["strait"]),
];

fn pods() -> impl Strategy<Value = Value> {
    let metadata =
        (maybe(texts(LABELS)), maybe(texts(ANNOTATIONS))).prop_map(|(labels, annotations)| {
            object(vec![
                ("annotations", annotations),
                ("name", Some("web-0".into())),
                ("labels", labels),
            ])
        });
    let override_of_user = prop::option::of(Just(
        json!({"name": "istio-proxy", "image": "auto", "env": [{"name": "A", "value": "b"}]}),
    ));
    let of_user = (containers(&["web", "api"]), override_of_user, 0..3_usize).prop_map(
        |(mut all, of_user, at)| {
            if let (Some(of_user), Value::Array(list)) = (of_user, &mut all) {
                list.insert(at, of_user);
            }
            all
        },
    );
    let spec = (
        of_user,
        maybe(containers(&["once"])),
        maybe(Just(json!([{"name": "data", "emptyDir": {}}]))),
        maybe(Just(json!({"fsGroup": 1}))),
        prop::option::of(0..100_u32),
    );
    let spec = spec.prop_map(|(containers, init, volumes, security, grace)| {
        object(vec![
            ("initContainers", init),
            ("terminationGracePeriodSeconds", grace.map(Value::from)),
            ("containers", Some(containers)),
            ("volumes", volumes),
            ("securityContext", security),
            ("x", Some(json!({"y": 1}))),
        ])
    });
    (maybe(metadata), spec)
        .prop_map(|(metadata, spec)| object(vec![("metadata", metadata), ("spec", Some(spec))]))
}

/// Returns the injected pod, if it is injected.
fn outcome(pod: &Value, settings: &Settings) -> Option<(Value, Vec<Value>)> {
    match inject(pod, &context(settings)) {
        Ok(Outcome::Injected(done)) => Some((done.pod, done.patch)),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn injection_is_idempotent_and_undone_exactly(pod in pods()) {
        let settings = Settings::default();
        let Some((injected, patch)) = outcome(&pod, &settings) else { return Ok(()) };
        let patch: json_patch::Patch = serde_json::from_value(patch.into()).unwrap();
        let mut patched = pod.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        prop_assert_eq!(&patched, &injected);

        let (again, nothing) = outcome(&injected, &settings).unwrap();
        prop_assert_eq!(again.to_string(), injected.to_string());
        prop_assert!(nothing.is_empty());
        prop_assert_eq!(uninject(&injected).unwrap().to_string(), pod.to_string());

        let other = settings.with(&json!({
            "image": "registry.example/strait:2", "nativeSidecar": false, "identity": {"source": "workload-api"},
            "imagePullSecrets": ["registry"], "containerNames": "istio",
        })).unwrap();
        let changed = outcome(&injected, &other).map(|(pod, _)| pod.to_string());
        let fresh = outcome(&uninject(&injected).unwrap(), &other).map(|(pod, _)| pod.to_string());
        prop_assert_eq!(changed, fresh);
    }
}
