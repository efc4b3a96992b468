//! Selection of pods: skips, consent, and refusals.

use serde_json::Value;

use crate::context::{Caller, Context};
use crate::json::{annotation, at, containers, items, label, name, text};
use crate::report::{Refusal, Skip};
use crate::selector::any_matches;
use crate::settings::Capture;

/// Namespaces of Kubernetes itself.
const SYSTEM: [&str; 4] = [
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "local-path-storage",
];

/// Ports of the proxy in the network of the pod.
const OWN_PORTS: [u64; 5] = [15_000, 15_001, 15_006, 15_020, 15_021];

/// Containers that Istio's injector adds.
const OF_ISTIO: [&str; 3] = ["istio-proxy", "istio-init", "istio-validation"];

/// Origin of the consent to an injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// The command itself.
    Command,
    /// `strait.io/inject: enabled`.
    Own,
    /// `istio.io/rev` with our revision, or what else selects us as Istio's injector is selected.
    Revision,
}

/// Returns the reason why a pod is left alone; the first of several.
pub(crate) fn skip(pod: &Value, context: &Context<'_>) -> Option<Skip> {
    let namespace = &context.namespace;
    let is_system =
        SYSTEM.contains(&&*namespace.name) || context.own_namespace == Some(&*namespace.name);
    let dataplane = "istio.io/dataplane-mode";
    let is_ambient = label(pod, dataplane).or(namespace.label(dataplane)) == Some("ambient")
        || annotation(pod, "ambient.istio.io/redirection") == Some("enabled");
    let is_windows = text(pod, &["spec", "os", "name"]) == Some("windows")
        || text(pod, &["spec", "nodeSelector", "kubernetes.io/os"]) == Some("windows");
    let reasons = [
        (
            Skip::HostNetwork,
            at(pod, &["spec", "hostNetwork"]) == Some(&Value::Bool(true)),
        ),
        (Skip::SystemNamespace, is_system),
        (
            Skip::Disabled,
            opts_out(pod) || any_matches(&context.settings.never, pod),
        ),
        (Skip::ForeignIstio, is_of_istio(pod)),
        (Skip::ForeignLinkerd, is_of_linkerd(pod)),
        (Skip::Ambient, is_ambient),
        (Skip::NotSelected, consent(pod, context).is_none()),
        (Skip::Windows, is_windows),
    ];
    reasons
        .into_iter()
        .find_map(|(skip, holds)| holds.then_some(skip))
}

/// Returns the value of a label, or of the annotation that it is the newer form of.
pub(crate) fn label_or_annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    label(pod, name).or_else(|| annotation(pod, name))
}

fn opts_out(pod: &Value) -> bool {
    label_or_annotation(pod, "strait.io/inject") == Some("disabled")
        || label_or_annotation(pod, "sidecar.istio.io/inject") == Some("false")
}

fn is_of_istio(pod: &Value) -> bool {
    let is_theirs =
        |container: &Value| OF_ISTIO.contains(&name(container)) && container["image"] != "auto";
    annotation(pod, "sidecar.istio.io/status").is_some()
        || containers(pod).any(|(_, container)| is_theirs(container))
}

fn is_of_linkerd(pod: &Value) -> bool {
    let is_theirs =
        |container: &Value| ["linkerd-proxy", "linkerd-init"].contains(&name(container));
    annotation(pod, "linkerd.io/proxy-version").is_some()
        || containers(pod).any(|(_, container)| is_theirs(container))
}

/// Returns who consents to the injection, if anybody does.
pub(crate) fn consent(pod: &Value, context: &Context<'_>) -> Option<Consent> {
    let (rev, own) = ("istio.io/rev", "strait.io/inject");
    let Caller::Webhook {
        adopts_istio_injection,
    } = context.caller
    else {
        return Some(match label(pod, rev) == Some(&*context.settings.revision) {
            true => Consent::Revision,
            false => Consent::Command,
        });
    };
    let namespace = &context.namespace;
    let (revision, istio) = (
        Some(&*context.settings.revision),
        namespace.label("istio-injection"),
    );
    let by_namespace = istio.is_none() && namespace.label(rev) == revision;
    let by_pod = istio.is_none() && namespace.label(rev).is_none() && label(pod, rev) == revision;
    let adopted = adopts_istio_injection && istio == Some("enabled");
    let always = any_matches(&context.settings.always, pod);
    let own = namespace.label(own).or_else(|| label(pod, own)) == Some("enabled");
    match () {
        () if by_namespace || by_pod || adopted => Some(Consent::Revision),
        () if own || always => Some(Consent::Own),
        () => None,
    }
}

