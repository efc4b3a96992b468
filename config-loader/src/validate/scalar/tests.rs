//! Tables of what each scalar check accepts and refuses.

use super::*;

#[test]
fn durations_are_read_as_go_reads_them() {
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
fn domain_names_are_told_from_others() {
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
fn header_values_have_closed_operators() {
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
fn subnets_are_addresses_or_blocks() {
    for (text, wanted) in [
        ("10.0.0.1", Some("10.0.0.1/32")),
        ("10.0.0.0/8", Some("10.0.0.0/8")),
        ("::1", Some("::1/128")),
        ("2001:db8::/32", Some("2001:db8::/32")),
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
fn header_names_are_tokens() {
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
}
