//! Settings of the injection: a closed set, checked against its own defaults.

mod overlay;
mod words;

use std::collections::BTreeMap;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use twox_hash::XxHash64;

pub use self::overlay::SettingError;
use self::overlay::lay_over;
pub use self::words::{Capture, ContainerNames, IdentitySource, Mode, Native};
use crate::grammar;
use crate::selector::Selector;

/// Settings of the injection.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Image of the containers.
    pub image: String,
    /// When the kubelet pulls it: `Always`, `IfNotPresent` or `Never`.
    pub image_pull_policy: String,
    /// Secrets for the registry.
    pub image_pull_secrets: Vec<String>,
    /// Value of the label `istio.io/rev` that selects this injector.
    pub revision: String,
    /// Names of the containers: `strait` or `istio`.
    pub container_names: ContainerNames,
    /// Whether the proxy is a native sidecar.
    pub native_sidecar: Native,
    /// Capture of connections.
    pub capture: Capture,
    /// Mode in which inbound connections are captured.
    pub interception_mode: Mode,
    /// User of the proxy.
    pub proxy_uid: u32,
    /// Outbound destinations that are captured: `*` or IP ranges.
    pub outbound_ranges: Selected,
    /// Outbound ports that are captured, whatever the address.
    pub outbound_ports: Selected,
    /// Inbound ports that are captured: `*` or a list.
    pub inbound_ports: Selected,
    /// Source of the proxy's configuration.
    pub control: Control,
    /// Source of the workload's certificate.
    pub identity: Identity,
    /// Kubernetes cluster of the pod.
    pub cluster: String,
    /// Network of the pod, where no label names it.
    pub network: String,
    /// Domain of service names.
    pub domain: String,
    /// Resources of the proxy.
    pub resources: Value,
    /// Level of the process log.
    pub log_level: String,
    /// Access log: `text`, `json` or `off`.
    pub access_log: String,
    /// Whether probes are answered by the proxy.
    pub rewrite_probes: bool,
    /// Whether the workload starts after the proxy is ready.
    pub hold_application: bool,
    /// Further variables of the proxy.
    pub env: BTreeMap<String, String>,
    /// Label selectors of pods that are never injected.
    pub never: Vec<String>,
    /// Label selectors of pods that are injected without consent of their namespace.
    pub always: Vec<String>,
}

/// Included and excluded items, with commas.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Selected {
    /// Included items.
    pub include: String,
    /// Excluded items.
    pub exclude: String,
}

/// `control`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Control {
    /// URL, as for `strait run --control`.
    pub url: String,
    /// CA of the server: `configmap:NAME`, whose key is `ca.crt`, or `configmap:NAME/KEY`.
    pub ca: String,
    /// Token of the proxy.
    pub token: Token,
}

/// `control.token`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Token {
    /// Audience of the token; empty: no token.
    pub audience: String,
}

/// `identity`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Identity {
    /// Source of the certificate.
    pub source: IdentitySource,
}

