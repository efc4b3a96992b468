use super::*;

fn applied(rewrite: &PathRewrite, target: &str) -> Option<String> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    rewrite.apply(path, query).map(|target| target.to_string())
}

fn regex_rewrite(expression: &str, with: &str) -> PathRewrite {
    PathRewrite::regex(Pattern::part(expression), with)
}

#[test]
fn a_matched_prefix_is_replaced_literally() {
    for (matched, with, target, expected) in [
        ("/foo/", "/", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo/bar", "//bar"),
        ("/foo", "/", "/foo", "/"),
        ("/foo", "/", "/foo?x=1", "/?x=1"),
        ("/foo", "/", "/foobar", "/bar"),
        ("/foo", "/v2", "/foobar", "/v2bar"),
        ("/foo", "/x", "/FOO/bar", "/x/bar"),
        ("", "/x", "/a", "/x/a"),
        ("/foo", "/x?y", "/foo?z", "/x?y?z"),
    ] {
        let rewrite = PathRewrite::uri(MatchedUri::Prefix(matched.len()), with);
        assert_eq!(
            applied(&rewrite, target).as_deref(),
            Some(expected),
            "{matched} {with} {target}"
        );
    }
}

#[test]
fn without_a_condition_the_first_slash_is_replaced() {
    let rewrite = PathRewrite::uri(MatchedUri::ANY, "/x");
    assert_eq!(applied(&rewrite, "/a").unwrap(), "/xa");
}

#[test]
fn exact_and_regex_matches_replace_the_whole_path() {
    let rewrite = PathRewrite::uri(MatchedUri::Whole, "/z");
    assert_eq!(applied(&rewrite, "/v1/a?q=1").unwrap(), "/z?q=1");
    assert_eq!(applied(&rewrite, "/v1/a?").unwrap(), "/z?");
}

#[test]
fn every_match_of_an_expression_is_replaced_outside_the_query() {
    for (expression, with, target, expected) in [
        ("a", "b", "/aa?a=a", Some("/bb?a=a")),
        (
            r"^/service/([^/]+)(/.*)$",
            r"\2/instance/\1",
            "/service/foo/v1/api",
            Some("/v1/api/instance/foo"),
        ),
        ("(?i)/XX/", "/yy/", "/a/xx/b/Xx/c", Some("/a/yy/b/yy/c")),
        ("one", r"two\\\0", "/one", Some(r"/two\one")),
        ("z", "b", "/aa", None),
        (".*", "", "/aa?q", None),
        ("/(x)?a", r"/[\1\9]", "/a", Some("/[]")),
        ("^/a", "", "/abc", Some("/bc")),
        ("a", " ", "/a", None),
        ("(?-u:\\xc3)", "", "/\u{e9}", None),
    ] {
        let rewrite = regex_rewrite(expression, with);
        assert_eq!(
            applied(&rewrite, target).as_deref(),
            expected,
            "{expression} {with} {target}"
        );
    }
}

#[test]
fn a_lone_backslash_is_literal() {
    assert_eq!(
        Substitution::parse(r"a\b\"),
        Substitution([Part::Text(r"a\b\".into())].into())
    );
    assert_eq!(
        Substitution::parse(r"\1\\2"),
        Substitution([Part::Group(1), Part::Text(r"\2".into())].into())
    );
}
