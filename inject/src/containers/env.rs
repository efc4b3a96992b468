//! Environment of the proxy.

use serde_json::{Map, Value, json};

use super::volumes::{control_audience, control_ca};
use crate::choices::{Choices, Template};
use crate::context::{Context, Owner};
use crate::json::at;
use crate::report::Finding;
use crate::settings::{Capture, IdentitySource, Mode};

/// Time after SIGTERM in which a proxy beside the workload still takes connections, in seconds.
const PRE_DRAIN: u64 = 5;

/// Part of the grace period that is left for the end of the process, in seconds.
const MARGIN: u64 = 3;

/// Address of Strait's CA where the configuration comes from elsewhere.
const STRAIT_CA: &str = "strait-control.strait-system.svc:6444";

/// Workload of the pod, as far as the environment depends on it.
pub(crate) struct Workload<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) probers: &'a Map<String, Value>,
    pub(crate) drains: Drains,
}

/// Drain times of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drains {
    pre_drain: u64,
    termination: u64,
}

/// Returns the drain times that fit into the grace period of the pod.
pub(crate) fn drains(pod: &Value, choices: &Choices, findings: &mut Vec<Finding>) -> Drains {
    let grace = at(pod, &["spec", "terminationGracePeriodSeconds"])
        .and_then(Value::as_u64)
        .unwrap_or(30);
    if grace < 10 {
        findings.push(Finding::new(
            "IN020",
            format!("terminationGracePeriodSeconds is {grace}: connections may be cut off when the pod ends"),
            "set it to 10 or more",
        ));
    }
    let pre_drain = match (choices.template, choices.native) {
        (Template::Sidecar, true) => 0,
        _ => PRE_DRAIN.min(grace / 2),
    };
    let termination = grace.saturating_sub(pre_drain + MARGIN).max(1);
    Drains {
        pre_drain,
        termination,
    }
}

/// Returns the variables of the proxy.
pub(super) fn variables(
    context: &Context<'_>,
    choices: &Choices,
    workload: &Workload<'_>,
) -> Vec<Value> {
    let mut env = Env::default();
    let is_sidecar = choices.template == Template::Sidecar;
    env.set(
        "STRAIT_MODE",
        if is_sidecar { "sidecar" } else { "gateway" },
    );
    for (name, field) in [
        ("STRAIT_NAMESPACE", "metadata.namespace"),
        ("POD_NAME", "metadata.name"),
        ("POD_UID", "metadata.uid"),
        ("NODE_NAME", "spec.nodeName"),
        ("STRAIT_SERVICE_ACCOUNT", "spec.serviceAccountName"),
    ] {
        env.0
            .push(json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}));
    }
    env.set("STRAIT_POD_LABELS", "/var/run/strait/podinfo/labels");
    env.set(
        "STRAIT_POD_ANNOTATIONS",
        "/var/run/strait/podinfo/annotations",
    );
    env.set("STRAIT_CONTROL", &context.settings.control.url);
    if control_ca(context, choices.identity).is_some() {
        env.set("STRAIT_CONTROL_CA", "/var/run/strait/ca/control.crt");
    }
    if control_audience(context).is_some() {
        env.set("STRAIT_CONTROL_TOKEN", "/var/run/strait/token/control");
    }
    env.identity(choices.identity, &context.settings.control.url);
    let (status, metrics) = (choices.status_port, choices.metrics_port());
    env.set("STRAIT_HEALTH", &format!("[::]:{status}"));
    if metrics != status {
        env.set("STRAIT_METRICS", &format!("[::]:{metrics}"));
    }
    env.set("STRAIT_CONCURRENCY", &choices.concurrency());
    for (name, value, default) in [
        ("STRAIT_CLUSTER", &context.settings.cluster, ""),
        ("STRAIT_NETWORK", &choices.network, ""),
        ("STRAIT_DOMAIN", &context.settings.domain, "cluster.local"),
        ("STRAIT_LOG_LEVEL", &choices.log_level, "info"),
        ("STRAIT_ACCESS_LOG", &choices.access_log, "text"),
    ] {
        if value != default {
            env.set(name, value);
        }
    }
    if is_sidecar {
        env.sidecar(choices, workload);
        env.set("ISTIO_META_WORKLOAD_NAME", &workload.owner.name);
        env.set(
            "ISTIO_META_OWNER",
            &workload.owner.path(&context.namespace.name),
        );
    }
    env.drains(choices, &workload.drains);
    for (name, value) in &choices.env {
        env.set(name, value);
    }
    env.0
}

