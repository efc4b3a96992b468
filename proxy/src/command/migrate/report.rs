//! Report of what Ingresses become.

use std::fmt::Write as _;

use config_loader::Severity;
use config_loader::ingress::{Translation, Verdict};

use super::config_map::Setting;

/// Longest part of a value in the report.
const VALUE_MAX: usize = 60;

/// Returns the report: for each Ingress its objects, its annotations and the findings; then the settings of the ConfigMap.
pub(super) fn text(translation: &Translation, config_map: &[Setting]) -> String {
    let mut out = String::new();
    for (name, outcomes) in &translation.outcomes {
        let own =
            |id: &config_loader::ObjectRef| id.namespace == name.namespace && id.name == name.name;
        let objects = translation.objects.iter().filter(|one| own(&one.origin.id));
        let objects: Vec<String> = objects
            .map(|one| format!("{} {}", one.kind, one.name))
            .collect();
        let _ = writeln!(out, "Ingress {name}");
        let _ = writeln!(out, "  becomes {}", objects.join(", "));
        for outcome in outcomes {
            let (word, text) = words(&outcome.verdict);
            let _ = writeln!(out, "  {}: {}", outcome.field, shortened(&outcome.value));
            let _ = writeln!(out, "    {word}: {text}");
        }
        let found = translation.findings.iter();
        let found = found.filter(|found| found.object.as_ref().is_some_and(own));
        for found in found.filter(|found| !found.field.starts_with("metadata.annotations[")) {
            let at = &found.location;
            let _ = writeln!(
                out,
                "  {} {}:{}: {}",
                found.code, at.file, at.line, found.message
            );
        }
    }
    let served = |found: &&config_loader::Diagnostic| {
        let object = found.object.as_ref().map(config_loader::ObjectRef::to_name);
        object.is_none_or(|name| !translation.outcomes.contains_key(&name))
    };
    for found in translation.findings.iter().filter(served) {
        let at = &found.location;
        let _ = writeln!(
            out,
            "{} {}:{}: {}",
            found.code, at.file, at.line, found.message
        );
    }
    if !config_map.is_empty() {
        let _ = writeln!(out, "ConfigMap of ingress-nginx");
    }
    for setting in config_map {
        let (word, text) = words(&setting.verdict);
        let _ = writeln!(out, "  {}: {}", setting.key, shortened(&setting.value));
        let _ = writeln!(out, "    {word}: {text}");
    }
    let warnings = translation.findings.iter();
    let warnings = warnings
        .filter(|found| found.severity == Severity::Warning)
        .count();
    let ingresses = translation.outcomes.len();
    let _ = writeln!(
        out,
        "Ingresses: {ingresses}, objects: {}, warnings: {warnings}",
        translation.objects.len()
    );
    out
}

/// Returns word and text of a verdict.
fn words(verdict: &Verdict) -> (&'static str, String) {
    (verdict.word(), verdict.text())
}

fn shortened(value: &str) -> String {
    let line = value.lines().next().unwrap_or_default();
    match line.chars().count() > VALUE_MAX || value.lines().count() > 1 {
        true => format!("{}...", line.chars().take(VALUE_MAX).collect::<String>()),
        false => line.to_owned(),
    }
}
