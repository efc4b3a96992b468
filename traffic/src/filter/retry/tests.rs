use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::error::Kind;

fn conditions(words: &str) -> Conditions {
    let mut conditions = Conditions::default();
    for word in words.split(',').filter(|word| !word.is_empty()) {
        match word.parse() {
            Ok(status) => conditions.insert_status(status),
            Err(_) => conditions.insert(Condition::from_word(word).unwrap()),
        }
    }
    conditions
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = lines
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    pairs.collect()
}

const FAILURES: [Kind; 14] = [
    Kind::ConnectFailed,
    Kind::ConnectTimeout,
    Kind::DownstreamBody,
    Kind::DownstreamTimeout,
    Kind::NoCluster,
    Kind::NoHealthyUpstream,
    Kind::NoOriginalDestination,
    Kind::Overflow,
    Kind::RequestTimeout,
    Kind::AttemptTimeout,
    Kind::UpstreamClosed,
    Kind::UpstreamProtocol,
    Kind::UpstreamRefusedStream,
    Kind::UpstreamReset,
];

/// Each retry condition, and the failures that it retries once the request was sent.
#[test]
fn each_condition_matches_its_failures() {
    use Kind as K;
    let any: &[Kind] = &[
        K::ConnectFailed,
        K::ConnectTimeout,
        K::AttemptTimeout,
        K::UpstreamClosed,
        K::UpstreamProtocol,
        K::UpstreamRefusedStream,
        K::UpstreamReset,
    ];
    let rows: &[(Condition, &[Kind])] = &[
        (Condition::FiveXx, any),
        (Condition::GatewayError, any),
        (Condition::Reset, any),
        (Condition::ResetBeforeRequest, &[]),
        (
            Condition::ConnectFailure,
            &[K::ConnectFailed, K::ConnectTimeout],
        ),
        (Condition::Retriable4xx, &[]),
        (Condition::RefusedStream, &[K::UpstreamRefusedStream]),
        (Condition::RetriableStatusCodes, &[]),
        (Condition::RetriableHeaders, &[]),
        (Condition::EnvoyRatelimited, &[]),
        (Condition::Http3PostConnectFailure, &[]),
        (Condition::Cancelled, &[]),
        (Condition::DeadlineExceeded, &[]),
        (Condition::Internal, &[]),
        (Condition::ResourceExhausted, &[]),
        (Condition::Unavailable, &[]),
    ];
    assert_eq!(rows.len(), Condition::ALL.len());
    for (condition, expected) in rows {
        let conditions = conditions(condition.word());
        for kind in FAILURES {
            let found = conditions.on_failure(kind, true).is_some();
            assert_eq!(found, expected.contains(&kind), "{condition:?} {kind:?}");
            let unsent = conditions.on_failure(kind, false).is_some();
            let before = *condition == Condition::ResetBeforeRequest && any.contains(&kind);
            assert_eq!(unsent, found || before, "{condition:?} {kind:?} unsent");
        }
    }
}

/// Each retry condition, and the responses that it retries.
#[test]
fn each_condition_matches_its_responses() {
    let fives: Vec<u16> = (500..600).collect();
    let rows: &[(&str, &[u16])] = &[
        ("5xx", &fives),
        ("gateway-error", &[502, 503, 504]),
        ("retriable-4xx", &[409]),
        ("retriable-status-codes", &[]),
        ("503", &[503]),
        ("200,418", &[200, 418]),
        ("retriable-status-codes,599", &[599]),
        (
            "reset,reset-before-request,connect-failure,refused-stream",
            &[],
        ),
        (
            "retriable-headers,envoy-ratelimited,http3-post-connect-failure",
            &[],
        ),
        (
            "cancelled,deadline-exceeded,internal,resource-exhausted,unavailable",
            &[],
        ),
    ];
    for (words, expected) in rows {
        let conditions = conditions(words);
        for status in 200..600 {
            let found = conditions.on_response(
                StatusCode::from_u16(status).unwrap(),
                &headers(&[("content-type", "text/plain")]),
            );
            let expected = expected.contains(&status).then_some(Reason::Status);
            assert_eq!(found, expected, "{words} {status}");
        }
    }
}