impl Default for Settings {
    fn default() -> Self {
        let selected = |include: &str| Selected {
            include: include.to_owned(),
            exclude: String::new(),
        };
        Self {
            image: format!("registry.example/strait:{}", env!("CARGO_PKG_VERSION")),
            image_pull_policy: "IfNotPresent".to_owned(),
            image_pull_secrets: Vec::new(),
            revision: "strait".to_owned(),
            container_names: ContainerNames::Strait,
            native_sidecar: Native::Auto,
            capture: Capture::Init,
            interception_mode: Mode::Redirect,
            proxy_uid: 1337,
            outbound_ranges: selected("*"),
            outbound_ports: selected(""),
            inbound_ports: selected("*"),
            control: Control {
                url: "xds://strait-control.strait-system.svc:6444".to_owned(),
                ca: "configmap:strait-ca".to_owned(),
                token: Token {
                    audience: "strait-control".to_owned(),
                },
            },
            identity: Identity {
                source: IdentitySource::None,
            },
            cluster: String::new(),
            network: String::new(),
            domain: "cluster.local".to_owned(),
            resources: json!({"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}),
            log_level: "info".to_owned(),
            access_log: "off".to_owned(),
            rewrite_probes: true,
            hold_application: false,
            env: BTreeMap::new(),
            never: Vec::new(),
            always: Vec::new(),
        }
    }
}

impl Settings {
    /// Returns the settings with the values of a document in place of the defaults.
    ///
    /// # Errors
    ///
    /// Names each unknown key and each wrong value.
    pub fn with(&self, written: &Value) -> Result<Self, Vec<SettingError>> {
        let mut all = json!(self);
        let mut errors = Vec::new();
        lay_over(&mut all, written, &mut Vec::new(), &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let settings: Self = serde_json::from_value(all).map_err(|error| {
            let (path, message) = (Vec::new(), error.to_string());
            vec![SettingError { path, message }]
        })?;
        match settings.errors() {
            errors if errors.is_empty() => Ok(settings),
            errors => Err(errors),
        }
    }

    /// Returns the settings with one value of `--set`, such as `capture=none`.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the text.
    pub fn with_one(&self, text: &str) -> Result<Self, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!(
                "`{text}`: expected KEY=VALUE, such as capture=none"
            ));
        };
        let path: Vec<&str> = key.split('.').collect();
        let known = crate::json::at(&json!(self), &path).cloned();
        let value = match known {
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                serde_json::from_str(value).unwrap_or_else(|_| value.into())
            }
            _ => value.into(),
        };
        let written = path
            .iter()
            .rev()
            .fold(value, |value, key| json!({*key: value}));
        self.with(&written).map_err(|errors| {
            let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
            all.join("; ")
        })
    }

    /// Returns a short hash of the settings.
    pub(crate) fn hash(&self) -> String {
        let mut hasher = XxHash64::with_seed(0);
        hasher.write(json!(self).to_string().as_bytes());
        format!("{:016x}", hasher.finish())
    }

    fn errors(&self) -> Vec<SettingError> {
        let selectors = [("never", &self.never), ("always", &self.always)];
        let selectors = selectors.into_iter().flat_map(|(name, list)| {
            let checked = list.iter().map(|text| Selector::parse(text).map(drop));
            checked.map(move |check| (name, check))
        });
        let wrong = self.checks().into_iter().chain(selectors);
        let wrong = wrong.filter_map(|(path, check)| {
            let path = path.split('.').map(str::to_owned).collect();
            let message = check.err()?.to_owned();
            Some(SettingError { path, message })
        });
        wrong.collect()
    }

    /// Checks of values, by the path of the setting.
    fn checks(&self) -> [(&'static str, Result<(), &'static str>); 14] {
        use grammar::{ports, ranges};
        let (of_ranges, of_outbound) = (&self.outbound_ranges, &self.outbound_ports);
        let of_inbound = &self.inbound_ports;
        let policies = ["Always", "IfNotPresent", "Never"];
        let is = |holds: bool, fix: &'static str| holds.then_some(()).ok_or(fix);
        [
            (
                "image",
                is(!self.image.is_empty(), "write the name of an image"),
            ),
            (
                "imagePullPolicy",
                one_of(
                    &self.image_pull_policy,
                    &policies,
                    "write Always, IfNotPresent or Never",
                ),
            ),
            ("revision", grammar::label_value(&self.revision)),
            ("outboundRanges.include", ranges(&of_ranges.include, true)),
            ("outboundRanges.exclude", ranges(&of_ranges.exclude, false)),
            ("outboundPorts.include", ports(&of_outbound.include, false)),
            ("outboundPorts.exclude", ports(&of_outbound.exclude, false)),
            ("inboundPorts.include", ports(&of_inbound.include, true)),
            ("inboundPorts.exclude", ports(&of_inbound.exclude, false)),
            (
                "proxyUid",
                is(self.proxy_uid > 0, "write a user other than 0"),
            ),
            ("control.ca", self.checks_ca()),
            (
                "logLevel",
                is(
                    !self.log_level.is_empty(),
                    "write error, warn, info, debug or trace",
                ),
            ),
            (
                "accessLog",
                one_of(
                    &self.access_log,
                    &["json", "off", "text"],
                    "write text, json or off",
                ),
            ),
            ("resources", grammar::resources(&self.resources)),
        ]
    }

    fn checks_ca(&self) -> Result<(), &'static str> {
        let is_right = self.control.ca.is_empty() || self.control.ca.starts_with("configmap:");
        is_right
            .then_some(())
            .ok_or("write configmap:NAME, configmap:NAME/KEY, or nothing")
    }
}

fn one_of(text: &str, known: &[&str], fix: &'static str) -> Result<(), &'static str> {
    known.contains(&text).then_some(()).ok_or(fix)
}

#[cfg(test)]
mod tests;
