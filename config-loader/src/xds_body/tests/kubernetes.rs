//! Tests of objects in Kubernetes protobuf. The samples in `proto/testdata` are those of the module `k8s.io/api` 0.36:
//! each object with every field set, as Kubernetes clients write it in protobuf and in JSON.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::xds_body::kubernetes::to_json;
use crate::xds_body::{BODY_BYTES_MAX, BodyError};

const SAMPLES: [&str; 5] = [
    "coordination.k8s.io.v1.Lease",
    "core.v1.Namespace",
    "core.v1.Secret",
    "core.v1.Service",
    "discovery.k8s.io.v1.EndpointSlice",
];

fn sample(name: &str, end: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/testdata");
    std::fs::read(folder.join(format!("{name}.{end}"))).unwrap()
}

/// Encodes a field that is a text, bytes or a message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 0x80, "one byte is enough for it");
    [&[number << 3 | 2, length], content].concat()
}

fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
    let of = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [&b"k8s\0"[..], &field(1, &of), &field(2, raw)].concat()
}

#[test]
fn samples_are_read_as_their_json() {
    for name in SAMPLES {
        let json: Value = serde_json::from_slice(&sample(name, "json")).unwrap();
        assert_eq!(to_json(&sample(name, "pb")), Ok(json), "{name}");
    }
}

#[test]
fn empty_fields_are_left_out_unless_they_are_pointers() {
    // As Go sends them: metadata with an empty name, no time and no generation; a port to a container's that is not set.
    let metadata = field(1, &[field(1, b""), vec![0x38, 0], field(8, b"")].concat());
    let port = [vec![0x18, 80], field(4, &[0x08, 0, 0x10, 0, 0x1a, 0])].concat();
    let spec = field(2, &[field(1, &port), field(3, b""), vec![0x68, 0]].concat());
    let service = to_json(&body("Service", &[metadata, spec].concat()));
    let expected = json!({"metadata": {}, "spec": {"ports": [{"port": 80}]}, "apiVersion": "v1", "kind": "Service"});
    assert_eq!(service, Ok(expected));
    let endpoint = field(2, &[field(1, b"10.0.0.1"), field(2, &[0x08, 0])].concat());
    let slice = to_json(&body("EndpointSlice", &endpoint)).unwrap();
    assert_eq!(slice["endpoints"][0]["conditions"], json!({"ready": false}));
    let lease = to_json(&body("Lease", &field(2, &field(1, b"")))).unwrap();
    assert_eq!(lease["spec"], json!({"holderIdentity": ""}));
}

#[test]
fn values_without_a_form_in_json_are_refused() {
    let spec = |time: &[u8]| body("Lease", &field(2, &field(4, time)));
    let late = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let error = to_json(&spec(&late)).unwrap_err().to_string();
    assert_eq!(error, "Lease.spec.renewTime: a time out of range");
    // Field 17, whose number takes two bytes.
    let fields = [&[0x8a, 0x01, 5], &*field(7, &field(1, b"{"))].concat();
    let error = to_json(&body("Secret", &field(1, &fields))).unwrap_err();
    let expected = "Secret.metadata.managedFields[0].fieldsV1: no JSON";
    assert_eq!(error.to_string(), expected);
    for kind in ["Pod", "Time", "ObjectMeta", ""] {
        let error = to_json(&body(kind, b"")).unwrap_err();
        assert!(matches!(error, BodyError::UnknownType { .. }), "{kind}");
    }
    let large = to_json(&vec![0; BODY_BYTES_MAX + 1]);
    assert!(matches!(large, Err(BodyError::TooLarge { .. })));
    assert!(to_json(b"{}").is_err());
}

proptest! {
    #[test]
    fn damaged_samples_do_not_panic(index in 0..SAMPLES.len(), at in 4_usize..2_000, byte: u8, end in 4_usize..2_000) {
        let mut body = sample(SAMPLES[index], "pb");
        let length = body.len();
        body[4 + at % (length - 4)] = byte;
        body.truncate(4 + end % (length - 4));
        drop(to_json(&body));
    }
}