#[test]
fn grpc_conditions_match_the_status_in_headers() {
    let rows = [
        ("cancelled", 1),
        ("deadline-exceeded", 4),
        ("resource-exhausted", 8),
        ("internal", 13),
        ("unavailable", 14),
    ];
    for (word, wanted) in rows {
        let conditions = conditions(word);
        for status in 0..20 {
            let found = conditions.on_response(
                StatusCode::OK,
                &headers(&[("grpc-status", &status.to_string())]),
            );
            let expected = (status == wanted).then_some(Reason::GrpcStatus);
            assert_eq!(found, expected, "{word} {status}");
        }
        let none = conditions.on_response(StatusCode::OK, &headers(&[("grpc-status", "x")]));
        assert_eq!(none, None);
    }
}

#[test]
fn rate_limited_response_is_retried_only_with_its_condition() {
    let limited = headers(&[("x-envoy-ratelimited", "true"), ("grpc-status", "14")]);
    for (words, expected) in [
        ("5xx,503,unavailable", None),
        ("envoy-ratelimited", Some(Reason::Header)),
        ("5xx,envoy-ratelimited", Some(Reason::Header)),
    ] {
        let conditions = conditions(words);
        let found = conditions.on_response(StatusCode::SERVICE_UNAVAILABLE, &limited);
        assert_eq!(found, expected, "{words}");
    }
    let plain = conditions("envoy-ratelimited").on_response(StatusCode::OK, &HeaderMap::new());
    assert_eq!(plain, None);
}

#[test]
fn listed_headers_need_the_retriable_headers_condition() {
    let mut without = Conditions::default();
    without.list_header("x-again".parse().unwrap());
    let with = without.clone().with(&conditions("retriable-headers"));
    let response = headers(&[("x-again", "")]);
    assert_eq!(without.on_response(StatusCode::OK, &response), None);
    let found = with.on_response(StatusCode::OK, &response);
    assert_eq!(found, Some(Reason::Header));
    assert_eq!(with.on_response(StatusCode::OK, &HeaderMap::new()), None);
}

#[test]
fn listed_statuses_need_the_retriable_status_codes_condition() {
    let mut listed = Conditions::default();
    listed.list_status(500);
    let ask = |conditions: &Conditions| {
        conditions.on_response(StatusCode::INTERNAL_SERVER_ERROR, &HeaderMap::new())
    };
    assert_eq!(ask(&listed), None);
    let with = listed.with(&conditions("retriable-status-codes"));
    assert_eq!(ask(&with), Some(Reason::Status));
}

#[test]
fn mesh_default_retries_unprocessed_requests() {
    let policy = RetryPolicy::mesh_default(false);
    assert_eq!(policy.attempts, 2);
    let words = "connect-failure,refused-stream,cancelled,unavailable";
    assert_eq!(policy.conditions.words().join(","), words);
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    let ask = |policy: &RetryPolicy| {
        policy
            .conditions
            .on_response(unavailable, &HeaderMap::new())
    };
    assert_eq!(ask(&policy), None);
    let compatible = RetryPolicy::mesh_default(true);
    assert_eq!(ask(&compatible), Some(Reason::Status));
    assert_eq!(
        compatible.conditions.words().join(","),
        format!("{words},503")
    );
    for kind in [
        Kind::UpstreamClosed,
        Kind::UpstreamReset,
        Kind::UpstreamProtocol,
        Kind::AttemptTimeout,
    ] {
        assert_eq!(policy.conditions.on_failure(kind, false), None, "{kind:?}");
    }
}

#[test]
fn back_off_grows_up_to_ten_times_the_base() {
    let rows = [
        (1, 25),
        (2, 75),
        (3, 175),
        (4, 250),
        (5, 250),
        (64, 250),
        (u32::MAX, 250),
    ];
    for (retry, millis) in rows {
        let limit = BackOff::default().limit(retry);
        assert_eq!(limit, Duration::from_millis(millis), "{retry}");
    }
    assert_eq!(BackOff::default().limit(0), Duration::ZERO);
}

