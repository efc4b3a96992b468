use proptest::prelude::*;

use super::*;

#[test]
fn paths_are_normalized() {
    for (path, expected) in [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/x/../b", "/a/b"),
        ("/a//b", "/a//b"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/..", "/"),
        ("/../../a", "/a"),
        ("/a//../b", "/a/b"),
        (r"\a\..\b", "/b"),
        (r"/a\b", "/a/b"),
        (r"/a/..\b", "/b"),
        ("/a%2Fb", "/a%2Fb"),
        ("/a%2f..%2fb", "/a%2f..%2fb"),
        ("/a/%2e%2E/b", "/b"),
        ("/a/.%2e/b", "/b"),
        ("/%61%7Eb%2D", "/a~b-"),
        ("/%3A%3a", "/%3A%3a"),
        ("/a%", "/a%"),
        ("/a%2", "/a%2"),
        ("/a%zz", "/a%zz"),
        ("/%2541", "/%2541"),
        ("/%%361dmin", "/%2561dmin"),
        ("/%6%31", "/%2561"),
        ("/a%2%46b", "/a%252Fb"),
        ("/%%36%31", "/%2561"),
        ("/%%32%35%32%35", "/%252525"),
        ("/%%30%30", "/%2500"),
        ("/%%2f%31", "/%%2f1"),
        ("/%%67%31", "/%g1"),
        ("/%%41%67", "/%Ag"),
        ("/%%\u{e9}%41%41", "/%%%C3%A9AA"),
        ("/%%2e%2e/a", "/%../a"),
        ("/.well-known/..x/...", "/.well-known/..x/..."),
        ("/ü/../ä", "/%C3%A4"),
        ("/é", "/%C3%A9"),
        ("/a|b\"c<d>e^f`g{h}", "/a%7Cb%22c%3Cd%3Ee%5Ef%60g%7Bh%7D"),
        ("/a!$&'()*+,;=:@[]b", "/a!$&'()*+,;=:@[]b"),
        ("/a;/../b", "/b"),
        ("/a;x=y/b..;/...;/c", "/a;x=y/b..;/...;/c"),
        ("/a/..%2fb/..%5cc", "/a/..%2fb/..%5cc"),
        ("/a%5c..%5Cb", "/a%5c..%5Cb"),
        ("/..%2", "/..%2"),
        ("/%252e%252e/a", "/%252e%252e/a"),
        ("*", "*"),
        ("", ""),
    ] {
        assert_eq!(normalize_path(path).unwrap(), expected, "{path}");
    }
}

#[test]
fn slashes_are_decoded_and_merged_on_request() {
    use PathNormalization::{Base, DecodeAndMergeSlashes, MergeSlashes, None};
    for (path, [base, merged, decoded, none]) in [
        ("/a/b", ["/a/b"; 4]),
        ("//a///b//", ["//a///b//", "/a/b/", "/a/b/", "//a///b//"]),
        ("//", ["//", "/", "/", "//"]),
        ("/a//../b", ["/a/b", "/a/b", "/a/b", "/a//../b"]),
        ("/a%2Fb", ["/a%2Fb", "/a%2Fb", "/a/b", "/a%2Fb"]),
        (
            "/a%2f..%5c%61",
            ["/a%2f..%5ca", "/a%2f..%5ca", "/a", "/a%2f..%5c%61"],
        ),
        ("/%5C%2f/a", ["/%5C%2f/a", "/%5C%2f/a", "/a", "/%5C%2f/a"]),
        ("/%252Fa", ["/%252Fa"; 4]),
        ("/%2%46/a", ["/%252F/a", "/%252F/a", "/%252F/a", "/%2%46/a"]),
        (r"/a\\b", ["/a//b", "/a/b", "/a/b", r"/a\\b"]),
        ("*", ["*"; 4]),
    ] {
        for (how, expected) in [
            (Base, base),
            (MergeSlashes, merged),
            (DecodeAndMergeSlashes, decoded),
            (None, none),
        ] {
            assert_eq!(how.normalize(path).unwrap(), expected, "{path} {how:?}");
        }
    }
    let hidden = "/x%2F..;/admin";
    assert!(MergeSlashes.normalize(hidden).is_ok());
    assert!(DecodeAndMergeSlashes.normalize(hidden).is_err());
}

#[test]
fn normalized_paths_are_borrowed() {
    for path in [
        "/a//b.c/.well-known/%2F%20?",
        "/a.b/...",
        "/",
        "/a;b=c/..x;",
    ] {
        assert!(
            matches!(normalize_path(path), Ok(Cow::Borrowed(_))),
            "{path}"
        );
    }
}

#[test]
fn an_escaped_nul_is_rejected() {
    for path in ["/%00", "/a/%00../b", "/AA%%0000/b"] {
        let error = Err(InvalidPath::EscapedNul);
        assert_eq!(normalize_path(path), error, "{path}");
    }
}

#[test]
fn a_dot_segment_with_parameters_is_rejected() {
    for path in [
        "/x/..;/admin",
        "/x/..;a=b/admin",
        "/x/..;",
        "/x/.;/admin",
        "/.;a",
        "/x/%2e%2e;/admin",
        "/x/.%2E;/admin",
        "/x/%2e;/admin",
        "/x/..%3b/admin",
        "/x/.%3Ba/admin",
        "/x/%2e.%3B",
        r"\x\..;\admin",
        "/x/..;%2fadmin",
        "/x/..;/..;/../admin",
        "/x/../..;/..",
    ] {
        let error = Err(InvalidPath::DotParameters);
        assert_eq!(normalize_path(path), error, "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn normalization_is_idempotent_and_removes_dots_and_backslashes(
        path in r"/([ab.%/\\ü|;]|\.\.|/\.|%2e|%2F|%41|%3b){0,12}",
    ) {
        let Ok(normal) = normalize_path(&path) else {
            return Ok(());
        };
        prop_assert!(normal.is_ascii());
        for dots in ["/.;", "/..;", "/.%3b", "/..%3b"] {
            prop_assert!(!normal.contains(dots), "{}", normal);
        }
        prop_assert!(!normal.contains('\\'));
        prop_assert!(normal.starts_with('/'));
        prop_assert!(normal.split('/').all(|segment| segment != "." && segment != ".."));
    }

    #[test]
    fn normal_form_is_a_fixed_point(
        pieces in prop::collection::vec(
            prop_oneof![
                4 => prop::sample::select(vec![
                    "%", "%%", "/", ".", "..", ";", "\\", "0", "2", "5", "6", "a", "F", "g", "%2", "%25", "%30", "%31", "%32",
                    "%35", "%36", "%41", "%46", "%2e", "%2F", "%3b", "%5C", "%6", "%67", "%0", "é",
                ]).prop_map(str::to_owned),
                1 => any::<char>().prop_map(String::from),
            ],
            0..16,
        ),
    ) {
        let path = format!("/{}", pieces.concat());
        use PathNormalization::{Base, DecodeAndMergeSlashes, MergeSlashes};
        for how in [Base, DecodeAndMergeSlashes, MergeSlashes] {
            if let Ok(normal) = how.normalize(&path) {
                prop_assert_eq!(how.normalize(&normal), Ok(normal.clone()), "{} {:?}", path, how);
                prop_assert!(how == Base || !normal.contains("//"), "{}", path);
            }
        }
    }
}