/// Refuses a pod that two injectors claim.
pub(crate) fn refuse_two_claims(pod: &Value, consent: Consent) -> Result<(), Refusal> {
    let istio = label_or_annotation(pod, "sidecar.istio.io/inject") == Some("true");
    if !istio || consent == Consent::Revision {
        return Ok(());
    }
    let ours = match consent {
        Consent::Own => "`strait.io/inject: enabled`",
        Consent::Command | Consent::Revision => "this command",
    };
    Err(Refusal::new(
        "claimed_twice",
        format!(
            "the pod asks for two sidecars: the label `sidecar.istio.io/inject: \"true\"` for that of Istio, {ours} for Strait"
        ),
        "remove the label `sidecar.istio.io/inject`, or name the injector by `istio.io/rev`",
    ))
}

/// Refuses containers that cannot run beside the proxy. `status_port` is its port for probes.
pub(crate) fn refuse_conflicts(
    pod: &Value,
    uid: u32,
    capture: Capture,
    status_port: u16,
) -> Result<(), Refusal> {
    let of_pod = ["runAsUser", "runAsGroup"].map(|key| at(pod, &["spec", "securityContext", key]));
    for (_, container) in containers(pod) {
        let shown = name(container);
        for (of_pod, key) in of_pod.iter().zip(["runAsUser", "runAsGroup"]) {
            let of_container = at(container, &["securityContext", key]);
            let runs_as = of_container.or(*of_pod).and_then(Value::as_u64);
            if capture != Capture::None && runs_as == Some(uid.into()) {
                return Err(Refusal::new(
                    "user_1337",
                    format!(
                        "container `{shown}` has `{key}: {uid}`, which is the proxy's: its connections would not be captured"
                    ),
                    "give it another user and group, or the proxy by the setting `proxyUid`",
                ));
            }
        }
        for port in items(container, &["ports"]) {
            let number = port["containerPort"].as_u64().unwrap_or_default();
            if OWN_PORTS.contains(&number) || number == u64::from(status_port) {
                return Err(Refusal::new(
                    "port_conflict",
                    format!("container `{shown}` has port {number}, which the proxy listens on"),
                    "let the container listen on another port",
                ));
            }
        }
    }
    Ok(())
}

/// Refuses what the Pod Security Standard of the namespace forbids.
pub(crate) fn refuse_insecure(
    context: &Context<'_>,
    capture: Capture,
    is_transparent: bool,
) -> Result<(), Refusal> {
    let level = context
        .namespace
        .label("pod-security.kubernetes.io/enforce");
    let Some(level) = level.filter(|level| ["baseline", "restricted"].contains(level)) else {
        return Ok(());
    };
    let (what, help) = match capture {
        Capture::Init => (
            "an init container with the capability NET_ADMIN, which captures connections",
            "set `strait.io/capture: istio-cni` where Istio's CNI plugin is installed, or `strait.io/capture: none` for a \
             workload that uses the proxy by `http_proxy`",
        ),
        _ if is_transparent => (
            "a proxy with the capability NET_ADMIN, for TPROXY",
            "set `sidecar.istio.io/interceptionMode: REDIRECT`",
        ),
        Capture::IstioCni | Capture::None => return Ok(()),
    };
    let namespace = &context.namespace.name;
    Err(Refusal::new(
        "pod_security",
        format!("the Pod Security Standard `{level}` of namespace `{namespace}` forbids {what}"),
        help,
    ))
}

/// Refuses a pod whose shape is not that of a pod.
pub(crate) fn refuse_malformed(pod: &Value) -> Result<(), Refusal> {
    let wrong = |message: String| {
        Err(Refusal::new(
            "malformed",
            message,
            "see `kubectl explain pod.spec`",
        ))
    };
    let mappings: [&[&str]; 5] = [
        &["metadata"],
        &["metadata", "labels"],
        &["metadata", "annotations"],
        &["spec"],
        &["spec", "securityContext"],
    ];
    let lists: [&[&str]; 5] = [
        &["spec", "containers"],
        &["spec", "initContainers"],
        &["spec", "volumes"],
        &["spec", "imagePullSecrets"],
        &["spec", "securityContext", "sysctls"],
    ];
    let is_absent = |path| at(pod, path).is_none_or(Value::is_null);
    if let Some(path) = mappings
        .into_iter()
        .find(|path| !is_absent(path) && !at(pod, path).is_some_and(Value::is_object))
    {
        return wrong(format!("{} is not a mapping", path.join(".")));
    }
    for path in lists.into_iter().filter(|path| !is_absent(path)) {
        let Some(items) = at(pod, path).and_then(Value::as_array) else {
            return wrong(format!("{} is not a list", path.join(".")));
        };
        let mut names: Vec<&str> = items.iter().map(name).collect();
        names.sort_unstable();
        if names.iter().any(|name| name.is_empty()) {
            return wrong(format!("an item of {} has no name", path.join(".")));
        }
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong(format!(
                "two items of {} are named `{}`",
                path.join("."),
                twice[0]
            ));
        }
    }
    match containers(pod).any(|(list, _)| list == "containers") {
        true => Ok(()),
        false => wrong("the pod has no containers".to_owned()),
    }
}