proptest! {
    #[test]
    fn back_off_is_uniform_below_its_limit(
        retry in 1_u32..80,
        base in 1_u64..100_000,
        seed: u64,
    ) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let back_off = BackOff { base: Duration::from_millis(base) };
        let limit = back_off.limit(retry);
        let draws: Vec<Duration> = (0..200).map(|_| back_off.draw(retry, &mut rng)).collect();
        prop_assert!(draws.iter().all(|draw| *draw < limit));
        let mean = draws.iter().sum::<Duration>() / 200;
        // the mean of 200 draws has a standard deviation of 2 % of the limit
        prop_assert!(mean > limit.mul_f64(0.35) && mean < limit.mul_f64(0.65), "{mean:?} of {limit:?}");
    }
}

#[test]
fn control_headers_are_removed_from_the_request() {
    let mut lines = headers(&[
        (
            "x-envoy-retry-on",
            "5xx, retriable-headers,unavailable,nonsense",
        ),
        ("x-envoy-retry-grpc-on", "internal,5xx,reset"),
        ("x-envoy-max-retries", "4"),
        ("x-envoy-retriable-status-codes", "418, x,425"),
        ("x-envoy-retriable-header-names", "X-Again,bad name"),
        ("x-envoy-upstream-rq-timeout-ms", "1500"),
        ("x-envoy-upstream-rq-per-try-timeout-ms", "200"),
        ("x-envoy-upstream-rq-timeout-alt-response", "1"),
        ("x-mine", "1"),
    ]);
    let controls = Controls::take(&mut lines).unwrap();
    assert_eq!(lines, headers(&[("x-mine", "1")]));
    let policy = controls.policy(None).unwrap();
    let mut expected = conditions("5xx,retriable-headers,internal");
    expected.list_status(418);
    expected.list_status(425);
    expected.list_header("x-again".parse().unwrap());
    assert_eq!(policy.conditions, expected);
    assert_eq!(policy.attempts, 4);
    assert!(controls.alt_response);
    let route = Some(Duration::from_secs(9));
    assert_eq!(controls.timeout(route), Some(Duration::from_millis(1500)));
    let per_try = controls.per_try_timeout(route);
    assert_eq!(per_try, Some(Duration::from_millis(200)));
    assert_eq!(Controls::take(&mut lines), None);
}

#[test]
fn control_headers_extend_the_policy_of_the_route() {
    let route = RetryPolicy {
        attempts: 3,
        conditions: conditions("503"),
        ..RetryPolicy::mesh_default(false)
    };
    let ask = |lines: &[(&'static str, &str)], route: Option<&RetryPolicy>| {
        let controls = Controls::take(&mut headers(lines)).unwrap();
        controls.policy(route)
    };
    let more = ask(&[("x-envoy-retry-on", "reset")], Some(&route)).unwrap();
    assert_eq!(more.conditions, conditions("503,reset"));
    assert_eq!(more.attempts, 3);
    let fewer = ask(&[("x-envoy-max-retries", "0")], Some(&route)).unwrap();
    assert_eq!(fewer.attempts, 0);
    let bounded = ask(&[("x-envoy-max-retries", "4000000000")], Some(&route)).unwrap();
    assert_eq!(bounded.attempts, client::CLIENT_ATTEMPTS_MAX);
    let own = ask(&[("x-envoy-retry-on", "5xx")], None).unwrap();
    assert_eq!(own.attempts, 1, "one retry where the route has none");
    assert_eq!(ask(&[("x-envoy-max-retries", "5")], None), None);
    let timeout = [("x-envoy-upstream-rq-timeout-ms", "5")];
    assert_eq!(
        ask(&timeout, Some(&route)),
        None,
        "the route's counts as it is"
    );
}

#[test]
fn zero_disables_a_timeout_and_invalid_values_are_ignored() {
    let route = Some(Duration::from_secs(1));
    for (value, expected) in [
        ("0", None),
        ("250", Some(Duration::from_millis(250))),
        ("-1", route),
        ("1.5", route),
        ("", route),
        ("99999999999999999999999", route),
    ] {
        let mut lines = HeaderMap::new();
        lines.insert(
            "x-envoy-upstream-rq-timeout-ms",
            HeaderValue::from_str(value).unwrap(),
        );
        let controls = Controls::take(&mut lines).unwrap();
        assert_eq!(controls.timeout(route), expected, "{value:?}");
    }
}
