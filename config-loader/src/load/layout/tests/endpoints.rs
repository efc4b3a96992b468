//! Tests of partial reading of a long ServiceEntry.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;

use super::{apply, both, edit, full, object};
use crate::load::document::Reading;
use crate::resource::istio::ServiceEntry;

const HEAD: &str = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: a\nspec:\n  \
    hosts: [a.com]\n  resolution: STATIC\n  ports: [{number: 80, name: http, protocol: HTTP}]\n  endpoints:\n";

fn document(head: &str, endpoints: impl IntoIterator<Item = String>, tail: &str) -> String {
    let endpoints: String = endpoints.into_iter().collect();
    format!("{head}{endpoints}{tail}")
}

fn endpoint(number: usize) -> String {
    format!("  - {{address: 10.0.0.{number}, locality: r/a, labels: {{app: x}}}}\n")
}

/// Returns the indexes of the endpoints that are not shared with the previous version.
fn read_again(old: &Reading, new: &Reading) -> Vec<usize> {
    let (old, new) = (object::<ServiceEntry>(old), object::<ServiceEntry>(new));
    let numbered = new.spec.endpoints.iter().enumerate();
    let again = numbered.filter(|(_, one)| !old.spec.endpoints.iter().any(|o| Arc::ptr_eq(o, one)));
    again.map(|(number, _)| number).collect()
}

#[test]
fn unchanged_endpoints_are_shared() {
    let text = document(HEAD, (0..20).map(endpoint), "");
    let old = full(&text);
    for (new, expected) in [
        (text.replace("10.0.0.10,", "10.9.9.9,"), vec![10, 11]),
        (text.replace("10.0.0.19,", "10.9.9.9,"), vec![19]),
        (format!("{text}  - address: 10.9.9.9\n"), vec![19, 20]),
    ] {
        let (new, in_short) = both(&old, &new);
        assert!(in_short);
        assert_eq!(read_again(&old.0, &new.0), expected);
    }
}

#[test]
fn fields_that_decide_about_endpoints_are_read_with_all_of_them() {
    let text = document(HEAD, (0..20).map(endpoint), "");
    let old = full(&text);
    for (new, wanted) in [
        (text.replace("STATIC", "DNS"), false),
        (text.replace("name: http", "name: web"), false),
        (text.replace("a.com", "b.com"), false),
        (format!("{text}  addresses: [10.1.1.1]\n"), true),
        (format!("{text}  location: MESH_INTERNAL\n"), true),
        (format!("{text}  exportTo: ['.']\n"), true),
        (
            format!("{text}  workloadSelector: {{labels: {{a: b}}}}\n"),
            false,
        ),
        (text.replace("10.0.0.10,", "one.example,"), false),
        (
            text.replace("10.0.0.10,", "'unix:///a', ports: {http: 1},"),
            false,
        ),
        (
            text.replace("10.0.0.10,", "10.0.0.10, ports: {more: 1},"),
            false,
        ),
    ] {
        assert_eq!(both(&old, &new).1, wanted, "{new}");
    }
}

#[test]
fn field_after_a_list_that_ends_in_a_block_scalar_is_kept() {
    let last = "  - address: 10.0.0.20\n    labels:\n      app: >-\n        y\n".to_owned();
    let endpoints = (0..20).map(endpoint).chain([last]);
    for tail in ["  location: MESH_INTERNAL\n", "  exportTo: ['.']\n"] {
        let text = document(HEAD, endpoints.clone(), tail);
        let old = full(&text);
        assert!(
            both(&old, &text.replace("10.0.0.1,", "10.9.9.9,")).1,
            "{tail}"
        );
    }
}

fn an_endpoint() -> BoxedStrategy<String> {
    let address = (0..250_u32, 0..12_u32).prop_map(|(number, form)| match form {
        0 => "address: one.example".to_owned(),
        1 => "address: unix:///run/a".to_owned(),
        2 => "network: n1".to_owned(),
        3 => format!("address: '10.0.0.{number}'\n    # - address: 1.1.1.1"),
        _ => format!("address: 10.0.0.{number}"),
    });
    let piece = proptest::option::of(select(vec![
        "locality: r/a",
        "locality: r//b",
        "labels: {app: x}",
        "labels:\n      app: >-\n        y",
        "ports: {http: 81}",
        "ports: {more: 81}",
        "weight: 3",
        "network: n2",
    ]));
    (address, piece)
        .prop_map(|(address, piece)| {
            let parts = [Some(address.as_str()), piece];
            let parts: Vec<&str> = parts.into_iter().flatten().collect();
            format!("  - {}\n", parts.join("\n    "))
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn partial_and_full_parsing_of_endpoints_agree(
        endpoints in proptest::collection::vec(an_endpoint(), 6..24),
        tail in select(vec!["", "  location: MESH_INTERNAL\n", "# end\n", "  exportTo:\n  - '.'\n"]),
        resolution in select(vec!["STATIC", "STATIC", "DNS", "NONE"]),
        edits in proptest::collection::vec(edit(an_endpoint), 1..6),
    ) {
        let mut text = document(&HEAD.replace("STATIC", resolution), endpoints, tail);
        let mut known = full(&text);
        for edit in &edits {
            let new = apply(edit, &text);
            let (read, _) = both(&known, &new);
            if read.1.is_some() {
                (known, text) = (read, new);
            }
        }
    }
}
