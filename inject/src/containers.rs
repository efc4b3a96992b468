//! The containers and volumes that are added to a pod.

mod env;
mod volumes;

use serde_json::{Map, Value, json};

use crate::choices::{Choices, METRICS_PORT, STATUS_PORT, Template};
use crate::context::Context;
use crate::grammar;
use crate::settings::{Capture, ContainerNames, Mode, Selected};

pub(crate) use env::{Workload, drains};
pub(crate) use volumes::volumes;

/// Names of the added containers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) init: &'static str,
    pub(crate) proxy: &'static str,
}

impl Names {
    /// Returns the names for a pod. Istio's CNI plugin looks for its own.
    pub(crate) fn of(context: &Context<'_>, capture: Capture) -> Self {
        match (capture, context.settings.container_names) {
            (Capture::IstioCni, _) => Self {
                init: "strait-validate",
                proxy: "istio-proxy",
            },
            (_, ContainerNames::Istio) => Self {
                init: "istio-init",
                proxy: "istio-proxy",
            },
            (_, ContainerNames::Strait) => Self {
                init: "strait-init",
                proxy: "strait-proxy",
            },
        }
    }
}

/// Returns the container that sets the capture up, or waits until Istio's plugin has; `None` without capture.
pub(crate) fn init(context: &Context<'_>, choices: &Choices, names: Names) -> Option<Value> {
    let (args, security) = match choices.capture {
        Capture::None => return None,
        Capture::IstioCni => (
            json!(["iptables", "show", "--require"]),
            unprivileged(choices.uid),
        ),
        Capture::Init => {
            let mut security = json!({
                "runAsNonRoot": false, "runAsUser": 0, "runAsGroup": 0,
                "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
            });
            harden(&mut security);
            (capture_args(choices).into(), security)
        }
    };
    let settings = context.settings;
    Some(json!({
        "name": names.init,
        "image": choices.image,
        "imagePullPolicy": settings.image_pull_policy,
        "args": args,
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": security,
    }))
}

/// Returns the arguments of the command that sets the capture up: only what differs from its defaults.
fn capture_args(choices: &Choices) -> Vec<String> {
    let mut args = vec![
        "iptables".to_owned(),
        "install".to_owned(),
        format!("--proxy-uid={}", choices.uid),
    ];
    if choices.mode == Mode::Transparent {
        args.push("--interception-mode=TPROXY".to_owned());
    }
    let inbound = inbound_ports(choices);
    for (flag, value, default) in [
        (
            "include-outbound-cidrs",
            &choices.outbound_ranges.include,
            "*",
        ),
        (
            "exclude-outbound-cidrs",
            &choices.outbound_ranges.exclude,
            "",
        ),
        ("include-inbound-ports", &inbound.include, "*"),
        ("exclude-inbound-ports", &inbound.exclude, ""),
        (
            "include-outbound-ports",
            &choices.outbound_ports.include,
            "",
        ),
        (
            "exclude-outbound-ports",
            &choices.outbound_ports.exclude,
            "",
        ),
        ("exclude-interfaces", &choices.exclude_interfaces, ""),
    ] {
        if value != default {
            args.push(format!("--{flag}={value}"));
        }
    }
    args
}

/// Returns the inbound ports that are captured: never the one for probes.
pub(crate) fn inbound_ports(choices: &Choices) -> Selected {
    let mut ports = choices.inbound_ports.clone();
    let port = choices.status_port;
    let never = [STATUS_PORT, METRICS_PORT];
    if !never.contains(&port) && !grammar::has_port(&ports.exclude, port) {
        let separator = if ports.exclude.is_empty() { "" } else { "," };
        ports.exclude = format!("{}{separator}{port}", ports.exclude);
    }
    ports
}

