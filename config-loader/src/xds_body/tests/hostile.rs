//! Tests of malformed bodies, and of bodies from a newer version of Istio.

use std::error::Error;

use proptest::prelude::*;
use prost_reflect::prost::Message;
use prost_reflect::prost_types::value::Kind as StructKind;
use prost_reflect::prost_types::{ListValue, Struct, Value as StructValue};
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::xds_body::{BODY_BYTES_MAX, BodyError, Decoded, from_json, to_json};

const VIRTUAL_SERVICE: &str = "type.googleapis.com/istio.networking.v1alpha3.VirtualService";
const SERVICE_ENTRY: &str = "type.googleapis.com/istio.networking.v1alpha3.ServiceEntry";
const STRUCT: &str = "type.googleapis.com/google.protobuf.Struct";

/// Returns a body of every kind with a message, and a `Struct`.
fn bodies() -> Vec<(String, Vec<u8>)> {
    let table = [
        (
            Kind::DestinationRule,
            json!({"host": "a", "trafficPolicy": {
            "outlierDetection": {"interval": "1.5s", "outlierDetectionHttpErrorCodes": [500, 503], "consecutive5xxErrors": 3},
            "loadBalancer": {"consistentHash": {"httpCookie": {"name": "c", "ttl": "1h"}, "minimumRingSize": 1024}}}}),
        ),
        (
            Kind::Gateway,
            json!({"selector": {"a": "b"}, "servers": [{"hosts": ["*"], "port": {"number": 443}, "tls": {"mode": "SIMPLE"}}]}),
        ),
        (
            Kind::PeerAuthentication,
            json!({"portLevelMtls": {"80": {"mode": "STRICT"}}}),
        ),
        (
            Kind::Service,
            json!({"ports": [{"port": 80, "name": "http"}], "a": {"b": [null, true, 1.5]}}),
        ),
        (
            Kind::ServiceEntry,
            json!({"hosts": ["a.b"], "endpoints": [{"address": "10.0.0.1", "ports": {"http": 80}}]}),
        ),
        (
            Kind::Sidecar,
            json!({"egress": [{"hosts": ["./*"], "port": {"number": 80}}]}),
        ),
        (
            Kind::VirtualService,
            json!({"hosts": ["a"], "http": [{
            "match": [{"uri": {"prefix": "/"}, "headers": {"x": {"regex": "a"}}}],
            "fault": {"abort": {"httpStatus": 503, "percentage": {"value": 12.5}}},
            "directResponse": {"status": 200, "body": {"bytes": "AAEC"}}}]}),
        ),
        (
            Kind::WorkloadEntry,
            json!({"address": "10.0.0.1", "labels": {"a": "b"}}),
        ),
    ];
    table
        .into_iter()
        .map(|(kind, spec)| from_json(kind, &spec).unwrap())
        .collect()
}

#[test]
fn body_cut_anywhere_is_read_or_refused() {
    let mut refused = 0;
    for (type_url, bytes) in bodies() {
        for end in 0..bytes.len() {
            refused += usize::from(to_json(&type_url, &bytes[..end]).is_err());
        }
    }
    assert!(refused > 200, "{refused}");
}

#[test]
fn body_with_any_byte_changed_is_read_or_refused() {
    for (type_url, bytes) in bodies() {
        for at in 0..bytes.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at] ^ 7] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                let _ = to_json(&type_url, &changed);
            }
        }
    }
}

#[test]
fn body_of_another_type_is_read_or_refused() {
    let bodies = bodies();
    for (type_url, _) in &bodies {
        for (_, bytes) in &bodies {
            let _ = to_json(type_url, bytes);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        kind in 0..Kind::ALL.len(),
        bytes in proptest::collection::vec(any::<u8>(), 0..256),
    ) {
        let (type_url, _) = from_json(Kind::ALL[kind], &json!({})).unwrap();
        if let Ok(Decoded { spec, .. }) = to_json(&type_url, &bytes) {
            prop_assert!(spec.is_object());
        }
    }
}

#[test]
fn type_urls_name_kinds_of_every_version() {
    for known in [
        VIRTUAL_SERVICE,
        "istio.networking.v1alpha3.VirtualService",
        "type.googleapis.com/istio.networking.v1beta1.VirtualService",
        "type.googleapis.com/istio.networking.v1.VirtualService",
        "type.googleapis.com/istio.security.v1.PeerAuthentication",
        "type.googleapis.com/istio.security.v1beta1.PeerAuthentication",
        STRUCT,
    ] {
        let Decoded { spec, unknown } = to_json(known, &[]).unwrap();
        assert_eq!((spec, unknown), (json!({}), vec![]), "{known}");
    }
    for unknown in [
        "",
        "/",
        "VirtualService",
        "type.googleapis.com/istio.networking.v1alpha3.EnvoyFilter",
        "type.googleapis.com/istio.networking.v1alpha3.Service",
        "type.googleapis.com/istio.networking.v1alpha3.Destination",
        "type.googleapis.com/istio.security.v1beta1.VirtualService",
        "type.googleapis.com/istio.networking.v1alpha3.VirtualService/",
        "type.googleapis.com/google.protobuf.Value",
    ] {
        let error = to_json(unknown, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "unknown type `{unknown}`: expected the message of an Istio kind that Strait reads, \
                 or google.protobuf.Struct"
            )
        );
    }
}

