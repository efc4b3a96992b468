//! Effective settings of one pod: its annotations, those of its namespace, and the settings, in this order.

mod annotations;
mod own_config;
mod without_effect;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use self::annotations::Annotations;
use self::own_config::{OwnConfig, own_config};
use crate::context::{Context, Version};
use crate::grammar;
use crate::json::label;
use crate::report::{Finding, Refusal};
use crate::selection::label_or_annotation;
use crate::settings::{Capture, IdentitySource, Mode, Native, Selected, Settings};

/// Port for probes where no annotation names another one.
pub(crate) const STATUS_PORT: u16 = 15_021;

/// Port of the metrics.
pub(crate) const METRICS_PORT: u16 = 15_020;

/// Template of what is added to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Template {
    /// A proxy in place of the container with `image: auto`.
    Gateway,
    /// A proxy beside the workload.
    Sidecar,
}

/// Effective settings of one pod.
pub(crate) struct Choices {
    pub(crate) template: Template,
    pub(crate) native: bool,
    pub(crate) capture: Capture,
    pub(crate) mode: Mode,
    pub(crate) uid: u32,
    pub(crate) outbound_ranges: Selected,
    pub(crate) outbound_ports: Selected,
    pub(crate) inbound_ports: Selected,
    pub(crate) exclude_interfaces: String,
    /// Port of the proxy for probes.
    pub(crate) status_port: u16,
    pub(crate) has_probes: bool,
    pub(crate) readiness: Map<String, Value>,
    pub(crate) rewrite: bool,
    pub(crate) resources: Value,
    pub(crate) image: String,
    pub(crate) log_level: String,
    pub(crate) access_log: String,
    pub(crate) bind_low_ports: bool,
    pub(crate) volumes: Vec<Value>,
    pub(crate) mounts: Vec<Value>,
    pub(crate) hold: bool,
    /// Number of workers that an annotation names.
    concurrency: Option<String>,
    pub(crate) drain_time: Option<String>,
    pub(crate) termination_drain: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) exit_with_pid: Option<String>,
    pub(crate) identity: IdentitySource,
    pub(crate) network: String,
}

impl Choices {
    /// Decides for a pod.
    ///
    /// # Errors
    ///
    /// An annotation has a wrong value.
    pub(crate) fn of(
        pod: &Value,
        context: &Context<'_>,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, Refusal> {
        let read = Annotations { pod, context };
        let config = own_config(&read, findings)?;
        let mut choices = Self::of_settings(pod, context, &config);
        choices.read_ranges(&read)?;
        choices.read_capture(&read, &config)?;
        choices.read_proxy(&read, &config, findings)?;
        choices.read_own(&read)?;
        choices.native = native(&read, findings)?;
        without_effect::find(pod, findings);
        Ok(choices)
    }

    fn of_settings(pod: &Value, context: &Context<'_>, config: &OwnConfig) -> Self {
        let Settings {
            capture,
            interception_mode,
            ..
        } = *context.settings;
        let settings = context.settings.clone();
        let network = label(pod, "topology.istio.io/network").map(str::to_owned);
        let mut env = settings.env;
        env.extend(config.settings.variables.clone());
        Self {
            template: Template::Sidecar,
            native: true,
            capture,
            mode: interception_mode,
            uid: uid_of(context),
            outbound_ranges: settings.outbound_ranges,
            outbound_ports: settings.outbound_ports,
            inbound_ports: settings.inbound_ports,
            exclude_interfaces: String::new(),
            status_port: STATUS_PORT,
            has_probes: true,
            readiness: Map::new(),
            rewrite: settings.rewrite_probes,
            resources: settings.resources,
            image: settings.image,
            log_level: settings.log_level,
            access_log: settings.access_log,
            bind_low_ports: false,
            volumes: Vec::new(),
            mounts: Vec::new(),
            hold: config.hold.unwrap_or(settings.hold_application),
            concurrency: config.flag("concurrency"),
            drain_time: config.flag("drainDuration"),
            termination_drain: config.flag("terminationDrainDuration"),
            env,
            exit_with_pid: None,
            identity: settings.identity.source,
            network: network.unwrap_or(settings.network),
        }
    }

