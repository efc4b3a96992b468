//! Tests of fields whose JSON form differs from their protobuf form.

use serde_json::{Value, json};

use super::testing::{differences, loaded, object, round_trip};
use crate::kind::Kind;
use crate::xds_body::{BodyError, from_json};

/// Checks a spec after the round trip.
fn check(kind: Kind, spec: Value, expected: Value) {
    assert_eq!(round_trip(kind, &spec), expected, "{spec}");
}

fn unchanged(kind: Kind, spec: Value) {
    check(kind, spec.clone(), spec);
}

/// Writes a rule of a VirtualService.
fn rule(rule: Value) -> Value {
    json!({"http": [rule]})
}

fn policy(policy: Value) -> Value {
    json!({"host": "web", "trafficPolicy": policy})
}

#[test]
fn wrappers_keep_zero_and_false() {
    for enabled in [true, false] {
        unchanged(
            Kind::VirtualService,
            rule(json!({"corsPolicy": {"allowCredentials": enabled}})),
        );
    }
    unchanged(
        Kind::DestinationRule,
        policy(json!({"outlierDetection": {
            "consecutiveGatewayErrors": 0,
            "consecutive5xxErrors": 4_294_967_295_u32,
        }})),
    );
    unchanged(Kind::VirtualService, rule(json!({"mirrorPercent": 0})));
    unchanged(
        Kind::DestinationRule,
        policy(
            json!({"loadBalancer": {"warmup": {"duration": "30s", "minimumPercent": 0, "aggression": 1.5}}}),
        ),
    );
}

#[test]
fn plain_fields_with_their_default_are_left_out() {
    check(
        Kind::VirtualService,
        rule(
            json!({"match": [{"port": 0, "ignoreUriCase": false, "name": ""}], "route": [], "retries": {"attempts": 0}}),
        ),
        rule(json!({"match": [{}], "retries": {}})),
    );
    check(
        Kind::DestinationRule,
        policy(json!({"tls": {"mode": "DISABLE"}})),
        policy(json!({"tls": {}})),
    );
    check(
        Kind::Gateway,
        json!({"selector": {}, "servers": null}),
        json!({}),
    );
}

#[test]
fn durations_are_read_as_go_writes_them() {
    let table = [
        ("1h30m", "5400s"),
        ("100ms", "0.1s"),
        ("1.5s", "1.5s"),
        ("0s", "0s"),
        ("0", "0s"),
        ("1ns", "0.000000001s"),
        ("-1.5s", "-1.5s"),
    ];
    for (written, expected) in table {
        check(
            Kind::VirtualService,
            rule(json!({"timeout": written})),
            rule(json!({"timeout": expected})),
        );
    }
}

#[test]
fn choices_keep_which_one_was_set() {
    for (key, value) in [("exact", "/a"), ("prefix", ""), ("regex", "a.*")] {
        let uri = json!({key: value});
        let headers = json!({"x-b": {key: value}, "x-a": {}});
        unchanged(
            Kind::VirtualService,
            rule(json!({"match": [{"uri": uri, "headers": headers}]})),
        );
    }
    for balancer in [
        json!({"simple": "UNSPECIFIED"}),
        json!({"simple": "LEAST_REQUEST"}),
        json!({"consistentHash": {"useSourceIp": false}}),
        json!({"consistentHash": {"httpCookie": {"name": "a", "ttl": "0s"}, "maglev": {"tableSize": 5_000_011_u64}}}),
    ] {
        unchanged(
            Kind::DestinationRule,
            policy(json!({"loadBalancer": balancer})),
        );
    }
    unchanged(
        Kind::VirtualService,
        rule(json!({"redirect": {"derivePort": "FROM_PROTOCOL_DEFAULT"}})),
    );
}

#[test]
fn numbers_come_back_as_numbers() {
    unchanged(
        Kind::DestinationRule,
        policy(json!({"loadBalancer": {"consistentHash": {"minimumRingSize": u64::MAX}}})),
    );
    check(
        Kind::VirtualService,
        rule(json!({
            "fault": {"abort": {"percentage": {"value": 12.5}, "httpStatus": "503"}},
            "mirrorPercentage": {"value": "50"},
            "route": [{"destination": {"host": "a", "port": {"number": 80.0}}, "weight": -1}],
        })),
        rule(json!({
            "route": [{"destination": {"host": "a", "port": {"number": 80}}, "weight": -1}],
            "fault": {"abort": {"httpStatus": 503, "percentage": {"value": 12.5}}},
            "mirrorPercentage": {"value": 50},
        })),
    );
    unchanged(
        Kind::DestinationRule,
        policy(json!({"outlierDetection": {"outlierDetectionHttpErrorCodes": [500, 0, 429]}})),
    );
}

