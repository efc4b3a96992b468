//! Converts cells to the families of the `prometheus` crate. Iterators are lazy: a family is made when it is encoded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus::proto::{
    Bucket, Counter as CounterValue, Gauge as GaugeValue, Histogram, LabelPair, Metric,
    MetricFamily, MetricType,
};

use super::super::access_log::AccessLogTotals;
use super::super::{StatsRegistry, Telemetry};
use traffic::telemetry::cells::WorkerCounters;
use traffic::telemetry::connections::{
    CloseReason, ConnectionProtocol, ConnectionTotals, ListenerStats,
};
use traffic::telemetry::control::CertificateState;
use traffic::telemetry::labels::Reporter;
use traffic::telemetry::members::{
    MemberLabels, MemberState, ReplayCause, ReplayLabels, ShiftReason,
};
use traffic::telemetry::names::{self, Counter, Family, Gauge, Series, label};
use traffic::telemetry::policies::{Decided, EVALUATION_BOUNDS};
use traffic::telemetry::routes::CLASSES;

/// Downstream connections, by listener and protocol.
pub(super) fn connections(stats: &StatsRegistry) -> impl Iterator<Item = MetricFamily> {
    type Make = fn(&[Arc<ListenerStats>]) -> MetricFamily;
    let listeners = stats.all_listener_stats();
    let makers: [Make; 3] = [
        |listeners| {
            let values = connection_values(listeners, |totals| totals.opened);
            counter_family(names::DOWNSTREAM_OPENED, values)
        },
        |listeners| counter_family(names::DOWNSTREAM_CLOSED, closed_values(listeners)),
        |listeners| {
            let values = connection_values(listeners, ConnectionTotals::active);
            let values = values.map(|(labels, value)| (labels, value as f64));
            gauge_family(names::DOWNSTREAM_ACTIVE, values)
        },
    ];
    makers.into_iter().map(move |make| make(&listeners))
}

/// Requests of rules with a `statPrefix`, without status classes that never occurred.
pub(super) fn routes(stats: &StatsRegistry) -> MetricFamily {
    let routes = stats.all_route_stats();
    let values = routes.iter().flat_map(|route| {
        let counted = CLASSES.into_iter().zip(route.totals());
        counted
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| {
                let labels = vec![
                    pair(label::STAT_PREFIX, route.prefix()),
                    pair(label::RESPONSE_CODE_CLASS, class),
                ];
                (labels, count)
            })
    });
    counter_family(names::ROUTE_REQUESTS, values)
}

/// Attempts, replays and tier shifts of services with several clusters, without values that never occurred.
pub(super) fn cluster_attempts(stats: &StatsRegistry) -> [MetricFamily; 3] {
    let tries = stats.all_member_tallies();
    let tries = tries.iter().flat_map(|tally| {
        let MemberLabels {
            service,
            source,
            member,
            tier,
        } = tally.labels();
        let counts = CLASSES.into_iter().zip(tally.totals());
        counts
            .filter(|(_, count)| *count > 0)
            .map(move |(class, count)| {
                let labels = vec![
                    pair(label::DESTINATION_SERVICE, service),
                    pair(label::SOURCE_CLUSTER, source),
                    pair(label::DESTINATION_CLUSTER, member),
                    pair(label::TIER, &tier.to_string()),
                    pair(label::RESPONSE_CODE_CLASS, class),
                ];
                (labels, count)
            })
    });
    let ways = stats.all_replay_tallies();
    let ways = ways.iter().flat_map(|tally| {
        let ReplayLabels { service, from, to } = tally.labels();
        let counts = ReplayCause::ALL.into_iter().zip(tally.totals());
        counts
            .filter(|(_, count)| *count > 0)
            .map(move |(cause, count)| {
                let labels = vec![
                    pair(label::DESTINATION_SERVICE, service),
                    pair(label::FROM_CLUSTER, from),
                    pair(label::TO_CLUSTER, to),
                    pair(label::REASON, cause.as_str()),
                ];
                (labels, count)
            })
    });
    let shifts = stats.all_shift_tallies();
    let shifts = shifts.iter().flat_map(|tally| {
        let counts = ShiftReason::ALL.into_iter().zip(tally.totals());
        counts
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| {
                let labels = vec![
                    pair(label::DESTINATION_SERVICE, tally.labels()),
                    pair(label::REASON, reason.as_str()),
                ];
                (labels, count)
            })
    });
    [
        counter_family(names::CLUSTER_ATTEMPTS, tries),
        counter_family(names::FAILOVER_REPLAYS, ways),
        counter_family(names::TIER_SHIFTS, shifts),
    ]
}

