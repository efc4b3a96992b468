//! The metadata of an object.

use serde_json::{Map, Value};

/// The most bytes of all annotations of an object.
pub const ANNOTATION_BYTES_MAX: usize = 256 << 10;

/// The metadata; null if there is none.
pub fn metadata(object: &Value) -> &Value {
    &object["metadata"]
}

/// The metadata, made if there is none.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
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

/// A text in the metadata; empty if it is absent.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object)[field].as_str().unwrap_or("")
}
