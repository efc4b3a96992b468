//! Errors of converting a body.

use std::error::Error;
use std::fmt;

use prost_reflect::prost::DecodeError;

/// Maximum size of a body, in bytes. A Kubernetes object is never larger, because etcd limits the size of requests.
pub const BODY_BYTES_MAX: usize = 1_572_864;

/// Error of converting a body.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyError {
    /// Unknown type: neither a supported kind of Istio nor a `google.protobuf.Struct`.
    UnknownType {
        /// Type URL as received.
        type_url: String,
    },
    /// Body larger than [`BODY_BYTES_MAX`].
    TooLarge {
        /// Size of the body, in bytes.
        bytes: usize,
        /// Maximum size, in bytes.
        bytes_max: usize,
    },
    /// Bytes that are not a message of the type.
    Malformed {
        /// Name of the message.
        name: String,
        /// Error of the decoder.
        cause: DecodeError,
    },
    /// Value that cannot be converted.
    Value {
        /// Path of the field: `spec.http[0].timeout`.
        path: String,
        /// Description of the problem, and of the expected value.
        problem: String,
    },
}

impl BodyError {
    pub(super) fn too_large(bytes: usize) -> BodyError {
        BodyError::TooLarge {
            bytes,
            bytes_max: BODY_BYTES_MAX,
        }
    }

    pub(super) fn value(path: &str, problem: impl Into<String>) -> BodyError {
        BodyError::Value {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::UnknownType { type_url } => write!(
                f,
                "unknown type `{type_url}`: expected the message of an Istio kind that Strait reads, \
                 or google.protobuf.Struct"
            ),
            BodyError::TooLarge { bytes, bytes_max } => {
                write!(f, "the body has {bytes} bytes, more than {bytes_max}")
            }
            BodyError::Malformed { name, .. } => {
                write!(f, "the bytes of the body are not a message `{name}`")
            }
            BodyError::Value { path, problem } => write!(f, "{path}: {problem}"),
        }
    }
}

impl Error for BodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BodyError::Malformed { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
