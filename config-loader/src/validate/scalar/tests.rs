//! Tables of values that each scalar check accepts and rejects.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::diagnostic::codes::common::{CM001, CM002, CM003, CM019, CM029};
use crate::diagnostic::{Diagnostic, Locator};
use crate::kind::{Kind, ObjectRef};
use crate::raw::{Field, Map};
use crate::re2::Extent;
use crate::resource::ExportTo;
use crate::span::{Lines, Span};
use crate::validate::Check;

#[test]
fn durations_are_parsed_like_go() {
    let ms = 1_000_000;
    for (text, wanted) in [
        ("1s", Ok(1_000 * ms)),
        ("1h", Ok(3_600_000 * ms)),
        ("1m30s", Ok(90_000 * ms)),
        ("1.5s", Ok(1_500 * ms)),
        ("10ms", Ok(10 * ms)),
        (".5s", Ok(500 * ms)),
        ("1.s", Ok(1_000 * ms)),
        ("+2s", Ok(2_000 * ms)),
        ("-2s", Ok(-2_000 * ms)),
        ("0", Ok(0)),
        ("0s", Ok(0)),
        ("500us", Ok(500_000)),
        ("3µs", Ok(3_000)),
        ("1.5ms", Ok(1_500_000)),
        ("1", Err(DurationProblem::NoUnit)),
        ("1.5", Err(DurationProblem::NoUnit)),
        ("", Err(DurationProblem::Syntax)),
        ("s", Err(DurationProblem::Syntax)),
        (".s", Err(DurationProblem::Syntax)),
        ("1d", Err(DurationProblem::Syntax)),
        ("1 s", Err(DurationProblem::Syntax)),
        ("1..5s", Err(DurationProblem::Syntax)),
        ("9999999999h", Err(DurationProblem::TooLong)),
        (
            "99999999999999999999999999999h",
            Err(DurationProblem::TooLong),
        ),
    ] {
        assert_eq!(parse_duration(text), wanted, "{text}");
    }
}

#[test]
fn domain_names_are_recognized() {
    let long = "a".repeat(64);
    for (text, fqdn, wildcard) in [
        ("a", true, true),
        ("reviews.default.svc.cluster.local", true, true),
        ("Example.COM", true, true),
        ("a.b.", true, true),
        ("1a.2b", true, true),
        ("*.foo.com", false, true),
        ("*foo.com", false, true),
        ("*-foo.com", false, true),
        ("*", false, true),
        ("", false, false),
        (".", false, false),
        ("a..b", false, false),
        ("-a.com", false, false),
        ("a-.com", false, false),
        ("a_b.com", false, false),
        ("a.*.com", false, false),
        ("*.", false, false),
        ("10.0.0.1", false, false),
        ("a.1", false, false),
        ("1", false, true),
        ("1.", false, false),
        (long.as_str(), false, false),
    ] {
        assert_eq!(is_fqdn(text), fqdn, "{text}");
        assert_eq!(is_wildcard_domain(text), wildcard, "{text}");
    }
}

#[test]
fn label_keys_and_values_follow_kubernetes() {
    for (text, key, value) in [
        ("app", true, true),
        ("app.kubernetes.io/name", true, false),
        ("v1.2_3-x", true, true),
        ("", false, true),
        ("-a", false, false),
        ("a b", false, false),
        ("/a", false, false),
        ("a/", false, false),
        ("a/b/c", false, false),
    ] {
        assert_eq!(is_label_key(text), key, "{text}");
        assert_eq!(is_label_value(text), value, "{text}");
    }
}

#[test]
fn unclosed_operators_in_header_values_are_rejected() {
    let open = |text: &str| Some(HeaderValueProblem::OpenOperator(text.to_owned()));
    for (text, wanted) in [
        ("plain", None),
        ("", None),
        ("100%%", None),
        ("%REQ(x-user)%", None),
        ("a %DOWNSTREAM_REMOTE_ADDRESS% b", None),
        ("%REQ(:path):10%", None),
        ("%START_TIME(%Y-%m)%", None),
        ("%PER_REQUEST_STATE(\"a)\")%", None),
        ("%UPSTREAM_METADATA([\"a\", \"b\"])%", None),
        ("100%", Some(HeaderValueProblem::OpenPercent)),
        ("50% off", Some(HeaderValueProblem::OpenPercent)),
        ("%REQ", Some(HeaderValueProblem::OpenPercent)),
        ("%REQ(x%", open("%REQ(x%")),
        ("%REQ([x)%", open("%REQ([x)%")),
        ("%REQ(\"x)%", open("%REQ(\"x)%")),
        ("a\tb", None),
        ("a\nb", Some(HeaderValueProblem::Control)),
        ("a\u{7f}", Some(HeaderValueProblem::Control)),
    ] {
        assert_eq!(header_value_problem(text), wanted, "{text}");
    }
}

