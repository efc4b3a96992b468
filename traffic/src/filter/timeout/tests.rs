use super::*;

fn parsed(text: &str) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    headers.insert(GRPC_TIMEOUT, HeaderValue::from_str(text).unwrap());
    grpc_timeout(&headers)
}

#[test]
fn grpc_timeouts_have_up_to_eight_digits_and_a_unit() {
    let millis = Duration::from_millis;
    for (text, expected) in [
        ("50m", Some(millis(50))),
        ("1S", Some(millis(1_000))),
        ("2M", Some(millis(120_000))),
        ("1H", Some(millis(3_600_000))),
        ("5u", Some(Duration::from_micros(5))),
        ("7n", Some(Duration::from_nanos(7))),
        ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
        ("0m", None),
        ("100000000n", None),
        ("5", None),
        ("m", None),
        ("", None),
        ("5s", None),
        ("-5m", None),
        ("+5m", None),
        ("5 m", None),
        ("1.5S", None),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
    assert_eq!(grpc_timeout(&HeaderMap::new()), None);
}

#[test]
fn grpc_timeouts_print_in_the_finest_unit_that_fits() {
    for (timeout, expected) in [
        (Duration::from_millis(50), "50m"),
        (Duration::from_micros(1_999), "1m"),
        (Duration::from_nanos(1), "1m"),
        (Duration::from_secs(1), "1000m"),
        (Duration::from_secs(100_000), "100000S"),
        (Duration::from_secs(99_999_999 * 60), "99999999M"),
        (Duration::from_secs(99_999_999 * 3_600), "99999999H"),
        (Duration::MAX, "99999999H"),
    ] {
        assert_eq!(format_grpc_timeout(timeout), expected, "{timeout:?}");
    }
}

#[test]
fn the_shorter_timeout_applies() {
    let [one, two] = [1, 2].map(Duration::from_secs);
    for (route, client, expected) in [
        (Some(two), Some(one), Some(one)),
        (Some(one), Some(two), Some(one)),
        (Some(two), None, Some(two)),
        (None, Some(one), Some(one)),
        (None, None, None),
    ] {
        assert_eq!(effective(route, client), expected);
    }
}

#[test]
fn grpc_is_detected_by_content_type() {
    for (content_type, expected) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("application/grpc;charset=x", false),
        ("application/grpc-web", false),
        ("application/json", false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        assert_eq!(is_grpc(&headers), expected, "{content_type}");
    }
    assert!(!is_grpc(&HeaderMap::new()));
}

#[test]
fn milliseconds_are_rounded_up_to_at_least_one() {
    assert_eq!(millis(Duration::from_micros(1_500)), "1");
    assert_eq!(millis(Duration::ZERO), "1");
    assert_eq!(millis(Duration::from_secs(2)), "2000");
}
