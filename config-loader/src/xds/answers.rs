//! Error of a NACK: the rejected resources of a response, and the reasons.
//!
//! The error has a message for people. Its details have the same content as a `google.rpc.BadRequest`, for servers that
//! process it.

use prost::Message;
use prost_types::Any;

use super::messages::{BadRequest, FieldViolation, RpcStatus};

/// gRPC status code INVALID_ARGUMENT.
const INVALID_ARGUMENT: i32 = 3;

/// Type URL of `google.rpc.BadRequest`.
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// Rejected resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Name of the resource within its type.
    pub name: String,
    /// Reason for the rejection.
    pub reason: String,
}

/// Creates the error of a NACK from a message and the rejected resources.
pub fn rejection(message: String, rejected: &[Rejected]) -> RpcStatus {
    let violations = rejected.iter().map(|one| FieldViolation {
        field: one.name.clone(),
        description: one.reason.clone(),
    });
    let details = BadRequest {
        field_violations: violations.collect(),
    };
    RpcStatus {
        code: INVALID_ARGUMENT,
        message,
        details: match rejected.is_empty() {
            true => Vec::new(),
            false => vec![Any {
                type_url: BAD_REQUEST.to_owned(),
                value: details.encode_to_vec(),
            }],
        },
    }
}

/// Returns the resources that the error of a NACK names; empty if it has only a message.
pub fn rejected_in(error: &RpcStatus) -> Vec<Rejected> {
    let details = error.details.iter();
    let details = details.filter(|one| one.type_url == BAD_REQUEST);
    let details = details.filter_map(|one| BadRequest::decode(&*one.value).ok());
    let violations = details.flat_map(|one| one.field_violations);
    violations
        .map(|one| Rejected {
            name: one.field,
            reason: one.description,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_resources_are_read_as_they_are_written() {
        let rejected = vec![Rejected {
            name: "shop/a".to_owned(),
            reason: "VS001: it is wrong; very wrong".to_owned(),
        }];
        let error = rejection("shop/a: VS001".to_owned(), &rejected);
        assert_eq!(error.code, 3);
        let read = RpcStatus::decode(&*error.encode_to_vec()).unwrap();
        assert_eq!(rejected_in(&read), rejected);
        let other = rejection("of another client".to_owned(), &[]);
        assert_eq!(rejected_in(&other), []);
    }
}