#[test]
fn subnets_must_be_addresses_or_cidr_blocks() {
    for (text, wanted) in [
        ("10.0.0.1", Some("10.0.0.1/32")),
        ("10.0.0.0/8", Some("10.0.0.0/8")),
        ("::1", Some("::1/128")),
        ("2001:db8::/32", Some("2001:db8::/32")),
        ("::ffff:10.0.0.1", Some("10.0.0.1/32")),
        ("::ffff:10.0.0.0/104", Some("10.0.0.0/8")),
        ("::ffff:0:0/95", Some("::ffff:0.0.0.0/95")),
        ("10.0.0.0/33", None),
        ("a", None),
    ] {
        assert_eq!(
            subnet(text).map(|found| found.to_string()).as_deref(),
            wanted,
            "{text}"
        );
    }
}

#[test]
fn header_names_must_be_tokens() {
    for (text, wanted) in [
        ("x-user", true),
        ("X_y", true),
        ("", false),
        (":path", false),
        ("a b", false),
        ("ä", false),
    ] {
        assert_eq!(is_header_name(text), wanted, "{text}");
    }
    // the longest that can be sent: HTTP/2 and the crate http count no further
    assert!(is_header_name(&"a".repeat(65_535)));
    assert!(!is_header_name(&"a".repeat(65_536)));
}

