//! Text of an object, formatted like `kubectl get -o json`, so that the lines of diagnostics match its output.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Serializer, Value};

/// Returns the text of an object.
///
/// # Errors
/// If the object cannot be written as JSON.
pub(in crate::source) fn of_object(mut object: Value) -> Result<String, serde_json::Error> {
    object.sort_all_objects();
    let mut text = Vec::new();
    let layout = PrettyFormatter::with_indent(b"    ");
    object.serialize(&mut Serializer::with_formatter(&mut text, layout))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}
