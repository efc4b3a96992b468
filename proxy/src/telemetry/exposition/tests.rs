use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::super::{
    AccessLog, AppliedSource, BuildInfo, CloseReason, ConnectionProtocol, Counter, Gauge, Reload,
    Reporter, RequestLabels, RequestProtocol, RequestRecord, ResponseFlags, Security, Service,
    Telemetry, VARIANTS_MAX, WorkerId, Workload,
};
use super::*;

mod parser;

use parser::{Scrape, scrape};

const W0: WorkerId = WorkerId(0);

fn build() -> BuildInfo {
    BuildInfo {
        version: "1.2.3".to_owned(),
        revision: "abc".to_owned(),
    }
}

fn exposed(telemetry: &Arc<Telemetry>) -> Scrape {
    let exposition = Exposition::new(telemetry.clone(), Arc::new(AccessLog::off(1)));
    scrape(&text_of(&exposition, TextFormat::Prometheus))
}

fn text_of(exposition: &Exposition, format: TextFormat) -> String {
    let text = exposition.chunks(format).expect("text").flatten().collect();
    String::from_utf8(text).expect("UTF-8")
}

fn labels(host: &str) -> RequestLabels {
    let source = Workload {
        name: "gateway".into(),
        namespace: "istio-system".into(),
        ..Workload::default()
    };
    let destination = Workload {
        app: "reviews".into(),
        version: "v2".into(),
        ..Workload::default()
    };
    RequestLabels {
        reporter: Reporter::Source,
        source: Arc::new(source),
        destination: Arc::new(destination),
        service: Arc::new(Service {
            host: host.into(),
            name: "reviews".into(),
            namespace: "default".into(),
        }),
    }
}

fn record() -> RequestRecord {
    RequestRecord {
        code: 200,
        flags: ResponseFlags::NONE,
        protocol: RequestProtocol::Http,
        grpc_status: None,
        security: Security::Unknown,
        duration: Duration::from_micros(7_250),
        request_bytes: 0,
        response_bytes: 1_200,
        request_messages: 0,
        response_messages: 0,
        trace: None,
    }
}

/// Istio's labels; gRPC series have the status in addition.
const ISTIO_LABELS: [&str; 24] = [
    "reporter",
    "source_workload",
    "source_workload_namespace",
    "source_principal",
    "source_app",
    "source_version",
    "source_cluster",
    "source_canonical_service",
    "source_canonical_revision",
    "destination_workload",
    "destination_workload_namespace",
    "destination_principal",
    "destination_app",
    "destination_version",
    "destination_cluster",
    "destination_canonical_service",
    "destination_canonical_revision",
    "destination_service",
    "destination_service_name",
    "destination_service_namespace",
    "request_protocol",
    "response_code",
    "response_flags",
    "connection_security_policy",
];

#[test]
fn requests_have_the_istio_names_and_labels() {
    let telemetry = Telemetry::new(1, build());
    telemetry
        .stats
        .request_stats(&labels("reviews.default.svc.cluster.local"))
        .record(W0, &record());
    let scrape = exposed(&telemetry);
    for (family, kind) in [
        ("istio_requests_total", "counter"),
        ("istio_request_duration_milliseconds", "histogram"),
        ("istio_request_bytes", "histogram"),
        ("istio_response_bytes", "histogram"),
    ] {
        assert_eq!(scrape.kinds[family], kind);
    }
    let requests = scrape.only("istio_requests_total");
    assert_eq!(requests.value, 1.0);
    let names: BTreeSet<&str> = requests.labels.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(ISTIO_LABELS));
    for (name, value) in [
        ("reporter", "source"),
        ("source_workload", "gateway"),
        ("source_principal", "unknown"),
        ("destination_app", "reviews"),
        ("destination_version", "v2"),
        ("destination_service", "reviews.default.svc.cluster.local"),
        ("request_protocol", "http"),
        ("response_code", "200"),
        ("response_flags", "-"),
        ("connection_security_policy", "unknown"),
    ] {
        assert_eq!(requests.labels[name], value, "{name}");
    }
    for absent in [
        "istio_request_messages_total",
        "istio_response_messages_total",
    ] {
        assert!(scrape.named(absent).is_empty(), "{absent} counts gRPC only");
    }
}