/// Runs a check. Returns its result, with one line per diagnostic.
fn run<T>(check: impl FnOnce(&mut Check<'_>) -> T) -> (T, String) {
    let file = Arc::from("a.yaml");
    let lines = Lines::new("");
    let locator = Locator {
        file: &file,
        text: "",
        lines: &lines,
        first_line: 1,
        secret: false,
        bool_keys: false,
    };
    let object = ObjectRef::new(Kind::VirtualService, "shop", "a");
    let mut context = Check::new(&object, locator, Span::NONE);
    let value = check(&mut context);
    let line = |found: Diagnostic| {
        let help = found
            .help
            .map_or_else(String::new, |help| format!(" ({help})"));
        format!("{} {}{help}", found.code, found.message)
    };
    (
        value,
        context
            .into_found()
            .into_iter()
            .map(line)
            .collect::<Vec<_>>()
            .join("\n"),
    )
}

fn field<T>(value: T) -> Field<T> {
    Field::present(value, Span::new(0, 0))
}

fn texts(values: &[&str]) -> Field<Vec<Field<String>>> {
    field(
        values
            .iter()
            .map(|value| field((*value).to_owned()))
            .collect(),
    )
}

fn map(entries: &[(&str, &str)]) -> Field<Map<String>> {
    let entry =
        |(key, value): &(&str, &str)| (field((*key).to_owned()), field((*value).to_owned()));
    field(Map(entries.iter().map(entry).collect()))
}

#[test]
fn durations_must_be_whole_milliseconds() {
    let ms = |count| Some(Duration::from_millis(count));
    for (text, wanted, found) in [
        ("1.5s", ms(1_500), ""),
        ("1ms", ms(1), ""),
        (
            "0s",
            None,
            "CM001 duration `0s` is shorter than 1ms (write `1ms` or more, or remove the field for its default)",
        ),
        (
            "-1s",
            None,
            "CM001 duration `-1s` is shorter than 1ms (write `1ms` or more, or remove the field for its default)",
        ),
        (
            "500us",
            None,
            "CM001 duration `500us` is shorter than 1ms (write `1ms` or more, or remove the field for its default)",
        ),
        (
            "1.5ms",
            None,
            "CM002 duration `1.5ms` is finer than a millisecond (write `2ms`)",
        ),
        (
            "5",
            None,
            "CM003 `5` is not a duration (add a unit: write for example `5s`)",
        ),
        (
            "soon",
            None,
            "CM003 `soon` is not a duration (write for example `1.5s` or `200ms`)",
        ),
    ] {
        let read = run(|check| duration(&field(text.to_owned()), check));
        assert_eq!(read, (wanted, found.to_owned()), "{text}");
    }
    assert_eq!(
        run(|check| duration_or_zero(&field("0s".to_owned()), check)),
        (Some(Duration::ZERO), String::new())
    );
    assert_eq!(
        run(|check| duration(&Field::default(), check)),
        (None, String::new())
    );
}

#[test]
fn numbers_must_be_in_range() {
    for (value, wanted) in [
        (1, Some(1)),
        (65_535, Some(65_535)),
        (0, None),
        (65_536, None),
        (-1, None),
    ] {
        let (read, found) = run(|check| port(&field(value), check));
        assert_eq!(read, wanted);
        assert_eq!(found.is_empty(), wanted.is_some(), "{found}");
    }
    let shares = [
        (0.0, true),
        (0.0001, true),
        (100.0, true),
        (0.00001, false),
        (100.1, false),
        (-1.0, false),
    ];
    for (value, good) in shares {
        let (read, found) = run(|check| percent(&field(value), CM029, check));
        assert_eq!((read.is_some(), found.is_empty()), (good, good), "{value}");
    }
    assert_eq!(
        run(|check| int_percent(&field(101), CM029, check)).1,
        "CM029 101 percent is outside 0..100 (write a number from 0 to 100)"
    );
    assert_eq!(
        run(|check| non_negative(&field(-1), "attempts", CM029, check)).1,
        "CM029 negative attempts (write 0 or more)"
    );
    assert_eq!(
        run(|check| non_negative(&field(1 << 40), "attempts", CM029, check)).1,
        "CM029 attempts 1099511627776 is too large (the largest is 4294967295)"
    );
    assert_eq!(
        run(|check| in_range(&field(600), 200..=599, "status", CM029, check)),
        (
            None,
            "CM029 status 600 is outside 200..599 (write a status from 200 to 599)".to_owned()
        )
    );
}

#[test]
fn unknown_enum_values_suggest_the_closest_name() {
    let names = &[("ROUND_ROBIN", 1), ("RANDOM", 2)];
    assert_eq!(
        run(|check| enum_of(&field("RANDOM".to_owned()), names, check)),
        (Some(2), String::new())
    );
    assert_eq!(
        run(|check| enum_of(&field("round_robin".to_owned()), names, check)).1,
        "CM017 `round_robin` is not one of ROUND_ROBIN, RANDOM (did you mean `ROUND_ROBIN`?)"
    );
    assert_eq!(
        run(|check| enum_of(&field("X".to_owned()), names, check)).1,
        "CM017 `X` is not one of ROUND_ROBIN, RANDOM (write one of these names)"
    );
}

#[test]
fn regular_expressions_match_whole_values_including_invalid_utf8() {
    let codes = RegexCodes {
        empty: CM001,
        long: CM002,
        syntax: CM003,
    };
    let compile =
        |text: &str| run(|check| regex(&field(text.to_owned()), Extent::Whole, codes, check));
    let matches = |text: &str, value: &[u8]| compile(text).0.expect("it compiles").is_match(value);
    assert!(matches("a.*", b"abc") && !matches("a", b"ab") && !matches("b", b"ab"));
    assert!(matches("a|bc", b"bc") && !matches("a|bc", b"ac"));
    assert!(!matches("a.c", b"a\nc"));
    assert!(matches(r"\C+", b"\xff\xfe"));
    assert!(matches(r"/users/{id}|[\w-.]+", b"/users/{id}"));
    for (text, wanted) in [
        ("", "CM001 empty regex (to match any text, write `.*`)"),
        (
            "*",
            "CM003 regex `*` is invalid: there is nothing before `*` that could be repeated (to match any text, write `.*`)",
        ),
        (
            "a(?=b)",
            "CM003 regex `a(?=b)` is invalid: look-around is not supported \
             (RE2 has no look-around; withoutHeaders or an earlier rule can often say the same)",
        ),
        (
            r"(a)\1",
            "CM003 regex `(a)\\1` is invalid: RE2 has no back-references such as `\\1` (the syntax is that of RE2, \
             as in Envoy)",
        ),
        (
            "a)|(b",
            "CM003 regex `a)|(b` is invalid: `)` closes nothing; write `\\)` for the character (the syntax is that of RE2, \
             as in Envoy)",
        ),
        (
            "(a{1000}){1000}",
            "CM003 regex `(a{1000}){1000}` is invalid: `{1000}` and the repetitions within make more than 1000 times \
             (the syntax is that of RE2, as in Envoy)",
        ),
    ] {
        let (read, found) = compile(text);
        assert!(read.is_none(), "{text}");
        assert_eq!(found, wanted, "{text}");
    }
    let large = compile(&"(?:[a-m][n-z]){500}".repeat(40)).1;
    let reason = "it compiles to more than 1 MiB (repeat less, or match a shorter part)";
    assert!(large.ends_with(reason), "{large}");
    assert_eq!(
        compile(&"a".repeat(1_025)).1,
        "CM002 regex is longer than 1024 bytes (split it into several match blocks, which are alternatives)"
    );
    assert!(compile(&"a".repeat(1_024)).0.is_some());
}

#[test]
fn export_to_values_are_checked() {
    let names =
        |list: &[&str]| ExportTo::Namespaces(list.iter().map(|name| Arc::from(*name)).collect());
    let tilde = "CM006 exportTo `~` is only allowed on ServiceEntry (write `.` to keep it to its own namespace)";
    for (entries, tilde_allowed, wanted, found) in [
        (&[][..], false, ExportTo::All, ""),
        (&["*"], false, ExportTo::All, ""),
        (&["."], false, names(&["shop"]), ""),
        (&["b", "a"], false, names(&["a", "b"]), ""),
        (&["~"], true, ExportTo::NoNamespace, ""),
        (&["~"], false, ExportTo::NoNamespace, tilde),
        (
            &[".", "shop"],
            false,
            names(&["shop"]),
            "CM004 exportTo names `shop` twice (remove one of the two; `.` means the resource's own namespace)",
        ),
        (
            &["*", "a"],
            false,
            ExportTo::All,
            "CM007 exportTo `*` cannot be combined with other entries (`*` means every namespace: remove it, or the \
             others)",
        ),
        (
            &["~", "a"],
            true,
            ExportTo::NoNamespace,
            "CM008 exportTo `~` cannot be combined with other entries (`~` means no namespace: remove it, or the \
             others)",
        ),
        (
            &["a b"],
            false,
            names(&["a b"]),
            "CM005 exportTo entry `a b` is not a namespace (write `.`, `*` or the name of a namespace)",
        ),
    ] {
        let read =
            run(|check| export_to(&texts(entries), tilde_allowed, Default::default(), check));
        assert_eq!(read, (wanted, found.to_owned()), "{entries:?}");
    }
}

#[test]
fn selectors_must_not_have_wildcards() {
    for (entries, wanted) in [
        (&[("app", "a")][..], ""),
        (
            &[],
            "CM013 selector without labels applies to the whole namespace",
        ),
        (&[("", "a")], "CM011 selector has an empty key"),
        (
            &[("app", "*")],
            "CM012 selector `app: *` must not contain wildcards",
        ),
        (&[("a b", "a")], "CM014 `a b` is not a valid label key"),
        (&[("app", "a b")], "CM015 `a b` is not a valid label value"),
    ] {
        let found = run(|check| selector(&map(entries), check)).1;
        let found = found.split(" (write ").next().unwrap_or_default();
        assert_eq!(found, wanted, "{entries:?}");
    }
}

#[test]
fn at_most_one_field_of_a_oneof_may_be_set() {
    let at = Span::new(0, 0);
    assert!(run(|check| at_most_one(&[("a", at), ("b", Span::NONE)], CM019, check)).0);
    assert_eq!(
        run(|check| at_most_one(
            &[("a", at), ("b", Span::NONE), ("c", at), ("d", at)],
            CM019,
            check
        )),
        (
            false,
            "CM019 only one of `a`, `c` and `d` may be set (keep the one that is meant, and remove the others)"
                .to_owned()
        )
    );
}
