//! `%GRPC_STATUS(form)%`: the status of a gRPC response, if its headers contain one.

use http::HeaderMap;

use super::TemplateContext;
use crate::filter::timeout::is_grpc;

/// Format of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusForm {
    Camel,
    Number,
    Snake,
}

/// Names by number: in Envoy's spelling, and in that of the gRPC libraries.
const NAMES: [(&str, &str); 17] = [
    ("OK", "OK"),
    ("Canceled", "CANCELLED"),
    ("Unknown", "UNKNOWN"),
    ("InvalidArgument", "INVALID_ARGUMENT"),
    ("DeadlineExceeded", "DEADLINE_EXCEEDED"),
    ("NotFound", "NOT_FOUND"),
    ("AlreadyExists", "ALREADY_EXISTS"),
    ("PermissionDenied", "PERMISSION_DENIED"),
    ("ResourceExhausted", "RESOURCE_EXHAUSTED"),
    ("FailedPrecondition", "FAILED_PRECONDITION"),
    ("Aborted", "ABORTED"),
    ("OutOfRange", "OUT_OF_RANGE"),
    ("Unimplemented", "UNIMPLEMENTED"),
    ("Internal", "INTERNAL"),
    ("Unavailable", "UNAVAILABLE"),
    ("DataLoss", "DATA_LOSS"),
    ("Unauthenticated", "UNAUTHENTICATED"),
];

/// Returns the name of a gRPC status in the spelling of the gRPC libraries; `None` for a number without one.
pub fn grpc_status_name(status: u8) -> Option<&'static str> {
    NAMES.get(usize::from(status)).map(|(_, name)| *name)
}

impl StatusForm {
    /// Parses the argument of the operator.
    pub(super) fn parse(argument: &str) -> Option<Self> {
        Some(match argument {
            "" | "CAMEL_STRING" => Self::Camel,
            "NUMBER" => Self::Number,
            "SNAKE_STRING" => Self::Snake,
            _ => return None,
        })
    }

    /// Appends the status, if there is one.
    pub(super) fn print(self, out: &mut Vec<u8>, context: &TemplateContext<'_>) {
        let of_head = || {
            let is_grpc = context.request_headers.is_some_and(is_grpc);
            context
                .response_headers
                .and_then(status)
                .filter(|_| is_grpc)
        };
        let number = match context.finished {
            Some(finished) => finished.grpc_status.map(u16::from),
            None => of_head(),
        };
        let Some(number) = number else {
            return;
        };
        match (self, NAMES.get(usize::from(number))) {
            (Self::Camel, Some((name, _))) | (Self::Snake, Some((_, name))) => {
                out.extend_from_slice(name.as_bytes());
            }
            _ => super::write::print(out, number),
        }
    }
}

fn status(headers: &HeaderMap) -> Option<u16> {
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}
