//! Kubernetes protobuf format, in which Kubernetes clients send built-in kinds.

use prost_reflect::DynamicMessage;
use serde_json::Value;

use super::decode;
use super::error::{BODY_BYTES_MAX, BodyError};
use super::schema::pool;

/// Prefix of every body.
const MAGIC: &[u8] = b"k8s\0";

/// Supported kinds.
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

/// Converts the object in a body to JSON. Unknown fields are dropped, as an API server does that is older than its
/// client.
///
/// # Errors
/// Returns an error if the kind is not supported in protobuf, or the body is too large or malformed.
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
