//! Helpers of the table tests of validators.

use crate::diagnostic::codes::common::CM024;
use crate::{Diagnostics, ResourceSet, Severity};

/// Loads a file and formats each diagnostic as `E SI006 9 spec.ports[0].endpoints[0].target: message`: severity, code,
/// line, field and message. Diagnostics across resources are left out.
pub(super) fn load(yaml: &str) -> (ResourceSet, Vec<String>) {
    let mut diagnostics = Diagnostics::default();
    let set = crate::load_bytes("test.yaml", yaml.as_bytes(), &mut diagnostics);
    let found = diagnostics
        .into_sorted()
        .into_iter()
        .filter(|found| found.code != CM024 && !found.code.0.starts_with('X'))
        .map(|found| {
            let severity = match found.severity {
                Severity::Error => "E",
                Severity::Note => "N",
                Severity::Warning => "W",
            };
            let line = found.location.line;
            let (code, field, message) = (found.code, found.field, found.message);
            format!("{severity} {code} {line} {field}: {message}")
        })
        .collect();
    (set, found)
}

/// Checks that each document, made by `around` from the given body, has exactly the given diagnostics.
pub(super) fn check(around: impl Fn(&str) -> String, cases: &[(&str, &[&str])]) {
    for (body, expected) in cases {
        let yaml = around(body);
        let (_, found) = load(&yaml);
        assert_eq!(found, *expected, "\n{yaml}");
    }
}
