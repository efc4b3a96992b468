//! The steps of an injection.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::choices::{Choices, Template, check_inject_label};
use crate::containers::{self, Names, Workload};
use crate::context::{Context, Owner};
use crate::json::{LISTS, at, at_mut, items, label, merge, name};
use crate::patch;
use crate::probes;
use crate::record::{Edits, Position, uninject};
use crate::report::{Finding, Refusal, Skip};
use crate::selection::{self, Consent};
use crate::settings::{Capture, IdentitySource, Mode};

/// Result of an injection.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The pod has a proxy now.
    Injected(Box<Injected>),
    /// The pod is left as it is.
    Skipped(Skip),
}

/// Pod with a proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Injected {
    /// The pod.
    pub pod: Value,
    /// Operations that change the original pod to it.
    pub patch: Vec<Value>,
    /// Remarks.
    pub findings: Vec<Finding>,
    /// Summary of the additions, in a few words.
    pub summary: String,
}

/// Paths of mappings and lists that items are added to.
const LABELS: [&str; 2] = ["metadata", "labels"];
const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];

/// Adds a proxy to a pod, or to the template of one. A pod that has one of ours gets a new one.
///
/// # Errors
///
/// The pod must not run as it would be injected: an annotation has a wrong value, or something is in the proxy's way.
pub fn inject(pod: &Value, context: &Context<'_>) -> Result<Outcome, Refusal> {
    selection::refuse_malformed(pod)?;
    let original = uninject(pod)?;
    if let Some(skip) = selection::skip(&original, context) {
        return Ok(Outcome::Skipped(skip));
    }
    let mut findings = Vec::new();
    let consent = selection::consent(&original, context).unwrap_or(Consent::Command);
    selection::refuse_two_claims(&original, consent)?;
    check_inject_label(&original, &mut findings);
    let choices = Choices::of(&original, context, &mut findings)?;
    let owner = match &context.owner {
        Some(owner) => Cow::Borrowed(owner),
        None => Cow::Owned(Owner::of_pod(&original)),
    };
    let mut injection = Injection {
        context,
        choices,
        consent,
        owner: &owner,
    };
    let (injected, summary) = match injection.choices.template {
        Template::Sidecar => injection.sidecar(original, &mut findings)?,
        Template::Gateway => injection.gateway(original, &mut findings)?,
    };
    let patch = patch::between(pod, &injected);
    Ok(Outcome::Injected(Box::new(Injected {
        pod: injected,
        patch,
        findings,
        summary,
    })))
}

/// Injection of one pod.
struct Injection<'a> {
    context: &'a Context<'a>,
    choices: Choices,
    consent: Consent,
    owner: &'a Owner,
}

