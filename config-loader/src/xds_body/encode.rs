//! JSON to protobuf messages. The bytes are written directly, because the maps of `DynamicMessage` are unordered.

mod scalar;

use prost_reflect::prost::Message;
use prost_reflect::prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::prost_types::value::Kind as StructKind;
use prost_reflect::prost_types::{ListValue, Struct, Value as StructValue};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::error::BodyError;

/// Maximum nesting depth of mappings and lists in a `google.protobuf.Struct`. Each level takes up to three messages,
/// and decoders reject more than a hundred nested ones.
const STRUCT_DEPTH_MAX: usize = 32;

/// Returns the bytes of a kind's message.
pub(super) fn message(descriptor: &MessageDescriptor, spec: &Value) -> Result<Vec<u8>, BodyError> {
    let mut path = "spec".to_owned();
    let object = mapping(spec, &path)?;
    message_at(descriptor, object, &mut path)
}

/// Returns the bytes of a `google.protobuf.Struct`.
pub(super) fn structure(spec: &Value) -> Result<Vec<u8>, BodyError> {
    let mut path = "spec".to_owned();
    let object = mapping(spec, &path)?;
    Ok(structure_at(object, &mut path, 1)?.encode_to_vec())
}

fn mapping<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, BodyError> {
    value.as_object().ok_or_else(|| {
        BodyError::value(path, format!("{} where a mapping is expected", what(value)))
    })
}

fn message_at(
    descriptor: &MessageDescriptor,
    object: &Map<String, Value>,
    path: &mut String,
) -> Result<Vec<u8>, BodyError> {
    let mut fields: Vec<(FieldDescriptor, Vec<u8>)> = Vec::new();
    for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let found = descriptor.get_field_by_json_name(name);
        let Some(field) = found.or_else(|| descriptor.get_field_by_name(name)) else {
            return Err(BodyError::value(
                &format!("{path}.{name}"),
                "Istio has no such field",
            ));
        };
        if let Some((other, _)) = fields.iter().find(|(other, _)| excludes(other, &field)) {
            let problem = format!("{} is set as well, and only one may be", other.json_name());
            return Err(BodyError::value(&format!("{path}.{name}"), problem));
        }
        let end = path.len();
        path.push('.');
        path.push_str(name);
        let bytes = field_at(&field, value, path)?;
        path.truncate(end);
        fields.push((field, bytes));
    }
    fields.sort_by_key(|(field, _)| field.number());
    Ok(fields.into_iter().flat_map(|(_, bytes)| bytes).collect())
}

/// Whether a message can have only one of two fields: they are the same field or members of the same oneof.
fn excludes(one: &FieldDescriptor, other: &FieldDescriptor) -> bool {
    let same_choice = || {
        one.containing_oneof()
            .is_some_and(|choice| other.containing_oneof() == Some(choice))
    };
    one.number() == other.number() || same_choice()
}

/// Returns a field with its keys. Empty if it has its default value and the message does not track presence.
fn field_at(
    field: &FieldDescriptor,
    value: &Value,
    path: &mut String,
) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::new();
    if field.is_map() {
        map_at(field, mapping(value, path)?, path, &mut bytes)?;
    } else if field.is_list() {
        let Some(items) = value.as_array() else {
            let problem = format!("{} where a list is expected", what(value));
            return Err(BodyError::value(path, problem));
        };
        list_at(field, items, path, &mut bytes)?;
    } else {
        let (wire, payload) = value_at(&field.kind(), value, path)?;
        if field.supports_presence() || !is_default(wire, &payload) {
            put(field.number(), wire, &payload, &mut bytes);
        }
    }
    Ok(bytes)
}

fn list_at(
    field: &FieldDescriptor,
    items: &[Value],
    path: &mut String,
    bytes: &mut Vec<u8>,
) -> Result<(), BodyError> {
    let mut packed = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let end = path.len();
        path.push_str(&format!("[{index}]"));
        let (wire, payload) = value_at(&field.kind(), item, path)?;
        path.truncate(end);
        if field.is_packed() {
            packed.extend(payload);
        } else {
            put(field.number(), wire, &payload, bytes);
        }
    }
    if !packed.is_empty() {
        put(field.number(), WireType::LengthDelimited, &packed, bytes);
    }
    Ok(())
}

