//! Cells to the families of the `prometheus` crate. Iterators are lazy: a family is made when it is encoded.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus::proto::{
    Bucket, Counter as CounterValue, Gauge as GaugeValue, Histogram, LabelPair, Metric,
    MetricFamily, MetricType,
};

use super::super::access_log::AccessLogTotals;
use super::super::cells::WorkerCounters;
use super::super::connections::{ConnectionProtocol, ConnectionTotals, ListenerStats};
use super::super::histogram::{HistogramTotal, Unit};
use super::super::labels::RequestLabels;
use super::super::names::{self, Counter, Family, Gauge, Series, label};
use super::super::requests::{RequestProtocol, RequestStats, Total, Variant};
use super::super::{StatsRegistry, Telemetry};

/// Istio's standard HTTP and gRPC metrics.
pub(super) fn requests(stats: &StatsRegistry) -> impl Iterator<Item = MetricFamily> {
    let series = Arc::new(RequestSeries::collect(stats));
    type Make = fn(&RequestSeries) -> MetricFamily;
    let makers: [Make; 6] = [
        |series| series.counters(names::REQUESTS, |_| true, |total| total.duration.count()),
        |series| {
            series.histograms(names::REQUEST_DURATION, Unit::Microseconds, |total| {
                &total.duration
            })
        },
        |series| {
            series.histograms(names::REQUEST_BYTES, Unit::Bytes, |total| {
                &total.request_bytes
            })
        },
        |series| {
            series.histograms(names::RESPONSE_BYTES, Unit::Bytes, |total| {
                &total.response_bytes
            })
        },
        |series| {
            series.counters(names::REQUEST_MESSAGES, is_grpc, |total| {
                total.request_messages
            })
        },
        |series| {
            series.counters(names::RESPONSE_MESSAGES, is_grpc, |total| {
                total.response_messages
            })
        },
    ];
    makers.into_iter().map(move |make| make(&series))
}

/// Downstream connections, by listener and protocol.
pub(super) fn connections(stats: &StatsRegistry) -> impl Iterator<Item = MetricFamily> {
    type Make = fn(&[Arc<ListenerStats>]) -> MetricFamily;
    let listeners = stats.all_listener_stats();
    let makers: [Make; 3] = [
        |listeners| {
            let values = connection_values(listeners, |totals| totals.opened);
            counter_family(names::DOWNSTREAM_OPENED, values)
        },
        |listeners| {
            let values = connection_values(listeners, |totals| totals.closed);
            counter_family(names::DOWNSTREAM_CLOSED, values)
        },
        |listeners| {
            let values = connection_values(listeners, ConnectionTotals::active);
            let values = values.map(|(labels, value)| (labels, value as f64));
            gauge_family(names::DOWNSTREAM_ACTIVE, values)
        },
    ];
    makers.into_iter().map(move |make| make(&listeners))
}

/// Protocols that a listener never saw are left out.
fn connection_values(
    listeners: &[Arc<ListenerStats>],
    of: fn(ConnectionTotals) -> u64,
) -> impl Iterator<Item = (Vec<LabelPair>, u64)> + '_ {
    let pairs = listeners.iter().flat_map(|listener| {
        ConnectionProtocol::ALL
            .into_iter()
            .map(move |protocol| (listener, protocol))
    });
    pairs.filter_map(move |(listener, protocol)| {
        let totals = listener.totals(protocol);
        let labels = || {
            vec![
                pair(label::LISTENER, listener.name()),
                pair(label::PROTOCOL, protocol.as_str()),
            ]
        };
        (totals.opened > 0).then(|| (labels(), of(totals)))
    })
}

