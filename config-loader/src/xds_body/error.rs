//! Why a body cannot be converted.

use std::error::Error;
use std::fmt;

use prost_reflect::prost::DecodeError;

/// A body has at most this many bytes. An object of Kubernetes has no more, since etcd takes no larger request.
pub const BODY_BYTES_MAX: usize = 1_572_864;

/// Why a body cannot be converted.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyError {
    /// Its type is none of Istio's kinds that are read, nor a `google.protobuf.Struct`.
    UnknownType {
        /// The type URL, as it came.
        type_url: String,
    },
    /// It is larger than [`BODY_BYTES_MAX`].
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        bytes_max: usize,
    },
    /// Its bytes are no message of its type.
    Malformed {
        /// The name of the message.
        name: String,
        /// What the decoder says.
        cause: DecodeError,
    },
    /// A value in it cannot be converted.
    Value {
        /// Where: `spec.http[0].timeout`.
        path: String,
        /// What is wrong, and what is expected.
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