/// Returns the entries of a map, sorted by key.
fn map_at(
    field: &FieldDescriptor,
    object: &Map<String, Value>,
    path: &mut String,
    bytes: &mut Vec<u8>,
) -> Result<(), BodyError> {
    let Kind::Message(entry) = field.kind() else {
        return Err(BodyError::value(path, "a map without entries"));
    };
    let (key_kind, value_kind) = (
        entry.map_entry_key_field().kind(),
        entry.map_entry_value_field().kind(),
    );
    let mut keys: Vec<&String> = object.keys().collect();
    keys.sort();
    for key in keys {
        let end = path.len();
        path.push('.');
        path.push_str(key);
        let (key_wire, key_payload) = value_at(&key_kind, &Value::String(key.clone()), path)?;
        let (wire, payload) = value_at(&value_kind, &object[key], path)?;
        path.truncate(end);
        let mut pair = Vec::new();
        put(1, key_wire, &key_payload, &mut pair);
        put(2, wire, &payload, &mut pair);
        put(field.number(), WireType::LengthDelimited, &pair, bytes);
    }
    Ok(())
}

/// Returns the payload of one value, without key and length.
fn value_at(
    kind: &Kind,
    value: &Value,
    path: &mut String,
) -> Result<(WireType, Vec<u8>), BodyError> {
    let Kind::Message(descriptor) = kind else {
        return scalar::encode(kind, value).map_err(|problem| BodyError::value(path, problem));
    };
    let name = descriptor.full_name();
    let payload = if name == "google.protobuf.Duration" {
        scalar::duration(value).map_err(|problem| BodyError::value(path, problem))?
    } else if name.starts_with("google.protobuf.") && name.ends_with("Value") {
        let Some(field) = descriptor.get_field_by_name("value") else {
            return Err(BodyError::value(path, format!("{name} is no wrapper")));
        };
        field_at(&field, value, path)?
    } else {
        message_at(descriptor, mapping(value, path)?, path)?
    };
    Ok((WireType::LengthDelimited, payload))
}

fn is_default(wire: WireType, payload: &[u8]) -> bool {
    payload.is_empty()
        || (wire != WireType::LengthDelimited && payload.iter().all(|byte| *byte == 0))
}

/// Appends the key, the length if the wire type has one, and the payload.
fn put(number: u32, wire: WireType, payload: &[u8], bytes: &mut Vec<u8>) {
    encode_key(number, wire, bytes);
    if wire == WireType::LengthDelimited {
        encode_varint(payload.len() as u64, bytes);
    }
    bytes.extend_from_slice(payload);
}

fn structure_at(
    object: &Map<String, Value>,
    path: &mut String,
    depth: usize,
) -> Result<Struct, BodyError> {
    let mut body = Struct::default();
    for (key, value) in object {
        let end = path.len();
        path.push('.');
        path.push_str(key);
        let value = structure_value(value, path, depth)?;
        path.truncate(end);
        body.fields.insert(key.clone(), value);
    }
    Ok(body)
}

fn structure_value(
    value: &Value,
    path: &mut String,
    depth: usize,
) -> Result<StructValue, BodyError> {
    if depth > STRUCT_DEPTH_MAX {
        let problem = format!("more than {STRUCT_DEPTH_MAX} levels of mappings and lists");
        return Err(BodyError::value(path, problem));
    }
    let kind = match value {
        Value::Null => StructKind::NullValue(0),
        Value::Bool(value) => StructKind::BoolValue(*value),
        Value::Number(number) => StructKind::NumberValue(
            scalar::exact_double(number).map_err(|problem| BodyError::value(path, problem))?,
        ),
        Value::String(value) => StructKind::StringValue(value.clone()),
        Value::Array(items) => {
            let mut list = ListValue::default();
            for (index, item) in items.iter().enumerate() {
                let end = path.len();
                path.push_str(&format!("[{index}]"));
                list.values.push(structure_value(item, path, depth + 1)?);
                path.truncate(end);
            }
            StructKind::ListValue(list)
        }
        Value::Object(object) => StructKind::StructValue(structure_at(object, path, depth + 1)?),
    };
    Ok(StructValue { kind: Some(kind) })
}

/// Returns the name of a JSON value's type, for messages.
fn what(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
