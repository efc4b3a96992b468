//! Access to the metadata of an object.

use serde_json::{Map, Value};

/// Maximum size of all annotations of an object, in bytes.
pub(crate) const ANNOTATION_BYTES_MAX: usize = 256 << 10;

/// Returns the metadata; null if absent.
pub(crate) fn metadata(object: &Value) -> &Value {
    &object["metadata"]
}

/// Returns the metadata, and creates it if absent.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(map) => map,
        _ => unreachable!("made above"),
    }
}

/// Returns a string field of the metadata; empty if absent.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object)[field].as_str().unwrap_or("")
}
