//! Probes and lifecycle hooks of the workload, which the proxy answers in place of its containers.
//!
//! The kubelet has no certificate: under mutual TLS it cannot probe a container itself.

use serde_json::{Map, Value, json};

use crate::grammar;
use crate::json::{at, items, name};
use crate::record::Edits;
use crate::report::{Finding, Refusal};
use crate::settings::Selected;

/// Probes and hooks by their path in a container, with the path at the proxy.
const PROBES: [(&[&str], &str, &str); 5] = [
    (&["readinessProbe"], "app-health", "readyz"),
    (&["livenessProbe"], "app-health", "livez"),
    (&["startupProbe"], "app-health", "startupz"),
    (&["lifecycle", "postStart"], "app-lifecycle", "poststartz"),
    (&["lifecycle", "preStop"], "app-lifecycle", "prestopz"),
];

/// Actions that are rewritten, in probes and hooks.
const ACTIONS: [&str; 3] = ["httpGet", "tcpSocket", "grpc"];

/// Rewrites the probes of all containers to the port of the proxy. Returns the original probes by path.
///
/// # Errors
///
/// A probe names a port that its container does not have.
pub(crate) fn rewrite(
    edits: &mut Edits,
    status_port: u16,
    captured: &Selected,
    findings: &mut Vec<Finding>,
) -> Result<Map<String, Value>, Refusal> {
    let mut probers = Map::new();
    let mut changes = Vec::new();
    for (list, container) in crate::json::containers(&edits.pod) {
        let of_sidecar = container["restartPolicy"] == "Always";
        if list == "initContainers" && !of_sidecar {
            continue;
        }
        let shown = name(container);
        for (path, group, word) in PROBES {
            let Some(probe) = at(container, path) else {
                continue;
            };
            let served = format!("/{group}/{shown}/{word}");
            let Some(action) = ACTIONS.into_iter().find(|action| probe[action].is_object()) else {
                continue;
            };
            let asked = Asked {
                container,
                probe,
                action,
                field: path.join("."),
            };
            let Some(prober) = asked.prober(status_port, captured, findings)? else {
                continue;
            };
            let path = [&["spec", list, shown], path].concat();
            let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
            changes.push((path, asked.rewritten(&served, status_port)));
            probers.insert(served, prober);
        }
    }
    for (path, probe) in changes {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        edits.replace(&path, probe);
    }
    Ok(probers)
}

/// Probe or hook that the kubelet runs.
struct Asked<'a> {
    container: &'a Value,
    probe: &'a Value,
    action: &'static str,
    field: String,
}

impl Asked<'_> {
    /// Returns the probe as the proxy runs it; `None` if the kubelet reaches the container itself.
    fn prober(
        &self,
        status_port: u16,
        captured: &Selected,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Value>, Refusal> {
        let mut action = self.probe[self.action].clone();
        let host = action["host"].as_str().unwrap_or_default();
        if !host.is_empty() {
            findings.push(Finding::new(
                "IN006",
                format!(
                    "container `{}`: `{}` names the host `{host}`, and stays as it is",
                    name(self.container),
                    self.field
                ),
                "remove `host`: the kubelet uses the address of the pod",
            ));
            return Ok(None);
        }
        let port = self.port(&action["port"])?;
        let path = action["path"].as_str().unwrap_or_default();
        let is_ours = port == status_port
            && (path.starts_with("/app-health/") || path.starts_with("/app-lifecycle/"));
        let reaches = !grammar::has_port(&captured.include, port)
            || grammar::has_port(&captured.exclude, port);
        if is_ours || reaches {
            return Ok(None);
        }
        action["port"] = port.into();
        let mut prober = json!({self.action: action});
        if let Some(seconds) = self.probe.get("timeoutSeconds") {
            prober["timeoutSeconds"] = seconds.clone();
        }
        Ok(Some(prober))
    }

    /// Returns the number of a port, which may be the name of one of the container's.
    fn port(&self, port: &Value) -> Result<u16, Refusal> {
        let number = match port {
            Value::String(named) => {
                let mut ports = items(self.container, &["ports"]).iter();
                let found = ports.find(|one| name(one) == named);
                found.and_then(|one| one["containerPort"].as_u64())
            }
            port => port.as_u64(),
        };
        let number = number
            .and_then(|number| u16::try_from(number).ok())
            .filter(|number| *number > 0);
        number.ok_or_else(|| {
            let shown = name(self.container);
            Refusal::new(
                "unknown_port",
                format!("container `{shown}`: `{}` names the port {port}, which the container does not have", self.field),
                "name one of its `ports`, or write a number from 1 to 65535",
            )
        })
    }

    /// Returns the probe with a GET to the proxy in place of its action.
    fn rewritten(&self, path: &str, status_port: u16) -> Value {
        let get = json!({"path": path, "port": status_port, "scheme": "HTTP"});
        let entries = self.probe.as_object().into_iter().flatten();
        let entries = entries.map(|(key, value)| match key == self.action {
            true => ("httpGet".to_owned(), get.clone()),
            false => (key.clone(), value.clone()),
        });
        Value::Object(entries.collect())
    }
}
