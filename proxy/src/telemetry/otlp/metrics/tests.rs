use prost::Message;

use super::super::protobuf::field_length;
use super::*;

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(message, optional, tag = "5")]
    gauge: Option<Points>,
    #[prost(message, optional, tag = "7")]
    sum: Option<Points>,
    #[prost(message, optional, tag = "9")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct Points {
    #[prost(message, repeated, tag = "1")]
    points: Vec<Point>,
    #[prost(int32, tag = "2")]
    temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(fixed64, tag = "2")]
    start: u64,
    #[prost(fixed64, tag = "3")]
    time: u64,
    #[prost(double, tag = "4")]
    value: f64,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(message, repeated, tag = "1")]
    points: Vec<HistogramData>,
    #[prost(int32, tag = "2")]
    temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
struct HistogramData {
    #[prost(fixed64, tag = "4")]
    count: u64,
    #[prost(double, tag = "5")]
    sum: f64,
    #[prost(fixed64, repeated, tag = "6")]
    counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    bounds: Vec<f64>,
    #[prost(message, repeated, tag = "8")]
    exemplars: Vec<Exemplar>,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Exemplar {
    #[prost(fixed64, tag = "2")]
    time: u64,
    #[prost(double, tag = "3")]
    value: f64,
    #[prost(bytes = "vec", tag = "4")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    trace_id: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Text>,
}

#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

fn metrics(page: &str) -> Vec<Metric> {
    let mut converter = Converter::new(7, 9);
    converter.add(page);
    Scope::decode(&*converter.finish())
        .expect("a message")
        .metrics
}

fn pairs(attributes: &[KeyValue]) -> Vec<(&str, &str)> {
    let value = |one: &KeyValue| one.value.as_ref().map(|value| value.text.len());
    assert!(attributes.iter().all(|one| value(one).is_some()));
    let texts = attributes.iter();
    texts
        .map(|one| {
            (
                &*one.key,
                one.value.as_ref().map_or("", |value| &*value.text),
            )
        })
        .collect()
}

#[test]
fn counters_and_gauges_are_sums_and_gauges() {
    let found = metrics(
        "# HELP a_bytes Bytes of a.\n# TYPE a_bytes counter\na_bytes_total{x=\"1\",y=\"q\\\"\\\\,}\"} 5\na_bytes_total 2.5\n\
         # HELP up Whether it is up.\n# TYPE up gauge\nup 1\n# EOF\n",
    );
    let [bytes, up] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((&*bytes.name, &*bytes.unit), ("a_bytes", "By"));
    assert_eq!(bytes.description, "Bytes of a.");
    let sum = bytes.sum.as_ref().unwrap();
    assert_eq!((sum.temporality, sum.is_monotonic), (2, true));
    let values: Vec<_> = sum
        .points
        .iter()
        .map(|one| (one.start, one.time, one.value))
        .collect();
    assert_eq!(values, [(7, 9, 5.0), (7, 9, 2.5)]);
    let labels = pairs(&sum.points[0].attributes);
    assert_eq!(labels, [("x", "1"), ("y", "q\"\\,}")]);
    let gauge = up.gauge.as_ref().unwrap();
    assert_eq!(
        (&*up.name, &*up.unit, gauge.points[0].value),
        ("up", "", 1.0)
    );
    assert_eq!((gauge.points[0].start, gauge.temporality), (0, 0));
}

#[test]
fn buckets_of_histograms_are_no_longer_cumulative() {
    let found = metrics(
        "# HELP h_seconds Time.\n# TYPE h_seconds histogram\n\
         h_seconds_bucket{a=\"1\",le=\"0.5\"} 2 # {trace_id=\"0af7651916cd43dd8448eb211c80319c\",span_id=\"b7ad6b7169203331\"} 0.25 1767225600.123\n\
         h_seconds_bucket{a=\"1\",le=\"1\"} 2\nh_seconds_bucket{a=\"1\",le=\"+Inf\"} 7\nh_seconds_sum{a=\"1\"} 3.5\nh_seconds_count{a=\"1\"} 7\n\
         h_seconds_bucket{le=\"0.5\"} 1\nh_seconds_bucket{le=\"+Inf\"} 1\nh_seconds_sum 0.1\nh_seconds_count 1\n",
    );
    let histogram = found[0].histogram.as_ref().unwrap();
    assert_eq!(
        (found.len(), &*found[0].unit, histogram.temporality),
        (1, "s", 2)
    );
    let [first, second] = &histogram.points[..] else {
        panic!("{histogram:?}");
    };
    assert_eq!((first.count, first.sum), (7, 3.5));
    assert_eq!(
        (&first.counts[..], &first.bounds[..]),
        (&[2, 0, 5][..], &[0.5, 1.0][..])
    );
    assert_eq!(pairs(&first.attributes), [("a", "1")]);
    let exemplar = &first.exemplars[0];
    assert_eq!(
        (exemplar.value, exemplar.time),
        (0.25, 1_767_225_600_123_000_000)
    );
    assert_eq!(exemplar.trace_id[..4], [0x0a, 0xf7, 0x65, 0x19]);
    assert_eq!(
        exemplar.span_id,
        [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]
    );
    assert_eq!((second.counts.clone(), second.count), (vec![1, 0], 1));
    assert!(second.exemplars.is_empty() && second.attributes.is_empty());
}

#[test]
fn large_families_are_several_metrics_of_the_same_name() {
    let line = |n: usize| format!("a_total{{n=\"{n}\",long=\"{}\"}} 1\n", "x".repeat(200));
    let lines: String = (0..2_000).map(line).collect();
    let mut converter = Converter::new(7, 9);
    converter.add(&format!("# HELP a A.\n# TYPE a counter\n{lines}"));
    let encoded = converter.finish();
    let (mut rest, mut fields) = (&encoded[..], 0);
    while let Some(length) = field_length(rest) {
        assert!(length < 2 * POINTS_BYTES_MAX, "{length}");
        (rest, fields) = (&rest[length..], fields + 1);
    }
    assert!(rest.is_empty() && fields > 2);
    let scope = Scope::decode(&*encoded).unwrap();
    assert!(scope.metrics.iter().all(|one| one.name == "a"));
    let points = scope
        .metrics
        .iter()
        .flat_map(|one| &one.sum.as_ref().unwrap().points);
    assert_eq!(points.count(), 2_000);
}

#[test]
fn lines_that_are_no_samples_are_left_out() {
    assert!(metrics("a{b=\"c\n{}\n\na{b=\"\\\na b\n# HELP x\n").is_empty());
}
