//! A finished request as taps show it. The names of the fields are part of the interface of `strait tap -o json`.

use serde::{Deserialize, Serialize};

/// A finished request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TappedRequest {
    /// Begin of the request, in UTC.
    pub time: String,
    /// Listener that took the request.
    pub listener: String,
    /// Side of the traffic: `gateway`, `inbound` or `outbound`.
    pub direction: String,
    /// Address of the client.
    pub client: String,
    /// Identity of the client, if its certificate proves one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_identity: Option<String>,
    /// Milliseconds of the client's TLS handshake, if the request is the first of its connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tls_ms: Option<f64>,
    /// Protocol of the client.
    pub protocol: String,
    /// Method.
    pub method: String,
    /// Scheme of the client.
    pub scheme: String,
    /// Host and port, as the client asked for them.
    pub host: String,
    /// Path and query of the client, without the values of parameters that are credentials.
    pub path: String,
    /// Request id as forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Trace, if the request is traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Status sent to the client; 0 for none.
    pub status: u16,
    /// Status of a gRPC call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc_status: Option<u8>,
    /// Response flags; `-` for none.
    pub flags: String,
    /// Response code details.
    pub details: String,
    /// The rule that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<TappedRule>,
    /// The destination of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<TappedDestination>,
    /// Kubernetes cluster of the last endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Tier of that cluster, with a policy of several clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// The last endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Number of attempts.
    pub attempts_total: u32,
    /// The attempts; the first 16.
    pub attempts: Vec<TappedAttempt>,
    /// Times, in milliseconds.
    pub timing: TapTiming,
    /// Bytes of the request's body.
    pub received_bytes: u64,
    /// Bytes of the response's body.
    pub sent_bytes: u64,
}

/// A rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TappedRule {
    /// Name, if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `KIND/NAMESPACE/NAME` of its object.
    pub object: String,
    /// File or source of the object.
    pub file: String,
    /// Line in the file; 0 without lines.
    pub line: u32,
}

/// A destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TappedDestination {
    /// Name of the upstream cluster, such as `outbound|80|v2|HOST`.
    pub name: String,
    /// Host of the service.
    pub host: String,
    /// Port of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Subset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subset: Option<String>,
}

/// One attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TappedAttempt {
    /// Endpoint.
    pub endpoint: String,
    /// Kubernetes cluster of the endpoint.
    pub cluster: String,
    /// Tier of that cluster, with a policy of several clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// Reason, of an attempt after the first: the `reason` of the metrics of retries and replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it is a replay in the next tier of clusters.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failover: bool,
    /// Status of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Status of a gRPC call in the head of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc_status: Option<u8>,
    /// Failure, if there was no response: the word of `error.type` of spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Reason that the transport gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport_error: Option<String>,
    /// Whether a connection was opened for it.
    pub opened: bool,
    /// Whether a pooled connection turned out to be closed, so that it went to a fresh one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// Milliseconds from the begin of the request to that of the attempt.
    pub begin_ms: f64,
    /// Milliseconds in the queue for a connection.
    pub wait_ms: f64,
    /// Milliseconds to connect.
    pub connect_ms: f64,
    /// Milliseconds of the TLS handshake with the endpoint.
    pub tls_ms: f64,
    /// Milliseconds from the connection to the head of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<f64>,
    /// Milliseconds to its result.
    pub total_ms: f64,
}

/// Times of a request, in milliseconds since its begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TapTiming {
    /// To the last byte of the request, if it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_ms: Option<f64>,
    /// To the head of the response of the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<f64>,
    /// To the last byte of the response.
    pub last_byte_ms: f64,
}