    /// Lays resources of the user over those of the settings.
    pub(crate) fn merge_resources(&mut self, of_user: &Value) {
        if of_user.is_object() {
            crate::json::merge(&mut self.resources, of_user);
        }
    }

    /// Returns the port of the metrics; that of the probes, if it was chosen.
    pub(crate) fn metrics_port(&self) -> u16 {
        match self.status_port {
            STATUS_PORT => METRICS_PORT,
            port => port,
        }
    }

    /// Returns the number of workers.
    pub(crate) fn concurrency(&self) -> String {
        let named = self.concurrency.clone();
        named.unwrap_or_else(|| concurrency(&self.resources).to_string())
    }

    /// Reads which ranges, ports and interfaces are captured.
    fn read_ranges(&mut self, read: &Annotations<'_>) -> Result<(), Refusal> {
        type Check = fn(&str, bool) -> Result<(), &'static str>;
        let (ranges, ports): (Check, Check) = (grammar::ranges, grammar::ports);
        let (of_ranges, of_inbound) = (&mut self.outbound_ranges, &mut self.inbound_ports);
        let of_outbound = &mut self.outbound_ports;
        for (name, check, star, value) in [
            (
                "includeOutboundIPRanges",
                ranges,
                true,
                &mut of_ranges.include,
            ),
            (
                "excludeOutboundIPRanges",
                ranges,
                false,
                &mut of_ranges.exclude,
            ),
            ("includeInboundPorts", ports, true, &mut of_inbound.include),
            ("excludeInboundPorts", ports, false, &mut of_inbound.exclude),
            (
                "includeOutboundPorts",
                ports,
                false,
                &mut of_outbound.include,
            ),
            (
                "excludeOutboundPorts",
                ports,
                false,
                &mut of_outbound.exclude,
            ),
        ] {
            read.list(
                &format!("traffic.sidecar.istio.io/{name}"),
                check,
                star,
                value,
            )?;
        }
        for (name, check, value) in [
            ("skip-inbound-ports", ports, &mut of_inbound.exclude),
            ("skip-outbound-ports", ports, &mut of_outbound.exclude),
            ("skip-subnets", ranges, &mut of_ranges.exclude),
        ] {
            let mut more = String::new();
            read.list(
                &format!("config.linkerd.io/{name}"),
                check,
                false,
                &mut more,
            )?;
            append(value, &more);
        }
        let interfaces = "traffic.sidecar.istio.io/excludeInterfaces";
        let is_name =
            |name: &str| !name.is_empty() && name.len() < 16 && !name.contains(['/', ' ']);
        let names = read.parsed(
            interfaces,
            "names of interfaces with commas, such as eth1",
            |text| grammar::list(text).all(is_name).then(|| text.to_owned()),
        )?;
        self.exclude_interfaces = names.unwrap_or_default();
        Ok(())
    }

    /// Reads how connections are captured.
    fn read_capture(&mut self, read: &Annotations<'_>, config: &OwnConfig) -> Result<(), Refusal> {
        let mode = read
            .get("sidecar.istio.io/interceptionMode")
            .map(str::to_owned);
        match mode.or_else(|| config.mode()).as_deref() {
            None => {}
            Some("REDIRECT") => self.mode = Mode::Redirect,
            Some("TPROXY") => self.mode = Mode::Transparent,
            Some("NONE") => self.capture = Capture::None,
            Some(text) => {
                let name = "sidecar.istio.io/interceptionMode";
                return Err(Refusal::value(name, text, "REDIRECT, TPROXY or NONE"));
            }
        }
        let capture = read.parsed(
            "strait.io/capture",
            "init, istio-cni or none",
            Capture::parse,
        )?;
        self.capture = capture.unwrap_or(self.capture);
        for name in [
            "traffic.sidecar.istio.io/kubevirtInterfaces",
            "istio.io/reroute-virtual-interfaces",
        ] {
            if self.capture == Capture::Init && read.get(name).is_some() {
                return Err(Refusal::new(
                    "virtual_interfaces",
                    format!(
                        "annotation `{name}`: connections of virtual machines are not captured"
                    ),
                    "set `strait.io/inject: disabled` on the pod, or remove the annotation",
                ));
            }
        }
        Ok(())
    }

