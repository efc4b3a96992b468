//! Zipkin v2 JSON, made of a message of OTLP on the thread of the exporter.
//!
//! As OpenTelemetry maps spans to Zipkin ("Sdk exporters, Zipkin"); ids are not shared between the two sides of a call.

use std::net::IpAddr;

use prost::{DecodeError, Message};
use serde_json::{Map, Value as Json, json};

/// `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<Resources>,
}

#[derive(Clone, PartialEq, Message)]
struct Resources {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<Scope>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    events: Vec<Event>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(fixed64, tag = "1")]
    time: u64,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Number(f64),
}

impl KeyValue {
    pub(super) fn text(&self) -> String {
        match self.value.as_ref().and_then(|value| value.value.as_ref()) {
            None => String::new(),
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Boolean(value)) => value.to_string(),
            Some(Value::Integer(value)) => value.to_string(),
            Some(Value::Number(value)) => value.to_string(),
        }
    }
}

/// Returns the list of spans of a message of OTLP.
///
/// # Errors
///
/// If it is none.
pub(super) fn json(export: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let export = Export::decode(export)?;
    let mut spans = Vec::new();
    for one in &export.resources {
        let resource = one.resource.iter().flat_map(|one| &one.attributes);
        let service = find(resource, "service.name").unwrap_or_default();
        let of_scopes = one.scopes.iter().flat_map(|scope| &scope.spans);
        spans.extend(of_scopes.map(|one| span(one, &service)));
    }
    Ok(Json::Array(spans).to_string().into_bytes())
}

fn find<'a>(attributes: impl IntoIterator<Item = &'a KeyValue>, key: &str) -> Option<String> {
    let mut all = attributes.into_iter();
    all.find(|one| one.key == key).map(KeyValue::text)
}

fn span(span: &Span, service: &str) -> Json {
    let mut tags: Map<String, Json> = span
        .attributes
        .iter()
        .map(|one| (one.key.clone(), one.text().into()))
        .collect();
    if let Some(status) = span.status.as_ref().filter(|status| status.code == 2) {
        let kind = find(&span.attributes, "error.type").unwrap_or_default();
        let reason = [&*status.message, &kind, "true"];
        let reason = reason.into_iter().find(|text| !text.is_empty());
        tags.insert("otel.status_code".to_owned(), "ERROR".into());
        tags.insert("error".to_owned(), reason.into());
    }
    let events = span.events.iter();
    let events = events.map(|event| json!({"timestamp": event.time / 1_000, "value": event.name}));
    let mut whole = json!({
        "traceId": trace_id(&span.trace_id),
        "id": hex(&span.span_id),
        "name": span.name,
        "timestamp": span.start / 1_000,
        // zero means that it is unknown
        "duration": (span.end.saturating_sub(span.start) / 1_000).max(1),
        "localEndpoint": {"serviceName": service},
        "annotations": events.collect::<Vec<_>>(),
        "tags": tags,
    });
    let kind = match span.kind {
        2 => Some("SERVER"),
        3 => Some("CLIENT"),
        _ => None,
    };
    let parent = (!span.parent_id.is_empty()).then(|| hex(&span.parent_id));
    for (key, value) in [
        ("kind", kind.map(Json::from)),
        ("parentId", parent.map(Json::from)),
        ("remoteEndpoint", remote(&span.attributes)),
    ] {
        if let Some(value) = value {
            whole[key] = value;
        }
    }
    whole
}

/// The other end of the connection.
fn remote(attributes: &[KeyValue]) -> Option<Json> {
    let ip = find(attributes, "network.peer.address")?;
    let family = match ip.parse().ok()? {
        IpAddr::V4(_) => "ipv4",
        IpAddr::V6(_) => "ipv6",
    };
    let port: Option<u16> =
        find(attributes, "network.peer.port").and_then(|port| port.parse().ok());
    let mut remote = json!({ family: ip });
    if let Some(port) = port {
        remote["port"] = port.into();
    }
    Some(remote)
}

/// Digits of a trace id; 16 of one that has 64 bits.
fn trace_id(id: &[u8]) -> String {
    match id.split_at_checked(8) {
        Some((high, low)) if high.iter().all(|byte| *byte == 0) => hex(low),
        _ => hex(id),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
