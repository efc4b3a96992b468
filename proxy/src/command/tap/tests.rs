use std::collections::BTreeSet;

use clap::Parser;
use serde_json::Value;

use super::*;
use crate::telemetry::{TappedAttempt, TappedDestination, TappedRule};

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    tap: TapArgs,
}

fn args(more: &[&str]) -> TapArgs {
    let line = ["tap"].iter().chain(more);
    CommandLine::try_parse_from(line).unwrap().tap
}

/// A request with every field.
fn whole() -> TappedRequest {
    let some = || Some("x".to_owned());
    let attempt = TappedAttempt {
        tier: Some(1),
        reason: some(),
        failover: true,
        status: Some(1),
        grpc_status: Some(1),
        error: some(),
        transport_error: some(),
        stale: true,
        first_byte_ms: Some(1.0),
        ..TappedAttempt::default()
    };
    let mut request = TappedRequest {
        client_identity: some(),
        client_tls_ms: Some(1.0),
        request_id: some(),
        trace_id: some(),
        grpc_status: Some(1),
        rule: Some(TappedRule {
            name: "x".to_owned(),
            ..TappedRule::default()
        }),
        destination: Some(TappedDestination {
            port: Some(1),
            subset: some(),
            ..TappedDestination::default()
        }),
        cluster: some(),
        tier: Some(1),
        endpoint: some(),
        attempts: vec![attempt],
        ..TappedRequest::default()
    };
    request.timing.request_ms = Some(1.0);
    request.timing.first_byte_ms = Some(1.0);
    request
}

/// Compares an object with its schema; `is_whole` if all properties are there, else only the required.
fn compare(value: &Value, schema: &Value, is_whole: bool) {
    match (value, schema["type"].as_str().unwrap_or("enum")) {
        (Value::Object(fields), "object") => {
            let found: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
            let expected: BTreeSet<&str> = match is_whole {
                true => schema["properties"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(String::as_str)
                    .collect(),
                false => schema["required"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| one.as_str().unwrap())
                    .collect(),
            };
            assert_eq!(found, expected, "{schema}");
            for (name, field) in fields {
                compare(field, &schema["properties"][name], is_whole);
            }
        }
        (Value::Array(items), "array") => {
            items
                .iter()
                .for_each(|item| compare(item, &schema["items"], is_whole));
        }
        (Value::String(_), "string" | "enum") | (Value::Bool(_), "boolean") => {}
        (Value::Number(_), "number" | "integer") => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn schema_has_exactly_the_fields_of_a_request() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    compare(&serde_json::to_value(whole()).unwrap(), &schema, true);
    let least = TappedRequest {
        attempts: vec![TappedAttempt::default()],
        ..TappedRequest::default()
    };
    compare(&serde_json::to_value(least).unwrap(), &schema, false);
}

#[test]
fn request_is_read_as_it_was_written() {
    let text = serde_json::to_string(&whole()).unwrap();
    match serde_json::from_str(&text).unwrap() {
        Line::Request(request) => assert_eq!(*request, whole()),
        Line::Told { .. } => panic!("a request"),
    }
    let told = r#"{"tap":{"sent":1,"over_rate":2,"dropped":3}}"#;
    assert!(matches!(
        serde_json::from_str(told).unwrap(),
        Line::Told {
            tap: TapCounts { dropped: 3, .. }
        }
    ));
}

#[test]
fn filters_are_encoded_for_the_admin_server() {
    let asked = target(&args(&[
        "path=/a*&b",
        "header:x-user=u 7",
        "--max",
        "5",
        "--rate",
        "5/s",
    ]));
    assert_eq!(
        asked.unwrap(),
        "/tap?format=json&rate=5%2Fs&max=5&path=%2Fa%2A%26b&header%3Ax-user=u%207"
    );
    assert!(target(&args(&["nonsense"])).is_err());
    assert!(target(&args(&["--rate", "0"])).is_err());
}
