//! Outcome of a request.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

/// Class of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureClass {
    /// Response body that ended early or does not have the expected length.
    Body,
    /// Failure to open a connection.
    Connect,
    /// gRPC call that ended with a status other than 0, or without a status.
    GrpcStatus,
    /// Request that was never sent, because no connection was free in time or too many requests waited for one.
    NotSent,
    /// Invalid response.
    Protocol,
    /// Connection or stream that was closed before the response was complete.
    Reset,
    /// Status from 400 to 499.
    Status4xx,
    /// Status from 500 to 599.
    Status5xx,
    /// Other unexpected status.
    StatusOther,
    /// Response that was not complete in time.
    Timeout,
    /// Failed TLS handshake, or another protocol chosen by ALPN.
    Tls,
}

impl FailureClass {
    /// All classes, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Body,
        Self::Connect,
        Self::GrpcStatus,
        Self::NotSent,
        Self::Protocol,
        Self::Reset,
        Self::Status4xx,
        Self::Status5xx,
        Self::StatusOther,
        Self::Timeout,
        Self::Tls,
    ];

    /// Returns the name of the class in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Connect => "connect",
            Self::GrpcStatus => "grpc_status",
            Self::NotSent => "not_sent",
            Self::Protocol => "protocol",
            Self::Reset => "reset",
            Self::Status4xx => "status_4xx",
            Self::Status5xx => "status_5xx",
            Self::StatusOther => "status_other",
            Self::Timeout => "timeout",
            Self::Tls => "tls",
        }
    }
}

/// Failure with its class, and a reason in words if there is more to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Class of the failure.
    pub class: FailureClass,
    /// Details, such as the error of the operating system; empty if there are none.
    pub reason: String,
}

impl Fault {
    /// Creates a failure with this class and reason.
    pub fn new(class: FailureClass, reason: impl ToString) -> Self {
        Self {
            class,
            reason: reason.to_string(),
        }
    }
}

/// Complete response.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status code.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Trailers, if any.
    pub trailers: Option<HeaderMap>,
    /// Length of the body, in bytes.
    pub body_bytes: u64,
    /// First bytes of the body, which hold the prefix of a gRPC message.
    pub prefix: [u8; 5],
}

/// Result of one request.
#[derive(Debug)]
pub struct Sample {
    /// Time from the start of the run to the due time.
    pub due: Duration,
    /// Delay of the generator itself: time from the due time until it was ready to send the request.
    pub late: Duration,
    /// Time that the request then waited for a free connection.
    pub waited: Duration,
    /// Time from the due time to the end of the response.
    pub latency: Duration,
    /// Response, if a complete one was received.
    pub reply: Option<Reply>,
    /// Failure, if the request failed.
    pub fault: Option<Fault>,
}

/// Conditions that a response must meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Expected statuses; if empty, 200 to 399.
    pub statuses: Vec<StatusCode>,
    /// Expected length of the body, in bytes.
    pub body_bytes: Option<u64>,
    /// Whether the response must end a gRPC call.
    pub grpc: bool,
}

/// Bytes of the prefix of a gRPC message.
const GRPC_PREFIX_BYTES: u64 = 5;

impl Expected {
    /// Returns the failure of a response that does not meet the conditions.
    pub fn fault(&self, reply: &Reply) -> Option<Fault> {
        let status = reply.status;
        let is_right = if self.statuses.is_empty() {
            (200..400).contains(&status.as_u16())
        } else {
            self.statuses.contains(&status)
        };
        if !is_right {
            let class = match status.as_u16() / 100 {
                4 => FailureClass::Status4xx,
                5 => FailureClass::Status5xx,
                _ => FailureClass::StatusOther,
            };
            return Some(Fault::new(class, format!("status {}", status.as_u16())));
        }
        if self.grpc
            && let Some(fault) = grpc_fault(reply)
        {
            return Some(fault);
        }
        let wanted = self.body_bytes?;
        let found = reply.body_bytes;
        let reason = || format!("{found} bytes instead of {wanted}");
        (found != wanted).then(|| Fault::new(FailureClass::Body, reason()))
    }
}

