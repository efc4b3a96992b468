//! Istio's standard HTTP and gRPC metrics as text, one label set at a time.
//!
//! Format: <https://prometheus.io/docs/instrumenting/exposition_formats/>. All series of a family must be adjacent,
//! hence one pass over all label sets per family.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::SystemTime;

use super::exemplars;
use super::format::TextFormat;
use super::labels::SeriesLabels;
use traffic::telemetry::histogram::{BUCKET_BOUNDS, DurationBounds, HistogramTotal, Unit};
use traffic::telemetry::labels::RequestLabels;
use traffic::telemetry::names::{self, Family, label};
use traffic::telemetry::requests::{RequestProtocol, RequestStats, Total, Variant};
use traffic::telemetry::rules::MetricRules;

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
    /// Changes of metrics, and the series that they make of several.
    rules: Arc<MetricRules>,
    /// Buckets of durations.
    bounds: Arc<DurationBounds>,
    /// Whether some label sets differ only by values of requests.
    has_tags: bool,
    merged: BTreeMap<Vec<u8>, Total>,
    format: TextFormat,
    /// Time as of which exemplars are shown; `None` in a format that has none.
    exemplars_at: Option<SystemTime>,
}

impl RequestText {
    /// Creates the iterator for these label sets.
    pub(super) fn new(
        handles: Vec<Arc<RequestStats>>,
        rules: Arc<MetricRules>,
        bounds: Arc<DurationBounds>,
        format: TextFormat,
    ) -> Self {
        Self {
            has_tags: handles.iter().any(|handle| handle.values().is_some()),
            handles,
            rules,
            bounds,
            merged: BTreeMap::new(),
            family: 0,
            handle: 0,
            headed: false,
            format,
            exemplars_at: (format == TextFormat::OpenMetrics).then(SystemTime::now),
        }
    }

    fn append_handle(&mut self, out: &mut Vec<u8>, family: &RequestFamily) {
        let handle = &self.handles[self.handle];
        let rule = self.rules.of(handle.labels().reporter, family.family.name);
        if rule.is_some_and(|rule| rule.is_off) {
            return;
        }
        let mut series = SeriesLabels::new(rule, handle.values().map(|values| &**values));
        for (variant, total) in handle.totals() {
            if !family.kind.applies(variant) {
                continue;
            }
            if !self.headed {
                self.format
                    .append_header(out, &family.family, family.kind.name());
                self.headed = true;
            }
            add_labels(series.clear(), handle.labels(), variant);
            if rule.is_some() || self.has_tags {
                let sum = self.merged.entry(series.text().to_vec());
                sum.or_default().add(&total);
            } else {
                let written = Series {
                    labels: series.text(),
                    total: &total,
                    bounds: &self.bounds,
                    exemplars_at: self.exemplars_at,
                };
                written.append_to(out, family);
            }
        }
    }

    /// Appends the series that changes of metrics have made.
    fn append_merged(&mut self, out: &mut Vec<u8>, family: &RequestFamily) {
        for (labels, total) in std::mem::take(&mut self.merged) {
            let series = Series {
                labels: &labels,
                total: &total,
                bounds: &self.bounds,
                exemplars_at: self.exemplars_at,
            };
            series.append_to(out, family);
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
                self.append_merged(&mut out, family);
                (self.family, self.handle, self.headed) = (self.family + 1, 0, false);
                continue;
            }
            self.append_handle(&mut out, family);
            self.handle += 1;
        }
        (!out.is_empty()).then_some(out)
    }
}

/// Series with its counts.
struct Series<'a> {
    labels: &'a [u8],
    total: &'a Total,
    /// Buckets of durations.
    bounds: &'a DurationBounds,
    /// Time as of which exemplars are shown, if they are.
    exemplars_at: Option<SystemTime>,
}

impl Series<'_> {
    fn append_to(&self, out: &mut Vec<u8>, family: &RequestFamily) {
        let name = family.family.name.as_bytes();
        match &family.kind {
            Kind::Counter(of) | Kind::GrpcCounter(of) => {
                append_line(out, &[name, b"{", self.labels, b"} "], of(self.total));
            }
            Kind::Histogram(unit, of) => {
                self.append_histogram(out, name, *unit, of(self.total));
            }
        }
    }

    fn append_histogram(&self, out: &mut Vec<u8>, name: &[u8], unit: Unit, total: &HistogramTotal) {
        let labels = self.labels;
        let (exemplars, bounds) = match unit {
            Unit::Bytes => (None, &BUCKET_BOUNDS[..]),
            Unit::Microseconds => (self.total.exemplars.as_deref(), self.bounds.millis()),
        };
        let mut buckets = exemplars.into_iter().flatten();
        let mut end_line = |out: &mut Vec<u8>, count: u64| {
            append(out, &[itoa::Buffer::new().format(count).as_bytes()]);
            if let (Some(Some(exemplar)), Some(now)) = (buckets.next(), self.exemplars_at) {
                exemplars::append(out, exemplar, now);
            }
            out.push(b'\n');
        };
        for (bound, count) in total.cumulative(bounds) {
            append(out, &[name, b"_bucket{", labels]);
            // writing to a vector cannot fail, here and below
            let _ = write!(out, ",le=\"{bound}\"}} ");
            end_line(out, count);
        }
        append(out, &[name, b"_bucket{", labels, b",le=\"+Inf\"} "]);
        end_line(out, total.count());
        append(out, &[name, b"_sum{", labels]);
        let _ = writeln!(out, "}} {}", total.sum(unit));
        append_line(out, &[name, b"_count{", labels, b"} "], total.count());
    }
}

/// Appends a sample: the parts before the value, then the value.
pub(super) fn append_line(out: &mut Vec<u8>, parts: &[&[u8]], value: u64) {
    append(out, parts);
    append(out, &[itoa::Buffer::new().format(value).as_bytes(), b"\n"]);
}

fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Adds all labels of a series except `le`.
fn add_labels(series: &mut SeriesLabels<'_>, labels: &RequestLabels, variant: Variant) {
    series.add_parties(labels);
    if variant == Variant::OVERFLOW {
        for name in [
            label::REQUEST_PROTOCOL,
            label::RESPONSE_CODE,
            label::RESPONSE_FLAGS,
            label::CONNECTION_SECURITY_POLICY,
        ] {
            series.add(name, OTHER);
        }
        return series.finish();
    }
    series.add(label::REQUEST_PROTOCOL, variant.protocol().as_str());
    let code = variant.code();
    series.add(label::RESPONSE_CODE, itoa::Buffer::new().format(code));
    if let Some(status) = variant.grpc_status() {
        series.add(
            label::GRPC_RESPONSE_STATUS,
            itoa::Buffer::new().format(status),
        );
    }
    series.add(label::RESPONSE_FLAGS, &variant.flags().to_string());
    let security = variant.security().as_str();
    series.add(label::CONNECTION_SECURITY_POLICY, security);
    series.finish();
}

/// Value of the labels that [`Variant::OVERFLOW`] combines.
const OTHER: &str = "other";
