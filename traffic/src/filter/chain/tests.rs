use super::*;
use crate::filter::headers::tests::{headers, scope, with_context};

fn request_scopes(remove: &[&str], set: &[&str], add: &[&str]) -> HeaderScopes {
    HeaderScopes {
        request: scope(remove, set, add),
        response: HeaderScope::default(),
    }
}

fn response_scopes(remove: &[&str], set: &[&str], add: &[&str]) -> HeaderScopes {
    HeaderScopes {
        request: HeaderScope::default(),
        response: scope(remove, set, add),
    }
}

/// Asserts the headers of a request to the first destination.
fn check(rule: &HeaderScopes, destinations: &[HeaderScopes], before: &[&str], after: &[&str]) {
    let filters = RouteFilters::new(rule, destinations, None).unwrap();
    let mut edited = headers(before);
    with_context(|context| filters.edit_request(0, &mut edited, context));
    assert_eq!(edited, headers(after));
}

#[test]
fn edits_of_a_single_destination_are_merged_with_its_rule() {
    let sets = |value: &str| request_scopes(&[], &[&format!("x={value}")], &[]);
    check(&sets("1"), &[sets("2")], &[], &["x=2"]);
    check(
        &sets("1"),
        &[request_scopes(&["x"], &[], &[])],
        &["x=9"],
        &["x=1"],
    );
    let adds = |value: &str| request_scopes(&[], &[], &[&format!("x={value}")]);
    check(&adds("1"), &[adds("2")], &["x=0"], &["x=0", "x=1", "x=2"]);
}

#[test]
fn edits_of_the_rule_follow_edits_of_one_of_several_destinations() {
    let sets = |value: &str| request_scopes(&[], &[&format!("x={value}")], &[]);
    let removes = request_scopes(&["x"], &[], &[]);
    check(&sets("1"), &[sets("2"), sets("2")], &[], &["x=1"]);
    check(&removes, &[sets("2"), sets("2")], &[], &[]);
    check(
        &HeaderScopes::default(),
        &[sets("2"), sets("3")],
        &[],
        &["x=2"],
    );
}

#[test]
fn local_replies_before_the_pick_get_the_edits_of_the_rule() {
    let rule = response_scopes(&[], &["x=rule"], &[]);
    let destination = response_scopes(&[], &["y=destination"], &[]);
    let filters = RouteFilters::new(&rule, &[destination.clone(), destination], None).unwrap();
    let edited = |destination| {
        let mut edited = headers(&[]);
        with_context(|context| filters.edit_response(destination, &mut edited, context));
        edited
    };
    assert_eq!(edited(None), headers(&["x=rule"]));
    assert_eq!(edited(Some(1)), headers(&["y=destination", "x=rule"]));
    assert!(!filters.leaves_response_headers());
    assert!(filters.leaves_request_headers());
}

#[test]
fn the_rule_sets_the_authority_before_its_destinations() {
    let host = |name: &str| request_scopes(&[], &[&format!("Host={name}")], &[]);
    let none = HeaderScopes::default();
    let rewrite = || Some(HeaderValue::from_static("rewrite.com"));
    for (rule, destinations, authority, expected) in [
        (
            host("rule.com"),
            vec![host("one.com")],
            rewrite(),
            Some("rewrite.com"),
        ),
        (
            host("rule.com"),
            vec![host("one.com")],
            None,
            Some("rule.com"),
        ),
        (none.clone(), vec![host("one.com")], None, Some("one.com")),
        (
            host("rule.com"),
            vec![none.clone(), host("two.com")],
            None,
            Some("rule.com"),
        ),
        (
            none.clone(),
            vec![none.clone(), host("two.com")],
            None,
            Some("two.com"),
        ),
        (none.clone(), vec![none.clone(), none.clone()], None, None),
    ] {
        let filters = RouteFilters::new(&rule, &destinations, authority).unwrap();
        let last = destinations.len() - 1;
        let found = filters.authority(last).map(|value| value.to_str().unwrap());
        assert_eq!(found, expected);
    }
}

#[test]
fn a_rule_without_filters_changes_nothing() {
    let filters = RouteFilters::default();
    assert!(filters.leaves_request_headers() && filters.leaves_response_headers());
    assert!(filters.authority(0).is_none());
    assert!(filters.rewrite_path("/a", None).is_none());
    assert!(matches!(filters.action, Action::Forward));
}
