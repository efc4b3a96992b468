//! Pods that are left alone, who consents, and pods that are refused.

use inject::{Caller, Context, Namespace, Outcome, Settings, Skip, Version, inject};
use serde_json::{Value, json};

use super::{annotated, context, injected, names, pod, refused};

fn labelled(labels: Value) -> Value {
    pod(json!({"labels": labels}))
}

fn with(pod: &mut Value, pointer: &str, key: &str, value: Value) -> Value {
    pod.pointer_mut(pointer).unwrap()[key] = value;
    pod.clone()
}

#[test]
fn pods_are_left_alone_for_the_first_reason_that_holds() {
    let spec = |key: &str, value: Value| with(&mut pod(json!({})), "/spec", key, value);
    let named =
        |name: &str, image: &str| spec("initContainers", json!([{"name": name, "image": image}]));
    let mut two = labelled(json!({"strait.io/inject": "disabled"}));
    for (pod, skip) in [
        (spec("hostNetwork", true.into()), Skip::HostNetwork),
        (
            labelled(json!({"strait.io/inject": "disabled"})),
            Skip::Disabled,
        ),
        (
            labelled(json!({"sidecar.istio.io/inject": "false"})),
            Skip::Disabled,
        ),
        (
            annotated("sidecar.istio.io/inject", "false"),
            Skip::Disabled,
        ),
        (
            annotated("sidecar.istio.io/status", "{}"),
            Skip::ForeignIstio,
        ),
        (named("istio-proxy", "proxyv2"), Skip::ForeignIstio),
        (named("istio-init", "proxyv2"), Skip::ForeignIstio),
        (named("istio-validation", "proxyv2"), Skip::ForeignIstio),
        (
            annotated("linkerd.io/proxy-version", "x"),
            Skip::ForeignLinkerd,
        ),
        (named("linkerd-init", "x"), Skip::ForeignLinkerd),
        (
            labelled(json!({"istio.io/dataplane-mode": "ambient"})),
            Skip::Ambient,
        ),
        (
            annotated("ambient.istio.io/redirection", "enabled"),
            Skip::Ambient,
        ),
        (spec("os", json!({"name": "windows"})), Skip::Windows),
        (
            spec("nodeSelector", json!({"kubernetes.io/os": "windows"})),
            Skip::Windows,
        ),
        (
            with(&mut two, "/spec", "hostNetwork", true.into()),
            Skip::HostNetwork,
        ),
    ] {
        let outcome = inject(&pod, &context(&Settings::default()));
        assert_eq!(outcome, Ok(Outcome::Skipped(skip)), "{pod}");
    }
    for namespace in [
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "local-path-storage",
        "mine",
    ] {
        let settings = Settings::default();
        let context = Context {
            own_namespace: Some("mine"),
            ..Context::new(&settings, Namespace::named(namespace))
        };
        assert_eq!(
            inject(&pod(json!({})), &context),
            Ok(Outcome::Skipped(Skip::SystemNamespace))
        );
    }
    let never = Settings::default()
        .with(&json!({"never": ["app=web,tier!=x"]}))
        .unwrap();
    let outcome = inject(&labelled(json!({"app": "web"})), &context(&never));
    assert_eq!(outcome, Ok(Outcome::Skipped(Skip::Disabled)));
}

/// Whether the webhook injects a pod with these labels in a namespace with those.
fn is_selected(
    namespace: &[(&str, &str)],
    pod_labels: Value,
    settings: &Settings,
    adopts: bool,
) -> bool {
    let mut of = Namespace::named("shop");
    of.labels = namespace
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let context = Context {
        caller: Caller::Webhook {
            adopts_istio_injection: adopts,
        },
        ..Context::new(settings, of)
    };
    match inject(&labelled(pod_labels), &context).unwrap() {
        Outcome::Injected(_) => true,
        Outcome::Skipped(skip) => {
            assert_eq!(skip, Skip::NotSelected);
            false
        }
    }
}

#[test]
fn webhook_needs_consent_by_revision_or_by_its_own_label() {
    let (rev, own, istio) = ("istio.io/rev", "strait.io/inject", "istio-injection");
    let settings = Settings::default();
    for (namespace, of_pod, expected) in [
        (vec![(rev, "strait")], json!({}), true),
        (vec![], json!({rev: "strait"}), true),
        (vec![(rev, "strait"), (istio, "enabled")], json!({}), false),
        (vec![(rev, "canary")], json!({}), false),
        (vec![(rev, "canary")], json!({rev: "strait"}), false),
        (vec![], json!({}), false),
        (vec![(istio, "enabled")], json!({}), false),
        (vec![(own, "enabled")], json!({}), true),
        (vec![], json!({own: "enabled"}), true),
        (vec![(own, "disabled")], json!({own: "enabled"}), false),
        (vec![(own, "enabled"), (istio, "enabled")], json!({}), true),
    ] {
        let selected = is_selected(&namespace, of_pod.clone(), &settings, false);
        assert_eq!(selected, expected, "{namespace:?} {of_pod}");
    }
    assert!(is_selected(
        &[(istio, "enabled")],
        json!({}),
        &settings,
        true
    ));
    let always = settings.with(&json!({"always": ["app=web"]})).unwrap();
    assert!(is_selected(&[], json!({"app": "web"}), &always, false));
}