/// Decisions of authorization and matches of its policies, without values that never occurred.
pub(super) fn authorization(telemetry: &Telemetry) -> [MetricFamily; 5] {
    let decisions = Decided::all().zip(telemetry.decisions.totals());
    let decisions = decisions.filter(|(_, count)| *count > 0);
    let decisions = decisions.map(|(decided, count)| {
        let result = ["allowed", "denied"][usize::from(decided.is_denied)];
        let transport = ["http", "tcp"][usize::from(decided.is_tcp)];
        let labels = vec![
            pair(label::STAGE, decided.stage.as_str()),
            pair(label::RESULT, result),
            pair(label::TRANSPORT, transport),
        ];
        (labels, count)
    });
    let tallies = telemetry.stats.all_policy_tallies();
    let matches = |is_dry_run: bool| {
        let tallies = tallies
            .iter()
            .filter(move |tally| tally.labels().is_dry_run == is_dry_run);
        let counts = tallies.map(|tally| (tally.labels(), tally.totals()[0]));
        let counts = counts
            .filter(|(_, count)| *count > 0)
            .map(|(labels, count)| {
                let labels = vec![
                    pair(label::NAMESPACE, &labels.namespace),
                    pair(label::POLICY, &labels.name),
                    pair(label::ACTION, labels.action),
                ];
                (labels, count)
            });
        counts.collect::<Vec<_>>()
    };
    let state = telemetry.control.state();
    let states = ["enforced", "dry_run", "denying", "quarantined"].into_iter();
    let states = states.zip(
        state
            .policies
            .into_iter()
            .chain([state.quarantined_policies]),
    );
    let states = states.map(|(state, count)| (vec![pair(label::STATE, state)], count as f64));
    [
        counter_family(names::AUTHZ_DECISIONS, decisions),
        evaluations(telemetry),
        counter_family(names::AUTHZ_MATCHES, matches(false)),
        counter_family(names::AUTHZ_SHADOW, matches(true)),
        gauge_family(names::AUTHZ_POLICIES, states),
    ]
}

/// Times of sampled decisions, if there are any.
fn evaluations(telemetry: &Telemetry) -> MetricFamily {
    let totals = telemetry.evaluations.totals();
    let [counts @ .., sum] = &totals;
    let counted = EVALUATION_BOUNDS.into_iter().zip(counts.iter().copied());
    let counted = counted.map(|(bound, count)| (bound as f64 / 1e9, count));
    let (total, sum) = (counts.iter().sum(), Duration::from_nanos(*sum));
    let histogram = (total > 0).then(|| histogram_metric(Vec::new(), counted, total, sum));
    let histograms = histogram.into_iter().collect();
    family_of(names::AUTHZ_EVALUATION, MetricType::HISTOGRAM, histograms)
}

/// Plain-text connections to workloads that also accept mutual TLS of the mesh.
pub(super) fn plaintext(telemetry: &Telemetry) -> MetricFamily {
    let counts = telemetry.plaintext.counts();
    let [workload, namespace, ..] = label::SOURCE;
    let counts = counts.iter().map(|one| {
        let labels = vec![
            pair(workload, &one.workload),
            pair(namespace, &one.namespace),
            pair(label::SOURCE_ADDRESS, &one.address),
        ];
        (labels, one.connections)
    });
    counter_family(names::INBOUND_PLAINTEXT, counts)
}

/// Requests and connections whose values became `other`, of metrics that have them as labels.
pub(super) fn label_overflow(telemetry: &Telemetry) -> MetricFamily {
    let rules = telemetry.stats.rules();
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for reporter in [Reporter::Source, Reporter::Destination] {
        for name in rules.families_of_requests(reporter) {
            *counts.entry(name).or_default() += telemetry.tags.overflowed(reporter);
        }
    }
    let stats = &telemetry.stats;
    let shared = stats.shared_series().totals(&stats.all_rule_stats());
    let of_rules = shared.into_iter().sum();
    if of_rules > 0 {
        counts.insert(names::RULE_REQUESTS.name, of_rules);
    }
    let counts = counts.into_iter();
    let counts = counts.map(|(name, count)| (vec![pair(label::METRIC, name)], count));
    counter_family(names::LABEL_OVERFLOW, counts)
}

