//! `strait migrate istio` and `strait migrate linkerd`: which workloads can move, and what would be lost. They change nothing.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;

use clap::Args;
use config_loader::kinds::unsupported::UNSUPPORTED;
use config_loader::{Severity, parse};
use inject::Settings;
use inject::stream::{Action, Done, Format, Rewrite};
use serde_json::Value;

use super::files::FilesArgs;
use crate::command::inject::input::{Input, read};
use crate::command::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, report};

/// Arguments of `strait migrate istio` and `strait migrate linkerd`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  kubectl get namespaces,deployments,statefulsets,daemonsets,configmaps,envoyfilters,wasmplugins -A -o yaml | strait migrate istio -f -

It changes nothing. Exits with 1 if a workload cannot move, if anything is dropped, or if the input is wrong.")]
pub struct MeshMigrateArgs {
    /// Input.
    #[command(flatten)]
    pub from: FilesArgs,
}

/// Mesh that workloads move from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mesh {
    Istio,
    Linkerd,
}

/// Line of the report.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    object: String,
    word: &'static str,
    text: String,
}

const LOST: [&str; 3] = ["cannot move", "dropped", "rejected"];

/// Annotations of Linkerd that have a counterpart.
const OF_LINKERD: [(&str, &str); 7] = [
    (
        "config.linkerd.io/proxy-cpu-limit",
        "sidecar.istio.io/proxyCPULimit",
    ),
    (
        "config.linkerd.io/proxy-cpu-request",
        "sidecar.istio.io/proxyCPU",
    ),
    (
        "config.linkerd.io/proxy-memory-limit",
        "sidecar.istio.io/proxyMemoryLimit",
    ),
    (
        "config.linkerd.io/proxy-memory-request",
        "sidecar.istio.io/proxyMemory",
    ),
    (
        "config.linkerd.io/skip-inbound-ports",
        "traffic.sidecar.istio.io/excludeInboundPorts",
    ),
    (
        "config.linkerd.io/skip-outbound-ports",
        "traffic.sidecar.istio.io/excludeOutboundPorts",
    ),
    ("linkerd.io/inject", "label `strait.io/inject: enabled`"),
];

/// Runs the command. Returns the exit code.
pub(super) fn run(args: &MeshMigrateArgs, mesh: Mesh) -> u8 {
    let inputs = match read(&args.from.filenames) {
        Ok(inputs) => inputs,
        Err(error) => {
            report(&error);
            return EXIT_USAGE;
        }
    };
    let mut rows = Vec::new();
    for input in &inputs {
        judge(input, mesh, &mut rows);
    }
    let mut out = String::new();
    for row in &rows {
        let _ = writeln!(out, "{}\n  {}: {}", row.object, row.word, row.text);
    }
    let lost = rows.iter().filter(|row| LOST.contains(&row.word)).count();
    let _ = writeln!(
        out,
        "rows: {}, of which cannot move or are dropped: {lost}",
        rows.len()
    );
    if io::stdout().lock().write_all(out.as_bytes()).is_err() {
        return EXIT_INTERNAL; // the reader went away
    }
    match lost {
        0 => EXIT_DONE,
        _ => EXIT_INPUT,
    }
}

fn judge(input: &Input, mesh: Mesh, rows: &mut Vec<Row>) {
    let file: Arc<str> = input.name.as_str().into();
    for chunk in parse::split(&input.text) {
        match parse::json(&file, chunk.text, chunk.first_line) {
            Ok(document) => objects(&document, &mut |object| object_rows(object, mesh, rows)),
            Err(found) => rows.extend(found.iter().map(|one| Row {
                object: format!("{}:{}", one.location.file, one.location.line),
                word: "rejected",
                text: one.message.clone(),
            })),
        }
    }
    for found in config_loader::check_text(&file, &input.text) {
        // kinds that are not supported have rows of their own
        let is_kind = found.code.0.starts_with("CM03");
        let word = match found.severity {
            Severity::Error => "rejected",
            Severity::Warning if !is_kind => "dropped",
            _ => continue,
        };
        let at = &found.location;
        let object = found.object.map_or_else(String::new, |id| format!(" {id}"));
        rows.push(Row {
            object: format!("{}:{}{object}", at.file, at.line),
            word,
            text: format!("{} {}", found.code, found.message),
        });
    }
}

/// Visits the objects of a document, which may be a list.
fn objects(document: &Value, visit: &mut impl FnMut(&Value)) {
    let is_list = document["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    match document["items"].as_array().filter(|_| is_list) {
        Some(items) => items.iter().for_each(|item| objects(item, visit)),
        None if document.is_object() => visit(document),
        None => {}
    }
}