#[test]
fn label_keeps_istio_from_a_pod_that_consents_by_our_own_label_only() {
    let settings = Settings::default();
    let label = |pod: &Value, namespace: &[(&str, &str)]| {
        let mut of = Namespace::named("shop");
        of.labels = namespace
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let caller = Caller::Webhook {
            adopts_istio_injection: false,
        };
        let context = Context {
            caller,
            ..Context::new(&settings, of)
        };
        match inject(pod, &context) {
            Ok(Outcome::Injected(done)) => {
                Ok(done.pod["metadata"]["labels"]["sidecar.istio.io/inject"].clone())
            }
            Err(refusal) => Err(refusal.reason),
            other => panic!("{other:?}"),
        }
    };
    let (own, rev) = (
        [("strait.io/inject", "enabled")],
        [("istio.io/rev", "strait")],
    );
    assert_eq!(label(&pod(json!({})), &own), Ok("false".into()));
    assert_eq!(label(&pod(json!({})), &rev), Ok(Value::Null));
    let claimed = labelled(json!({"sidecar.istio.io/inject": "true"}));
    assert_eq!(label(&claimed, &own), Err("claimed_twice"));
    assert_eq!(label(&claimed, &rev), Ok("true".into()));
}

#[test]
fn conflicts_are_refused() {
    let container = |fields: Value| {
        let mut pod = pod(json!({}));
        let fields = fields.as_object().unwrap().clone();
        pod["spec"]["containers"][0]
            .as_object_mut()
            .unwrap()
            .extend(fields);
        pod
    };
    let of_pod = with(
        &mut pod(json!({})),
        "/spec",
        "securityContext",
        json!({"runAsUser": 1337}),
    );
    let twice = with(
        &mut pod(json!({})),
        "/spec",
        "containers",
        json!([{"name": "a"}, {"name": "a"}]),
    );
    for (pod, reason) in [
        (
            container(json!({"securityContext": {"runAsUser": 1337}})),
            "user_1337",
        ),
        (
            container(json!({"securityContext": {"runAsGroup": 1337}})),
            "user_1337",
        ),
        (of_pod, "user_1337"),
        (
            container(json!({"ports": [{"containerPort": 15006}]})),
            "port_conflict",
        ),
        (container(json!({"name": "strait-init"})), "name_taken"),
        (
            with(
                &mut pod(json!({})),
                "/spec",
                "volumes",
                json!([{"name": "strait-podinfo"}]),
            ),
            "name_taken",
        ),
        (twice, "malformed"),
        (json!({"spec": {}}), "malformed"),
        (json!({"spec": {"containers": {}}}), "malformed"),
        (
            json!({"metadata": [], "spec": {"containers": [{"name": "a"}]}}),
            "malformed",
        ),
        (json!([]), "malformed"),
        (annotated("strait.io/injected", "{}"), "unreadable_record"),
        (
            annotated("inject.istio.io/templates", "gateway"),
            "no_gateway_container",
        ),
    ] {
        assert_eq!(refused(&pod, &Settings::default()).reason, reason, "{pod}");
    }
    let none = Settings::default().with_one("capture=none").unwrap();
    injected(
        &container(json!({"securityContext": {"runAsUser": 1337}})),
        &none,
    );
}

#[test]
fn pod_security_standard_of_the_namespace_is_kept() {
    for (level, capture, mode, is_allowed) in [
        ("privileged", "init", "REDIRECT", true),
        ("baseline", "init", "REDIRECT", false),
        ("restricted", "init", "REDIRECT", false),
        ("restricted", "istio-cni", "REDIRECT", true),
        ("baseline", "istio-cni", "TPROXY", false),
        ("restricted", "none", "TPROXY", true),
    ] {
        let settings = Settings::default()
            .with(&json!({"capture": capture, "interceptionMode": mode}))
            .unwrap();
        let mut context = context(&settings);
        context.namespace.labels.insert(
            "pod-security.kubernetes.io/enforce".to_owned(),
            level.to_owned(),
        );
        let outcome = inject(&pod(json!({})), &context);
        assert_eq!(outcome.is_ok(), is_allowed, "{level} {capture} {mode}");
        if let Err(refusal) = outcome {
            assert_eq!(refusal.reason, "pod_security");
            assert!(
                capture != "init"
                    || refusal.help.contains("istio-cni") && refusal.help.contains("none")
            );
        }
    }
}

#[test]
fn version_of_kubernetes_decides_on_native_sidecars() {
    let native = vec!["strait-init", "strait-proxy", "own"];
    let classic = vec!["own", "strait-init"];
    for (version, nodes_unknown, annotation, expected, code) in [
        (None, false, None, &native, None),
        (Some(28), false, None, &classic, None),
        (Some(29), false, None, &native, None),
        (Some(30), true, None, &native, Some("IN012")),
        (Some(28), false, Some("true"), &classic, Some("IN012")),
        (Some(31), false, Some("false"), &classic, None),
    ] {
        let mut pod = match annotation {
            Some(value) => annotated("sidecar.istio.io/nativeSidecar", value),
            None => pod(json!({})),
        };
        pod["spec"]["initContainers"] = json!([{"name": "own", "image": "own:1"}]);
        let settings = Settings::default();
        let context = Context {
            kubernetes: version.map(Version),
            nodes_unknown,
            ..context(&settings)
        };
        let Ok(Outcome::Injected(done)) = inject(&pod, &context) else {
            panic!("not injected");
        };
        assert_eq!(
            names(&done.pod, "initContainers"),
            *expected,
            "{version:?} {annotation:?}"
        );
        assert_eq!(
            done.findings.first().map(|one| one.code),
            code,
            "{version:?} {annotation:?}"
        );
    }
}
