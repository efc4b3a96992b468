//! Conversion of protobuf messages to JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost_types::value::Kind as StructKind;
use prost_reflect::prost_types::{Struct, Value as StructValue};
use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    ReflectMessage, Value as Field,
};
use serde_json::{Map, Number, Value};

use super::error::BodyError;
use super::forms;

/// Body converted to JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// `spec` of the object, a mapping.
    pub spec: Value,
    /// Fields and values that the schema does not have, for example from a newer version of Istio: `field 9 of
    /// spec.http[0].retries`. Unknown fields are not in `spec`; unknown values are, as numbers.
    pub unknown: Vec<String>,
}

/// Maximum number of unknown fields that are listed. Further ones are only counted.
const UNKNOWN_MAX: usize = 32;

/// Largest integer up to which a double represents every integer exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Maximum duration of protobuf in seconds, about 10,000 years.
const SECONDS_MAX: i64 = 315_576_000_000;

/// Converts a kind's message to JSON. Errors contain `path`.
pub(super) fn message(message: &DynamicMessage, path: &str) -> Result<Decoded, BodyError> {
    let mut reader = Reader {
        path: path.to_owned(),
        unknown: Vec::new(),
        unlisted: 0,
    };
    let spec = reader.message(message)?;
    let mut unknown = reader.unknown;
    if reader.unlisted > 0 {
        unknown.push(format!("{} more", reader.unlisted));
    }
    Ok(Decoded { spec, unknown })
}

/// Converts a `google.protobuf.Struct` to JSON.
pub(super) fn structure(body: Struct) -> Result<Value, BodyError> {
    structure_at(body, &mut "spec".to_owned())
}

struct Reader {
    path: String,
    unknown: Vec<String>,
    /// Number of unknown fields that are not listed.
    unlisted: usize,
}

impl Reader {
    fn message(&mut self, message: &DynamicMessage) -> Result<Value, BodyError> {
        for field in message.unknown_fields() {
            self.note_unknown("field", field.number().into());
        }
        let mut object = Map::new();
        for (field, value) in message.fields() {
            let name = field.json_name();
            let end = self.enter(&format!(".{name}"));
            let value = match value {
                Field::List(items) => self.list(items, &field.kind())?,
                Field::Map(entries) => {
                    let Kind::Message(entry) = field.kind() else {
                        return Err(BodyError::value(&self.path, "a map without entries"));
                    };
                    let mut entries: Vec<_> = entries.iter().collect();
                    entries.sort_by_key(|(key, _)| *key);
                    self.map(&entries, &entry.map_entry_value_field().kind())?
                }
                value => self.value(value, &field.kind())?,
            };
            self.path.truncate(end);
            if !value.is_null() {
                object.insert(name.to_owned(), value);
            }
        }
        Ok(Value::Object(object))
    }

