//! Tests of limits that apply to all documents of a file, or all rules of an object, also after partial reading.

use std::fmt::Write as _;

use super::*;

fn read(text: &str, previous: Option<&FileReading>) -> FileReading {
    read_file(&"a.yaml".into(), text, previous, ReadOptions::default())
}

fn said(reading: &FileReading) -> Vec<String> {
    let line = |found: &Diagnostic| {
        let (code, line) = (found.code.0, found.location.line);
        format!("{code} {line}: {}", found.message)
    };
    reading.diagnostics().map(line).collect()
}

/// Returns a ConfigMap whose aliases expand to 22 nodes for each of `count`, and the unexpanded copy.
fn aliased(name: &str, count: usize) -> String {
    let list = vec!["1"; 21].join(", ");
    let aliases = vec!["*a"; count].join(", ");
    format!(
        "kind: Other\napiVersion: other.example/v1\nmetadata: {{name: {name}}}\none: &a [{list}]\nmany: [{aliases}]\n"
    )
}

#[test]
fn aliases_are_bounded_by_file() {
    let text = |counts: &[usize]| {
        let documents = counts.iter().map(|count| aliased("a", *count));
        documents.collect::<Vec<_>>().join("---\n")
    };
    let too_many = "the aliases of this document and those above expand to more than 100000 values";
    let excess = |counts: &[usize], previous: Option<&FileReading>| {
        let reading = read(&text(counts), previous);
        let errors = reading.errors().map(|found| {
            assert!(found.message == too_many, "{found:?}");
            found.location.line
        });
        (errors.collect::<Vec<_>>(), reading)
    };
    let (lines, first) = excess(&[1_000, 1_000, 1_000, 1_000], None);
    assert_eq!(lines, [0; 0]);
    // The fifth is too much; one that fits in its place is not.
    assert_eq!(excess(&[1_000, 1_000, 1_000, 1_000, 1_000], None).0, [29]);
    assert_eq!(
        excess(&[1_000, 1_000, 1_000, 1_000, 1_000, 100], None).0,
        [29]
    );
    // Read again as if for the first time.
    let (lines, second) = excess(&[1_900, 1_000, 1_000, 1_000], Some(&first));
    assert_eq!(lines, [23]);
    assert_eq!(
        excess(&[1_000, 1_000, 1_000, 1_000], Some(&second)).0,
        [0; 0]
    );
}

/// Returns a VirtualService of more than 16 KiB, with a regular expression in each rule that compiles to about 1 MiB.
fn with_expressions(count: usize) -> String {
    let mut text = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: a}\n\
        spec:\n  hosts: [a.example]\n  http:\n"
        .to_owned();
    let large = "(?:[a-m][n-z]){500}".repeat(12);
    for number in 0..count {
        let _ = write!(
            text,
            "  - match: [{{uri: {{regex: '{large}{number}'}}}}]\n    directResponse: {{status: 200}}\n"
        );
    }
    for number in 0..40 {
        let _ = write!(
            text,
            "  - match: [{{uri: {{exact: '/{number}{}'}}}}]\n    directResponse: {{status: 200}}\n",
            "x".repeat(512)
        );
    }
    text
}

#[test]
fn expressions_of_an_object_are_bounded() {
    let many = said(&read(&with_expressions(200), None));
    let [error] = &*many else {
        panic!("{many:?}");
    };
    let reason = "the regular expressions of this object compile to more than 32 MiB together";
    assert!(
        error.starts_with("VS055") && error.ends_with(reason),
        "{error}"
    );
    // A change of a few rules is held to the same bound as the object.
    let mut reading = read(&with_expressions(1), None);
    let rejected = (2..200).find(|count| {
        reading = read(&with_expressions(*count), Some(&reading));
        !said(&reading).is_empty()
    });
    let fresh = (1..200).find(|count| !said(&read(&with_expressions(*count), None)).is_empty());
    assert_eq!(rejected, fresh);
}