/// Counters and gauges of workers. Counters are exposed from the start, at zero, so that the first event shows as an
/// increase; local replies have too many flags for that.
pub(super) fn workers(counters: &WorkerCounters) -> impl Iterator<Item = MetricFamily> + '_ {
    let local_replies = counters.local_replies();
    let local_replies = local_replies.map(|(flag, count)| (vec![pair(label::FLAG, flag)], count));
    let local_replies = counter_family(names::LOCAL_REPLIES, local_replies);
    let counts = by_family(Counter::ALL, |counter| counter.series()).map(|(family, members)| {
        let values = members.iter().map(|counter| {
            let labels = series_labels(counter.series());
            (labels, counters.counter(*counter))
        });
        counter_family(family, values)
    });
    let levels = by_family(Gauge::ALL, |gauge| gauge.series()).map(|(family, members)| {
        let values = members.iter().map(|gauge| {
            let labels = series_labels(gauge.series());
            // Below zero only while another worker's half of a move is not visible yet.
            (labels, counters.gauge(*gauge).max(0) as f64)
        });
        gauge_family(family, values)
    });
    counts.chain(levels).chain([local_replies])
}

/// Runs of series that share a family, which [`names`] keeps together.
fn by_family<T: Copy>(
    all: &'static [T],
    series: fn(T) -> Series,
) -> impl Iterator<Item = (Family, &'static [T])> {
    let same = move |a: &T, b: &T| series(*a).family.name == series(*b).family.name;
    all.chunk_by(same)
        .map(move |members| (series(members[0]).family, members))
}

fn series_labels(series: Series) -> Vec<LabelPair> {
    series
        .label
        .into_iter()
        .map(|(name, value)| pair(name, value))
        .collect()
}

/// Reloads, resources and build.
pub(super) fn control(telemetry: &Telemetry) -> impl Iterator<Item = MetricFamily> {
    let state = telemetry.control.state();
    let build = telemetry.control.build();
    let result = |value| vec![pair(label::RESULT, value)];
    let reloads = [
        (result("ok"), state.reloads_ok),
        (result("failed"), state.reloads_failed),
    ];
    let last_success = state.last_success.map(|at| (Vec::new(), unix_seconds(at)));
    let kinds = state.quarantined.iter();
    let quarantined = kinds.map(|(kind, count)| (vec![pair(label::KIND, kind)], *count as f64));
    let build_labels = vec![
        pair(label::VERSION, &build.version),
        pair(label::REVISION, &build.revision),
    ];
    let one = |family, value| gauge_family(family, [(Vec::new(), value)]);
    [
        gauge_family(names::BUILD_INFO, [(build_labels, 1.0)]),
        one(names::WORKERS, telemetry.workers() as f64),
        counter_family(names::RELOADS, reloads),
        gauge_family(names::RELOAD_LAST_SUCCESS, last_success),
        one(names::RELOAD_DURATION, state.last_took.as_secs_f64()),
        one(names::GENERATION, state.generation as f64),
        gauge_family(names::QUARANTINED, quarantined),
        one(
            names::REQUEST_LABEL_SETS,
            telemetry.stats.all_request_stats().len() as f64,
        ),
    ]
    .into_iter()
}

fn unix_seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// Lines of the access log.
pub(super) fn access_log(totals: AccessLogTotals) -> impl Iterator<Item = MetricFamily> {
    [
        (names::ACCESS_LOG_LINES, totals.lines),
        (names::ACCESS_LOG_DROPPED, totals.dropped),
    ]
    .into_iter()
    .map(|(family, count)| counter_family(family, [(Vec::new(), count)]))
}

type Totals = Vec<(Variant, Total)>;

/// Every label set of requests that was used, with its variants.
struct RequestSeries {
    handles: Vec<(Arc<RequestStats>, Totals)>,
}

impl RequestSeries {
    fn collect(stats: &StatsRegistry) -> Self {
        let handles = stats.all_request_stats().into_iter().map(|handle| {
            let totals = handle.totals();
            (handle, totals)
        });
        Self {
            handles: handles.collect(),
        }
    }

    fn counters(
        &self,
        family: Family,
        applies: fn(Variant) -> bool,
        of: fn(&Total) -> u64,
    ) -> MetricFamily {
        counter_family(
            family,
            self.each(applies)
                .map(|(labels, total)| (labels, of(total))),
        )
    }

