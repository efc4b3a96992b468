//! Bodies of resources in Istio's control stream: conversion between binary protobuf and the JSON of Kubernetes
//! objects.
//!
//! A body comes with a type URL. Istio's kinds have messages of their own, with the schema in `proto/`; every other
//! kind is a `google.protobuf.Struct`. The JSON is the `spec` that an API server returns: names in lowerCamelCase,
//! durations as `1.5s`, numbers as numbers, unset fields omitted. Malformed input never panics. [`kubernetes`] reads
//! the protobuf of Kubernetes itself in the same way.

mod decode;
mod encode;
mod error;
mod forms;
pub mod kubernetes;
mod schema;

pub use decode::Decoded;
pub use error::{BODY_BYTES_MAX, BodyError};

use prost_reflect::DynamicMessage;
use prost_reflect::prost_types::Struct;
use serde_json::Value;

use crate::kind::Kind;
use schema::{STRUCT, message_of, type_name_of};

/// Prefix of the message name in type URLs that this module writes.
const URL_PREFIX: &str = "type.googleapis.com/";

/// Converts a body to JSON.
///
/// The part of `type_url` after the last `/` names the message. Messages of `istio.networking` and `istio.security` are
/// the same in every API version, so the name of each version is accepted.
///
/// # Errors
/// Returns an error if the type is unknown, or the body is too large, malformed, or has a value that JSON cannot
/// represent.
pub fn to_json(type_url: &str, value: &[u8]) -> Result<Decoded, BodyError> {
    let name = type_url.rsplit('/').next().unwrap_or_default();
    if value.len() > BODY_BYTES_MAX {
        return Err(BodyError::too_large(value.len()));
    }
    let malformed = |cause| BodyError::Malformed {
        name: name.to_owned(),
        cause,
    };
    if name == STRUCT {
        let body: Struct = prost_reflect::prost::Message::decode(value).map_err(malformed)?;
        return Ok(Decoded {
            spec: decode::structure(body)?,
            unknown: Vec::new(),
        });
    }
    let descriptor = message_of(name).ok_or_else(|| BodyError::UnknownType {
        type_url: type_url.to_owned(),
    })?;
    let message = DynamicMessage::decode(descriptor, value).map_err(malformed)?;
    decode::message(&message, "spec")
}

/// Converts the `spec` of an object to a body: its type URL and its bytes. Equal JSON gives equal bytes.
///
/// For Istio's kinds, `spec` is read as Istio reads YAML: durations in Go's syntax, enums by name or number, numbers
/// also as texts, field names also in snake_case, and null as unset.
///
/// # Errors
/// Returns an error if `spec` is not a mapping, a field is unknown or has the wrong type, or the body would be too
/// large.
pub fn from_json(kind: Kind, spec: &Value) -> Result<(String, Vec<u8>), BodyError> {
    let (name, bytes) = match type_name_of(kind) {
        Some(name) => {
            let descriptor = message_of(&name).expect("every kind's message is in the schema");
            (name, encode::message(&descriptor, spec)?)
        }
        None => (STRUCT.to_owned(), encode::structure(spec)?),
    };
    if bytes.len() > BODY_BYTES_MAX {
        return Err(BodyError::too_large(bytes.len()));
    }
    Ok((format!("{URL_PREFIX}{name}"), bytes))
}

#[cfg(test)]
mod tests;
