//! Kubernetes messages with a special JSON form.

use k8s_openapi::jiff::Timestamp;
use prost_reflect::{DynamicMessage, ReflectMessage};
use serde_json::Value;

/// Converts a message with a special JSON form; null means that the field is omitted. `None` for other messages.
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
