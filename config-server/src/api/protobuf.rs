//! Objects in protobuf, as far as kubectl sends them so: `create namespace`, `create secret`, `create service` and `auth`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::{DecodeError, Message};
use serde_json::{Map, Value, json};

use crate::status::Failure;

/// What a body in protobuf begins with.
const MAGIC: &[u8] = b"k8s\0";
/// Its media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// `runtime.Unknown`: the kind of an object, and its bytes.
#[derive(Clone, PartialEq, Message)]
struct Envelope {
    #[prost(message, optional, tag = "1")]
    of: Option<TypeMeta>,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct AccessReview {
    #[prost(message, optional, tag = "2")]
    spec: Option<AccessSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct AccessSpec {
    #[prost(message, optional, tag = "1")]
    resource: Option<ResourceAttributes>,
    #[prost(message, optional, tag = "2")]
    path: Option<PathAttributes>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceAttributes {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(string, tag = "2")]
    verb: String,
    #[prost(string, tag = "3")]
    group: String,
    #[prost(string, tag = "4")]
    version: String,
    #[prost(string, tag = "5")]
    resource: String,
    #[prost(string, tag = "6")]
    subresource: String,
    #[prost(string, tag = "7")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct PathAttributes {
    #[prost(string, tag = "1")]
    path: String,
    #[prost(string, tag = "2")]
    verb: String,
}

#[derive(Clone, PartialEq, Message)]
struct RulesReview {
    #[prost(message, optional, tag = "2")]
    spec: Option<RulesSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct RulesSpec {
    #[prost(string, tag = "1")]
    namespace: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    generate_name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct Namespace {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct Secret {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(btree_map = "string, bytes", tag = "2")]
    data: BTreeMap<String, Vec<u8>>,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(btree_map = "string, string", tag = "4")]
    string_data: BTreeMap<String, String>,
    #[prost(bool, optional, tag = "5")]
    immutable: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(message, optional, tag = "2")]
    spec: Option<ServiceSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct ServiceSpec {
    #[prost(message, repeated, tag = "1")]
    ports: Vec<ServicePort>,
    #[prost(btree_map = "string, string", tag = "2")]
    selector: BTreeMap<String, String>,
    #[prost(string, tag = "3")]
    cluster_ip: String,
    #[prost(string, tag = "4")]
    kind: String,
    #[prost(string, tag = "10")]
    external_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ServicePort {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    protocol: String,
    #[prost(int32, tag = "3")]
    port: i32,
    #[prost(message, optional, tag = "4")]
    target_port: Option<IntOrString>,
    #[prost(int32, tag = "5")]
    node_port: i32,
}

#[derive(Clone, PartialEq, Message)]
struct IntOrString {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int32, tag = "2")]
    number: i32,
    #[prost(string, tag = "3")]
    text: String,
}

/// Reads an object, as its JSON.
///
/// # Errors
/// 400 if it is malformed, 415 if its kind is read in JSON and YAML only.
pub fn object(body: &[u8]) -> Result<Value, Failure> {
    let malformed = |why: &str| {
        Failure::bad_request(format!(
            "the body of the request is malformed protobuf: {why}"
        ))
    };
    let body = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| malformed("it does not begin with \"k8s\\0\""))?;
    let envelope = Envelope::decode(body).map_err(|error| malformed(&error.to_string()))?;
    let TypeMeta { api_version, kind } = envelope.of.unwrap_or_default();
    let raw = &*envelope.raw;
    let read = match &*kind {
        "Namespace" => {
            Namespace::decode(raw).map(|read| json!({"metadata": metadata(read.metadata)}))
        }
        "Secret" => Secret::decode(raw).map(secret),
        "Service" => Service::decode(raw).map(service),
        "SelfSubjectAccessReview" => {
            AccessReview::decode(raw).map(|review| json!({"spec": access_spec(review)}))
        }
        "SelfSubjectRulesReview" => rules_review(raw),
        "SelfSubjectReview" => Ok(json!({})),
        other => {
            let message = format!(
                "{other} is not read in {MEDIA_TYPE}: send application/json or application/yaml"
            );
            let code = http::StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Failure::new(code, "UnsupportedMediaType", message));
        }
    };
    let mut object = read.map_err(|error| malformed(&error.to_string()))?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// The fields that are not empty.
fn present(fields: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    };
    match fields {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !is_empty(value))
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

fn metadata(metadata: Option<Metadata>) -> Value {
    let of = metadata.unwrap_or_default();
    present(json!({
        "name": of.name, "generateName": of.generate_name, "namespace": of.namespace, "labels": of.labels,
        "annotations": of.annotations, "resourceVersion": of.resource_version,
    }))
}

fn secret(secret: Secret) -> Value {
    let encoded = |(name, value): (String, Vec<u8>)| (name, STANDARD.encode(value));
    let data: BTreeMap<String, String> = secret.data.into_iter().map(encoded).collect();
    present(json!({
        "metadata": metadata(secret.metadata), "type": secret.kind, "data": data,
        "stringData": secret.string_data, "immutable": secret.immutable,
    }))
}

fn service(service: Service) -> Value {
    let spec = service.spec.unwrap_or_default();
    let ports = spec.ports.into_iter().map(|port| {
        let target = port
            .target_port
            .map_or(Value::Null, |target| match target.kind {
                0 => target.number.into(),
                _ => target.text.into(),
            });
        present(json!({
            "name": port.name, "protocol": port.protocol, "port": port.port, "targetPort": target,
            "nodePort": port.node_port,
        }))
    });
    let ports: Vec<Value> = ports.collect();
    let spec = present(json!({
        "ports": ports, "selector": spec.selector, "clusterIP": spec.cluster_ip, "type": spec.kind,
        "externalName": spec.external_name,
    }));
    json!({"metadata": metadata(service.metadata), "spec": spec})
}

fn rules_review(raw: &[u8]) -> Result<Value, DecodeError> {
    let spec = RulesReview::decode(raw)?.spec.unwrap_or_default();
    Ok(json!({"spec": {"namespace": spec.namespace}}))
}

fn access_spec(review: AccessReview) -> Value {
    let AccessSpec { resource, path } = review.spec.unwrap_or_default();
    let mut spec = json!({});
    if let Some(asked) = resource {
        spec["resourceAttributes"] = json!({
            "namespace": asked.namespace, "verb": asked.verb, "group": asked.group, "version": asked.version,
            "resource": asked.resource, "subresource": asked.subresource, "name": asked.name,
        });
    }
    if let Some(asked) = path {
        spec["nonResourceAttributes"] = json!({"path": asked.path, "verb": asked.verb});
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(kind: &str, raw: Vec<u8>) -> Vec<u8> {
        let envelope = Envelope {
            of: Some(TypeMeta {
                api_version: "v1".to_owned(),
                kind: kind.to_owned(),
            }),
            raw,
        };
        [MAGIC, &envelope.encode_to_vec()].concat()
    }

    #[test]
    fn objects_are_read_as_their_json() {
        let asked = AccessReview {
            spec: Some(AccessSpec {
                resource: Some(ResourceAttributes {
                    verb: "get".to_owned(),
                    resource: "secrets".to_owned(),
                    ..ResourceAttributes::default()
                }),
                path: None,
            }),
        };
        let read = object(&body("SelfSubjectAccessReview", asked.encode_to_vec())).unwrap();
        assert_eq!(read["spec"]["resourceAttributes"]["resource"], "secrets");
        assert_eq!(read["spec"].get("nonResourceAttributes"), None);
        let named = Metadata {
            name: "tls".to_owned(),
            ..Metadata::default()
        };
        let secret = Secret {
            metadata: Some(named),
            data: BTreeMap::from([("key".to_owned(), vec![255])]),
            ..Secret::default()
        };
        let read = object(&body("Secret", secret.encode_to_vec())).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "data": {"key": "/w=="},
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_not_read_is_refused() {
        for (wrong, code) in [
            (b"k8s\0\xff".to_vec(), 400),
            (b"{}".to_vec(), 400),
            (body("Secret", vec![0xff]), 400),
            (body("Pod", Vec::new()), 415),
        ] {
            assert_eq!(object(&wrong).unwrap_err().code, code);
        }
    }
}
