//! Reviews of access in protobuf: kubectl and other clients in Go send them so. Nothing else is read in it.

use prost::Message;
use serde_json::{Value, json};

use super::reviews::Review;
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

/// Reads a review, as its JSON.
///
/// # Errors
/// 400 if it is malformed.
pub fn review(review: Review, body: &[u8]) -> Result<Value, Failure> {
    let malformed = |why: String| {
        Failure::bad_request(format!(
            "the body of the request is malformed protobuf: {why}"
        ))
    };
    let decoded = |error: prost::DecodeError| malformed(error.to_string());
    let body = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| malformed("it does not begin with \"k8s\\0\"".to_owned()))?;
    let envelope = Envelope::decode(body).map_err(decoded)?;
    let TypeMeta { api_version, kind } = envelope.of.unwrap_or_default();
    let raw = &*envelope.raw;
    let spec = match review {
        Review::Access => access_spec(AccessReview::decode(raw).map_err(decoded)?),
        Review::Rules => {
            let review = RulesReview::decode(raw).map_err(decoded)?;
            json!({"namespace": review.spec.unwrap_or_default().namespace})
        }
        Review::User => Value::Null,
    };
    Ok(json!({"apiVersion": api_version, "kind": kind, "spec": spec}))
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

    fn body(raw: Vec<u8>) -> Vec<u8> {
        let envelope = Envelope {
            of: Some(TypeMeta {
                api_version: "v1".to_owned(),
                kind: "K".to_owned(),
            }),
            raw,
        };
        [MAGIC, &envelope.encode_to_vec()].concat()
    }

    #[test]
    fn reviews_are_read_as_their_json() {
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
        let read = review(Review::Access, &body(asked.encode_to_vec())).unwrap();
        assert_eq!(read["kind"], "K");
        assert_eq!(read["spec"]["resourceAttributes"]["resource"], "secrets");
        assert_eq!(read["spec"].get("nonResourceAttributes"), None);
        for wrong in [&b"k8s\0\xff"[..], b"{}", b"k8s\0\x12\x01\xff"] {
            assert_eq!(review(Review::Access, wrong).unwrap_err().code, 400);
        }
    }
}
