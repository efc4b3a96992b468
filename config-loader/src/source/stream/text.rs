//! The text of an object: the one that `kubectl get -o json` prints, so that the lines of findings can be found there.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Serializer, Value};

/// The text of an object.
///
/// # Errors
/// If it cannot be written as JSON, in words.
pub(in crate::source) fn of_object(mut object: Value) -> Result<String, serde_json::Error> {
    object.sort_all_objects();
    let mut text = Vec::new();
    let layout = PrettyFormatter::with_indent(b"    ");
    object.serialize(&mut Serializer::with_formatter(&mut text, layout))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}
