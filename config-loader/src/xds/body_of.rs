//! Conversion between Kubernetes objects and MCP resources.

use std::collections::HashMap;

use prost::Message;
use prost_types::Any;
use serde_json::{Map, Value, json};

use super::MCP_RESOURCE;
use super::messages::{McpMetadata, McpResource};
use super::types::ResourceType;
use crate::kind::Kind;
use crate::xds_body;

/// Whether a field of an object is part of the content of a kind without `spec`. Of a pod that includes the status: its
/// addresses and whether it is ready.
fn is_content(kind: Kind, field: &str) -> bool {
    match field {
        "apiVersion" | "kind" | "metadata" => false,
        "status" => kind == Kind::Pod,
        _ => true,
    }
}

/// Converts a resource to an object. Also returns its unknown fields.
///
/// # Errors
/// Returns a message if the resource cannot be read.
pub fn object_of(
    of: &ResourceType,
    resource: &McpResource,
) -> Result<(Value, Vec<String>), String> {
    let metadata = resource.metadata.as_ref().ok_or("it has no metadata")?;
    let (namespace, name) = match metadata.name.split_once('/') {
        Some((namespace, name)) => (namespace, name),
        None => ("", &*metadata.name),
    };
    if name.is_empty() {
        return Err("its metadata has no name".to_owned());
    }
    let body = resource.body.as_ref().ok_or("it has no body")?;
    let decoded =
        xds_body::to_json(&body.type_url, &body.value).map_err(|error| error.to_string())?;
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), json!(of.api_version));
    object.insert("kind".to_owned(), json!(of.kind().as_str()));
    object.insert(
        "metadata".to_owned(),
        metadata_of(metadata, namespace, name),
    );
    match (of.has_spec(), decoded.spec) {
        (true, spec) => _ = object.insert("spec".to_owned(), spec),
        (false, Value::Object(fields)) => {
            let fields = fields.into_iter();
            object.extend(fields.filter(|(name, _)| is_content(of.kind(), name)));
        }
        (false, _) => return Err("its body is no object".to_owned()),
    }
    Ok((Value::Object(object), decoded.unknown))
}

fn metadata_of(metadata: &McpMetadata, namespace: &str, name: &str) -> Value {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!(name));
    if !namespace.is_empty() {
        fields.insert("namespace".to_owned(), json!(namespace));
    }
    for (key, map) in [
        ("labels", &metadata.labels),
        ("annotations", &metadata.annotations),
    ] {
        if !map.is_empty() {
            fields.insert(key.to_owned(), json!(map));
        }
    }
    if let Some(time) = &metadata.create_time {
        fields.insert("creationTimestamp".to_owned(), json!(time.to_string()));
    }
    if !metadata.version.is_empty() {
        fields.insert("resourceVersion".to_owned(), json!(metadata.version));
    }
    Value::Object(fields)
}

/// Returns the name of an object within its type: `NAMESPACE/NAME`.
fn name_of(metadata: &Value) -> String {
    let name = metadata["name"].as_str().unwrap_or_default();
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// Converts an object to a resource. Also returns its name.
///
/// # Errors
/// Returns a message if the object cannot be converted.
pub fn resource_of(of: &ResourceType, object: &Value) -> Result<(String, Any), String> {
    let metadata = &object["metadata"];
    let texts = |key: &str| -> HashMap<String, String> {
        let map = metadata[key].as_object().into_iter().flatten();
        map.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())))
            .collect()
    };
    let content = match of.has_spec() {
        true => object.get("spec").cloned().unwrap_or_else(|| json!({})),
        false => {
            let fields = object.as_object().into_iter().flatten();
            let fields = fields.filter(|(name, _)| is_content(of.kind(), name));
            Value::Object(
                fields
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        }
    };
    let body = xds_body::from_json(of.kind(), &content).map_err(|error| error.to_string())?;
    let created = metadata["creationTimestamp"].as_str();
    let name = name_of(metadata);
    let resource = McpResource {
        metadata: Some(McpMetadata {
            name: name.clone(),
            create_time: created.and_then(|text| text.parse().ok()),
            version: metadata["resourceVersion"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            labels: texts("labels"),
            annotations: texts("annotations"),
        }),
        body: Some(Any {
            type_url: body.0,
            value: body.1,
        }),
    };
    let any = Any {
        type_url: MCP_RESOURCE.to_owned(),
        value: resource.encode_to_vec(),
    };
    Ok((name, any))
}

#[cfg(test)]
mod tests {
    use super::super::types::resource_type;
    use super::*;

    #[test]
    fn pod_keeps_its_status_and_a_service_does_not() {
        for (kind, keeps) in [("Pod", true), ("Service", false)] {
            let of = resource_type(&format!("core/v1/{kind}")).unwrap();
            let object = json!({
                "apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "shop"},
                "spec": {"nodeName": "n1"}, "status": {"podIP": "10.0.0.1"},
            });
            let (name, any) = resource_of(&of, &object).unwrap();
            assert_eq!(name, "shop/a");
            let resource = McpResource::decode(&*any.value).unwrap();
            let (read, unknown) = object_of(&of, &resource).unwrap();
            assert!(unknown.is_empty());
            assert_eq!(read["spec"], object["spec"]);
            assert_eq!(read.get("status").is_some(), keeps, "{read}");
        }
    }
}