#[test]
fn maps_come_back_in_the_order_of_their_keys() {
    let one = round_trip(
        Kind::WorkloadEntry,
        &json!({"ports": {"https": 8443, "http": 0}, "labels": {"b": "", "a": "1"}}),
    );
    assert_eq!(
        one.to_string(),
        r#"{"ports":{"http":0,"https":8443},"labels":{"a":"1","b":""}}"#
    );
    unchanged(
        Kind::PeerAuthentication,
        json!({"portLevelMtls": {"80": {"mode": "STRICT"}, "8080": {}}}),
    );
}

#[test]
fn enums_and_names_have_the_forms_that_istio_reads() {
    check(
        Kind::ServiceEntry,
        json!({"resolution": 2, "location": "MESH_INTERNAL", "export_to": ["."], "workload_selector": null}),
        json!({"location": "MESH_INTERNAL", "resolution": "DNS", "exportTo": ["."]}),
    );
    check(
        Kind::VirtualService,
        rule(json!({"directResponse": {"status": 200, "body": {"bytes": "_-8"}}})),
        rule(json!({"directResponse": {"status": 200, "body": {"bytes": "/+8="}}})),
    );
}

#[test]
fn kinds_without_messages_are_structs() {
    let spec = json!({
        "ports": [{"port": 80, "targetPort": "http", "nothing": null}, 1.5, true, []],
        "selector": {"app": "web"},
    });
    unchanged(Kind::Service, spec.clone());
    let (type_url, _) = from_json(Kind::Service, &spec).unwrap();
    assert_eq!(type_url, "type.googleapis.com/google.protobuf.Struct");
}

