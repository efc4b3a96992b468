//! Rules of VirtualService, DestinationRule and Gateway. Each violation gives a diagnostic with the expected code,
//! location and fix; the valid text next to it gives none.
//!
//! A case is YAML with the expected diagnostics as comments on their lines: `# E VS024 ns/` is an error VS024 that
//! marks the text `ns/`. An object with an error is rejected; one with only warnings is used.

#![allow(clippy::unwrap_used, reason = "tests: what fails is shown")]

mod actions;
mod balancing;
mod common;
mod effects;
mod entries;
mod gateway;
mod matches;
mod opaque;
mod policies;
mod references;
mod rules;
mod style;
mod upstream;

use std::collections::BTreeSet;

use config_loader::{Diagnostic, Kind, LoadOptions, Loaded, Severity, load_files};

/// Case: rows of the catalogue, a text that violates them, and a valid one.
type Case = (&'static [u16], &'static str, &'static str);

/// Cases with the function that turns each text into a file.
struct Table {
    around: fn(&str) -> String,
    /// Common prefix of the field paths of all diagnostics.
    path: &'static str,
    /// Whether diagnostics across resources are checked.
    with_references: bool,
    cases: &'static [Case],
}

fn tables() -> Vec<Table> {
    let tables = [
        actions::tables(),
        common::tables(),
        effects::tables(),
        entries::tables(),
        gateway::tables(),
        matches::tables(),
        opaque::tables(),
        policies::tables(),
        references::tables(),
        rules::tables(),
    ];
    tables.into_iter().flatten().collect()
}

/// Returns a document in the namespace `ns`.
fn document(kind: &str, name: &str, spec: &str) -> String {
    let spec = indent(spec, "  ");
    format!(
        "apiVersion: networking.istio.io/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: ns}}\nspec:\n{spec}\n"
    )
}

/// Splits a comment on the first line from the rest.
fn first_comment(text: &str) -> (&str, &str) {
    match text.split_once('\n') {
        Some((found, rest)) if found.starts_with('#') => (found, rest),
        _ => ("", text),
    }
}

fn indent(text: &str, by: &str) -> String {
    let lines = text.trim_matches('\n').lines();
    let lines: Vec<String> = lines.map(|line| format!("{by}{line}")).collect();
    lines.join("\n")
}

/// Returns a VirtualService with this spec.
fn service(spec: &str) -> String {
    document("VirtualService", "own", spec)
}

/// Returns a VirtualService for `a.com` with one HTTP rule.
fn rule(fields: &str) -> String {
    let fields = indent(fields, "  ");
    service(&format!("hosts: [a.com]\nhttp:\n-\n{fields}"))
}

/// Returns a VirtualService with one forwarding rule; see [`rule`].
fn forwarding(fields: &str) -> String {
    let fields = fields.trim_matches('\n');
    rule(&format!("route: [{{destination: {{host: a}}}}]\n{fields}"))
}

/// Returns the diagnostics that the comments of a text expect: line, `SEVERITY CODE`, marked text.
fn wanted(text: &str) -> Vec<(u32, String, String)> {
    let mut wanted = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for comment in line.split(" # ").skip(1) {
            let mut words = comment.splitn(3, ' ');
            let severity = words.next().unwrap();
            let code = words.next().unwrap();
            let marked = words.next().unwrap_or_default().trim();
            wanted.push((number, format!("{severity} {code}"), marked.to_owned()));
        }
    }
    wanted.sort();
    wanted
}

/// Removes the marked text where none is expected, as in a line that is too long to be shown.
fn forget_marks(wanted: &[(u32, String, String)], seen: &mut [(u32, String, String)]) {
    for (wanted, seen) in wanted.iter().zip(seen) {
        if wanted.2.is_empty() {
            seen.2.clear();
        }
    }
}

