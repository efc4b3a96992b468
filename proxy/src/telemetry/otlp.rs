//! Export over OTLP: to an OpenTelemetry collector or any other receiver of the protocol.
//!
//! Workers write encoded spans and log records into their buffers ([`queue`]) and never wait. One thread ([`exporter`])
//! takes them, and sends them in batches by the [`client`]; what fails is repeated as the protocol says. [`push`] sends
//! metrics at an interval.

pub(crate) mod attributes;
mod batch;
mod client;
mod connect;
mod exporter;
mod format;
mod metrics;
pub(crate) mod protobuf;
mod push;
mod queue;
mod response;
mod settings;
mod signal;
mod totals;
mod transport;
mod zipkin;

pub use batch::{MakeResource, OtlpMessage};
pub use client::Client as CollectorClient;
pub use connect::MakeTls;
pub use exporter::Exporter;
pub use format::{CollectorResponse, OtlpProtocol, SpanFormat};
pub use push::{MetricPush, PushSettings};
pub use queue::SpanQueue;
pub use response::Outcome as ExportOutcome;
pub use settings::{Batching, OtlpEndpoint, OtlpSettings};
pub use signal::OtlpSignal;
pub use totals::OtlpTotals;
pub use transport::{MakeTransport, Transport};
