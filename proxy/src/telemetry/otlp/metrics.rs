//! Metrics in OTLP, made of the OpenMetrics text of a scrape, so that both have the same values.

use super::attributes::{Attributes, VALUE_BYTES_MAX};
use super::protobuf::{bytes, fixed64, integer, message};

/// Number of bytes of data points after which a metric is continued in another one of the same name.
const POINTS_BYTES_MAX: usize = 128 << 10;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;

/// Converts a page to fields `metrics` of a `ScopeMetrics`, one after the other. Times are nanoseconds since 1970.
pub(super) struct Converter {
    /// Begin of all sums: the start of the process.
    start: u64,
    now: u64,
    out: Vec<u8>,
    family: Family,
    /// Data points of the family that are in no metric yet: fields 1.
    points: Vec<u8>,
    histogram: HistogramPoint,
}

#[derive(Default)]
struct Family {
    name: String,
    help: String,
    kind: Kind,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Gauge,
    Counter,
    Histogram,
}

/// Histogram whose samples are being read.
#[derive(Default)]
struct HistogramPoint {
    bounds: Vec<f64>,
    /// Cumulative counts, the last one of the bucket without a bound.
    counts: Vec<u64>,
    sum: f64,
    /// Fields `exemplars`.
    exemplars: Vec<u8>,
}

/// Sample of a page, `NAME{LABELS} VALUE # {LABELS} VALUE TIME`.
struct Sample<'t> {
    name: &'t str,
    labels: Vec<(&'t str, String)>,
    value: f64,
    exemplar: Option<&'t str>,
}

impl Converter {
    pub(super) fn new(start: u64, now: u64) -> Self {
        Self {
            start,
            now,
            out: Vec::new(),
            family: Family::default(),
            points: Vec::new(),
            histogram: HistogramPoint::default(),
        }
    }

    /// Converts whole lines.
    pub(super) fn add(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                self.end_metric();
                let (name, help) = help.split_once(' ').unwrap_or((help, ""));
                name.clone_into(&mut self.family.name);
                help.clone_into(&mut self.family.help);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                self.family.kind = match kind.rsplit(' ').next() {
                    Some("counter") => Kind::Counter,
                    Some("histogram") => Kind::Histogram,
                    _ => Kind::Gauge,
                };
            } else if let Some(sample) = Sample::parse(line) {
                self.add_sample(&sample);
            }
        }
    }

    /// Returns the metrics.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_metric();
        self.out
    }

    fn add_sample(&mut self, sample: &Sample<'_>) {
        match self.family.kind {
            Kind::Histogram => self.add_to_histogram(sample),
            Kind::Counter | Kind::Gauge => {
                let (start, now) = (self.start, self.now);
                let is_sum = self.family.kind == Kind::Counter;
                message(&mut self.points, 1, |out| {
                    attributes(out, 7, &sample.labels);
                    if is_sum {
                        fixed64(out, 2, start);
                    }
                    fixed64(out, 3, now);
                    fixed64(out, 4, sample.value.to_bits());
                    if let Some(exemplar) = sample.exemplar {
                        write_exemplar(out, 5, exemplar);
                    }
                });
            }
        }
        if self.points.len() > POINTS_BYTES_MAX {
            self.end_metric();
        }
    }

    fn add_to_histogram(&mut self, sample: &Sample<'_>) {
        let histogram = &mut self.histogram;
        match sample.name.rsplit('_').next() {
            Some("bucket") => {
                let bound = sample.labels.iter().find(|(name, _)| *name == "le");
                let bound = bound.and_then(|(_, bound)| bound.parse::<f64>().ok());
                histogram.bounds.extend(bound.filter(|one| one.is_finite()));
                histogram.counts.push(sample.value as u64);
                if let Some(exemplar) = sample.exemplar {
                    write_exemplar(&mut histogram.exemplars, 8, exemplar);
                }
            }
            Some("sum") => histogram.sum = sample.value,
            // the last sample of a histogram
            _ => {
                let whole = std::mem::take(histogram);
                let (start, now) = (self.start, self.now);
                message(&mut self.points, 1, |out| {
                    attributes(out, 9, &sample.labels);
                    fixed64(out, 2, start);
                    fixed64(out, 3, now);
                    fixed64(out, 4, sample.value as u64);
                    fixed64(out, 5, whole.sum.to_bits());
                    whole.write_buckets(out);
                    out.extend_from_slice(&whole.exemplars);
                });
            }
        }
    }

    /// Writes the data points as a metric.
    fn end_metric(&mut self) {
        let points = std::mem::take(&mut self.points);
        if points.is_empty() {
            return;
        }
        let Family { name, help, kind } = &self.family;
        let name = name.strip_suffix("_total").unwrap_or(name);
        message(&mut self.out, 2, |out| {
            bytes(out, 1, name.as_bytes());
            bytes(out, 2, help.as_bytes());
            bytes(out, 3, unit(name, *kind).as_bytes());
            let field = match kind {
                Kind::Gauge => 5,
                Kind::Counter => 7,
                Kind::Histogram => 9,
            };
            message(out, field, |out| {
                out.extend_from_slice(&points);
                if *kind != Kind::Gauge {
                    integer(out, 2, CUMULATIVE);
                }
                integer(out, 3, u64::from(*kind == Kind::Counter));
            });
        });
    }
}