/// Returns the diagnostics in the same form.
fn seen(found: &[Diagnostic]) -> Vec<(u32, String, String)> {
    let mut seen: Vec<(u32, String, String)> = found
        .iter()
        .map(|found| {
            let severity = match found.severity {
                Severity::Error => 'E',
                Severity::Note => 'N',
                Severity::Warning => 'W',
            };
            let location = &found.location;
            let skipped = (location.column - 1 - location.source_skipped) as usize;
            let marked = location.source_line.chars().skip(skipped);
            let marked: String = marked.take(location.len as usize).collect();
            let marked = marked.split(" # ").next().unwrap_or_default();
            let marked = marked.trim().trim_end_matches(':');
            (
                location.line,
                format!("{severity} {}", found.code),
                marked.to_owned(),
            )
        })
        .collect();
    seen.sort();
    seen
}

fn load(text: &str, with_references: bool) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("case.yaml");
    std::fs::write(&path, text).unwrap();
    let mut loaded = load_files(&[path], LoadOptions::default());
    // What has no effect in this version is another matter.
    loaded.diagnostics.retain(|found| {
        let is_across = found.code.0.starts_with('X') || found.code.0 == "JW105";
        found.code.0 != "CM024" && (with_references || !is_across)
    });
    loaded
}

#[test]
fn violations_are_reported_at_their_location_and_valid_texts_pass() {
    let mut failures = Vec::new();
    for table in tables() {
        for (rows, bad, good) in table.cases {
            let text = (table.around)(bad);
            let loaded = load(&text, table.with_references);
            let (wanted, mut seen) = (wanted(&text), seen(&loaded.diagnostics));
            forget_marks(&wanted, &mut seen);
            if wanted.is_empty() || wanted != seen {
                failures.push(format!(
                    "{rows:?}\n{bad}\n  wanted {wanted:?}\n  found  {seen:?}"
                ));
            }
            for found in &loaded.diagnostics {
                if found.help.is_none() {
                    failures.push(format!(
                        "{rows:?} {} has no fix: {}",
                        found.code, found.message
                    ));
                }
                if !found.field.starts_with(table.path) {
                    failures.push(format!("{rows:?} {} is at {}", found.code, found.field));
                }
            }
            let errors = wanted.iter().any(|(_, code, _)| code.starts_with('E'));
            let kinds = [
                Kind::DestinationRule,
                Kind::Gateway,
                Kind::ServiceEntry,
                Kind::Sidecar,
                Kind::VirtualService,
                Kind::WorkloadEntry,
            ];
            let own = kinds.map(|kind| loaded.set.count(kind));
            if !table.with_references && (own.iter().sum::<usize>() == 0) != errors {
                failures.push(format!("{rows:?} refused: {}\n{bad}", !errors));
            }
            let text = (table.around)(good);
            let loaded = load(&text, table.with_references);
            if !loaded.diagnostics.is_empty() {
                let seen = self::seen(&loaded.diagnostics);
                failures.push(format!("{rows:?} is good\n{good}\n  found  {seen:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Row about `~` next to other entries of `exportTo`, which only ServiceEntries may have.
const OF_SERVICE_ENTRIES: u16 = 8;

#[test]
fn every_row_has_a_case() {
    let rows = (1..=221).chain(275..=286);
    let tables = tables();
    let cases = tables.iter().flat_map(|table| table.cases);
    let proven: BTreeSet<u16> = cases.flat_map(|(rows, ..)| *rows).copied().collect();
    let missing: Vec<u16> = rows
        .filter(|row| *row != OF_SERVICE_ENTRIES && !proven.contains(row))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Each diagnostic about a DestinationRule has the expected field path and fix.
#[test]
fn diagnostics_of_destination_rules_have_fixes() {
    let mut text = String::new();
    let tables = policies::tables().into_iter().chain(effects::tables());
    let mut once = tables.filter(|table| matches!(table.path, "spec" | "spec.trafficPolicy"));
    let cases = once.by_ref().flat_map(|table| {
        let cases = table.cases.iter();
        cases.map(move |(rows, bad, _)| (rows, (table.around)(bad), table.with_references))
    });
    for (rows, bad, with_references) in cases {
        for found in load(&bad, with_references).diagnostics {
            let help = found.help.unwrap_or_default();
            let (code, field, message) = (found.code, found.field, found.message);
            text.push_str(&format!(
                "{rows:?} {code} {field}\n    {message}\n    = {help}\n"
            ));
        }
    }
    insta::assert_snapshot!(text);
}