#[test]
fn fields_of_newer_versions_are_listed_and_left_out() {
    // hosts: ["a"], http: [{retries: {99: 1}, name: "r"}], 500: "x"
    let bytes = b"\x0a\x01a\x1a\x09\x3a\x03\x98\x06\x01\x8a\x01\x01r\xa2\x1f\x01x";
    let Decoded { spec, unknown } = to_json(VIRTUAL_SERVICE, bytes).unwrap();
    assert_eq!(
        spec,
        json!({"hosts": ["a"], "http": [{"retries": {}, "name": "r"}]})
    );
    assert_eq!(
        unknown,
        ["field 500 of spec", "field 99 of spec.http[0].retries"]
    );
}

#[test]
fn enum_value_of_a_newer_version_stays_a_number() {
    let Decoded { spec, unknown } = to_json(SERVICE_ENTRY, b"\x28\x63").unwrap();
    assert_eq!(spec, json!({"resolution": 99}));
    assert_eq!(unknown, ["value 99 of spec.resolution"]);
}

#[test]
fn many_unknown_fields_are_counted() {
    let bytes: Vec<u8> = b"\xa2\x1f\x00".repeat(40);
    let Decoded { unknown, .. } = to_json(VIRTUAL_SERVICE, &bytes).unwrap();
    assert_eq!(unknown.len(), 33);
    assert_eq!(unknown[32], "8 more");
}

#[test]
fn later_value_of_a_field_wins() {
    // http[0].match[0].uri: {exact: "a"}, then {prefix: "b"}
    let bytes = b"\x1a\x0c\x0a\x0a\x0a\x03\x0a\x01a\x0a\x03\x12\x01b";
    let Decoded { spec, .. } = to_json(VIRTUAL_SERVICE, bytes).unwrap();
    assert_eq!(
        spec,
        json!({"http": [{"match": [{"uri": {"prefix": "b"}}]}]})
    );
}

#[test]
fn values_that_json_cannot_have_are_errors() {
    // http[0].timeout: {seconds: 2^62}; {seconds: 1, nanos: -1}; {nanos: 2e9}
    for duration in [
        &b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"[..],
        b"\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x10\x80\xa8\xd6\xb9\x07",
    ] {
        let length = u8::try_from(duration.len()).unwrap();
        let mut bytes = vec![0x1a, length + 2, 0x32, length];
        bytes.extend_from_slice(duration);
        let error = to_json(VIRTUAL_SERVICE, &bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "spec.http[0].timeout: a duration out of range"
        );
    }
    let number = |value| Struct {
        fields: [(
            "a".to_owned(),
            StructValue {
                kind: Some(StructKind::NumberValue(value)),
            },
        )]
        .into(),
    };
    let error = to_json(STRUCT, &number(f64::NAN).encode_to_vec()).unwrap_err();
    assert_eq!(error.to_string(), "spec.a: NaN is no number of JSON");
}

#[test]
fn malformed_and_large_bodies_are_refused() {
    let error = to_json(VIRTUAL_SERVICE, b"\x0a\x05a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bytes of the body are not a message `istio.networking.v1alpha3.VirtualService`"
    );
    assert!(error.source().is_some());
    let error = to_json(STRUCT, &vec![0; BODY_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the body has 1572865 bytes, more than 1572864"
    );
}

/// `{a: [[[...]]]}`
fn nested_lists(levels: usize) -> Value {
    let lists = (0..levels).fold(json!(1), |inner, _| json!([inner]));
    json!({"a": lists})
}

#[test]
fn nesting_is_bounded_both_ways() {
    let (type_url, bytes) = from_json(Kind::Service, &nested_lists(31)).unwrap();
    assert_eq!(to_json(&type_url, &bytes).unwrap().spec, nested_lists(31));
    let error = from_json(Kind::Service, &nested_lists(32)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("more than 32 levels of mappings and lists"),
        "{error}"
    );
    let mut deep = StructValue { kind: None };
    for _ in 0..1000 {
        let list = ListValue { values: vec![deep] };
        deep = StructValue {
            kind: Some(StructKind::ListValue(list)),
        };
    }
    let body = Struct {
        fields: [("a".to_owned(), deep)].into(),
    };
    let error = to_json(STRUCT, &body.encode_to_vec()).unwrap_err();
    assert!(matches!(error, BodyError::Malformed { .. }), "{error:?}");
    // Groups, which only unknown fields have.
    let groups = b"\xa3\x1f".repeat(10_000);
    assert!(to_json(VIRTUAL_SERVICE, &groups).is_err());
}