fn grpc_fault(reply: &Reply) -> Option<Fault> {
    let trailers = reply.trailers.as_ref();
    // a response that is nothing but trailers has the status in its headers
    let status = trailers.and_then(|trailers| trailers.get("grpc-status"));
    let status = status.or_else(|| reply.headers.get("grpc-status"));
    match status.map(|status| status.to_str().unwrap_or("no number")) {
        Some("0") => {}
        Some(status) => {
            return Some(Fault::new(
                FailureClass::GrpcStatus,
                format!("grpc-status {status}"),
            ));
        }
        None => return Some(Fault::new(FailureClass::GrpcStatus, "no grpc-status")),
    }
    let [_, length @ ..] = reply.prefix;
    let wanted = GRPC_PREFIX_BYTES + u64::from(u32::from_be_bytes(length));
    let reason = || {
        format!(
            "{} bytes instead of one message of {wanted}",
            reply.body_bytes
        )
    };
    (reply.body_bytes != wanted).then(|| Fault::new(FailureClass::Body, reason()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &[u8], trailers: &[(&'static str, &str)]) -> Reply {
        let map = trailers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
        let mut prefix = [0; 5];
        let length = body.len().min(5);
        prefix[..length].copy_from_slice(&body[..length]);
        Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            trailers: Some(map.collect()),
            body_bytes: body.len() as u64,
            prefix,
        }
    }

    #[test]
    fn names_are_those_of_the_order() {
        assert!(FailureClass::ALL.is_sorted());
        assert!(FailureClass::ALL.is_sorted_by_key(|class| class.name()));
    }

    #[test]
    fn statuses_from_400_are_failures_unless_they_are_expected() {
        let class = |expected: &Expected, status| {
            expected
                .fault(&reply(status, b"", &[]))
                .map(|fault| fault.class)
        };
        let usual = Expected::default();
        for status in [200, 204, 304] {
            assert_eq!(class(&usual, status), None, "{status}");
        }
        assert_eq!(class(&usual, 404), Some(FailureClass::Status4xx));
        assert_eq!(class(&usual, 503), Some(FailureClass::Status5xx));
        assert_eq!(class(&usual, 600), Some(FailureClass::StatusOther));
        let not_found = Expected {
            statuses: vec![StatusCode::NOT_FOUND],
            ..usual
        };
        assert_eq!(class(&not_found, 404), None);
        assert_eq!(class(&not_found, 200), Some(FailureClass::StatusOther));
    }

    #[test]
    fn body_must_have_the_expected_length() {
        let expected = Expected {
            body_bytes: Some(3),
            ..Expected::default()
        };
        assert_eq!(expected.fault(&reply(200, b"abc", &[])), None);
        let fault = expected.fault(&reply(200, b"ab", &[])).unwrap();
        assert_eq!(
            (fault.class, &*fault.reason),
            (FailureClass::Body, "2 bytes instead of 3")
        );
    }

    #[test]
    fn call_needs_status_0_and_one_whole_message() {
        let expected = Expected {
            grpc: true,
            ..Expected::default()
        };
        let class = |body: &[u8], trailers: &[(&'static str, &str)]| {
            expected
                .fault(&reply(200, body, trailers))
                .map(|fault| fault.class)
        };
        let ok = [("grpc-status", "0")];
        assert_eq!(class(b"\0\0\0\0\x02ab", &ok), None);
        assert_eq!(class(b"\0\0\0\0\x02a", &ok), Some(FailureClass::Body));
        assert_eq!(class(b"", &ok), Some(FailureClass::Body));
        assert_eq!(
            class(b"", &[("grpc-status", "14")]),
            Some(FailureClass::GrpcStatus)
        );
        assert_eq!(class(b"\0\0\0\0\0", &[]), Some(FailureClass::GrpcStatus));
    }
}
