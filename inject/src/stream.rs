//! Injection into the documents of a text: YAML or JSON, several documents, lists.
//!
//! Documents that do not change stay byte for byte.

mod diff;

use std::sync::Arc;

use config_loader::diagnostic::render;
use config_loader::parse;
use serde_json::{Value, json};

use crate::context::{Caller, Context, Namespace, Version};
use crate::documents::{Workload, workloads};
use crate::injector::{Outcome, inject};
use crate::patch;
use crate::record::{is_injected, uninject};
use crate::report::{Finding, Refusal, Skip};
use crate::settings::Settings;

/// Change of the workloads of a text.
#[derive(Clone, Debug)]
pub struct Rewrite<'a> {
    /// Settings of the injection.
    pub settings: &'a Settings,
    /// Namespace of documents that name none.
    pub namespace: &'a str,
    /// Version of Kubernetes, if it is known.
    pub kubernetes: Option<Version>,
    /// Further kinds, each `GROUP/KIND`.
    pub kinds: &'a [String],
    /// The change.
    pub action: Action,
    /// Format of the result.
    pub format: Format,
}

/// Change of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The label `strait.io/inject: enabled`, by which the webhook injects it.
    Annotate,
    /// A proxy.
    Inject,
    /// The proxy is taken out.
    Uninject,
}

/// Format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Format of each document as it was read.
    AsRead,
    /// Differences by lines, of the documents that change.
    Diff,
    /// JSON.
    Json,
    /// RFC 6902 operations, a line for each document that changes.
    Patch,
    /// YAML.
    Yaml,
}

/// Result for a text.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// Report about each workload.
    pub workloads: Vec<Report>,
    /// Whether comments of a document were lost.
    pub loses_comments: bool,
}

/// Result for a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Name for messages, such as `deployment/web in shop`.
    pub workload: String,
    /// Result.
    pub done: Done,
    /// Remarks.
    pub findings: Vec<Finding>,
}

/// Result for a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was changed, with a summary.
    Changed(String),
    /// It is as it should be.
    Same,
    /// It was left alone.
    Skipped(Skip),
}

