use proptest::prelude::*;

use super::*;

fn index<'p>(patterns: &[&'p str]) -> HostIndex<&'p str> {
    HostIndex::new(patterns.iter().map(|pattern| (*pattern, *pattern)))
}

#[test]
fn the_most_specific_pattern_wins() {
    let hosts = index(&["*", "*.com", "*.a.com", "*foo.com", "x.a.com"]);
    for (host, expected) in [
        ("x.a.com", "x.a.com"),
        ("y.a.com", "*.a.com"),
        ("b.y.a.com", "*.a.com"),
        ("a.com", "*.com"),
        ("xfoo.com", "*foo.com"),
        ("a.foo.com", "*foo.com"),
        ("foo.com", "*.com"),
        (".a.com", "*.com"),
        ("com", "*"),
        ("", "*"),
    ] {
        assert_eq!(hosts.find(host), Some(&expected), "{host}");
    }
}

#[test]
fn a_wildcard_matches_at_least_one_character() {
    let hosts = index(&["*.a.com", "*foo.com"]);
    for host in ["a.com", ".a.com", "foo.com", "", "x.org"] {
        assert_eq!(hosts.find(host), None, "{host}");
    }
}

#[test]
fn the_first_of_two_equal_patterns_wins() {
    let hosts = HostIndex::new([
        ("A.com", 1),
        ("a.com.", 2),
        ("*.b", 3),
        ("*.B", 4),
        ("*", 5),
        ("*", 6),
    ]);
    assert_eq!(hosts.find("a.com"), Some(&1));
    assert_eq!(hosts.find("x.b"), Some(&3));
    assert_eq!(hosts.find("x.c"), Some(&5));
    assert_eq!(hosts.len(), 3);
    assert_eq!(hosts.find_with_pattern("q.b"), Some(("*.b", &3)));
    let patterns: Vec<&str> = hosts.iter().map(|(pattern, _)| pattern).collect();
    assert_eq!(patterns, ["a.com", "*.b", "*"]);
}

#[test]
fn an_empty_index_finds_no_host() {
    let hosts = HostIndex::<()>::default();
    assert!(hosts.is_empty());
    assert_eq!(hosts.find("a.com"), None);
}

#[test]
fn hosts_are_normalized_without_port_trailing_dot_and_case() {
    for (authority, expected) in [
        ("a.com", "a.com"),
        ("A.COM:8080", "a.com"),
        ("a.com.", "a.com"),
        ("a.com.:80", "a.com"),
        ("a.com..", "a.com."),
        ("a.com:", "a.com"),
        ("a.com:http", "a.com:http"),
        ("[::1]", "[::1]"),
        ("[::1]:80", "[::1]"),
        ("[2001:DB8::1]:80", "[2001:db8::1]"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("", ""),
    ] {
        assert_eq!(normalize_host(authority), expected, "{authority}");
    }
    assert!(matches!(
        normalize_host("a.com.:80"),
        Cow::Borrowed("a.com")
    ));
}

/// Finds a host by comparing with every pattern.
fn naive<'p>(patterns: &[&'p str], host: &str) -> Option<&'p str> {
    let fits = |pattern: &&&str| match pattern.strip_prefix('*') {
        Some("") => true,
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        None => host == **pattern,
    };
    let rank = |pattern: &&str| (!pattern.starts_with('*'), pattern.len());
    patterns
        .iter()
        .filter(fits)
        .max_by_key(|pattern| rank(pattern))
        .copied()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_index_agrees_with_a_linear_search(
        patterns in proptest::collection::btree_set(r"(\*|(\*[.-]?)?[ab]{1,2})(\.[ab]{1,2}){0,3}", 0..24),
        hosts in proptest::collection::vec(r"[ab]{0,3}(\.[ab]{1,2}){0,4}", 1..24),
    ) {
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let index = index(&patterns);
        for host in &hosts {
            prop_assert_eq!(index.find(host).copied(), naive(&patterns, host), "{}", host);
        }
    }
}
