//! The error of a NACK: which resources of a response are rejected, and why.
//!
//! Its message is for people. The same is in a `google.rpc.BadRequest` among its details, for servers that show it
//! elsewhere.

use prost::Message;
use prost_types::Any;

use super::messages::{BadRequest, FieldViolation, RpcStatus};

/// The code of gRPC for an argument that is wrong.
const INVALID_ARGUMENT: i32 = 3;

/// The type URL of `google.rpc.BadRequest`.
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// A resource that is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its name among the resources of its type.
    pub name: String,
    /// Why it is rejected.
    pub reason: String,
}

/// The error of a NACK: a message, and the resources that it is about.
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

/// The resources that the error of a NACK names; none if it has its message alone.
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
