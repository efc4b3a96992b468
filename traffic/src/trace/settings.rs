//! Settings of tracing for the requests of one side of a proxy.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

/// Settings of tracing.
///
/// Source: the flags `--trace-...`; Telemetry resources replace some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracingSettings {
    /// Share of requests without an earlier decision that are sampled.
    pub random: Percent,
    /// Share of requests with `x-client-trace-id` that are sampled for it.
    pub client: Percent,
    /// Decision about requests.
    pub sampler: Sampler,
    /// Whether a kept `x-request-id` may say that the request is sampled, and is marked for the proxies behind this one.
    pub uses_request_id: bool,
    /// Formats of trace contexts that are read and written.
    pub propagators: Propagators,
    /// Whether contexts go upstream; if not, the client's are removed.
    pub propagates: bool,
    /// Whether spans are exported.
    pub reports: bool,
    /// Spans of a request.
    pub spans: SpanForm,
    /// Names of spans.
    pub names: SpanNames,
    /// Names of attributes.
    pub attributes: AttributeNames,
    /// Whether spans of attempts have events.
    pub has_events: bool,
    /// Whether spans have the query of the request.
    pub has_query: bool,
    /// Whether spans have the attributes `istio.*` of the workload.
    pub has_istio_tags: bool,
    /// Whether ids of new traces have 64 bits.
    pub has_short_ids: bool,
    /// Maximum number of bytes of `url.path` and `url.full`.
    pub path_bytes_max: usize,
    /// Attributes that resources add.
    pub custom_tags: Vec<CustomTag>,
    /// Requests that are exported although they are not sampled.
    pub keep: Keep,
}

impl Default for TracingSettings {
    fn default() -> Self {
        Self {
            random: Percent::of(1.0),
            client: Percent::ALL,
            sampler: Sampler::default(),
            uses_request_id: true,
            propagators: Propagators::default_formats(),
            propagates: true,
            reports: true,
            spans: SpanForm::default(),
            names: SpanNames::default(),
            attributes: AttributeNames::default(),
            has_events: false,
            has_query: false,
            has_istio_tags: true,
            has_short_ids: false,
            path_bytes_max: 256,
            custom_tags: Vec::new(),
            keep: Keep::default(),
        }
    }
}

/// Formats of trace contexts, in order, each at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Propagators([Option<Propagator>; 3]);

impl Propagators {
    /// The formats unless settings say otherwise.
    pub fn default_formats() -> Self {
        Self::from_iter([Propagator::TraceContext])
    }

    /// Formats of Zipkin's clients: B3, and that of W3C after it if it is wanted.
    pub fn of_zipkin(has_w3c: bool) -> Self {
        let w3c = has_w3c.then_some(Propagator::TraceContext);
        [Some(Propagator::B3Multi), w3c]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Whether a valid B3 context comes before `traceparent`.
    pub fn prefers_b3(self) -> bool {
        matches!(self.0[0], Some(Propagator::B3 | Propagator::B3Multi))
    }

    /// The formats.
    pub fn iter(self) -> impl Iterator<Item = Propagator> {
        self.0.into_iter().flatten()
    }

    /// Whether a format is read and written.
    pub fn has(self, propagator: Propagator) -> bool {
        self.0.contains(&Some(propagator))
    }

    /// Whether B3 headers are read, in both forms.
    pub fn has_b3(self) -> bool {
        self.has(Propagator::B3) || self.has(Propagator::B3Multi)
    }
}

impl FromIterator<Propagator> for Propagators {
    fn from_iter<T: IntoIterator<Item = Propagator>>(propagators: T) -> Self {
        let mut found = Self::default();
        for propagator in propagators {
            let mut slots = found.0.iter_mut();
            if let Some(slot) = slots.find(|slot| slot.is_none_or(|one| one == propagator)) {
                *slot = Some(propagator);
            }
        }
        found
    }
}

/// Share of requests, in steps of 0.01 percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u16);

impl Percent {
    /// All requests.
    pub const ALL: Self = Self(10_000);
    /// No request.
    pub const NONE: Self = Self(0);

    /// The nearest share of this percentage.
    pub fn of(percent: f64) -> Self {
        // a float to an integer saturates
        Self((percent.clamp(0.0, 100.0) * 100.0).round() as u16)
    }

    /// The percentage.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// Whether a draw hits; one from 10,000 equal ones hits with this share.
    pub fn hits(self, draw: u64) -> bool {
        draw % 10_000 < u64::from(self.0)
    }
}

/// Decision about requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampler {
    /// By earlier decisions, then by a draw from the request id.
    #[default]
    ParentBased,
    /// By a draw from the trace id alone.
    TraceIdRatio,
}

/// Format of trace contexts in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagator {
    /// `traceparent` and `tracestate`.
    TraceContext,
    /// `b3`.
    B3,
    /// `x-b3-traceid` and others.
    B3Multi,
}

/// Spans of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanForm {
    /// A server span, and a client span for each attempt.
    #[default]
    Full,
    /// As Istio: at a sidecar one span, of kind CLIENT outbound and SERVER inbound.
    Istio,
}

/// Names of spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanNames {
    /// Names of OpenTelemetry's semantic conventions.
    #[default]
    Semconv,
    /// Names of Istio's proxies.
    Istio,
}

/// Names of attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttributeNames {
    /// Names of OpenTelemetry's semantic conventions.
    #[default]
    Semconv,
    /// Names of Envoy's spans, where both exist.
    Envoy,
    /// Both.
    Both,
}

/// Attribute that a resource adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomTag {
    /// Name of the attribute.
    pub name: Arc<str>,
    /// Source of the value.
    pub source: TagSource,
}

/// Source of the value of a custom tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagSource {
    /// The same text for every request.
    Literal(Arc<str>),
    /// Operators of the access log, printed when the request ends.
    Formatted,
    /// First line of a header of the request, as received.
    Header {
        /// Name of the header.
        name: HeaderName,
        /// Value without the header; none for no attribute.
        default: Option<Arc<str>>,
    },
}

/// Requests that are exported although they are not sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Whether those are that failed, or had an attempt that failed.
    pub errors: bool,
    /// Time from which a request is kept.
    pub slow: Option<Duration>,
}

impl Keep {
    /// Whether any request is kept.
    pub fn is_on(self) -> bool {
        self.errors || self.slow.is_some()
    }
}