#[test]
fn durations_are_exposed_in_milliseconds_with_istio_buckets() {
    let telemetry = Telemetry::new(1, build());
    let stats = telemetry.stats.request_stats(&labels("a"));
    stats.record(W0, &record());
    stats.record(
        W0,
        &RequestRecord {
            duration: Duration::from_secs(7_200),
            ..record()
        },
    );
    let scrape = exposed(&telemetry);
    let buckets = scrape.named("istio_request_duration_milliseconds_bucket");
    let bounds: Vec<&str> = buckets
        .iter()
        .map(|sample| sample.labels["le"].as_str())
        .collect();
    assert_eq!(
        bounds.join(","),
        "0.5,1,5,10,25,50,100,250,500,1000,2500,5000,10000,30000,60000,300000,600000,1800000,3600000,+Inf"
    );
    let counts: Vec<f64> = buckets.iter().map(|sample| sample.value).collect();
    assert_eq!(counts[..4], [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(counts[18..], [1.0, 2.0]);
    assert!(counts.is_sorted());
    assert_eq!(
        scrape
            .only("istio_request_duration_milliseconds_count")
            .value,
        2.0
    );
    assert_eq!(
        scrape.only("istio_request_duration_milliseconds_sum").value,
        7_200_007.25
    );
    assert_eq!(scrape.only("istio_response_bytes_sum").value, 2_400.0);
}

#[test]
fn grpc_requests_have_status_and_message_counts() {
    let telemetry = Telemetry::new(1, build());
    let stats = telemetry.stats.request_stats(&labels("a"));
    let grpc = RequestRecord {
        protocol: RequestProtocol::Grpc,
        grpc_status: Some(14),
        flags: ResponseFlags::UF | ResponseFlags::URX,
        security: Security::MutualTls,
        request_messages: 1,
        response_messages: 5,
        ..record()
    };
    stats.record(W0, &grpc);
    stats.record(W0, &record());
    let scrape = exposed(&telemetry);
    let messages = scrape.only("istio_response_messages_total");
    assert_eq!(messages.value, 5.0);
    assert_eq!(messages.labels["grpc_response_status"], "14");
    assert_eq!(messages.labels["request_protocol"], "grpc");
    assert_eq!(messages.labels["response_flags"], "UF,URX");
    assert_eq!(messages.labels["connection_security_policy"], "mutual_tls");
    assert_eq!(scrape.only("istio_request_messages_total").value, 1.0);
    assert_eq!(scrape.named("istio_requests_total").len(), 2);
}

#[test]
fn an_unused_label_set_has_no_series() {
    let telemetry = Telemetry::new(1, build());
    let _held = telemetry.stats.request_stats(&labels("a"));
    let scrape = exposed(&telemetry);
    assert!(scrape.named("istio_requests_total").is_empty());
    assert_eq!(scrape.only("strait_request_label_sets").value, 1.0);
}

#[test]
fn a_label_set_continues_after_a_reload() {
    let telemetry = Telemetry::new(1, build());
    telemetry
        .stats
        .request_stats(&labels("a"))
        .record(W0, &record());
    exposed(&telemetry);
    telemetry
        .stats
        .request_stats(&labels("a"))
        .record(W0, &record());
    assert_eq!(exposed(&telemetry).only("istio_requests_total").value, 2.0);
}

#[test]
fn variants_beyond_the_limit_are_exposed_as_other() {
    let telemetry = Telemetry::new(1, build());
    let stats = telemetry.stats.request_stats(&labels("a"));
    for code in 0..VARIANTS_MAX as u16 + 9 {
        stats.record(W0, &RequestRecord { code, ..record() });
    }
    let scrape = exposed(&telemetry);
    let requests = scrape.named("istio_requests_total");
    assert_eq!(requests.len(), VARIANTS_MAX + 1);
    let other = requests
        .iter()
        .find(|sample| sample.labels["response_code"] == "other");
    assert_eq!(other.map(|sample| sample.value), Some(9.0));
}

#[test]
fn label_values_are_escaped() {
    let telemetry = Telemetry::new(1, build());
    telemetry
        .stats
        .request_stats(&labels("a\"b\\c\nd"))
        .record(W0, &record());
    let scrape = exposed(&telemetry);
    assert_eq!(
        scrape.only("istio_requests_total").labels["destination_service"],
        "a\"b\\c\nd"
    );
}

#[test]
fn worker_counters_are_exposed_from_the_start() {
    let telemetry = Telemetry::new(2, build());
    let scrape = exposed(&telemetry);
    for counter in Counter::ALL {
        let series = counter.series();
        let found = scrape.named(series.family.name).iter().any(|sample| {
            series
                .label
                .is_none_or(|(name, value)| sample.labels[name] == value)
                && sample.value == 0.0
        });
        assert!(found, "{counter:?}");
        assert_eq!(scrape.kinds[series.family.name], "counter");
    }
    for gauge in Gauge::ALL {
        let samples = scrape.named(gauge.series().family.name);
        assert!(!samples.is_empty() && samples.iter().all(|one| one.value == 0.0));
        assert_eq!(scrape.kinds[gauge.series().family.name], "gauge");
    }
    assert_eq!(scrape.only("strait_workers").value, 2.0);
    assert!(scrape.named("strait_local_replies_total").is_empty());
}

#[test]
fn workers_connections_and_local_replies_are_exposed() {
    let telemetry = Telemetry::new(1, build());
    telemetry.counters.add(W0, Counter::ConnectTimeout, 2);
    telemetry.counters.raise(W0, Gauge::PoolIdle);
    telemetry.counters.local_reply(W0, ResponseFlags::NR);
    let listener = telemetry.stats.listener_stats("0.0.0.0:8080");
    listener.opened(W0, ConnectionProtocol::Http1);
    listener.opened(W0, ConnectionProtocol::Http1);
    listener.closed(W0, ConnectionProtocol::Http1, CloseReason::Drain);
    let scrape = exposed(&telemetry);
    let timeouts = scrape.with(
        "strait_upstream_connect_failures_total",
        "reason",
        "timeout",
    );
    assert_eq!(timeouts.value, 2.0);
    assert_eq!(scrape.only("strait_pool_connections_idle").value, 1.0);
    assert_eq!(
        scrape
            .with("strait_local_replies_total", "response_flag", "NR")
            .value,
        1.0
    );
    let active = scrape.only("strait_downstream_connections_active");
    assert_eq!(active.value, 1.0);
    let expected = [("listener", "0.0.0.0:8080"), ("protocol", "http1")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(active.labels, BTreeMap::from(expected));
    assert_eq!(
        scrape
            .only("strait_downstream_connections_opened_total")
            .value,
        2.0
    );
    assert_eq!(
        scrape
            .only("strait_downstream_connections_closed_total")
            .value,
        1.0
    );
}

#[test]
fn reloads_resources_and_build_are_exposed() {
    let telemetry = Telemetry::new(1, build());
    let before = exposed(&telemetry);
    assert!(
        before
            .named("strait_config_last_reload_success_timestamp_seconds")
            .is_empty()
    );

    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_500);
    let took = Duration::from_millis(40);
    telemetry.control.reloaded(Reload::Succeeded {
        generation: 3,
        at,
        took,
    });
    telemetry.control.reloaded(Reload::Failed);
    telemetry.control.set_quarantined(["Gateway"]);
    assert_eq!(
        exposed(&telemetry)
            .only("strait_config_policies_unenforced")
            .value,
        0.0
    );
    telemetry.control.set_unenforced(2);
    let scrape = exposed(&telemetry);
    assert_eq!(
        scrape
            .with("strait_config_reloads_total", "result", "succeeded")
            .value,
        1.0
    );
    assert_eq!(
        scrape
            .with("strait_config_reloads_total", "result", "failed")
            .value,
        1.0
    );
    let last_success = scrape.only("strait_config_last_reload_success_timestamp_seconds");
    assert_eq!(last_success.value, 1_700_000_000.5);
    assert_eq!(
        scrape
            .only("strait_config_last_reload_duration_seconds")
            .value,
        0.04
    );
    assert_eq!(scrape.only("strait_config_generation").value, 3.0);
    assert_eq!(
        scrape
            .with("strait_config_resources_rejected", "kind", "Gateway")
            .value,
        1.0
    );
    assert_eq!(scrape.only("strait_config_policies_unenforced").value, 2.0);
    let info = scrape.only("strait_build_info");
    assert_eq!(
        (
            info.labels["version"].as_str(),
            info.labels["revision"].as_str()
        ),
        ("1.2.3", "abc")
    );
    let component = scrape.only("istio_build");
    assert_eq!(component.value, 1.0);
    assert_eq!(scrape.kinds["istio_build"], "gauge");
    assert_eq!(
        (
            component.labels["component"].as_str(),
            component.labels["tag"].as_str()
        ),
        ("proxy", "1.2.3")
    );
}

#[test]
fn open_metrics_has_the_same_samples_under_families_without_total() {
    let telemetry = Telemetry::new(1, build());
    let stats = telemetry.stats.request_stats(&labels("a"));
    let grpc = RequestRecord {
        protocol: RequestProtocol::Grpc,
        ..record()
    };
    stats.record(W0, &grpc);
    stats.tcp().opened(W0);
    let exposition = Exposition::new(telemetry, Arc::new(AccessLog::off(1)));
    let text = text_of(&exposition, TextFormat::OpenMetrics);
    let plain = text_of(&exposition, TextFormat::Prometheus);
    let samples = |text: &str| -> Vec<String> {
        // process metrics change between two scrapes
        let stays = |line: &&str| !line.starts_with('#') && !line.starts_with("process_");
        text.lines().filter(stays).map(str::to_owned).collect()
    };
    assert_eq!(samples(&text), samples(&plain));
    assert!(!plain.contains("# EOF"));
    let (families, rest) = text.split_once("# EOF").expect("an end");
    assert_eq!(rest, "\n", "the end is the last line");

    let mut kinds = BTreeMap::new();
    let mut family = ("", "");
    for line in families.lines() {
        let (name, kind) = family;
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            family = declared.split_once(' ').expect("name and type");
            assert_eq!(kinds.insert(family.0, family.1), None, "twice: {line}");
        } else if let Some(help) = line.strip_prefix("# HELP ") {
            assert!(!help.contains(['"', '\\']), "needs escapes: {line}");
        } else {
            let sample = line.split(['{', ' ']).next().expect("a name");
            let suffix = sample.strip_prefix(name).expect("a sample of the family");
            let expected: &[&str] = match kind {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(expected.contains(&suffix), "{line} of {kind} {name}");
        }
    }
    for (name, kind) in [
        ("istio_requests", "counter"),
        ("istio_request_messages", "counter"),
        ("istio_request_duration_milliseconds", "histogram"),
        ("istio_tcp_connections_opened", "counter"),
        ("process_cpu_seconds", "counter"),
        ("strait_task_panics", "counter"),
        ("istio_build", "gauge"),
    ] {
        assert_eq!(kinds.get(name), Some(&kind), "{name}");
    }
}

#[test]
fn many_label_sets_are_written_in_chunks_of_one_text() {
    let telemetry = Telemetry::new(1, build());
    let hosts: Vec<String> = (0..40).map(|index| format!("s{index}")).collect();
    for host in &hosts {
        telemetry
            .stats
            .request_stats(&labels(host))
            .record(W0, &record());
    }
    let exposition = Exposition::new(telemetry.clone(), Arc::new(AccessLog::off(1)));
    let sizes: Vec<usize> = exposition
        .chunks(TextFormat::Prometheus)
        .expect("text")
        .map(|chunk| chunk.len())
        .collect();
    assert!(sizes.len() > 10, "{sizes:?}");
    assert!(
        sizes.iter().all(|size| *size > 0 && *size < 128 << 10),
        "{sizes:?}"
    );
    let scrape = exposed(&telemetry);
    let requests = scrape.named("istio_requests_total").into_iter();
    let seen: Vec<&String> = requests
        .map(|sample| &sample.labels["destination_service"])
        .collect();
    assert!(
        seen.into_iter().eq(&hosts),
        "in the order in which they were made"
    );
    assert_eq!(
        scrape.named("istio_response_bytes_count").len(),
        hosts.len()
    );
}

#[test]
fn seconds_to_the_effect_of_a_change_are_a_histogram() {
    let telemetry = Arc::new(Telemetry::new(1, build()));
    for millis in [1, 400, 100_000_000] {
        let source = AppliedSource {
            source: "files".into(),
            revision: None,
            received: SystemTime::UNIX_EPOCH,
            applied: SystemTime::UNIX_EPOCH,
            took: Duration::from_millis(millis),
            restored: None,
        };
        telemetry.propagation.applied(source, true);
    }
    // the parser checks it
    let scrape = exposed(&telemetry);
    let name = "strait_config_propagation_seconds";
    assert_eq!(scrape.kinds[name], "histogram");
    let all = scrape.with(&format!("{name}_bucket"), "le", "+Inf");
    assert_eq!(all.value, 3.0);
    assert_eq!(scrape.only(&format!("{name}_count")).value, 3.0);
}