/// Shares and available endpoints of clusters, by service.
pub(super) fn cluster_shares(states: &[MemberState]) -> [MetricFamily; 2] {
    let labels = |state: &MemberState| {
        vec![
            pair(label::DESTINATION_SERVICE, &state.service),
            pair(label::DESTINATION_CLUSTER, &state.member),
            pair(label::PORT, &state.port),
            pair(label::SUBSET, &state.subset),
        ]
    };
    let shares = states.iter().map(|state| (labels(state), state.share));
    let available = states
        .iter()
        .map(|state| (labels(state), state.available as f64));
    [
        gauge_family(names::CLUSTER_SHARE, shares),
        gauge_family(names::CLUSTER_ENDPOINTS, available),
    ]
}

/// Closed connections by listener, protocol and reason, without zeros.
fn closed_values(listeners: &[Arc<ListenerStats>]) -> impl Iterator<Item = (Vec<LabelPair>, u64)> {
    let protocols = || ConnectionProtocol::ALL.into_iter();
    let each = listeners.iter().flat_map(move |listener| {
        let each = protocols().flat_map(|one| CloseReason::ALL.map(|reason| (one, reason)));
        each.map(move |(protocol, reason)| (listener, protocol, reason))
    });
    each.filter_map(|(listener, protocol, reason)| {
        let count = listener.closed_for(protocol, reason);
        let labels = || {
            vec![
                pair(label::LISTENER, listener.name()),
                pair(label::PROTOCOL, protocol.as_str()),
                pair(label::REASON, reason.as_str()),
            ]
        };
        (count > 0).then(|| (labels(), count))
    })
}

/// Values of one count by listener and protocol, without protocols that never occurred.
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
    let local_replies =
        local_replies.map(|(flag, count)| (vec![pair(label::RESPONSE_FLAG, flag)], count));
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
            // below zero only while another worker's part of a move is not visible yet
            (labels, counters.gauge(*gauge).max(0) as f64)
        });
        gauge_family(family, values)
    });
    counts.chain(levels).chain([local_replies])
}

/// Groups consecutive series of the same family; [`names`] keeps them together.
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
        (result("succeeded"), state.reloads_succeeded),
        (result("failed"), state.reloads_failed),
    ];
    let last_success = state.last_success.map(|at| (Vec::new(), unix_seconds(at)));
    let kinds = state.quarantined.iter();
    let quarantined = kinds.map(|(kind, count)| (vec![pair(label::KIND, kind)], *count as f64));
    let source = |one: &CertificateState| vec![pair(label::SOURCE_OF_CERTIFICATE, &one.source)];
    let certificates = || state.certificates.iter();
    let expirations = certificates().filter_map(|one| Some((source(one), one.expires? as f64)));
    let refused = certificates().map(|one| (source(one), f64::from(u8::from(one.is_refused))));
    let fetched = state.key_sets.iter();
    let fetched = fetched.map(|(url, at)| {
        (
            vec![pair(label::SOURCE_OF_CERTIFICATE, url)],
            unix_seconds(*at),
        )
    });
    let build_labels = vec![
        pair(label::VERSION, &build.version),
        pair(label::REVISION, &build.revision),
    ];
    let component = vec![
        pair(label::COMPONENT, "proxy"),
        pair(label::TAG, &build.version),
    ];
    let one = |family, value| gauge_family(family, [(Vec::new(), value)]);
    [
        gauge_family(names::BUILD_INFO, [(build_labels, 1.0)]),
        gauge_family(names::ISTIO_BUILD, [(component, 1.0)]),
        one(names::WORKERS, telemetry.workers() as f64),
        counter_family(names::RELOADS, reloads),
        gauge_family(names::LAST_RELOAD_SUCCESS, last_success),
        one(names::LAST_RELOAD_DURATION, state.last_took.as_secs_f64()),
        one(names::GENERATION, state.generation as f64),
        gauge_family(names::RESOURCES_REJECTED, quarantined),
        one(names::POLICIES_UNENFORCED, state.unenforced as f64),
        one(names::EXPRESSIONS_UNSUPPORTED, state.unsupported as f64),
        one(
            names::RESTART_PENDING,
            f64::from(u8::from(state.restart_pending)),
        ),
        gauge_family(names::CERTIFICATE_EXPIRATION, expirations),
        gauge_family(names::CERTIFICATE_REJECTED, refused),
        gauge_family(names::KEY_SET_FETCHED, fetched),
        one(
            names::REQUEST_LABEL_SETS,
            telemetry.stats.all_request_stats().len() as f64,
        ),
    ]
    .into_iter()
}