    /// Reads the settings of the proxy that Istio has annotations for.
    fn read_proxy(
        &mut self,
        read: &Annotations<'_>,
        config: &OwnConfig,
        findings: &mut Vec<Finding>,
    ) -> Result<(), Refusal> {
        if let Some(names) = read.get("inject.istio.io/templates") {
            self.template = match grammar::list(names).collect::<Vec<_>>()[..] {
                ["sidecar"] => Template::Sidecar,
                ["gateway"] => Template::Gateway,
                _ => {
                    return Err(Refusal::value(
                        "inject.istio.io/templates",
                        names,
                        "sidecar or gateway",
                    ));
                }
            };
        }
        let port = |text: &str| text.parse().ok();
        let status = read.parsed(
            "status.sidecar.istio.io/port",
            "a port, or 0 for no probes",
            port,
        )?;
        match status.or_else(|| config.status_port()) {
            None => {}
            Some(0) => self.has_probes = false,
            Some(port) => self.status_port = port,
        }
        for (name, key) in [
            ("initialDelaySeconds", "initialDelaySeconds"),
            ("periodSeconds", "periodSeconds"),
            ("failureThreshold", "failureThreshold"),
        ] {
            let name = format!("readiness.status.sidecar.istio.io/{name}");
            let number = read.parsed(&name, "a number of seconds or failures", |text| {
                text.parse::<u16>().ok()
            })?;
            self.readiness
                .extend(number.map(|number| (key.to_owned(), number.into())));
        }
        let rewrite = read.switch("sidecar.istio.io/rewriteAppHTTPProbers")?;
        self.rewrite = rewrite.unwrap_or(self.rewrite);
        self.read_resources(read)?;
        self.read_image(read, findings);
        let level = read.parsed(
            "sidecar.istio.io/logLevel",
            "error, warn, info, debug or trace",
            log_level,
        )?;
        self.log_level = level.map_or_else(|| std::mem::take(&mut self.log_level), str::to_owned);
        self.bind_low_ports = read
            .switch("sidecar.istio.io/capNetBindService")?
            .unwrap_or(false);
        self.volumes = read.named("sidecar.istio.io/userVolume")?;
        self.mounts = read.named("sidecar.istio.io/userVolumeMount")?;
        Ok(())
    }

    fn read_resources(&mut self, read: &Annotations<'_>) -> Result<(), Refusal> {
        let mut resources = Value::Null;
        for (name, list, key) in [
            ("proxyCPU", "requests", "cpu"),
            ("proxyMemory", "requests", "memory"),
            ("proxyCPULimit", "limits", "cpu"),
            ("proxyMemoryLimit", "limits", "memory"),
        ] {
            let name = format!("sidecar.istio.io/{name}");
            let quantity = read.parsed(&name, "a quantity, such as 100m or 64Mi", |text| {
                grammar::quantity(text).map(|_| text.to_owned())
            })?;
            if let Some(quantity) = quantity {
                resources[list][key] = quantity.into();
            }
        }
        if !resources.is_null() {
            self.resources = resources;
        }
        Ok(())
    }

    fn read_image(&mut self, read: &Annotations<'_>, findings: &mut Vec<Finding>) {
        let repository = |image: &str| {
            let image = image.split('@').next().unwrap_or_default();
            let (start, last) = image.rsplit_once('/').unwrap_or(("", image));
            format!("{start}/{}", last.split(':').next().unwrap_or_default())
        };
        for name in ["sidecar.istio.io/proxyImage", "strait.io/image"] {
            let Some(image) = read.get(name) else {
                continue;
            };
            if image.contains('/') && repository(image) == repository(&read.context.settings.image)
            {
                image.clone_into(&mut self.image);
                continue;
            }
            findings.push(Finding::new(
                "IN003",
                format!("annotation `{name}`: `{image}` is not from the repository of the settings, and is not used"),
                format!("name an image of `{}`, or remove the annotation", read.context.settings.image),
            ));
        }
    }

