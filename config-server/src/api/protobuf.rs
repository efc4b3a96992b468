//! Protobuf bodies, in which Kubernetes clients send built-in kinds.

use config_loader::xds_body::{BodyError, kubernetes};
use http::StatusCode;
use serde_json::Value;

use crate::status::Failure;

/// Media type of Kubernetes protobuf.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Decodes an object as JSON.
///
/// # Errors
/// 400 if the body is malformed, 413 if it is too large, 415 if its kind is supported in JSON and YAML only.
pub fn object(body: &[u8]) -> Result<Value, Failure> {
    kubernetes::to_json(body).map_err(|error| match error {
        BodyError::UnknownType { type_url } => {
            let message = format!(
                "{type_url} is not read in {MEDIA_TYPE}: send application/json or application/yaml"
            );
            let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Failure::new(code, "UnsupportedMediaType", message)
        }
        BodyError::TooLarge { bytes_max, .. } => {
            let message = format!("Request entity too large: limit is {bytes_max}");
            let code = StatusCode::PAYLOAD_TOO_LARGE;
            Failure::new(code, "RequestEntityTooLarge", message)
        }
        other => Failure::bad_request(format!(
            "the body of the request is malformed protobuf: {other}"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_bodies_have_the_codes_of_kubernetes() {
        let pod = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod";
        let large = vec![0; 2_000_000];
        let damaged = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x01\xff";
        for (wrong, code) in [
            (&b"k8s\0\xff"[..], 400),
            (b"{}", 400),
            (damaged, 400),
            (pod, 415),
            (&large, 413),
        ] {
            assert_eq!(object(wrong).unwrap_err().code, code);
        }
    }
}
