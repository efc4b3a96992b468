//! Decoding of request bodies.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config_loader::diagnostic::Locator;
use config_loader::parse;
use config_loader::span::Lines;
use serde_json::{Map, Value};

use super::protobuf;
use super::route::Target;
use super::typed;
use crate::object;
use crate::status::Failure;

/// Returns the media type of a `Content-Type`, without its parameters.
pub fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or("").trim()
}

/// Decodes an object or options from a body.
///
/// # Errors
/// 415 if the media type is not supported, 400 if the body is malformed.
pub fn body(content_type: &str, bytes: &[u8]) -> Result<Value, Failure> {
    match media_type(content_type) {
        "" | "application/json" | "*/*" => serde_json::from_slice(bytes).map_err(|error| {
            Failure::bad_request(format!(
                "the body of the request is malformed JSON: {error}"
            ))
        }),
        "application/yaml" | "application/apply-patch+yaml" => yaml(bytes),
        protobuf::MEDIA_TYPE => protobuf::object(bytes),
        other => {
            let message = format!(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml, application/vnd.kubernetes.protobuf; not {other}"
            );
            let code = http::StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(Failure::new(code, "UnsupportedMediaType", message))
        }
    }
}

/// Parses one document of YAML or JSON.
///
/// # Errors
/// 400 if the document is malformed.
pub fn yaml(bytes: &[u8]) -> Result<Value, Failure> {
    let malformed = |why: &str| Failure::bad_request(format!("error decoding YAML: {why}"));
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("the body is not UTF-8"))?;
    let file: Arc<str> = Arc::from("body");
    let lines = Lines::new(text);
    let locator = Locator {
        file: &file,
        text,
        lines: &lines,
        first_line: 1,
        secret: true,
        bool_keys: false,
    };
    let mut found = Vec::new();
    let tree = parse::tree(&locator, &mut found);
    match (tree, found.first()) {
        (Some(tree), None) => Ok(tree.to_json()),
        (_, Some(first)) => Err(malformed(&first.message)),
        (None, None) => Err(malformed("the body has no document")),
    }
}

/// Checks that a body is an object of the resource and namespace in the path, and sets the name from the path.
///
/// # Errors
/// 400 if the body does not match the path.
pub fn fits(object: &mut Value, target: &Target) -> Result<(), Failure> {
    if object.is_object() && target.resource.is_of_kubernetes() {
        // Kubernetes fills in both fields for built-in kinds, since its typed clients omit them.
        for (field, value) in [
            ("kind", target.resource.kind.to_owned()),
            ("apiVersion", target.api_version()),
        ] {
            if object[field].is_null() {
                object[field] = value.into();
            }
        }
    }
    if target.resource.is_secret() {
        take_string_data(object);
    }
    let text = |field: &str| object[field].as_str().unwrap_or("");
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if !object.is_object() || kind.is_empty() {
        return Err(Failure::bad_request(
            "Object 'Kind' is missing in the body of the request",
        ));
    }
    if api_version.is_empty() {
        return Err(Failure::bad_request(
            "Object 'apiVersion' is missing in the body of the request",
        ));
    }
    let expected = target.api_version();
    if api_version != expected {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if kind != target.resource.kind {
        return Err(Failure::bad_request(format!(
            "the kind in the data ({kind}) does not match the expected kind ({})",
            target.resource.kind
        )));
    }
    typed::check(object, target.resource)?;
    let namespace = object::meta(object, "namespace");
    let of_path = target.namespace.as_deref().unwrap_or("");
    if !namespace.is_empty() && namespace != of_path {
        return Err(Failure::bad_request(format!(
            "the namespace of the provided object does not match the namespace sent on the request ({namespace}, {of_path})"
        )));
    }
    let Some(wanted) = target.name.as_deref() else {
        return Ok(());
    };
    let name = object::meta(object, "name");
    if !name.is_empty() && name != wanted {
        return Err(Failure::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({wanted})"
        )));
    }
    let metadata = object::metadata_mut(object);
    metadata.insert("name".to_owned(), wanted.into());
    Ok(())
}

/// Moves `stringData` of a Secret, which is write-only, to `data`.
fn take_string_data(object: &mut Value) {
    let Some(Value::Object(texts)) = object.get_mut("stringData").map(Value::take) else {
        return;
    };
    object::remove(object, "stringData");
    if !object["data"].is_object() {
        object["data"] = Value::Object(Map::new());
    }
    for (name, text) in texts {
        // Values that are not strings are left to validation.
        object["data"][name] = match text {
            Value::String(text) => STANDARD.encode(text).into(),
            other => other,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_becomes_json() {
        let read = yaml(b"a: [1, 2.5, x, null]\nb: {c: true}\n").unwrap();
        assert_eq!(read, json!({"a": [1, 2.5, "x", null], "b": {"c": true}}));
        assert!(yaml(b"a: [").is_err());
        assert!(yaml(b"a: 1\na: 2\n").is_err());
    }

    #[test]
    fn aliases_that_expand_to_megabytes_are_400() {
        let text = "x".repeat(40_000);
        let body = format!("a: &a {text}\nb: [{}]\n", "*a, ".repeat(10_000));
        let refused = yaml(body.as_bytes()).unwrap_err();
        assert_eq!(refused.code, 400);
        let message = "the aliases of this document expand to more than 4194304 bytes";
        assert!(refused.message.contains(message), "{}", refused.message);
    }

    #[test]
    fn unknown_media_type_is_415() {
        assert_eq!(body("text/html", b"x").unwrap_err().code, 415);
    }
}
