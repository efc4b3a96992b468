//! What became of a request.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureClass {
    /// The body of the response ended early or does not have the expected length.
    Body,
    /// No connection could be opened.
    Connect,
    /// The call of gRPC ended with a status other than 0, or with none.
    GrpcStatus,
    /// No connection was free in time, or too many requests waited for one, so that it was never sent.
    NotSent,
    /// The response is not valid.
    Protocol,
    /// The connection or the stream was closed before the response was complete.
    Reset,
    /// A status from 400 to 499.
    Status4xx,
    /// A status from 500 to 599.
    Status5xx,
    /// Another status than expected.
    StatusOther,
    /// The response was not complete in time.
    Timeout,
    /// The TLS handshake failed, or ALPN chose another protocol.
    Tls,
}

impl FailureClass {
    /// All of them, in the order of reports.
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

    /// Its name in reports.
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

/// A failure, with the reason in words where there is more to say than its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind.
    pub class: FailureClass,
    /// Such as the error of the system.
    pub reason: String,
}

impl Fault {
    /// A failure for this reason.
    pub fn new(class: FailureClass, reason: impl ToString) -> Self {
        Self {
            class,
            reason: reason.to_string(),
        }
    }
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its trailers, if it has any.
    pub trailers: Option<HeaderMap>,
    /// Length of its body.
    pub body_bytes: u64,
    /// How its body begins, as far as it is looked at.
    pub prefix: [u8; 5],
}

/// What is known of a request at its end.
#[derive(Debug)]
pub struct Sample {
    /// From the start of the run to its due time.
    pub due: Duration,
    /// How much later than due this program was ready to send it.
    pub late: Duration,
    /// How long it then waited for a free connection.
    pub waited: Duration,
    /// From its due time to the end of the response.
    pub latency: Duration,
    /// The response, if a complete one came.
    pub reply: Option<Reply>,
    /// Why it counts as failed, if it does.
    pub fault: Option<Fault>,
}

/// What a response must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Statuses that are right; without any, those from 200 to 399.
    pub statuses: Vec<StatusCode>,
    /// Length of the body.
    pub body_bytes: Option<u64>,
    /// Whether it ends a call of gRPC.
    pub grpc: bool,
}

/// Bytes before a message of gRPC.
const GRPC_PREFIX_BYTES: u64 = 5;

impl Expected {
    /// What is wrong with a response.
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
