//! Cost of the decisions for a request on a plain route, from its host to an endpoint: with the route alone, after many
//! plain routes, and after as many routes with retries, faults, CORS, mirrors, header operations and timeouts.
//!
//! The three figures must not differ: a feature costs nothing on a route that does not use it.

use std::hint::black_box;
use std::path::Path;

use benches::compare::configure::{Others, Plan, Proxy, Work, files, prefix};
use benches::compare::tool::Found;
use config_loader::{Diagnostics, load_bytes};
use criterion::{Criterion, criterion_group, criterion_main};
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use http::{Request, StatusCode};
use proxy::compile::{Inputs, compile};
use proxy::identity::Identity;
use proxy::snapshot::{Security, Snapshot};
use proxy::telemetry::StatsRegistry;
use proxy::tls::Store;
use rand::Rng;
use traffic::balance::EndpointIdx;
use traffic::cluster::PickInput;
use traffic::filter::{Action, timeout};
use traffic::registry::{Moment, Registry};
use traffic::route::{RequestHead, normalize_host, normalize_path};

/// Number of routes in addition to the measured one.
const OTHERS: usize = 100;

/// The configuration of the load comparison's scenario `features`, compiled.
fn snapshot(others: Others) -> Snapshot {
    let plan = Plan {
        listen: 8080,
        admin: 15000,
        upstream: 8081,
        collector: 0,
        prefixes: vec![prefix(0)],
        prefixes_per_object: 1,
        work: Work::Http,
        http2: false,
        tls: None,
        others,
        endpoints: 1,
        feature: None,
        nginx_module: None,
        connections_max: 1,
    };
    let program = Found {
        path: "strait".into(),
        version: String::new(),
    };
    let files = files(Proxy::Strait, &program, &plan, Path::new("."));
    let texts: Vec<String> = files.into_iter().map(|file| file.text).collect();
    let mut diagnostics = Diagnostics::default();
    let resources = load_bytes("it.yaml", texts.join("---\n").as_bytes(), &mut diagnostics);
    let identity = Identity {
        labels: [("istio".to_owned(), "ingressgateway".to_owned())].into(),
        ..Identity::default()
    };
    let inputs = Inputs {
        now: Moment(1),
        resources: &resources,
        identity: &identity,
        registry: &Registry::default(),
        stats: &StatsRegistry::new(1),
        certificates: &Store::default(),
    };
    compile(&inputs, &Snapshot::default())
}

/// Makes the decisions of `exchange`, in the same order, for a request and its response headers. Returns `None` if no
/// endpoint is reachable, or if the route requires more than forwarding.
fn decide(
    snapshot: &Snapshot,
    request: &Request<()>,
    response: &HeaderMap,
    rng: &mut impl Rng,
) -> Option<EndpointIdx> {
    let (_, listener) = snapshot.listeners.first_key_value()?;
    let authority = request.headers().get("host")?.to_str().ok()?;
    let host = normalize_host(authority);
    let virtual_host = listener.http(Security::Plain)?.find(&host)?;
    let path = normalize_path(request.uri().path()).ok()?;
    let rule = virtual_host.table.find(&RequestHead {
        is_http2: false,
        method: request.method(),
        scheme: "http",
        authority,
        host: &host,
        path: &path,
        query: request.uri().query(),
        headers: request.headers(),
        claims: None,
    })?;
    let route = virtual_host.route(rule);
    let filters = &route.filters;
    if !matches!(filters.action, Action::Forward) || filters.early.is_some() {
        return None;
    }
    let destination = route.split.as_ref()?.pick(rng);
    let limit = timeout::effective(filters.timeout, None);
    let edits = !filters.leaves_request_headers() || !filters.leaves_response_headers();
    let path = filters.rewrite_path(&path, request.uri().query());
    let authority = filters.authority(destination.position);
    let edited = limit.is_some() || edits || path.is_some() || authority.is_some();
    if edited || route.mirrors.is_some() {
        return None;
    }
    let endpoint = snapshot
        .cluster(destination.cluster)?
        .pick(PickInput::default(), rng);
    // asked when the response is there
    let conditions = &filters.retry.as_ref()?.conditions;
    let again = conditions.on_response(StatusCode::OK, response);
    endpoint.filter(|_| again.is_none())
}

fn plain(criterion: &mut Criterion) {
    let uri = format!("{}item", prefix(0));
    let request = Request::get(uri)
        .header("host", "bench.example")
        .header("user-agent", "bench/1.0")
        .header("accept", "*/*")
        .body(())
        .expect("a request with plain headers");
    let response = HeaderMap::from_iter([(CONTENT_LENGTH, HeaderValue::from_static("128"))]);
    for (name, others) in [
        ("plain/alone", Others::None),
        ("plain/beside_plain", Others::Plain(OTHERS)),
        ("plain/beside_features", Others::Featured(OTHERS)),
    ] {
        let snapshot = snapshot(others);
        let mut rng = rand::rng();
        let decided = decide(&snapshot, &request, &response, &mut rng);
        assert!(decided.is_some(), "{name}");
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                decide(
                    &snapshot,
                    black_box(&request),
                    black_box(&response),
                    &mut rng,
                )
            });
        });
    }
}

criterion_group!(benches, plain);
criterion_main!(benches);