/// Identity of the workload, as of this time.
pub(super) fn identity(
    telemetry: &Telemetry,
    now: SystemTime,
) -> impl Iterator<Item = MetricFamily> {
    let state = telemetry.control.state();
    let expires = state.identity.expires.unwrap_or_default();
    let left = (expires as f64 - unix_seconds(now)).max(0.0);
    let left = state.identity.has_source.then_some((Vec::new(), left));
    let requests = state.identity_requests.iter();
    let requests = requests.map(|([source, result], count)| {
        let labels = vec![
            pair(label::RESULT, result),
            pair(label::SOURCE_OF_CERTIFICATE, source),
        ];
        (labels, *count)
    });
    let bundles = state.identity.bundles.iter();
    let bundles = bundles.map(|(domain, count)| {
        let labels = vec![pair(label::TRUST_DOMAIN, domain)];
        (labels, *count as f64)
    });
    [
        gauge_family(names::IDENTITY_EXPIRY, left),
        counter_family(names::IDENTITY_RENEWALS, requests),
        gauge_family(names::IDENTITY_BUNDLE, bundles),
    ]
    .into_iter()
}

pub(super) fn unix_seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// Lines of the process log that were dropped.
pub(super) fn log(dropped: u64) -> MetricFamily {
    counter_family(names::PROCESS_LOG_DROPPED, [(Vec::new(), dropped)])
}

/// Lines of the access log.
pub(super) fn access_log(totals: &[(String, AccessLogTotals)]) -> [MetricFamily; 2] {
    let family = |family, count: fn(&AccessLogTotals) -> u64| {
        let series = totals.iter();
        let series = series.map(|(sink, totals)| (vec![pair("sink", sink)], count(totals)));
        counter_family(family, series)
    };
    [
        family(names::ACCESS_LOG_LINES, |totals| totals.lines),
        family(names::ACCESS_LOG_DROPPED, |totals| totals.dropped),
    ]
}

pub(super) fn counter_family(
    family: Family,
    values: impl IntoIterator<Item = (Vec<LabelPair>, u64)>,
) -> MetricFamily {
    let values = values.into_iter();
    let metrics = values.map(|(labels, value)| counter_metric(labels, value as f64));
    family_of(family, MetricType::COUNTER, metrics.collect())
}

/// A counter without labels, with a fractional value.
pub(super) fn decimal_counter_family(family: Family, value: Option<f64>) -> MetricFamily {
    let metrics = value.map(|value| counter_metric(Vec::new(), value));
    family_of(family, MetricType::COUNTER, metrics.into_iter().collect())
}

pub(super) fn counter_metric(labels: Vec<LabelPair>, value: f64) -> Metric {
    let mut counter = CounterValue::default();
    counter.set_value(value);
    let mut metric = Metric::from_label(labels);
    metric.set_counter(counter);
    metric
}

/// Gauges by label set.
pub(super) fn gauge_family(
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

/// Makes a histogram from the counts of its buckets below `+Inf`, its total count and its sum.
pub(super) fn histogram_metric(
    labels: Vec<LabelPair>,
    counted: impl Iterator<Item = (f64, u64)>,
    total: u64,
    sum: Duration,
) -> Metric {
    let mut count = 0;
    let mut buckets = Vec::new();
    // the encoder adds the last bucket, `+Inf`, with the total count
    for (bound, counted) in counted {
        count += counted;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        buckets.push(bucket);
    }
    let mut histogram = Histogram::default();
    histogram.set_sample_count(total);
    histogram.set_sample_sum(sum.as_secs_f64());
    histogram.set_bucket(buckets);
    let mut metric = Metric::from_label(labels);
    metric.set_histogram(histogram);
    metric
}

pub(super) fn family_of(family: Family, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut made = MetricFamily::default();
    made.set_name(family.name.to_owned());
    made.set_help(family.help.to_owned());
    made.set_field_type(kind);
    made.set_metric(metrics);
    made
}

pub(super) fn pair(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}