#[test]
fn what_cannot_be_written_is_an_error_with_a_path() {
    let table = [
        (
            rule(json!({"timeout": 5})),
            "spec.http[0].timeout: 5 is no duration: expected numbers with units, such as 1h, 1m30s or 100ms",
        ),
        (
            rule(json!({"timeout": "5x"})),
            "spec.http[0].timeout: `5x` is no duration: expected numbers with units, such as 1h, 1m30s or 100ms",
        ),
        (
            rule(json!({"retires": {}})),
            "spec.http[0].retires: Istio has no such field",
        ),
        (
            rule(json!({"name": 5})),
            "spec.http[0].name: 5 is no text: put it in quotes",
        ),
        (
            rule(json!({"match": {}})),
            "spec.http[0].match: a mapping where a list is expected",
        ),
        (
            rule(json!([])),
            "spec.http[0]: a list where a mapping is expected",
        ),
        (
            rule(json!({"match": [{"port": -1}]})),
            "spec.http[0].match[0].port: -1 is no whole number from 0 to 4294967295",
        ),
        (
            rule(json!({"match": [{"port": 1.5}]})),
            "spec.http[0].match[0].port: 1.5 is no whole number from 0 to 4294967295",
        ),
        (
            rule(json!({"match": [{"ignoreUriCase": 1}]})),
            "spec.http[0].match[0].ignoreUriCase: 1 is no boolean: expected true or false",
        ),
        (
            rule(json!({"match": [{"uri": {"exact": "a", "prefix": "b"}}]})),
            "spec.http[0].match[0].uri.prefix: exact is set as well, and only one may be",
        ),
        (
            rule(json!({"corsPolicy": {"unmatchedPreflights": "DROP"}})),
            "spec.http[0].corsPolicy.unmatchedPreflights: \"DROP\" is none of UNSPECIFIED, FORWARD, IGNORE",
        ),
        (
            json!({"exportTo": [], "export_to": []}),
            "spec.export_to: exportTo is set as well, and only one may be",
        ),
        (json!([]), "spec: a list where a mapping is expected"),
    ];
    for (spec, expected) in table {
        let error = from_json(Kind::VirtualService, &spec).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let error = from_json(Kind::Service, &json!({"a": 9_007_199_254_740_993_i64})).unwrap_err();
    let expected =
        "spec.a: 9007199254740993 has more digits than a number in a protobuf Struct holds";
    assert_eq!(error.to_string(), expected);
    let large = "x".repeat(crate::xds_body::BODY_BYTES_MAX);
    assert!(matches!(
        from_json(Kind::Service, &json!({"a": large})),
        Err(BodyError::TooLarge { .. })
    ));
}

/// Tests that a field that protobuf omits as unset means the same to the checks as its default.
#[test]
fn fields_that_are_left_out_mean_their_default() {
    let destination = json!([{"destination": {"host": "web"}}]);
    let port = json!({"number": 80, "name": "http", "protocol": "HTTP"});
    let table = [
        (
            Kind::VirtualService,
            json!({"hosts": ["a"], "http": [{"route": destination, "retries": {"attempts": 0}}]}),
        ),
        (
            Kind::VirtualService,
            json!({"hosts": ["a"], "http": [{"route": [
            {"destination": {"host": "a"}, "weight": 0}, {"destination": {"host": "b"}, "weight": 100}]}]}),
        ),
        (
            Kind::VirtualService,
            json!({"hosts": ["a"], "tcp": [{"route": [
            {"destination": {"host": "a"}, "weight": 0}, {"destination": {"host": "b"}, "weight": 100}]}]}),
        ),
        (
            Kind::VirtualService,
            json!({"hosts": ["a"], "http": [{"route": destination,
            "fault": {"delay": {"fixedDelay": "1s", "percentage": {"value": 0}}}}]}),
        ),
        (
            Kind::VirtualService,
            json!({"hosts": ["a"], "http": [{"route": destination,
            "mirror": {"host": "b"}, "mirrorPercentage": {"value": 0}}]}),
        ),
        (
            Kind::VirtualService,
            json!({"hosts": ["a"], "http": [{"route": destination,
            "corsPolicy": {"allowOrigins": [{"exact": "http://a"}], "unmatchedPreflights": "UNSPECIFIED"}}]}),
        ),
        (
            Kind::DestinationRule,
            policy(json!({"tls": {"mode": "DISABLE"}})),
        ),
        (
            Kind::DestinationRule,
            policy(json!({"proxyProtocol": {"version": "V1"}})),
        ),
        (
            Kind::DestinationRule,
            policy(json!({"retryBudget": {"minRetryConcurrency": 0}})),
        ),
        (
            Kind::DestinationRule,
            policy(json!({"connectionPool": {"tcp": {"maxConnections": 0},
            "http": {"http1MaxPendingRequests": 0, "maxRequestsPerConnection": 0, "maxRetries": 0,
                     "h2UpgradePolicy": "DEFAULT", "maxConcurrentStreams": 0}}})),
        ),
        (
            Kind::DestinationRule,
            policy(json!({"connectionPool": {"tcp": {"tcpKeepalive": {"probes": 0}}}})),
        ),
        (
            Kind::DestinationRule,
            policy(json!({"outlierDetection": {"maxEjectionPercent": 0, "minHealthPercent": 0}})),
        ),
        (
            Kind::DestinationRule,
            policy(
                json!({"loadBalancer": {"localityLbSetting": {"distribute": [
            {"from": "a", "to": {"a": 100, "b": 0}}]}}}),
            ),
        ),
        (
            Kind::Gateway,
            json!({"selector": {"a": "b"}, "servers": [{"hosts": ["a"],
            "port": {"number": 443, "name": "tls", "protocol": "TLS"}, "tls": {"mode": "PASSTHROUGH"}}]}),
        ),
        (
            Kind::ServiceEntry,
            json!({"hosts": ["a.b"], "ports": [port], "location": "MESH_EXTERNAL", "resolution": "NONE"}),
        ),
        (
            Kind::ServiceEntry,
            json!({"hosts": ["a.b"], "ports": [port], "resolution": "STATIC",
            "endpoints": [{"address": "10.0.0.1", "weight": 0}]}),
        ),
        (
            Kind::Sidecar,
            json!({"outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}}),
        ),
        (
            Kind::Sidecar,
            json!({"egress": [{"hosts": ["./*"], "captureMode": "DEFAULT"}]}),
        ),
        (Kind::PeerAuthentication, json!({"mtls": {"mode": "UNSET"}})),
        (
            Kind::WorkloadEntry,
            json!({"address": "10.0.0.1", "weight": 0}),
        ),
    ];
    let mut different = Vec::new();
    for (kind, spec) in table {
        let before = loaded(&object(kind, spec.clone()));
        let after = loaded(&object(kind, round_trip(kind, &spec)));
        if before != after {
            let lines = differences(&before.0, &after.0);
            different.push(format!(
                "{kind} {spec}\n  {:?} {:?} {lines:?}",
                before.1, after.1
            ));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