    fn histograms(
        &self,
        family: Family,
        unit: Unit,
        of: fn(&Total) -> &HistogramTotal,
    ) -> MetricFamily {
        let metrics = self.each(|_| true).map(|(labels, total)| {
            let mut metric = Metric::from_label(labels);
            metric.set_histogram(histogram(of(total), unit));
            metric
        });
        family_of(family, MetricType::HISTOGRAM, metrics.collect())
    }

    fn each(&self, applies: fn(Variant) -> bool) -> impl Iterator<Item = (Vec<LabelPair>, &Total)> {
        let all = self.handles.iter().flat_map(|(handle, totals)| {
            totals
                .iter()
                .map(move |(variant, total)| (handle, *variant, total))
        });
        let applying = all.filter(move |(_, variant, _)| applies(*variant));
        applying.map(|(handle, variant, total)| (request_labels(handle.labels(), variant), total))
    }
}

fn is_grpc(variant: Variant) -> bool {
    variant.protocol() == RequestProtocol::Grpc && variant != Variant::OVERFLOW
}

fn request_labels(labels: &RequestLabels, variant: Variant) -> Vec<LabelPair> {
    let service = &labels.service;
    let mut pairs = Vec::with_capacity(25);
    pairs.push(pair(label::REPORTER, labels.reporter.as_str()));
    let sources = label::SOURCE.into_iter().zip(labels.source.values());
    let destinations = label::DESTINATION
        .into_iter()
        .zip(labels.destination.values());
    pairs.extend(
        sources
            .chain(destinations)
            .map(|(name, value)| pair(name, value)),
    );
    pairs.push(pair(label::DESTINATION_SERVICE, &service.host));
    pairs.push(pair(label::DESTINATION_SERVICE_NAME, &service.name));
    pairs.push(pair(
        label::DESTINATION_SERVICE_NAMESPACE,
        &service.namespace,
    ));
    if variant == Variant::OVERFLOW {
        let other = [
            label::REQUEST_PROTOCOL,
            label::RESPONSE_CODE,
            label::RESPONSE_FLAGS,
            label::CONNECTION_SECURITY_POLICY,
        ];
        pairs.extend(other.into_iter().map(|name| pair(name, "other")));
        return pairs;
    }
    pairs.push(pair(label::REQUEST_PROTOCOL, variant.protocol().as_str()));
    pairs.push(pair(label::RESPONSE_CODE, &variant.code().to_string()));
    if let Some(status) = variant.grpc_status() {
        pairs.push(pair(label::GRPC_RESPONSE_STATUS, &status.to_string()));
    }
    pairs.push(pair(label::RESPONSE_FLAGS, &variant.flags().to_string()));
    pairs.push(pair(
        label::CONNECTION_SECURITY_POLICY,
        variant.security().as_str(),
    ));
    pairs
}

fn histogram(total: &HistogramTotal, unit: Unit) -> Histogram {
    let buckets = total.cumulative().map(|(bound, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(total.count());
    histogram.set_sample_sum(total.sum(unit));
    histogram
}

fn counter_family(
    family: Family,
    values: impl IntoIterator<Item = (Vec<LabelPair>, u64)>,
) -> MetricFamily {
    let metrics = values.into_iter().map(|(labels, value)| {
        let mut counter = CounterValue::default();
        counter.set_value(value as f64);
        let mut metric = Metric::from_label(labels);
        metric.set_counter(counter);
        metric
    });
    family_of(family, MetricType::COUNTER, metrics.collect())
}

fn gauge_family(
    family: Family,
    values: impl IntoIterator<Item = (Vec<LabelPair>, f64)>,
) -> MetricFamily {
    let metrics = values.into_iter().map(|(labels, value)| {
        let mut gauge = GaugeValue::default();
        gauge.set_value(value);
        let mut metric = Metric::from_label(labels);
        metric.set_gauge(gauge);
        metric
    });
    family_of(family, MetricType::GAUGE, metrics.collect())
}

fn family_of(family: Family, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut made = MetricFamily::default();
    made.set_name(family.name.to_owned());
    made.set_help(family.help.to_owned());
    made.set_field_type(kind);
    made.set_metric(metrics);
    made
}

fn pair(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}