impl HistogramPoint {
    fn write_buckets(&self, out: &mut Vec<u8>) {
        let before = std::iter::once(&0).chain(&self.counts);
        let counts = self.counts.iter().zip(before);
        let counts = counts.map(|(count, before)| count.saturating_sub(*before).to_le_bytes());
        bytes(out, 6, &counts.flatten().collect::<Vec<u8>>());
        let bounds = self.bounds.iter().map(|bound| bound.to_le_bytes());
        bytes(out, 7, &bounds.flatten().collect::<Vec<u8>>());
    }
}

/// Unit of a metric by its name, in UCUM.
fn unit(name: &str, kind: Kind) -> &'static str {
    match name.rsplit('_').next() {
        Some("bytes") => "By",
        Some("milliseconds") => "ms",
        Some("seconds") => "s",
        Some("ratio") => "1",
        _ if kind == Kind::Counter => "1",
        // Prometheus would add `_ratio` to the name of a gauge
        _ => "",
    }
}

fn attributes(out: &mut Vec<u8>, field: u32, labels: &[(&str, String)]) {
    let mut attributes = Attributes::new(out, field, usize::MAX, VALUE_BYTES_MAX);
    for (name, value) in labels.iter().filter(|(name, _)| *name != "le") {
        attributes.text(name, value);
    }
}

/// Writes `{trace_id="..",span_id=".."} VALUE SECONDS`.
fn write_exemplar(out: &mut Vec<u8>, field: u32, text: &str) {
    let Some((labels, rest)) = labels(text) else {
        return;
    };
    let mut rest = rest.split_ascii_whitespace().map(str::parse::<f64>);
    let (Some(Ok(value)), Some(Ok(seconds))) = (rest.next(), rest.next()) else {
        return;
    };
    let id = |wanted| {
        let found = labels.iter().find(|(name, _)| *name == wanted);
        found.and_then(|(_, hex)| u128::from_str_radix(hex, 16).ok())
    };
    message(out, field, |out| {
        fixed64(out, 2, (seconds * 1e3) as u64 * 1_000_000);
        fixed64(out, 3, value.to_bits());
        if let Some(span) = id("span_id") {
            bytes(out, 4, &(span as u64).to_be_bytes());
        }
        if let Some(trace) = id("trace_id") {
            bytes(out, 5, &trace.to_be_bytes());
        }
    });
}

impl<'t> Sample<'t> {
    /// Parses a line; `None` for a comment.
    fn parse(line: &'t str) -> Option<Self> {
        let end = line.find(['{', ' ']).filter(|end| *end > 0)?;
        let (name, rest) = line.split_at(end);
        if name.starts_with('#') {
            return None;
        }
        let (labels, rest) = labels(rest)?;
        let (value, exemplar) = match rest.split_once(" # ") {
            Some((value, exemplar)) => (value, Some(exemplar)),
            None => (rest, None),
        };
        Some(Self {
            name,
            labels,
            value: value.trim().parse().ok()?,
            exemplar,
        })
    }
}

/// Labels by name.
type Labels<'t> = Vec<(&'t str, String)>;

/// Parses `{NAME="VALUE",..}`, if a text begins so; returns the rest.
fn labels(text: &str) -> Option<(Labels<'_>, &str)> {
    let Some(mut rest) = text.strip_prefix('{') else {
        return Some((Vec::new(), text));
    };
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, value) = rest.split_once("=\"")?;
        let mut found = String::new();
        let mut chars = value.char_indices();
        rest = loop {
            match chars.next()? {
                (at, '"') => break &value[at + 1..],
                (_, '\\') => match chars.next()?.1 {
                    'n' => found.push('\n'),
                    escaped => found.push(escaped),
                },
                (_, plain) => found.push(plain),
            }
        };
        labels.push((name, found));
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

#[cfg(test)]
mod tests;
