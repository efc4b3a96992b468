//! Import of resource files into a store. Each object is validated as in any other write.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use config_loader::diagnostic::Locator;
use config_loader::parse::{self, Chunk};
use config_loader::span::Lines;
use config_loader::{Diagnostic, Severity, check_text, read_texts};
use http::Method;
use serde_json::Value;

use super::export::strip;
use crate::api::params::Params;
use crate::api::route::Target;
use crate::api::{Api, Call, Change};
use crate::object;
use crate::resources;
use crate::status::Failure;

/// Field manager of imported objects.
const MANAGER: &str = "strait-import";
/// Namespace of namespaced objects without one.
const NAMESPACE_DEFAULT: &str = "default";

/// Finding about a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Finding of `strait check`.
    Checked(Box<Diagnostic>),
    /// Rejection by the store, with file and line.
    Refused(String),
}

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Number of created objects.
    pub created: usize,
    /// Number of changed objects.
    pub changed: usize,
    /// Number of objects that were already as in the files.
    pub unchanged: usize,
    /// Number of objects of kinds that the server does not serve.
    pub skipped: usize,
    /// Number of rejected objects and unreadable files.
    pub refused: usize,
    /// Findings, in the order of the files.
    pub findings: Vec<Finding>,
    /// Reason why the import stopped before the last object, such as a failed store.
    pub stopped: Option<String>,
}

/// Object in a file.
struct Item {
    value: Value,
    /// First and last line, for findings about the object.
    first_line: u32,
    last_line: u32,
}

/// Applies the objects in files and directories. A rejected object does not stop the import.
pub async fn import(api: &Api, paths: &[PathBuf]) -> Report {
    let (texts, problems) = read_texts(paths);
    let mut report = Report::default();
    for problem in problems {
        report.refused += usize::from(problem.severity == Severity::Error);
        report.findings.push(Finding::Checked(Box::new(problem)));
    }
    for (file, text) in texts {
        let found = check_text(&file, &text);
        let mut refused = Vec::new();
        for item in items(&file, &text, &mut report) {
            let outcome = apply(api, &item).await;
            if let Err(failure) = &outcome
                && failure.code.is_server_error()
            {
                let first_line = item.first_line;
                report.stopped = Some(format!("{file}:{first_line}: {}", failure.message));
                return report;
            }
            // Findings about the object have more detail, and a location.
            let is_found = found.iter().any(|finding| {
                finding.severity == Severity::Error
                    && (item.first_line..=item.last_line).contains(&finding.location.line)
            });
            if let Some(why) = report.count(outcome, is_found) {
                refused.push(Finding::Refused(format!(
                    "{file}:{}: {why}",
                    item.first_line
                )));
            }
        }
        report
            .findings
            .extend(found.into_iter().map(|one| Finding::Checked(Box::new(one))));
        report.findings.append(&mut refused);
    }
    report
}

impl Report {
    /// Counts an object. Returns the reason of a rejection, unless a finding already has it.
    fn count(
        &mut self,
        outcome: Result<Option<Change>, Failure>,
        is_found: bool,
    ) -> Option<String> {
        match outcome {
            Ok(None) if is_found => self.refused += 1,
            Ok(None) => self.skipped += 1,
            Ok(Some(change)) => match (change.before, change.after) {
                (None, _) => self.created += 1,
                (_, Some(_)) => self.changed += 1,
                (_, None) => self.unchanged += 1,
            },
            Err(failure) => {
                self.refused += 1;
                return (!is_found).then_some(failure.message);
            }
        }
        None
    }
}

/// Returns the objects of a file. Counts documents that are not objects as rejected.
fn items(file: &Arc<str>, text: &str, report: &mut Report) -> Vec<Item> {
    let chunks = parse::split(text);
    let ends = chunks
        .iter()
        .skip(1)
        .map(|next| next.first_line.saturating_sub(1));
    let ends: Vec<u32> = ends.chain([u32::MAX]).collect();
    let mut items = Vec::new();
    for (chunk, end) in chunks.into_iter().zip(ends) {
        match of_document(file, chunk, end) {
            Some(found) => items.extend(found),
            None => report.refused += 1,
        }
    }
    items
}

/// Returns the objects of a document, several for a list; `None` if it cannot be parsed.
fn of_document(file: &Arc<str>, chunk: Chunk<'_>, end: u32) -> Option<Vec<Item>> {
    let Chunk { text, first_line } = chunk;
    let lines = Lines::new(text);
    let locator = Locator {
        file,
        text,
        lines: &lines,
        first_line,
        secret: true,
        bool_keys: false,
    };
    let mut found = Vec::new();
    let root = parse::tree(&locator, &mut found)?;
    if found
        .iter()
        .any(|finding| finding.severity == Severity::Error)
    {
        return None;
    }
    let whole = root.to_json();
    let is_list = whole["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    let nodes = match root.get("items").map(|items| &items.value) {
        Some(parse::Value::List(nodes)) if is_list => nodes,
        _ => {
            return Some(vec![Item {
                value: whole,
                first_line,
                last_line: end,
            }]);
        }
    };
    let starts: Vec<u32> = nodes
        .iter()
        .map(|node| locator.location(node.span).line)
        .collect();
    let ends = starts.iter().skip(1).map(|next| next.saturating_sub(1));
    let ends = ends.chain([end]);
    let items = nodes.iter().zip(&starts).zip(ends);
    let items = items.map(|((node, start), last_line)| Item {
        value: node.to_json(),
        first_line: *start,
        last_line,
    });
    Some(items.collect())
}

/// Applies an object. Returns `None` if its kind is not served.
async fn apply(api: &Api, item: &Item) -> Result<Option<Change>, Failure> {
    let mut value = item.value.clone();
    let text = |field: &str| value[field].as_str().unwrap_or("").to_owned();
    let Some((resource, version)) = resources::of_kind(&text("apiVersion"), &text("kind")) else {
        return Ok(None);
    };
    strip(&mut value);
    let name = object::meta(&value, "name").to_owned();
    if name.is_empty() {
        return Err(Failure::bad_request(
            "the object has no name: add metadata.name",
        ));
    }
    let namespace = match object::meta(&value, "namespace") {
        // Remove the namespace of a cluster-scoped object, as kubectl does.
        _ if !resource.api.is_namespaced => None,
        "" => Some(NAMESPACE_DEFAULT.to_owned()),
        written => Some(written.to_owned()),
    };
    match &namespace {
        None => drop(object::metadata_mut(&mut value).shift_remove("namespace")),
        Some(written) if !object::is_name(written) => {
            return Err(Failure::bad_request(format!(
                "{written:?} is not the name of a namespace: correct metadata.namespace"
            )));
        }
        Some(_) => {}
    }
    let query = format!("fieldManager={MANAGER}&force=true&fieldValidation=Strict");
    let call = Call {
        method: Method::PATCH,
        target: Target {
            resource,
            version,
            namespace,
            name: Some(name),
            is_status: false,
        },
        params: Params::read(Some(&query)),
        content_type: "application/apply-patch+yaml".to_owned(),
        user_agent: String::new(),
        body: Bytes::from(value.to_string()),
    };
    api.change(&call).await.map(Some)
}
