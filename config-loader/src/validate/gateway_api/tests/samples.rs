//! Objects of the Gateway API project that are wrong on purpose, with the codes that they get here.

use super::*;

/// From `hack/invalid-examples/` of <https://github.com/kubernetes-sigs/gateway-api> v1.6.0, one after the other. Copyright the
/// Kubernetes Authors, licensed under the Apache License, Version 2.0.
const INVALID: &str = include_str!("invalid.yaml");

#[test]
fn objects_that_the_project_calls_invalid_are_rejected() {
    let mut seen = Vec::new();
    for text in INVALID.split("\n---\n") {
        let (_, found) = testing::load(text);
        let name = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("# ");
        let errors = found.iter().filter(|found| found.starts_with('E'));
        let codes: BTreeSet<&str> = errors.filter_map(|found| found.split(' ').nth(1)).collect();
        let codes: Vec<&str> = codes.into_iter().collect();
        seen.push(format!("{name} {}", codes.join(" ")));
    }
    insta::assert_snapshot!(seen.join("\n"));
}
