//! Export over OTLP: to an OpenTelemetry collector or any other receiver of the protocol.
//!
//! Workers write encoded spans into their buffers ([`queue`]) and never wait. One thread ([`exporter`]) takes them, and
//! sends them in batches by the [`client`]; what fails is repeated as the protocol says.

pub(crate) mod attributes;
mod batch;
mod client;
mod connect;
mod exporter;
mod format;
pub(crate) mod protobuf;
mod queue;
mod response;
mod settings;
mod totals;
mod transport;
mod zipkin;

pub use client::Client as CollectorClient;
pub use connect::MakeTls;
pub use exporter::Exporter;
pub use format::{CollectorResponse, GRPC_PATH as OTLP_GRPC_PATH, OtlpProtocol, SpanFormat};
pub use queue::SpanQueue;
pub use response::Outcome as ExportOutcome;
pub use settings::{Batching, OtlpEndpoint, OtlpSettings};
pub use transport::{MakeTransport, Transport};
