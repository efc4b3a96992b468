//! OpenAPI v2 document in protobuf (`openapi.v2.Document` of gnostic). kubectl accepts no other form of it to validate
//! the items of a `List` before it sends them.

use prost::Message;
use serde_json::{Map, Value};

/// Media type in `Accept` headers of clients.
pub const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Media type of the response, since `@` is not allowed in a media type.
pub const CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

#[derive(Clone, PartialEq, Message)]
struct Document {
    #[prost(string, tag = "1")]
    swagger: String,
    #[prost(message, optional, tag = "2")]
    info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    definitions: Option<Properties>,
}

#[derive(Clone, PartialEq, Message)]
struct Info {
    #[prost(string, tag = "1")]
    title: String,
    #[prost(string, tag = "2")]
    version: String,
}

/// Empty `Paths`, which clients do not read.
#[derive(Clone, PartialEq, Message)]
struct Paths {}

/// `Definitions` and `Properties`, which have the same form.
#[derive(Clone, PartialEq, Message)]
struct Properties {
    #[prost(message, repeated, tag = "1")]
    named: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedSchema {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct Schema {
    #[prost(string, tag = "1")]
    reference: String,
    #[prost(string, tag = "2")]
    format: String,
    #[prost(string, tag = "4")]
    description: String,
    #[prost(message, optional, boxed, tag = "21")]
    additional_properties: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    types: Option<Types>,
    #[prost(message, optional, tag = "23")]
    items: Option<Items>,
    #[prost(message, repeated, tag = "24")]
    all_of: Vec<Schema>,
    #[prost(message, optional, tag = "25")]
    properties: Option<Properties>,
    #[prost(message, repeated, tag = "31")]
    extensions: Vec<Extension>,
}

#[derive(Clone, PartialEq, Message)]
struct AdditionalProperties {
    #[prost(message, optional, boxed, tag = "1")]
    schema: Option<Box<Schema>>,
}

#[derive(Clone, PartialEq, Message)]
struct Types {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Items {
    #[prost(message, repeated, tag = "1")]
    schemas: Vec<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct Extension {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<ExtensionValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ExtensionValue {
    #[prost(string, tag = "2")]
    yaml: String,
}

/// Encodes a document as protobuf.
pub fn encode(document: &Value) -> Vec<u8> {
    Document {
        swagger: text(document, "swagger"),
        info: Some(Info {
            title: text(&document["info"], "title"),
            version: text(&document["info"], "version"),
        }),
        paths: Some(Paths {}),
        definitions: document["definitions"].as_object().map(properties),
    }
    .encode_to_vec()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or("").to_owned()
}

fn properties(map: &Map<String, Value>) -> Properties {
    let named = map.iter().map(|(name, value)| NamedSchema {
        name: name.clone(),
        value: Some(schema(value)),
    });
    Properties {
        named: named.collect(),
    }
}

fn schema(value: &Value) -> Schema {
    let fields = value.as_object().into_iter().flatten();
    let extensions = fields.filter(|(name, _)| name.starts_with("x-"));
    let extensions = extensions.map(|(name, value)| Extension {
        name: name.clone(),
        // JSON is a subset of YAML.
        value: Some(ExtensionValue {
            yaml: value.to_string(),
        }),
    });
    let inner = |field: &str| {
        value
            .get(field)
            .filter(|inner| inner.is_object())
            .map(schema)
    };
    let all_of = value["allOf"].as_array().into_iter().flatten();
    Schema {
        reference: text(value, "$ref"),
        format: text(value, "format"),
        description: text(value, "description"),
        additional_properties: inner("additionalProperties").map(|schema| {
            Box::new(AdditionalProperties {
                schema: Some(Box::new(schema)),
            })
        }),
        types: value["type"].as_str().map(|name| Types {
            names: vec![name.to_owned()],
        }),
        items: inner("items").map(|schema| Items {
            schemas: vec![schema],
        }),
        all_of: all_of.map(schema).collect(),
        properties: value["properties"].as_object().map(properties),
        extensions: extensions.collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_keep_what_kubectl_reads() {
        let document = json!({"swagger": "2.0", "info": {"title": "a", "version": "1"}, "definitions": {
            "A": {
                "type": "object", "x-kubernetes-group-version-kind": [{"kind": "A"}],
                "properties": {
                    "list": {"type": "array", "items": {"type": "number"}},
                    "map": {"type": "object", "additionalProperties": {"$ref": "#/definitions/B"}},
                    "any": {},
                },
            },
        }});
        let read = Document::decode(&*encode(&document)).unwrap();
        let schema = read.definitions.unwrap().named.remove(0).value.unwrap();
        assert_eq!(schema.types.unwrap().names, ["object"]);
        let extension = schema.extensions[0].value.as_ref().unwrap();
        assert_eq!(extension.yaml, "[{\"kind\":\"A\"}]");
        let named = schema.properties.unwrap().named;
        let of = |name: &str| {
            let found = named.iter().find(|one| one.name == name);
            found.unwrap().value.clone().unwrap()
        };
        let item = of("list").items.unwrap().schemas.remove(0);
        assert_eq!(item.types.unwrap().names, ["number"]);
        let value = of("map").additional_properties.unwrap().schema.unwrap();
        assert_eq!(value.reference, "#/definitions/B");
        assert_eq!(of("any"), Schema::default());
    }
}
