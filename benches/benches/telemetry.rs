//! Cost of telemetry per request: recording it in the metrics, and formatting its access log line.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use criterion::{Criterion, criterion_group, criterion_main};
use proxy::telemetry::{
    AccessLog, AccessLogFormat, AccessLogSettings, AccessLogTarget, BuildInfo, Counter, Entry,
    Exposition, HttpVersion, Reporter, RequestLabels, RequestProtocol, RequestRecord,
    ResponseFlags, Security, Service, Telemetry, TextFormat, WorkerId, Workload,
};

const WORKER: WorkerId = WorkerId(0);

fn labels(host: &str) -> RequestLabels {
    RequestLabels {
        reporter: Reporter::Source,
        source: Arc::new(Workload::default()),
        destination: Arc::new(Workload::default()),
        service: Arc::new(Service {
            host: host.into(),
            ..Service::default()
        }),
    }
}

fn record(code: u16) -> RequestRecord {
    RequestRecord {
        code,
        flags: ResponseFlags::NONE,
        protocol: RequestProtocol::Http,
        grpc_status: None,
        security: Security::Unknown,
        duration: Duration::from_micros(1_830),
        request_bytes: 0,
        response_bytes: 1_024,
        request_messages: 0,
        response_messages: 0,
        trace: None,
    }
}

fn metrics(c: &mut Criterion) {
    let telemetry = Telemetry::new(1, BuildInfo::default());
    let stats = telemetry
        .stats
        .request_stats(&labels("a.default.svc.cluster.local"));
    c.bench_function("record, one status", |b| {
        let record = record(200);
        b.iter(|| stats.record(WORKER, black_box(&record)));
    });
    c.bench_function("record, tenth of ten statuses", |b| {
        let stats = telemetry
            .stats
            .request_stats(&labels("b.default.svc.cluster.local"));
        (200..210).for_each(|code| stats.record(WORKER, &record(code)));
        let record = record(209);
        b.iter(|| stats.record(WORKER, black_box(&record)));
    });
    c.bench_function("count", |b| {
        b.iter(|| {
            telemetry
                .counters
                .increment(black_box(WORKER), Counter::PoolReused)
        });
    });
}

fn scrape(c: &mut Criterion) {
    let telemetry = Telemetry::new(2, BuildInfo::default());
    let held: Vec<_> = (0..1_000)
        .map(|index| {
            telemetry
                .stats
                .request_stats(&labels(&format!("s{index}.default")))
        })
        .collect();
    held.iter()
        .for_each(|stats| stats.record(WORKER, &record(200)));
    let exposition = Exposition::new(telemetry, Arc::new(AccessLog::off(1)));
    let mut group = c.benchmark_group("scrape");
    group.sample_size(10);
    group.bench_function("1,000 label sets in use", |b| {
        b.iter(|| {
            exposition
                .chunks(TextFormat::default())
                .expect("text")
                .map(|chunk| chunk.len())
                .sum::<usize>()
        });
    });
    group.finish();
}

fn access_log(c: &mut Criterion) {
    let address = |last| Some(SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 8_080)));
    let entry = Entry {
        start: SystemTime::now(),
        method: Some("GET"),
        path: Some(b"/productpage?u=normal"),
        version: Some(HttpVersion::Http11),
        response_code: 200,
        response_code_details: Some("via_upstream"),
        bytes_sent: 5_183,
        duration: Duration::from_millis(21),
        upstream_service_time: Some(Duration::from_millis(20)),
        x_forwarded_for: Some(b"10.0.0.9"),
        user_agent: Some(b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
        request_id: Some(b"6e0c36a1-5cb4-9c1f-8b1c-1d2f7b0f3c55"),
        authority: Some(b"bookinfo.example.com"),
        upstream_host: address(1).map(proxy::telemetry::Host::Ip),
        upstream_cluster: Some("outbound|9080||productpage.default.svc.cluster.local"),
        upstream_local_address: address(7),
        downstream_local_address: address(7),
        downstream_remote_address: address(9),
        route_name: Some("default"),
        ..Entry::default()
    };
    for (name, format) in [
        ("text", AccessLogFormat::Text),
        ("json", AccessLogFormat::Json),
    ] {
        let log = AccessLog::start(AccessLogSettings {
            format,
            target: AccessLogTarget::File(PathBuf::from("/dev/null")),
            ..AccessLogSettings::new(1)
        });
        let log = log.expect("/dev/null opens");
        let logger = log.logger(WORKER);
        c.bench_function(&format!("access log line, {name}"), |b| {
            b.iter(|| logger.log(black_box(&entry)));
        });
        let totals = log.totals();
        assert!(
            totals.iter().all(|(_, of)| of.dropped < of.lines),
            "mostly drops were measured: {totals:?}"
        );
    }
}

criterion_group!(benches, metrics, scrape, access_log);
criterion_main!(benches);