/// Security context of a container without any privilege.
fn unprivileged(uid: u32) -> Value {
    let mut security = json!({
        "runAsNonRoot": true, "runAsUser": uid, "runAsGroup": uid,
        "capabilities": {"drop": ["ALL"]},
    });
    harden(&mut security);
    security
}

fn harden(security: &mut Value) {
    security["allowPrivilegeEscalation"] = false.into();
    security["readOnlyRootFilesystem"] = true.into();
    security["seccompProfile"] = json!({"type": "RuntimeDefault"});
}

/// Returns the container of the proxy.
pub(crate) fn proxy(
    context: &Context<'_>,
    choices: &Choices,
    name: &str,
    workload: &Workload<'_>,
) -> Value {
    let is_sidecar = choices.template == Template::Sidecar;
    let mut proxy = json!({
        "name": name,
        "image": choices.image,
        "imagePullPolicy": context.settings.image_pull_policy,
        "args": ["run"],
        "env": env::variables(context, choices, workload),
        "ports": ports(choices),
    });
    if is_sidecar && choices.native {
        proxy["restartPolicy"] = "Always".into();
    }
    if let (true, Value::Object(map)) = (choices.has_probes, &mut proxy) {
        map.extend(probes(choices));
    }
    if let Some(lifecycle) = lifecycle(choices) {
        proxy["lifecycle"] = lifecycle;
    }
    proxy["resources"] = choices.resources.clone();
    proxy["securityContext"] = security(choices);
    let mut mounts = volumes::mounts(context, choices);
    mounts.extend(choices.mounts.iter().cloned());
    proxy["volumeMounts"] = mounts.into();
    proxy
}

fn ports(choices: &Choices) -> Vec<Value> {
    let mut ports = vec![json!({"name": "strait-health", "containerPort": choices.status_port})];
    if choices.metrics_port() != choices.status_port {
        ports.push(json!({"name": "strait-metrics", "containerPort": METRICS_PORT}));
    }
    ports
}

fn probes(choices: &Choices) -> Map<String, Value> {
    let get = |path: &str| json!({"path": path, "port": choices.status_port});
    let (ready, live) = (get("/healthz/ready"), get("/healthz/live"));
    let mut readiness = json!({"httpGet": ready, "periodSeconds": 2, "failureThreshold": 4});
    for (key, value) in &choices.readiness {
        readiness[key] = value.clone();
    }
    let startup = json!({"httpGet": ready, "periodSeconds": 1, "failureThreshold": 600});
    let liveness = json!({"httpGet": live, "periodSeconds": 10});
    let all = [
        ("startupProbe", startup),
        ("readinessProbe", readiness),
        ("livenessProbe", liveness),
    ];
    all.into_iter()
        .map(|(name, probe)| (name.to_owned(), probe))
        .collect()
}

/// Returns the hooks: a native sidecar drains when its pod begins to end; beside the workload, it may delay the start.
fn lifecycle(choices: &Choices) -> Option<Value> {
    let hook = |command: &str| json!({"exec": {"command": ["/strait", command]}});
    match (choices.template, choices.native, choices.hold) {
        (Template::Sidecar, true, _) => Some(json!({"preStop": hook("drain")})),
        (Template::Sidecar, false, true) => Some(json!({"postStart": hook("wait")})),
        (Template::Sidecar, false, false) | (Template::Gateway, ..) => None,
    }
}

fn security(choices: &Choices) -> Value {
    let mut security = unprivileged(choices.uid);
    let is_transparent = choices.capture != Capture::None && choices.mode == Mode::Transparent;
    let mut added = Vec::new();
    if choices.template == Template::Sidecar && is_transparent {
        // capabilities are effective for root only
        security["runAsNonRoot"] = false.into();
        security["runAsUser"] = 0.into();
        added.push("NET_ADMIN");
    }
    if choices.bind_low_ports {
        added.push("NET_BIND_SERVICE");
    }
    if !added.is_empty() {
        security["capabilities"]["add"] = added.into();
    }
    security
}