#[derive(Default)]
struct Env(Vec<Value>);

impl Env {
    /// Sets a variable; one that is set already gets the new value.
    fn set(&mut self, name: &str, value: &str) {
        let variable = json!({"name": name, "value": value});
        match self.0.iter_mut().find(|known| known["name"] == name) {
            Some(known) => *known = variable,
            None => self.0.push(variable),
        }
    }

    fn identity(&mut self, source: IdentitySource, control: &str) {
        match source {
            IdentitySource::Files => {}
            IdentitySource::None => self.set("STRAIT_IDENTITY", "none"),
            IdentitySource::Csi => {
                for (name, file) in [
                    ("STRAIT_WORKLOAD_CERT", "tls.crt"),
                    ("STRAIT_WORKLOAD_KEY", "tls.key"),
                    ("STRAIT_MESH_CA", "ca.crt"),
                ] {
                    self.set(name, &format!("/var/run/secrets/spiffe.io/{file}"));
                }
            }
            IdentitySource::WorkloadApi => {
                self.set("STRAIT_IDENTITY", "workload-api");
                let socket = "unix:///var/run/strait/spiffe/spire-agent.sock";
                self.set("SPIFFE_ENDPOINT_SOCKET", socket);
            }
            IdentitySource::IstioCa | IdentitySource::StraitCa => {
                let is_own = source == IdentitySource::StraitCa;
                self.set(
                    "STRAIT_IDENTITY",
                    if is_own { "strait-ca" } else { "istio-ca" },
                );
                if is_own && !control.starts_with("xds://") {
                    self.set("STRAIT_CA_ADDRESS", STRAIT_CA);
                }
                self.set("STRAIT_CA_ROOT", "/var/run/strait/ca/root-cert.pem");
                if !is_own {
                    self.set("STRAIT_CA_CRL", "/var/run/strait/ca/ca-crl.pem");
                }
                self.set("STRAIT_CA_TOKEN", "/var/run/strait/token/ca");
            }
        }
    }

    fn sidecar(&mut self, choices: &Choices, workload: &Workload<'_>) {
        if !workload.probers.is_empty() {
            self.set("STRAIT_APP_PROBERS", &json!(workload.probers).to_string());
        }
        match (choices.capture, choices.mode) {
            (Capture::None, _) => {
                self.set("STRAIT_OUTBOUND_LISTENER", "off");
                self.set("STRAIT_INBOUND_LISTENER", "off");
                self.set("STRAIT_HTTP_PROXY_LISTENER", "127.0.0.1:15007");
            }
            (_, Mode::Transparent) => self.set("STRAIT_INTERCEPTION_MODE", "TPROXY"),
            (_, Mode::Redirect) => {}
        }
        if let Some(process) = &choices.exit_with_pid {
            self.set("STRAIT_EXIT_WITH_PID", process);
        }
    }

    fn drains(&mut self, choices: &Choices, drains: &Drains) {
        let time = format!("{}s", drains.termination);
        if choices.template == Template::Sidecar && choices.native {
            self.set("STRAIT_TERMINATION_DRAIN_MINIMUM", "0s");
        } else {
            self.set("STRAIT_PRE_DRAIN", &format!("{}s", drains.pre_drain));
        }
        if choices.template == Template::Sidecar {
            self.set(
                "STRAIT_TERMINATION_DRAIN",
                choices.termination_drain.as_ref().unwrap_or(&time),
            );
        }
        self.set(
            "STRAIT_DRAIN_TIME",
            choices.drain_time.as_ref().unwrap_or(&time),
        );
    }
}