fn object_rows(object: &Value, mesh: Mesh, rows: &mut Vec<Row>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&object["kind"]);
    let api_version = text(&object["apiVersion"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let (name, namespace) = (
        text(&object["metadata"]["name"]),
        text(&object["metadata"]["namespace"]),
    );
    let shown = match namespace.is_empty() {
        true => format!("{kind} {name}"),
        false => format!("{kind} {namespace}/{name}"),
    };
    let mut row = |word, text: String| {
        let object = shown.clone();
        rows.push(Row { object, word, text });
    };
    let mut unsupported = UNSUPPORTED.iter();
    let unsupported =
        unsupported.find(|one| one.group == group && (one.kind == kind || one.kind.is_empty()));
    if let Some(unsupported) = unsupported {
        row(
            "dropped",
            format!("not supported; use {}", unsupported.instead),
        );
        return;
    }
    if mesh == Mesh::Linkerd && group.ends_with("linkerd.io") {
        row(
            "dropped",
            "not read; use a VirtualService, a DestinationRule or an AuthorizationPolicy"
                .to_owned(),
        );
        return;
    }
    match kind.as_str() {
        "ConfigMap" if name == "istio" => {
            let config = text(&object["data"]["mesh"]);
            let config = parse::json(&"mesh".into(), &config, 1).unwrap_or_default();
            match config["trustDomain"].as_str() {
                None | Some("cluster.local") => {}
                Some(domain) => row("needs", format!("`--trust-domain {domain}`")),
            }
            row("kept", "`--mesh-config` reads it".to_owned());
        }
        "Namespace" => {
            let labels = &object["metadata"]["labels"];
            let enforced = labels["pod-security.kubernetes.io/enforce"].as_str();
            if let Some(level) = enforced.filter(|level| *level != "privileged") {
                row(
                    "needs",
                    format!(
                        "Pod Security Standard `{level}`: `capture=istio-cni` or `capture=none`"
                    ),
                );
            }
            if labels["istio.io/dataplane-mode"] == "ambient" {
                row(
                    "cannot move",
                    "the namespace is in an ambient mesh: remove `istio.io/dataplane-mode`"
                        .to_owned(),
                );
            }
        }
        // its owner decides
        "Pod" if object["metadata"]["ownerReferences"].is_array() => {}
        _ => workload(object, &shown, mesh, rows),
    }
}

/// Adds the rows of a workload: whether it can be injected, and what its annotations become.
fn workload(object: &Value, shown: &str, mesh: Mesh, rows: &mut Vec<Row>) {
    let settings = Settings::default();
    let rewrite = Rewrite {
        settings: &settings,
        namespace: "default",
        kubernetes: None,
        kinds: &[],
        action: Action::Inject,
        format: Format::Json,
    };
    let mut row = |word, text: String| {
        let object = shown.to_owned();
        rows.push(Row { object, word, text });
    };
    match rewrite.text(shown, &object.to_string()) {
        Err(errors) => errors
            .into_iter()
            .for_each(|error| row("cannot move", error)),
        Ok(done) => {
            for report in done.workloads {
                for finding in &report.findings {
                    row("differs", finding.to_string());
                }
                match report.done {
                    Done::Changed(_) | Done::Same => row(
                        "can move",
                        "restart it in a namespace that consents".to_owned(),
                    ),
                    Done::Skipped(skip) if skip.is_asked_for() => {
                        row("left alone", skip.to_string())
                    }
                    Done::Skipped(skip) => row("cannot move", skip.to_string()),
                }
            }
        }
    }
    if mesh == Mesh::Linkerd {
        let template = &object["spec"]["template"]["metadata"]["annotations"];
        let all = [&object["metadata"]["annotations"], template];
        let all = all.into_iter().filter_map(Value::as_object).flatten();
        for (key, _) in all.filter(|(key, _)| key.contains("linkerd.io/")) {
            match OF_LINKERD.iter().find(|(known, _)| known == key) {
                Some((_, becomes)) => row("becomes", format!("`{key}` is {becomes}")),
                None => row("dropped", format!("`{key}` has no counterpart")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(mesh: Mesh, text: &str) -> Vec<String> {
        let input = Input {
            name: "a.yaml".to_owned(),
            text: text.to_owned(),
        };
        let mut rows = Vec::new();
        judge(&input, mesh, &mut rows);
        let rows = rows
            .iter()
            .map(|row| format!("{} {}: {}", row.object, row.word, row.text));
        rows.collect()
    }

    const DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: \
        {metadata: {annotations: {linkerd.io/inject: enabled, config.linkerd.io/opaque-ports: '1'}}, \
        spec: {HOST containers: [{name: web, image: web}]}}}}";

    #[test]
    fn workloads_and_kinds_of_istio_are_judged() {
        let text = format!(
            "{{apiVersion: v1, kind: List, items: [{}, {}, {{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, \
             metadata: {{name: f, namespace: shop}}}}, {{apiVersion: v1, kind: Namespace, metadata: {{name: shop, labels: \
             {{pod-security.kubernetes.io/enforce: restricted}}}}}}, {{apiVersion: v1, kind: ConfigMap, metadata: {{name: istio, \
             namespace: istio-system}}, data: {{mesh: 'trustDomain: td.example'}}}}]}}",
            DEPLOYMENT.replace("HOST", ""),
            DEPLOYMENT
                .replace("HOST", "hostNetwork: true,")
                .replace("name: web,", "name: node,"),
        );
        let found = rows(Mesh::Istio, &text);
        for part in [
            "Deployment shop/web can move: ",
            "Deployment shop/node cannot move: ",
            "EnvoyFilter shop/f dropped: not supported",
            "Namespace shop needs: Pod Security Standard `restricted`",
            "ConfigMap istio-system/istio needs: `--trust-domain td.example`",
        ] {
            assert!(
                found.iter().any(|row| row.starts_with(part)),
                "{part}: {found:#?}"
            );
        }
    }

    #[test]
    fn annotations_of_linkerd_become_those_that_are_read() {
        let found = rows(Mesh::Linkerd, &DEPLOYMENT.replace("HOST", ""));
        for part in [
            "Deployment shop/web can move: ",
            "Deployment shop/web becomes: `linkerd.io/inject`",
            "Deployment shop/web dropped: `config.linkerd.io/opaque-ports`",
        ] {
            assert!(
                found.iter().any(|row| row.starts_with(part)),
                "{part}: {found:#?}"
            );
        }
        let profile =
            "{apiVersion: linkerd.io/v1alpha2, kind: ServiceProfile, metadata: {name: p}}";
        assert!(rows(Mesh::Linkerd, profile)[0].starts_with("ServiceProfile p dropped: not read"));
    }
}
