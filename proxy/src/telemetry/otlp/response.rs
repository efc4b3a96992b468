//! Answers of a collector: whether spans arrived, and whether to send them again.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Buf;
use http::{HeaderMap, StatusCode};
use hyper::header::RETRY_AFTER;
use prost::Message;

/// Outcome of a request to a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted, with the number of rejected spans and the collector's message.
    Accepted {
        /// Number of rejected spans.
        rejected: u64,
        /// Message of the collector.
        message: String,
    },
    /// Failed; may be repeated, at the earliest after this time.
    Repeatable {
        /// Reason of the failure.
        reason: String,
        /// Time before which it is not repeated.
        after: Option<Duration>,
    },
    /// Failed for good.
    Refused {
        /// Reason of the failure.
        reason: String,
    },
}

impl Outcome {
    /// A failure of the connection.
    pub fn unreached(reason: impl ToString) -> Self {
        Self::Repeatable {
            reason: reason.to_string(),
            after: None,
        }
    }
}

/// `ExportTraceServiceResponse`; those of other signals are the same.
#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<prost_types::Duration>,
}

/// Outcome of an exchange over HTTP.
pub(super) fn of_http(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Outcome {
    match status.as_u16() {
        200..=299 => accepted(body),
        429 | 502 | 503 | 504 => Outcome::Repeatable {
            reason: format!("the collector answered {status}"),
            after: headers
                .get(RETRY_AFTER)
                .and_then(|value| retry_after(value.as_bytes())),
        },
        _ => Outcome::Refused {
            reason: format!("the collector answered {status}"),
        },
    }
}

/// Outcome of a gRPC call, with the headers that have its status: the trailers, or the head without a body.
pub(super) fn of_grpc(headers: &HeaderMap, mut body: &[u8]) -> Outcome {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let Some(code) = text("grpc-status").and_then(|code| code.parse::<u32>().ok()) else {
        return Outcome::unreached("the collector sent no gRPC status");
    };
    let message = text("grpc-message").unwrap_or_default();
    let reason = format!("the collector answered gRPC status {code} {message}");
    match code {
        0 if body.len() > 5 => {
            body.advance(5);
            accepted(body)
        }
        0 => accepted(&[]),
        // CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS
        1 | 4 | 10 | 11 | 14 | 15 => Outcome::Repeatable {
            reason,
            after: text("grpc-status-details-bin").and_then(retry_info),
        },
        // RESOURCE_EXHAUSTED only with a delay
        8 => match text("grpc-status-details-bin").and_then(retry_info) {
            Some(after) => Outcome::Repeatable {
                reason,
                after: Some(after),
            },
            None => Outcome::Refused { reason },
        },
        _ => Outcome::Refused { reason },
    }
}

fn accepted(body: &[u8]) -> Outcome {
    let response = ExportResponse::decode(body).unwrap_or_default();
    let partial = response.partial_success.unwrap_or_default();
    Outcome::Accepted {
        rejected: u64::try_from(partial.rejected).unwrap_or(0),
        message: partial.error_message,
    }
}

/// Time of a `Retry-After` header: seconds, or a date.
fn retry_after(value: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Delay in the details of a gRPC status.
fn retry_info(details: &str) -> Option<Duration> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
    let status = Status::decode(&*engine.decode(details).ok()?).ok()?;
    let is_info = |any: &&prost_types::Any| any.type_url.ends_with("/google.rpc.RetryInfo");
    let info = status.details.iter().find(is_info)?;
    let delay = RetryInfo::decode(&*info.value).ok()?.retry_delay?;
    delay.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line =
            |(name, value): &(&'static str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        lines.iter().map(line).collect()
    }

    fn after(outcome: Outcome) -> Option<Option<Duration>> {
        match outcome {
            Outcome::Repeatable { after, .. } => Some(after),
            _ => None,
        }
    }

    #[test]
    fn only_the_statuses_of_the_standard_are_repeated() {
        let http = |status: u16, lines| {
            of_http(StatusCode::from_u16(status).unwrap(), &headers(lines), b"")
        };
        let second = Some(Duration::from_secs(1));
        for status in [429, 502, 503, 504] {
            assert_eq!(after(http(status, &[])), Some(None), "{status}");
            assert_eq!(after(http(status, &[("retry-after", "1")])), Some(second));
        }
        let past = [("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")];
        assert_eq!(after(http(503, &past)), Some(Some(Duration::ZERO)));
        for status in [301, 400, 401, 404, 413, 500, 501] {
            assert!(
                matches!(http(status, &[]), Outcome::Refused { .. }),
                "{status}"
            );
        }
    }

    #[test]
    fn exhausted_resources_are_repeated_only_with_a_delay() {
        let info = RetryInfo {
            retry_delay: Some(prost_types::Duration {
                seconds: 3,
                nanos: 0,
            }),
        };
        let status = Status {
            details: vec![prost_types::Any {
                type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
                value: info.encode_to_vec(),
            }],
        };
        let details =
            base64::engine::general_purpose::STANDARD_NO_PAD.encode(status.encode_to_vec());
        let delay = Some(Some(Duration::from_secs(3)));
        let of = |code: &str, details: Option<&str>| {
            let mut lines = vec![("grpc-status", code)];
            lines.extend(details.map(|details| ("grpc-status-details-bin", details)));
            of_grpc(&headers(&lines), b"")
        };
        assert_eq!(after(of("8", Some(&details))), delay);
        assert_eq!(after(of("8", None)), None);
        for code in ["1", "4", "10", "11", "14", "15"] {
            assert_eq!(after(of(code, None)), Some(None), "{code}");
        }
        assert_eq!(after(of("14", Some(&details))), delay);
        for code in ["2", "3", "5", "6", "7", "9", "12", "13", "16"] {
            assert!(matches!(of(code, None), Outcome::Refused { .. }), "{code}");
        }
        assert_eq!(after(of_grpc(&headers(&[]), b"")), Some(None));
    }

    #[test]
    fn rejected_spans_are_read() {
        let response = ExportResponse {
            partial_success: Some(PartialSuccess {
                rejected: 3,
                error_message: "too old".to_owned(),
            }),
        };
        let body = response.encode_to_vec();
        let expected = Outcome::Accepted {
            rejected: 3,
            message: "too old".to_owned(),
        };
        assert_eq!(of_http(StatusCode::OK, &headers(&[]), &body), expected);
        let framed = [&[0, 0, 0, 0, body.len() as u8], &body[..]].concat();
        assert_eq!(
            of_grpc(&headers(&[("grpc-status", "0")]), &framed),
            expected
        );
    }
}
