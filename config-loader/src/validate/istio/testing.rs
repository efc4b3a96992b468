//! Helpers of the table tests of the Istio validators.

use crate::diagnostic::codes::common::CM024;
use crate::diagnostic::codes::istio::{AZ104, AZ117, JW101, JW105};
use crate::{Diagnostic, Diagnostics, ResourceSet, Severity};

/// Loads a file. Leaves out diagnostics about unsupported fields and about missing references.
pub(super) fn load(yaml: &str) -> (ResourceSet, Vec<Diagnostic>) {
    let mut diagnostics = Diagnostics::default();
    let set = crate::load_bytes("test.yaml", yaml.as_bytes(), &mut diagnostics);
    let found = diagnostics.into_sorted().into_iter();
    let across = [AZ104, AZ117, JW101, JW105];
    let own = |found: &Diagnostic| {
        found.code != CM024 && !found.code.0.starts_with('X') && !across.contains(&found.code)
    };
    (set, found.filter(own).collect())
}

/// Returns a document of `kind` with the spec `body`, from line 5 on.
pub(super) fn document(kind: &str, body: &str) -> String {
    let body = body.trim_start_matches('\n').replace('\n', "\n  ");
    format!(
        "apiVersion: networking.istio.io/v1\nkind: {kind}\nmetadata: {{name: own, namespace: ns}}\nspec:\n  {body}\n"
    )
}

/// Formats a diagnostic in short form: `E VS036 7`.
fn short(found: &Diagnostic) -> String {
    let severity = match found.severity {
        Severity::Error => 'E',
        Severity::Note => 'N',
        Severity::Warning => 'W',
    };
    format!("{severity} {} {}", found.code, found.location.line)
}

/// Checks that each body has exactly the given diagnostics in short form, and that every message has the common form.
pub(super) fn check(kind: &str, cases: &[(&str, &[&str])]) {
    for (body, expected) in cases {
        check_of(&document(kind, body), expected);
    }
}

/// Checks a whole document, as [`check`] does.
pub(super) fn check_of(yaml: &str, expected: &[&str]) {
    let (_, found) = load(yaml);
    let shorts: Vec<String> = found.iter().map(short).collect();
    assert_eq!(shorts, expected, "\n{yaml}\n{found:#?}");
    for found in &found {
        assert!(!found.message.ends_with('.'), "{}", found.message);
        assert!(
            !found.field.is_empty(),
            "{} has no field path",
            found.message
        );
    }
}

/// Returns the message and the help of the only diagnostic of a body.
pub(super) fn message(kind: &str, body: &str) -> (String, String) {
    let (_, found) = load(&document(kind, body));
    let [found] = found.as_slice() else {
        panic!("one finding is expected:\n{found:#?}");
    };
    (
        found.message.clone(),
        found.help.clone().unwrap_or_default(),
    )
}
