//! Results of tests as text, JSON, JUnit's XML, and annotations of GitHub.

use std::fmt::Write;

use config_loader::diagnostic::render::github::{data, property};
use serde_json::{Value, json};

use super::compare::Difference;
use super::coverage::Coverage;
use super::runner::Outcome;
use crate::command::counted;
use crate::explain::text::{self, Detail};

/// Results of the tests of one file.
pub(super) struct FileReport {
    pub file: String,
    pub outcomes: Vec<Outcome>,
}

fn all(files: &[FileReport]) -> impl Iterator<Item = &Outcome> {
    files.iter().flat_map(|file| &file.outcomes)
}

/// Returns the numbers of tests that have passed and failed.
pub(super) fn counts(files: &[FileReport]) -> (usize, usize) {
    let passed = all(files).filter(|one| one.passed()).count();
    (passed, all(files).count() - passed)
}

fn difference_line(one: &Difference) -> String {
    let (field, expected, got) = (&one.field, &one.expected, &one.got);
    format!("{field}: expected {expected}, got {got}")
}

/// Renders the results for a person: what fails with the walk through the configuration.
pub(super) fn text(files: &[FileReport], coverage: Option<&Coverage>) -> String {
    let mut out = String::new();
    for file in files {
        for one in &file.outcomes {
            if one.passed() {
                _ = writeln!(out, "ok    {}", one.name);
                continue;
            }
            _ = writeln!(out, "FAIL  {}  {}", one.name, one.location);
            for found in &one.differences {
                let line = found.location.line;
                _ = writeln!(out, "      line {line}: {}", difference_line(found));
            }
            let walk = one
                .failed_answer()
                .map(|answer| text::render(answer, Detail::Brief));
            for line in walk.iter().flat_map(|walk| walk.lines()) {
                _ = writeln!(out, "      | {line}");
            }
        }
    }
    if let Some(coverage) = coverage {
        out.push_str(&coverage.text());
    }
    let (passed, failed) = counts(files);
    _ = writeln!(out, "{} passed, {failed} failed", counted(passed, "test"));
    out
}

/// Renders the results for programs.
pub(super) fn json(files: &[FileReport], coverage: Option<&Coverage>) -> String {
    let difference = |one: &Difference| {
        json!({
            "field": one.field,
            "expected": one.expected,
            "got": one.got,
            "file": &*one.location.file,
            "line": one.location.line,
        })
    };
    let test = |one: &Outcome| {
        let differences: Vec<Value> = one.differences.iter().map(difference).collect();
        json!({
            "name": &*one.name,
            "file": &*one.location.file,
            "line": one.location.line,
            "passed": one.passed(),
            "differences": differences,
            "explanation": one.failed_answer(),
        })
    };
    let (passed, failed) = counts(files);
    let tests: Vec<Value> = all(files).map(test).collect();
    let coverage = coverage.map(Coverage::json);
    let whole = json!({"passed": passed, "failed": failed, "tests": tests, "coverage": coverage});
    format!("{whole:#}\n")
}

/// Renders the results as JUnit's XML, one suite for each file.
pub(super) fn junit(files: &[FileReport]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for file in files {
        let failed = file.outcomes.iter().filter(|one| !one.passed()).count();
        let (name, tests) = (escaped(&file.file), file.outcomes.len());
        let suite = format!("<testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failed}\">");
        _ = writeln!(out, "  {suite}");
        for one in &file.outcomes {
            let name = escaped(&one.name);
            let case = format!(
                "testcase classname=\"{}\" name=\"{name}\" line=\"{}\"",
                escaped(&file.file),
                one.location.line
            );
            if one.passed() {
                _ = writeln!(out, "    <{case}/>");
                continue;
            }
            let lines: Vec<String> = one.differences.iter().map(difference_line).collect();
            let first = escaped(lines.first().map_or("", String::as_str));
            let lines = escaped(&lines.join("\n"));
            _ = writeln!(
                out,
                "    <{case}><failure message=\"{first}\">{lines}</failure></testcase>"
            );
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// Escapes a text for an attribute or an element of XML; characters that XML has not become `?`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.push('?'),
            letter => out.push(letter),
        }
    }
    out
}

/// Renders what fails as annotations of GitHub Actions.
pub(super) fn github(files: &[FileReport]) -> String {
    let mut out = String::new();
    for one in all(files) {
        for found in &one.differences {
            let (file, line) = (property(&found.location.file), found.location.line);
            let (title, message) = (property(&one.name), data(&difference_line(found)));
            _ = writeln!(
                out,
                "::error file={file},line={line},title={title}::{message}"
            );
        }
    }
    out
}