impl Injection<'_> {
    /// Adds the proxy beside the workload. Returns the pod, and what was added.
    fn sidecar(
        &mut self,
        original: Value,
        findings: &mut Vec<Finding>,
    ) -> Result<(Value, String), Refusal> {
        let context = self.context;
        let (capture, status_port) = (self.choices.capture, self.choices.status_port);
        let is_transparent = capture != Capture::None && self.choices.mode == Mode::Transparent;
        selection::refuse_insecure(context, capture, is_transparent)?;
        if capture == Capture::IstioCni && self.consent == Consent::Own {
            return Err(Refusal::new(
                "istio_cni_needs_revision",
                "Istio's CNI plugin leaves pods alone that Istio's injector must leave alone",
                "select the injector by `istio.io/rev`, instead of `strait.io/inject`",
            ));
        }
        let mut edits = Edits::new(original);
        let names = Names::of(context, capture);
        let of_user = edits.take_override(&["istio-proxy", "strait-proxy"]);
        if let Some((_, _, of_user)) = &of_user {
            self.choices.merge_resources(&of_user["resources"]);
        }
        let choices = &self.choices;
        selection::refuse_conflicts(&edits.pod, choices.uid, capture, status_port)?;
        self.refuse_names(&edits.pod, names)?;
        self.annotate(&mut edits, names);
        self.label(&mut edits);
        let rewrites = choices.rewrite
            && (capture != Capture::None || choices.identity != IdentitySource::None);
        let inbound = containers::inbound_ports(choices);
        let probers = match rewrites {
            true => probes::rewrite(&mut edits, status_port, &inbound, findings)?,
            false => Map::new(),
        };
        let workload = Workload {
            owner: self.owner,
            drains: containers::drains(&edits.pod, choices, findings),
            probers: &probers,
        };
        let mut proxy = containers::proxy(context, choices, names.proxy, &workload);
        if let Some((_, _, of_user)) = of_user {
            override_with(&mut proxy, of_user, findings);
        }
        self.place(&mut edits, proxy, names);
        self.add_volumes(&mut edits);
        let kind = if choices.native {
            "native sidecar"
        } else {
            "container"
        };
        let summary = format!(
            "{kind}, capture {}, identity {}, probes {}",
            word(json!(capture)),
            word(json!(choices.identity)),
            probers.len()
        );
        Ok((edits.finish_with(context)?, summary))
    }

    /// Turns the container with `image: auto` into a gateway.
    fn gateway(
        &mut self,
        original: Value,
        findings: &mut Vec<Finding>,
    ) -> Result<(Value, String), Refusal> {
        let context = self.context;
        let mut edits = Edits::new(original);
        let Some((list, index, of_user)) = edits.take_override(&["istio-proxy", "strait-proxy"])
        else {
            return Err(Refusal::new(
                "no_gateway_container",
                "the template `gateway` needs a container `istio-proxy` with `image: auto`",
                "add the container, or remove the annotation `inject.istio.io/templates`",
            ));
        };
        self.choices.merge_resources(&of_user["resources"]);
        let choices = &self.choices;
        let workload = Workload {
            owner: self.owner,
            drains: containers::drains(&edits.pod, choices, findings),
            probers: &Map::new(),
        };
        let mut proxy = containers::proxy(context, choices, name(&of_user), &workload);
        override_with(&mut proxy, of_user, findings);
        edits.insert(&["spec", list], Position::At(index), proxy);
        let sysctls = ["spec", "securityContext", "sysctls"];
        let sysctl = "net.ipv4.ip_unprivileged_port_start";
        if !items(&edits.pod, &sysctls)
            .iter()
            .any(|one| name(one) == sysctl)
        {
            edits.insert(
                &sysctls,
                Position::Last,
                json!({"name": sysctl, "value": "0"}),
            );
        }
        self.scrape(&mut edits);
        self.label(&mut edits);
        self.add_volumes(&mut edits);
        let summary = format!("gateway, identity {}", word(json!(choices.identity)));
        Ok((edits.finish_with(context)?, summary))
    }

    /// Refuses a pod that has a container or a volume with a name of ours.
    fn refuse_names(&self, pod: &Value, names: Names) -> Result<(), Refusal> {
        let added = containers::volumes(self.context, &self.choices);
        let taken = LISTS
            .iter()
            .map(|list| (*list, vec![names.init, names.proxy]));
        let taken = taken.chain([("volumes", added.iter().map(name).collect())]);
        for (list, names) in taken {
            let mut all = items(pod, &["spec", list]).iter().map(name);
            if let Some(name) = all.find(|name| names.contains(name)) {
                return Err(Refusal::new(
                    "name_taken",
                    format!(
                        "spec.{list} of the pod has `{name}`, which is the name of an addition"
                    ),
                    "rename it",
                ));
            }
        }
        Ok(())
    }

    /// Puts the containers where they belong.
    fn place(&self, edits: &mut Edits, proxy: Value, names: Names) {
        let (init_list, list) = (["spec", LISTS[0]], ["spec", LISTS[1]]);
        let init = containers::init(self.context, &self.choices, names);
        match (self.choices.native, self.choices.hold) {
            (true, _) => edits.insert(&init_list, Position::First, proxy),
            (false, true) => edits.insert(&list, Position::First, proxy),
            (false, false) => edits.insert(&list, Position::Last, proxy),
        }
        let position = match self.choices.native {
            true => Position::First,
            false => Position::Last,
        };
        if let Some(init) = init {
            edits.insert(&init_list, position, init);
        }
    }

    fn add_volumes(&self, edits: &mut Edits) {
        for volume in containers::volumes(self.context, &self.choices) {
            let known = items(&edits.pod, &["spec", "volumes"]);
            if !known.iter().any(|one| name(one) == name(&volume)) {
                edits.insert(&["spec", "volumes"], Position::Last, volume);
            }
        }
        for secret in &self.context.settings.image_pull_secrets {
            let known = items(&edits.pod, &["spec", "imagePullSecrets"]);
            if !known.iter().any(|one| name(one) == secret) {
                edits.insert(
                    &["spec", "imagePullSecrets"],
                    Position::Last,
                    json!({"name": secret}),
                );
            }
        }
    }

    fn annotate(&self, edits: &mut Edits, names: Names) {
        let first = items(&edits.pod, &["spec", "containers"]).first().map(name);
        let first = first.unwrap_or_default().to_owned();
        for name in ["default-container", "default-logs-container"] {
            edits.add(
                &ANNOTATIONS,
                &format!("kubectl.kubernetes.io/{name}"),
                &*first,
            );
        }
        self.scrape(edits);
        if self.choices.capture != Capture::IstioCni {
            return;
        }
        // Istio's CNI plugin takes what to capture from annotations
        let choices = &self.choices;
        let inbound = containers::inbound_ports(choices);
        let traffic = |name: &str| format!("traffic.sidecar.istio.io/{name}");
        let status =
            json!({"containers": [names.proxy], "revision": self.context.settings.revision});
        for (name, value) in [
            ("sidecar.istio.io/status".to_owned(), status.to_string()),
            (
                "sidecar.istio.io/interceptionMode".to_owned(),
                word(json!(choices.mode)),
            ),
            (
                traffic("includeOutboundIPRanges"),
                choices.outbound_ranges.include.clone(),
            ),
            (
                traffic("excludeOutboundIPRanges"),
                choices.outbound_ranges.exclude.clone(),
            ),
            (
                traffic("includeOutboundPorts"),
                choices.outbound_ports.include.clone(),
            ),
            (
                traffic("excludeOutboundPorts"),
                choices.outbound_ports.exclude.clone(),
            ),
            (traffic("includeInboundPorts"), inbound.include),
            (traffic("excludeInboundPorts"), inbound.exclude),
        ] {
            edits.replace(&["metadata", "annotations", &name], value.clone().into());
            edits.add(&ANNOTATIONS, &name, value);
        }
    }

    /// Lets Prometheus scrape the proxy, unless the pod says what to scrape.
    fn scrape(&self, edits: &mut Edits) {
        let annotations = at(&edits.pod, &ANNOTATIONS).and_then(Value::as_object);
        let mut names = annotations.into_iter().flat_map(|map| map.keys());
        if names.any(|name| name.starts_with("prometheus.io/")) {
            return;
        }
        let port = self.choices.metrics_port().to_string();
        for (name, value) in [
            ("scrape", "true"),
            ("port", &*port),
            ("path", "/stats/prometheus"),
        ] {
            edits.add(&ANNOTATIONS, &format!("prometheus.io/{name}"), value);
        }
    }

    fn label(&self, edits: &mut Edits) {
        let first = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| label(&edits.pod, name))
                .map(str::to_owned)
        };
        let short = |text: String| text.chars().take(63).collect::<String>();
        let name =
            first(&["app.kubernetes.io/name", "app"]).unwrap_or_else(|| self.owner.name.clone());
        let revision =
            first(&["app.kubernetes.io/version", "version"]).unwrap_or_else(|| "latest".to_owned());
        if self.choices.identity != IdentitySource::None {
            edits.add(&LABELS, "security.istio.io/tlsMode", "istio");
        }
        for (key, value) in [("name", name), ("revision", revision)] {
            let value = short(value);
            if !value.is_empty() {
                edits.add(&LABELS, &format!("service.istio.io/canonical-{key}"), value);
            }
        }
        let keeps_istio_off =
            self.consent != Consent::Revision && self.choices.capture != Capture::IstioCni;
        if keeps_istio_off {
            edits.add(&LABELS, "sidecar.istio.io/inject", "false");
        }
    }
}