impl Rewrite<'_> {
    /// Rewrites a text of the file with this name.
    ///
    /// # Errors
    ///
    /// Returns a message for each document that cannot be read, and each workload that is refused.
    pub fn text(&self, file: &str, text: &str) -> Result<Rewritten, Vec<String>> {
        let file: Arc<str> = file.into();
        let mut out = Rewritten::default();
        let mut errors = Vec::new();
        let mut copied = 0;
        for chunk in parse::split(text) {
            let start = chunk.text.as_ptr() as usize - text.as_ptr() as usize;
            if matches!(self.format, Format::AsRead | Format::Yaml) {
                out.text.push_str(&text[copied..start]);
            }
            copied = start + chunk.text.len();
            if let Err(more) = self.document(&file, chunk, &mut out) {
                errors.extend(more);
            }
        }
        if matches!(self.format, Format::AsRead | Format::Yaml) {
            out.text.push_str(&text[copied..]);
        }
        match errors.is_empty() {
            true => Ok(out),
            false => Err(errors),
        }
    }

    fn document(
        &self,
        file: &Arc<str>,
        chunk: parse::Chunk<'_>,
        out: &mut Rewritten,
    ) -> Result<(), Vec<String>> {
        let before = parse::json(file, chunk.text, chunk.first_line).map_err(|found| {
            vec![
                render::text(&found, render::Style::Plain)
                    .trim_end()
                    .to_owned(),
            ]
        })?;
        let mut after = before.clone();
        let mut errors = Vec::new();
        for workload in workloads(&before, self.kinds) {
            let Some(pod) = after.pointer_mut(&workload.pointer) else {
                continue;
            };
            let shown = self.shown(&workload);
            match self.workload(pod, &workload) {
                Ok((done, findings)) => out.workloads.push(Report {
                    workload: shown,
                    done,
                    findings,
                }),
                Err(refusal) => {
                    errors.push(format!("{file}:{}: {shown}: {refusal}", chunk.first_line))
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        self.write(chunk.text, &before, &after, out);
        Ok(())
    }

    fn workload(
        &self,
        pod: &mut Value,
        workload: &Workload,
    ) -> Result<(Done, Vec<Finding>), Refusal> {
        let (changed, findings, summary) = match self.action {
            Action::Uninject if !is_injected(pod) => return Ok((Done::Same, Vec::new())),
            Action::Uninject => (uninject(pod)?, Vec::new(), "uninjected".to_owned()),
            Action::Annotate => {
                let mut changed = uninject(pod)?;
                let labels = json!({"metadata": {"labels": {"strait.io/inject": "enabled"}}});
                crate::json::merge(&mut changed, &labels);
                (changed, Vec::new(), "labelled for the webhook".to_owned())
            }
            Action::Inject => {
                let namespace = workload.namespace.as_deref().unwrap_or(self.namespace);
                let context = Context {
                    owner: Some(workload.owner.clone()),
                    kubernetes: self.kubernetes,
                    caller: Caller::Command,
                    ..Context::new(self.settings, Namespace::named(namespace))
                };
                match inject(pod, &context)? {
                    Outcome::Skipped(skip) => return Ok((Done::Skipped(skip), Vec::new())),
                    Outcome::Injected(done) => (
                        done.pod,
                        done.findings,
                        format!("injected ({})", done.summary),
                    ),
                }
            }
        };
        if changed == *pod {
            return Ok((Done::Same, findings));
        }
        *pod = changed;
        Ok((Done::Changed(summary), findings))
    }

    fn shown(&self, workload: &Workload) -> String {
        let namespace = workload.namespace.as_deref().unwrap_or(self.namespace);
        let owner = &workload.owner;
        format!(
            "{}/{} in {namespace}",
            owner.kind.to_ascii_lowercase(),
            owner.name
        )
    }

    fn write(&self, text: &str, before: &Value, after: &Value, out: &mut Rewritten) {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let (is_same, pretty) = (before == after, || format!("{after:#}\n"));
        match self.format {
            Format::AsRead if is_same => out.text.push_str(text),
            Format::Yaml if is_same && !is_json => out.text.push_str(text),
            Format::AsRead if is_json => out.text.push_str(&pretty()),
            Format::Json => out.text.push_str(&pretty()),
            Format::AsRead | Format::Yaml => {
                out.loses_comments |=
                    !is_same && text.lines().any(|line| line.trim_start().starts_with('#'));
                let (first, last) = (
                    text.lines().next().unwrap_or_default(),
                    text.lines().last().unwrap_or_default(),
                );
                let follows_json = is_json && !out.text.is_empty();
                if first.starts_with("---") || follows_json {
                    out.text.push_str("---\n");
                }
                out.text.push_str(&parse::to_yaml(after));
                if last.starts_with("...") {
                    out.text.push_str("...\n");
                }
            }
            Format::Patch | Format::Diff if is_same => {}
            Format::Patch => {
                let metadata = &after["metadata"];
                let line = json!({
                    "kind": after["kind"], "namespace": metadata["namespace"], "name": metadata["name"],
                    "patch": patch::between(before, after),
                });
                out.text.push_str(&format!("{line}\n"));
            }
            Format::Diff => out.text.push_str(&diff::lines(
                &parse::to_yaml(before),
                &parse::to_yaml(after),
            )),
        }
    }
}

/// Reads settings from the text of a file, over known ones.
///
/// # Errors
///
/// Returns a message with the location of each error.
pub fn settings(known: &Settings, file: &str, text: &str) -> Result<Settings, Vec<String>> {
    let file: Arc<str> = file.into();
    let written = parse::json(&file, text, 1).map_err(|found| {
        vec![
            render::text(&found, render::Style::Plain)
                .trim_end()
                .to_owned(),
        ]
    })?;
    let written = if written.is_null() {
        json!({})
    } else {
        written
    };
    known.with(&written).map_err(|errors| {
        let message = |error: &crate::settings::SettingError| {
            let at = parse::location_of(&file, text, &error.path);
            format!("{file}:{}:{}: {error}", at.line, at.column)
        };
        errors.iter().map(message).collect()
    })
}
