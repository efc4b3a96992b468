//! Istio's standard HTTP and gRPC metrics as text, one label set at a time.
//!
//! Format: <https://prometheus.io/docs/instrumenting/exposition_formats/>. All series of a family must be adjacent,
//! hence one pass over all label sets per family.

use std::io::Write;
use std::sync::Arc;

use super::format::TextFormat;
use traffic::telemetry::histogram::{HistogramTotal, Unit};
use traffic::telemetry::labels::RequestLabels;
use traffic::telemetry::names::{self, Family, label};
use traffic::telemetry::requests::{RequestProtocol, RequestStats, Total, Variant};

/// Size after which a chunk is returned; the last label set may exceed it.
const CHUNK_BYTES: usize = 64 << 10;

/// A family of the request metrics.
struct RequestFamily {
    family: Family,
    kind: Kind,
}

enum Kind {
    /// A counter of all requests.
    Counter(fn(&Total) -> u64),
    /// A counter of gRPC requests only.
    GrpcCounter(fn(&Total) -> u64),
    Histogram(Unit, fn(&Total) -> &HistogramTotal),
}

const FAMILIES: [RequestFamily; 6] = [
    RequestFamily {
        family: names::REQUESTS,
        kind: Kind::Counter(|total| total.duration.count()),
    },
    RequestFamily {
        family: names::REQUEST_DURATION,
        kind: Kind::Histogram(Unit::Microseconds, |total| &total.duration),
    },
    RequestFamily {
        family: names::REQUEST_BYTES,
        kind: Kind::Histogram(Unit::Bytes, |total| &total.request_bytes),
    },
    RequestFamily {
        family: names::RESPONSE_BYTES,
        kind: Kind::Histogram(Unit::Bytes, |total| &total.response_bytes),
    },
    RequestFamily {
        family: names::REQUEST_MESSAGES,
        kind: Kind::GrpcCounter(|total| total.request_messages),
    },
    RequestFamily {
        family: names::RESPONSE_MESSAGES,
        kind: Kind::GrpcCounter(|total| total.response_messages),
    },
];

impl Kind {
    const fn name(&self) -> &'static str {
        match self {
            Self::Counter(_) | Self::GrpcCounter(_) => "counter",
            Self::Histogram(..) => "histogram",
        }
    }

    fn applies(&self, variant: Variant) -> bool {
        match self {
            Self::Counter(_) | Self::Histogram(..) => true,
            Self::GrpcCounter(_) => {
                variant.protocol() == RequestProtocol::Grpc && variant != Variant::OVERFLOW
            }
        }
    }
}

/// Iterator that writes the request metrics.
pub(super) struct RequestText {
    handles: Vec<Arc<RequestStats>>,
    /// Position of the next family, and of its next label set.
    family: usize,
    handle: usize,
    /// Whether the family's header was written, which happens only before its first series.
    headed: bool,
    format: TextFormat,
}

impl RequestText {
    /// Creates the iterator for these label sets.
    pub(super) fn new(handles: Vec<Arc<RequestStats>>, format: TextFormat) -> Self {
        Self {
            handles,
            family: 0,
            handle: 0,
            headed: false,
            format,
        }
    }

    fn append_handle(&mut self, out: &mut Vec<u8>, family: &RequestFamily) {
        let handle = &self.handles[self.handle];
        let mut labels = Vec::new();
        for (variant, total) in handle.totals() {
            if !family.kind.applies(variant) {
                continue;
            }
            if !self.headed {
                self.format
                    .append_header(out, &family.family, family.kind.name());
                self.headed = true;
            }
            labels.clear();
            append_labels(&mut labels, handle.labels(), variant);
            append_series(out, family, &labels, &total);
        }
    }
}

impl Iterator for RequestText {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while out.len() < CHUNK_BYTES {
            let Some(family) = FAMILIES.get(self.family) else {
                break;
            };
            if self.handle == self.handles.len() {
                (self.family, self.handle, self.headed) = (self.family + 1, 0, false);
                continue;
            }
            self.append_handle(&mut out, family);
            self.handle += 1;
        }
        (!out.is_empty()).then_some(out)
    }
}