impl Edits {
    /// Writes the record with what the settings were, and returns the pod.
    fn finish_with(mut self, context: &Context<'_>) -> Result<Value, Refusal> {
        self.record.image.clone_from(&context.settings.image);
        self.record.revision.clone_from(&context.settings.revision);
        self.record.settings = context.settings.hash();
        self.finish()
    }
}

/// Merges the container of the user over ours, but for what the proxy depends on.
fn override_with(proxy: &mut Value, mut of_user: Value, findings: &mut Vec<Finding>) {
    let mut ignored = Vec::new();
    if let Value::Object(fields) = &mut of_user {
        for key in ["image", "name"] {
            fields.shift_remove(key);
        }
        for key in ["args", "command", "restartPolicy"] {
            if fields.shift_remove(key).is_some() {
                ignored.push(key.to_owned());
            }
        }
    }
    let ours = ["STRAIT_MODE", "STRAIT_HEALTH"];
    if let Some(Value::Array(env)) = at_mut(&mut of_user, &["env"]) {
        env.retain(|one| {
            let is_ours = ours.contains(&name(one));
            if is_ours {
                ignored.push(format!("env {}", name(one)));
            }
            !is_ours
        });
    }
    if !ignored.is_empty() {
        findings.push(Finding::new(
            "IN004",
            format!(
                "container `{}`: the proxy depends on its own {}, and yours is not used",
                name(proxy),
                ignored.join(", ")
            ),
            "remove it from the container with `image: auto`",
        ));
    }
    merge(proxy, &of_user);
}

/// Returns the text of a value that is a word.
fn word(value: Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