    fn list(&mut self, items: &[Field], kind: &Kind) -> Result<Value, BodyError> {
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let end = self.enter(&format!("[{index}]"));
            list.push(self.value(item, kind)?);
            self.path.truncate(end);
        }
        Ok(Value::Array(list))
    }

    fn map(&mut self, entries: &[(&MapKey, &Field)], kind: &Kind) -> Result<Value, BodyError> {
        let mut object = Map::new();
        for (key, value) in entries {
            let key = key_text(key);
            let end = self.enter(&format!(".{key}"));
            let value = self.value(value, kind)?;
            self.path.truncate(end);
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }

    fn value(&mut self, value: &Field, kind: &Kind) -> Result<Value, BodyError> {
        Ok(match value {
            Field::Bool(value) => Value::Bool(*value),
            Field::I32(value) => Value::from(*value),
            Field::I64(value) => Value::from(*value),
            Field::U32(value) => Value::from(*value),
            Field::U64(value) => Value::from(*value),
            Field::F32(value) => number(f64::from(*value), &self.path)?,
            Field::F64(value) => number(*value, &self.path)?,
            Field::String(value) => Value::String(value.clone()),
            Field::Bytes(value) => Value::String(STANDARD.encode(value)),
            Field::EnumNumber(number) => match kind {
                Kind::Enum(descriptor) => self.enum_value(*number, descriptor),
                _ => Value::from(*number),
            },
            Field::Message(message) => self.known_message(message)?,
            Field::List(_) | Field::Map(_) => {
                return Err(BodyError::value(&self.path, "a list within a list"));
            }
        })
    }

    /// Returns the name of an enum value. An unknown value stays a number, which the checks of the kind reject;
    /// omitting it would mean the default.
    fn enum_value(&mut self, number: i32, descriptor: &EnumDescriptor) -> Value {
        match descriptor.get_value(number) {
            Some(value) => Value::String(value.name().to_owned()),
            None => {
                self.note_unknown("value", number.into());
                Value::from(number)
            }
        }
    }

    /// Converts a message, with its special JSON form if it has one.
    fn known_message(&mut self, message: &DynamicMessage) -> Result<Value, BodyError> {
        let descriptor = message.descriptor();
        let name = descriptor.full_name();
        if name == "google.protobuf.Duration" {
            return duration(message)
                .map(Value::String)
                .ok_or_else(|| BodyError::value(&self.path, "a duration out of range"));
        }
        if let Some(value) = forms::plain(message) {
            return value.map_err(|problem| BodyError::value(&self.path, problem));
        }
        let Some(field) = wrapped(name, &descriptor) else {
            return self.message(message);
        };
        let value = message.get_field(&field);
        self.value(&value, &field.kind())
    }

    fn note_unknown(&mut self, what: &str, number: i64) {
        if self.unknown.len() < UNKNOWN_MAX {
            self.unknown
                .push(format!("{what} {number} of {}", self.path));
        } else {
            self.unlisted += 1;
        }
    }

    /// Appends a part to the path. Returns the length to truncate to afterwards.
    fn enter(&mut self, part: &str) -> usize {
        let end = self.path.len();
        self.path.push_str(part);
        end
    }
}

/// Returns the only field of a wrapper such as `google.protobuf.UInt32Value`; `None` for other messages.
fn wrapped(name: &str, descriptor: &MessageDescriptor) -> Option<FieldDescriptor> {
    let short = name.strip_prefix("google.protobuf.")?;
    short
        .ends_with("Value")
        .then(|| descriptor.get_field_by_name("value"))?
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

/// Formats a duration as `1.5s`, with the necessary decimal places; `None` if it is out of range or its signs differ.
fn duration(message: &DynamicMessage) -> Option<String> {
    let seconds = message.get_field_by_name("seconds")?.as_i64()?;
    let nanos = message.get_field_by_name("nanos")?.as_i32()?;
    let is_sound = seconds.abs_diff(0) <= SECONDS_MAX.unsigned_abs()
        && nanos.unsigned_abs() < 1_000_000_000
        && i64::from(nanos.signum()) * seconds.signum() >= 0;
    if !is_sound {
        return None;
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let fraction = format!("{:09}", nanos.unsigned_abs());
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!(
        "{sign}{}{point}{fraction}s",
        seconds.unsigned_abs()
    ))
}

/// Converts a double to a JSON number: an integer if it is whole, because `80` was an integer before the conversion.
fn number(value: f64, path: &str) -> Result<Value, BodyError> {
    let is_negative_zero = value == 0.0 && value.is_sign_negative();
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX && !is_negative_zero {
        return Ok(Value::from(value as i64));
    }
    Number::from_f64(value)
        .map(Value::Number)
        .ok_or_else(|| BodyError::value(path, format!("{value} is no number of JSON")))
}

fn structure_at(body: Struct, path: &mut String) -> Result<Value, BodyError> {
    let mut object = Map::new();
    for (key, value) in body.fields {
        let end = path.len();
        path.push('.');
        path.push_str(&key);
        object.insert(key, structure_value(value, path)?);
        path.truncate(end);
    }
    Ok(Value::Object(object))
}

fn structure_value(value: StructValue, path: &mut String) -> Result<Value, BodyError> {
    Ok(match value.kind {
        None | Some(StructKind::NullValue(_)) => Value::Null,
        Some(StructKind::BoolValue(value)) => Value::Bool(value),
        Some(StructKind::NumberValue(value)) => number(value, path)?,
        Some(StructKind::StringValue(value)) => Value::String(value),
        Some(StructKind::StructValue(value)) => structure_at(value, path)?,
        Some(StructKind::ListValue(list)) => {
            let mut items = Vec::with_capacity(list.values.len());
            for (index, item) in list.values.into_iter().enumerate() {
                let end = path.len();
                path.push_str(&format!("[{index}]"));
                items.push(structure_value(item, path)?);
                path.truncate(end);
            }
            Value::Array(items)
        }
    })
}
