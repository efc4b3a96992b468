//! JSON patches (RFC 6902), applied operation by operation to limit the size that copies add.

use std::io;

use http::StatusCode;
use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::status::Failure;

/// Maximum number of operations of a patch, as in Kubernetes.
const OPERATIONS_MAX: usize = 10_000;

/// Maximum number of bytes that all copy operations of a patch add, as in Kubernetes.
const COPIED_BYTES_MAX: usize = 3 << 20;

/// Parses a patch.
///
/// # Errors
/// 400 if the patch is malformed, 413 if it has too many operations.
pub(super) fn read(patch: Value) -> Result<Patch, Failure> {
    let patch: Patch = serde_json::from_value(patch)
        .map_err(|error| Failure::bad_request(format!("malformed JSON patch: {error}")))?;
    let count = patch.0.len();
    if count > OPERATIONS_MAX {
        return Err(too_large(format!(
            "the allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}"
        )));
    }
    Ok(patch)
}

/// Returns the object after a patch.
///
/// # Errors
/// 422 if an operation fails, 413 if copies exceed the limit.
pub(super) fn apply(patch: &Patch, object: &Value) -> Result<Value, Failure> {
    let mut object = object.clone();
    let mut copied = 0;
    for operation in &patch.0 {
        if let PatchOperation::Copy(copy) = operation {
            copied += object.pointer(copy.from.as_str()).map_or(0, size);
            if copied > COPIED_BYTES_MAX {
                return Err(too_large(format!(
                    "unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit \
                     {COPIED_BYTES_MAX}"
                )));
            }
        }
        json_patch::patch(&mut object, std::slice::from_ref(operation)).map_err(|error| {
            Failure::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid",
                error.to_string(),
            )
        })?;
    }
    Ok(object)
}

fn too_large(message: String) -> Failure {
    let code = StatusCode::PAYLOAD_TOO_LARGE;
    Failure::new(code, "RequestEntityTooLarge", message)
}

/// Returns the size of a value as JSON, in bytes.
fn size(value: &Value) -> usize {
    let mut count = Count(0);
    // Writes to the counter cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_that_double_an_object_end_at_the_bound() {
        let copy = |number| json!({"op": "copy", "from": "/a", "path": format!("/a/{number}")});
        let patch: Vec<_> = (0..40).map(copy).collect();
        let object = json!({"a": {"text": "x".repeat(100)}});
        let few = read(json!(patch[..3])).unwrap();
        assert!(size(&apply(&few, &object).unwrap()) > 800);
        let failure = apply(&read(json!(patch)).unwrap(), &object).unwrap_err();
        assert_eq!(failure.code, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn patch_has_a_bound_of_operations() {
        let test = json!({"op": "test", "path": "/a", "value": 1});
        let patch = |count: usize| Value::Array(vec![test.clone(); count]);
        let read_all = read(patch(OPERATIONS_MAX)).unwrap();
        let object = json!({"a": 1});
        assert_eq!(apply(&read_all, &object).unwrap(), object);
        let failure = read(patch(OPERATIONS_MAX + 1)).unwrap_err();
        assert_eq!(failure.code, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn operation_that_cannot_be_made_is_refused() {
        let patch = json!([{"op": "remove", "path": "/b"}]);
        let failure = apply(&read(patch).unwrap(), &json!({"a": 1})).unwrap_err();
        assert_eq!(failure.code, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(read(json!({})).unwrap_err().code, StatusCode::BAD_REQUEST);
    }
}
