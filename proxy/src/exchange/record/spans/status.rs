//! Status of spans, and the words of `error.type`.

use super::attributes::{Name, SpanAttributes};
use super::kept::{Attempt, AttemptEnd, End, Spans};
use crate::telemetry::{RequestProtocol, ResponseFlags, protobuf};
use traffic::error::{Error, Kind};
use traffic::filter::template::grpc_status_name;

/// Status of a gRPC call in attributes.
pub(super) const GRPC_STATUS: Name = Name {
    semconv: "rpc.status_code",
    envoy: "grpc.status_code",
};

/// Name of a gRPC status.
pub(super) fn grpc_name(status: u8) -> &'static str {
    grpc_status_name(status).unwrap_or("UNKNOWN")
}

/// Why a span is an error: `error.type`, and a description.
pub(in crate::exchange) struct Failure<'a> {
    word: Word,
    description: Option<&'a str>,
}

enum Word {
    Text(&'static str),
    Status(u16),
}

impl Failure<'_> {
    fn of(word: Word) -> Self {
        Self {
            word,
            description: None,
        }
    }

    /// Failure with this word.
    pub(in crate::exchange) fn word(word: &'static str) -> Self {
        Self::of(Word::Text(word))
    }

    /// Failure of an attempt by the status of its response.
    pub(in crate::exchange) fn of_status(status: u16) -> Option<Self> {
        (status >= 400).then(|| Self::of(Word::Status(status)))
    }

    /// Failure of an attempt by its gRPC status.
    pub(in crate::exchange) fn of_grpc(status: u16) -> Option<Self> {
        let name = u8::try_from(status).map_or("UNKNOWN", grpc_name);
        (status != 0).then(|| Self::word(name))
    }

    /// Failure of an attempt without a response.
    pub(in crate::exchange) fn of_error(error: &Error) -> Self {
        Self::of(failed(error.kind(), None).word)
    }

    /// Writes the attribute.
    pub(super) fn attribute(&self, attributes: &mut SpanAttributes<'_>) {
        if attributes.has_semconv() {
            match self.word {
                Word::Text(word) => attributes.text("error.type", word),
                Word::Status(status) => {
                    attributes.text("error.type", itoa::Buffer::new().format(status));
                }
            }
        }
        if attributes.has_envoy() {
            attributes.text("error", "true");
        }
    }

    /// Writes the status of the span: an error.
    pub(super) fn status(&self, out: &mut Vec<u8>) {
        protobuf::message(out, 15, |out| {
            if let Some(description) = self.description {
                protobuf::bytes(out, 2, description.as_bytes());
            }
            protobuf::integer(out, 3, 2);
        });
    }
}

/// Word of a kind of failure.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::AttemptTimeout => "attempt_timeout",
        Kind::ConnectFailed => "connect_failed",
        Kind::ConnectTimeout => "connect_timeout",
        Kind::DownstreamBody => "request_body_broken_off",
        Kind::DownstreamTimeout => "request_receive_timeout",
        Kind::InvalidBackend => "invalid_backend",
        Kind::NoCluster => "no_cluster",
        Kind::NoHealthyUpstream => "no_healthy_upstream",
        Kind::NoOriginalDestination => "no_original_destination",
        Kind::Overflow => "overflow",
        Kind::RequestTimeout => "request_timeout",
        Kind::UpstreamClosed => "connection_closed",
        Kind::UpstreamProtocol => "protocol_error",
        Kind::UpstreamRefusedStream => "stream_refused",
        Kind::UpstreamReset => "stream_reset",
    }
}

/// Word of the flags of a local reply.
fn word_of_flags(flags: ResponseFlags) -> Option<&'static str> {
    let words = [
        (ResponseFlags::NR, "no_route"),
        (ResponseFlags::NC, "no_cluster"),
        (ResponseFlags::UH, "no_healthy_upstream"),
        (ResponseFlags::FI, "fault_abort"),
        (ResponseFlags::DPE, "bad_request"),
        (ResponseFlags::RL, "rate_limited"),
        (ResponseFlags::UAEX, "unauthorized"),
        (ResponseFlags::UO, "overflow"),
        (ResponseFlags::UT, "request_timeout"),
        (ResponseFlags::UF, "connect_failed"),
        (ResponseFlags::UC, "connection_closed"),
        (ResponseFlags::UR, "stream_reset"),
        (ResponseFlags::UPE, "protocol_error"),
    ];
    let mut found = words.into_iter().filter(|(flag, _)| flags.contains(*flag));
    found.next().map(|(_, word)| word)
}

/// Failure of an attempt that got no response.
pub(super) fn failed(kind: Kind, transport: Option<&str>) -> Failure<'_> {
    // the transport has a reason only if it is TLS that failed
    let is_tls = kind == Kind::ConnectFailed && transport.is_some();
    Failure {
        word: Word::Text(if is_tls { "tls_handshake" } else { word(kind) }),
        description: transport,
    }
}

/// Word of a kind of failure, of an attempt that got no response.
pub(super) fn failed_word(kind: Kind, transport: Option<&str>) -> &'static str {
    match failed(kind, transport).word {
        Word::Text(text) => text,
        Word::Status(_) => "",
    }
}

impl Spans {
    /// Failure of the server span.
    pub(in crate::exchange::record) fn server_failure(&self, end: &End<'_>) -> Option<Failure<'_>> {
        let record = end.record;
        if record.flags.contains(ResponseFlags::DC) {
            return Some(Failure::word("client_disconnect"));
        }
        if self.is_broken {
            return Some(Failure::word("response_broken_off"));
        }
        let is_upstream = end.details == "via_upstream";
        let is_grpc = record.protocol == RequestProtocol::Grpc;
        let grpc_status = record.grpc_status.filter(|_| is_grpc);
        let is_grpc_error = matches!(grpc_status, Some(2 | 4 | 12..=15));
        let is_late = record.flags.contains(ResponseFlags::UT);
        if record.code < 500 && !is_grpc_error && !is_late {
            return None;
        }
        if is_upstream {
            return Some(Failure::of(match grpc_status {
                Some(status) if is_grpc_error => Word::Text(grpc_name(status)),
                _ => Word::Status(record.code),
            }));
        }
        let last = self.attempts.last();
        if let Some(AttemptEnd::Failed { kind, transport }) = last.map(|attempt| &attempt.end) {
            let failure = failed(*kind, transport.as_deref());
            return Some(match kind {
                // the last attempt had its own limit; to the client, the request timed out
                Kind::AttemptTimeout => Failure::word("request_timeout"),
                _ => failure,
            });
        }
        let of_flags = word_of_flags(record.flags).map(Word::Text);
        Some(Failure::of(of_flags.unwrap_or(Word::Status(record.code))))
    }

    /// Failure of an attempt.
    pub(super) fn attempt_failure<'a>(
        &'a self,
        attempt: &'a Attempt,
        grpc_status: Option<u8>,
        is_passed_on: bool,
    ) -> Option<Failure<'a>> {
        match &attempt.end {
            AttemptEnd::Pending => None,
            AttemptEnd::Failed { kind, transport } => Some(failed(*kind, transport.as_deref())),
            AttemptEnd::Response { .. } if is_passed_on && self.is_broken => {
                Some(Failure::word("response_broken_off"))
            }
            AttemptEnd::Response { code, .. } => {
                Failure::of_status(*code).or_else(|| Failure::of_grpc(grpc_status?.into()))
            }
        }
    }
}