fn append_series(out: &mut Vec<u8>, family: &RequestFamily, labels: &[u8], total: &Total) {
    let name = family.family.name.as_bytes();
    match &family.kind {
        Kind::Counter(of) | Kind::GrpcCounter(of) => {
            append_line(out, &[name, b"{", labels, b"} "], of(total));
        }
        Kind::Histogram(unit, of) => append_histogram(out, name, labels, *unit, of(total)),
    }
}

fn append_histogram(
    out: &mut Vec<u8>,
    name: &[u8],
    labels: &[u8],
    unit: Unit,
    total: &HistogramTotal,
) {
    for (bound, count) in total.cumulative() {
        append(out, &[name, b"_bucket{", labels]);
        // writing to a vector cannot fail, here and below
        let _ = write!(out, ",le=\"{bound}\"}} ");
        append_line(out, &[], count);
    }
    append_line(
        out,
        &[name, b"_bucket{", labels, b",le=\"+Inf\"} "],
        total.count(),
    );
    append(out, &[name, b"_sum{", labels]);
    let _ = writeln!(out, "}} {}", total.sum(unit));
    append_line(out, &[name, b"_count{", labels, b"} "], total.count());
}

/// Appends a sample: the parts before the value, then the value.
pub(super) fn append_line(out: &mut Vec<u8>, parts: &[&[u8]], value: u64) {
    append(out, parts);
    append(out, &[itoa::Buffer::new().format(value).as_bytes(), b"\n"]);
}

fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Appends the labels of reporter, source and destination, without braces.
pub(super) fn append_party_labels(out: &mut Vec<u8>, labels: &RequestLabels) {
    append_label(out, label::REPORTER, labels.reporter.as_str());
    let sources = label::SOURCE.into_iter().zip(labels.source.values());
    let destinations = label::DESTINATION
        .into_iter()
        .zip(labels.destination.values());
    for (name, value) in sources.chain(destinations) {
        append_label(out, name, value);
    }
    append_label(out, label::DESTINATION_SERVICE, &labels.service.host);
    append_label(out, label::DESTINATION_SERVICE_NAME, &labels.service.name);
    append_label(
        out,
        label::DESTINATION_SERVICE_NAMESPACE,
        &labels.service.namespace,
    );
}

/// Appends all labels of a series except `le`, without braces.
fn append_labels(out: &mut Vec<u8>, labels: &RequestLabels, variant: Variant) {
    append_party_labels(out, labels);
    if variant == Variant::OVERFLOW {
        append_label(out, label::REQUEST_PROTOCOL, OTHER);
        append_label(out, label::RESPONSE_CODE, OTHER);
        append_label(out, label::RESPONSE_FLAGS, OTHER);
        append_label(out, label::CONNECTION_SECURITY_POLICY, OTHER);
        return;
    }
    append_label(out, label::REQUEST_PROTOCOL, variant.protocol().as_str());
    append_label(
        out,
        label::RESPONSE_CODE,
        itoa::Buffer::new().format(variant.code()),
    );
    if let Some(status) = variant.grpc_status() {
        append_label(
            out,
            label::GRPC_RESPONSE_STATUS,
            itoa::Buffer::new().format(status),
        );
    }
    append_label(out, label::RESPONSE_FLAGS, &variant.flags().to_string());
    append_label(
        out,
        label::CONNECTION_SECURITY_POLICY,
        variant.security().as_str(),
    );
}

/// Value of the labels that [`Variant::OVERFLOW`] combines.
const OTHER: &str = "other";

/// Appends one label, after a comma if it is not the first.
pub(super) fn append_label(out: &mut Vec<u8>, name: &str, value: &str) {
    if !out.is_empty() {
        out.push(b',');
    }
    append(out, &[name.as_bytes(), b"=\""]);
    for byte in value.bytes() {
        match byte {
            b'\n' => append(out, &[b"\\n"]),
            b'"' | b'\\' => append(out, &[&[b'\\', byte]]),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
