//! Objects in the protobuf of Kubernetes, in which its clients send the kinds that it has itself.

use k8s_openapi::jiff::Timestamp;
use prost_reflect::{DynamicMessage, ReflectMessage};
use serde_json::Value;

use super::decode;
use super::error::{BODY_BYTES_MAX, BodyError};
use super::schema::pool;

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The kinds that are read.
const KINDS: [&str; 9] = [
    "DeleteOptions",
    "EndpointSlice",
    "Lease",
    "Namespace",
    "Secret",
    "SelfSubjectAccessReview",
    "SelfSubjectReview",
    "SelfSubjectRulesReview",
    "Service",
];

/// The JSON of the object in a body. Fields that the schema does not know are left out, as an API server does that is
/// older than its client.
///
/// # Errors
/// If its kind is not read in protobuf, or the bytes are too many or no object.
pub fn to_json(body: &[u8]) -> Result<Value, BodyError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(BodyError::too_large(body.len()));
    }
    let body = body.strip_prefix(MAGIC);
    let body = body.ok_or_else(|| BodyError::value("body", "it does not begin with `k8s\\0`"))?;
    let envelope = decoded("Unknown", body)?;
    let of = envelope.get_field_by_name("typeMeta");
    let of = of.as_ref().and_then(|of| of.as_message());
    let of = of.map_or_else(
        || Ok(Value::Null),
        |of| decode::message(of, "typeMeta").map(|of| of.spec),
    )?;
    let kind = of["kind"].as_str().unwrap_or_default();
    if !KINDS.contains(&kind) {
        return Err(BodyError::UnknownType {
            type_url: kind.to_owned(),
        });
    }
    let raw = envelope.get_field_by_name("raw");
    let raw = raw.as_ref().and_then(|raw| raw.as_bytes());
    let message = decoded(kind, raw.map_or(&[][..], |raw| raw))?;
    let mut object = decode::message(&message, kind)?.spec;
    for field in ["apiVersion", "kind"] {
        object[field] = of[field].clone();
    }
    Ok(object)
}

fn decoded(name: &str, bytes: &[u8]) -> Result<DynamicMessage, BodyError> {
    let descriptor = pool().get_message_by_name(&format!("kubernetes.{name}"));
    let descriptor = descriptor.ok_or_else(|| BodyError::UnknownType {
        type_url: name.to_owned(),
    })?;
    DynamicMessage::decode(descriptor, bytes).map_err(|cause| BodyError::Malformed {
        name: name.to_owned(),
        cause,
    })
}

/// The JSON of a message that has a form of its own, which is null where it is left out; none for other messages.
pub(super) fn plain(message: &DynamicMessage) -> Option<Result<Value, &'static str>> {
    let descriptor = message.descriptor();
    let short = descriptor.full_name().strip_prefix("kubernetes.")?;
    let field = |name: &str| message.get_field_by_name(name);
    match short {
        "Time" => Some(time(message, "%Y-%m-%dT%H:%M:%SZ")),
        "MicroTime" => Some(time(message, "%Y-%m-%dT%H:%M:%S.%6fZ")),
        "IntOrString" if field("type")?.as_i64() == Some(0) => {
            // The port of a container that is not set.
            let number = field("intVal")?.as_i32().filter(|number| *number != 0);
            Some(Ok(number.map_or(Value::Null, Value::from)))
        }
        "IntOrString" => Some(Ok(field("strVal")?.as_str()?.into())),
        "FieldsV1" => {
            let raw = field("Raw")?;
            let raw = raw.as_bytes().filter(|raw| !raw.is_empty());
            let json = raw.map(|raw| serde_json::from_slice(raw).map_err(|_| "no JSON"));
            Some(json.unwrap_or(Ok(Value::Null)))
        }
        _ => None,
    }
}

fn time(message: &DynamicMessage, format: &str) -> Result<Value, &'static str> {
    let number = |name: &str| message.get_field_by_name(name);
    let seconds = number("seconds").and_then(|seconds| seconds.as_i64());
    let nanos = number("nanos").and_then(|nanos| nanos.as_i32());
    if !message.has_field_by_name("seconds") {
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds.unwrap_or(0), nanos.unwrap_or(0));
    let time = time.map_err(|_| "a time out of range")?;
    Ok(time.strftime(format).to_string().into())
}