    /// Reads the annotations that only Strait has.
    fn read_own(&mut self, read: &Annotations<'_>) -> Result<(), Refusal> {
        let sources = "none, files, istio-ca, strait-ca, workload-api or csi";
        let identity = read.parsed("strait.io/identity", sources, IdentitySource::parse)?;
        self.identity = identity.unwrap_or(self.identity);
        let level = read.parsed(
            "strait.io/log-level",
            "error, warn, info, debug or trace",
            log_level,
        )?;
        self.log_level = level.map_or_else(|| std::mem::take(&mut self.log_level), str::to_owned);
        let log = read.parsed("strait.io/access-log", "text, json or off", |text| {
            ["text", "json", "off"]
                .contains(&text)
                .then(|| text.to_owned())
        })?;
        self.access_log = log.unwrap_or_else(|| std::mem::take(&mut self.access_log));
        self.exit_with_pid = read.parsed(
            "strait.io/exit-with-pid",
            "a process number or a file",
            |text| (!text.is_empty()).then(|| text.to_owned()),
        )?;
        let words = "enabled or disabled";
        let known = |text: &str| ["enabled", "disabled"].contains(&text).then_some(());
        read.parsed("strait.io/inject", words, known).map(drop)
    }
}

/// Appends a list to another one.
fn append(list: &mut String, more: &str) {
    if !list.is_empty() && !more.is_empty() {
        list.push(',');
    }
    list.push_str(more);
}

/// Returns the user of the proxy, which OpenShift chooses for each namespace.
fn uid_of(context: &Context<'_>) -> u32 {
    let range = context
        .namespace
        .annotations
        .get("openshift.io/sa.scc.uid-range");
    let start = range.and_then(|range| range.split('/').next()?.parse::<u32>().ok());
    start.map_or(context.settings.proxy_uid, |start| start.saturating_add(1))
}

/// Returns the number of workers: the CPU request rounded up, unless a CPU limit says less.
fn concurrency(resources: &Value) -> u32 {
    let cpu = |list: &str| grammar::quantity(resources[list]["cpu"].as_str()?);
    let cpus = [cpu("requests"), cpu("limits")].into_iter().flatten();
    let least = cpus.fold(f64::INFINITY, f64::min);
    match least.is_finite() {
        true => least.ceil().clamp(1.0, 1024.0) as u32,
        false => 1,
    }
}

/// Returns the level of the process log that a level of Istio means.
fn log_level(text: &str) -> Option<&'static str> {
    Some(match text {
        "trace" => "trace",
        "debug" => "debug",
        "info" => "info",
        "warning" | "warn" => "warn",
        "error" | "critical" | "off" => "error",
        _ => return None,
    })
}

/// Returns whether the proxy is a native sidecar.
fn native(read: &Annotations<'_>, findings: &mut Vec<Finding>) -> Result<bool, Refusal> {
    let version = read.context.kubernetes;
    let has_them = version.is_none_or(|version| version >= Version::NATIVE_SIDECARS);
    let asked = read.switch("sidecar.istio.io/nativeSidecar")?;
    let asked = asked.or(match read.context.settings.native_sidecar {
        Native::Auto => None,
        Native::False => Some(false),
        Native::True => Some(true),
    });
    let mut finding =
        |message: String, help: &str| findings.push(Finding::new("IN012", message, help));
    match (asked, version) {
        (Some(true), Some(Version(minor))) if !has_them => finding(
            format!(
                "Kubernetes 1.{minor} has no native sidecars: the proxy is a container beside the workload"
            ),
            "set `sidecar.istio.io/nativeSidecar: \"false\"`, or upgrade Kubernetes to 1.29",
        ),
        (None, Some(Version(minor))) if has_them && read.context.nodes_unknown => finding(
            format!("nodes older than the API server (1.{minor}) may have no native sidecars"),
            "let the injector list nodes, or set the setting `nativeSidecar`",
        ),
        _ => {}
    }
    Ok(asked.unwrap_or(true) && has_them)
}

/// Finds a value of the label `sidecar.istio.io/inject` that means nothing.
pub(crate) fn check_inject_label(pod: &Value, findings: &mut Vec<Finding>) {
    let name = "sidecar.istio.io/inject";
    let value = label_or_annotation(pod, name);
    if let Some(value) = value.filter(|value| !["true", "false"].contains(value)) {
        let message = format!("label `{name}` has the value `{value}`, which means nothing");
        findings.push(Finding::new(
            "IN001",
            message,
            "write \"true\" or \"false\"",
        ));
    }
}
