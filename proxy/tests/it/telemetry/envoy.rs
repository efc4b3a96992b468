//! Expressions and formats of the access log, beside Envoy with the same ones. Skipped, with a message, on machines
//! without Envoy.

use std::net::SocketAddr;

use serde_json::Value;

use super::*;
use crate::support::envoy::{Envoy, edge_config};
use crate::support::proxy::free_address;

/// Filters; each decides about every request.
const FILTERS: &[&str] = &[
    "response.code >= 400",
    "response.code == 0",
    "!has(response.code) || response.code >= 400",
    "!request.useragent.startsWith('kube-probe')",
    "has(request.useragent) && !request.useragent.startsWith('kube-probe')",
    "request.headers['x-none'] == '1'",
    "!(request.headers['x-none'] == '1')",
    "'x-none' in request.headers",
    "has(request.headers.referer)",
    "response.code",
    "response.flags == 16384",
    "response.flags == 0",
    "request.host.endsWith('.example')",
    "request.host == 'Shop.Example:8080'",
    "request.path == '/200'",
    "request.url_path == '/200' && request.query == 'x=1&y=2'",
    "request.method in ['POST', 'PUT']",
    "request.path.matches('^/[0-9]+$')",
    "request.path.contains('beta') ? response.code == 200 : response.code == 404",
    "request.duration < duration('60s')",
    "size(request.path) > 5 || request.size == 5",
    "int(request.headers['x-number']) > 3",
    "response.code >= 500 || response.code < 201",
    "!has(request.useragent) || !(request.useragent.startsWith(\"Amazon-Route53-Health-Check-Service\"))",
    "xds.cluster_name == 'BlackHoleCluster' || xds.cluster_name == 'PassthroughCluster'",
    "connection.mtls && request.url_path.contains('v1beta3')",
    "request.protocol == 'HTTP/1.1' && request.scheme == 'http'",
    "response.code > 200u",
    "request.referer.size() > 3 && response.size == 5",
];

/// Number of filters that one proxy has, beside the formats.
const FILTERS_PER_PROXY: usize = 5;

/// Operators whose values are the same in both.
const OPERATORS: &[&str] = &[
    "REQ(:METHOD)",
    "REQ(:PATH)",
    "REQ(:PATH):3",
    "REQ(X-NONE?:AUTHORITY)",
    "REQ(USER-AGENT)",
    "PATH(NQ:ORIG)",
    "QUERY_PARAM(y)",
    "PROTOCOL",
    "UPSTREAM_PROTOCOL",
    "RESPONSE_CODE",
    "RESPONSE_CODE_DETAILS",
    "RESPONSE_FLAGS",
    "RESPONSE_FLAGS_LONG",
    "RESP(X-ANSWER)",
    "RESP(X-ABSENT)",
    "TRAILER(X-T)",
    "BYTES_RECEIVED",
    "BYTES_SENT",
    "GRPC_STATUS",
    "UPSTREAM_HOST",
    "UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
    "UPSTREAM_REQUEST_ATTEMPT_COUNT",
    "UPSTREAM_TRANSPORT_FAILURE_REASON",
    "UPSTREAM_TLS_VERSION",
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_TLS_VERSION",
    "REQUESTED_SERVER_NAME",
    "CONNECTION_TERMINATION_DETAILS",
    "ACCESS_LOG_TYPE",
    "HOSTNAME",
];

/// Requests by the status that the origin returns; the client of the last one leaves.
const REQUESTS: &[&str] = &[
    "GET /200 HTTP/1.1\r\nHost: a.test\r\nx-number: 1\r\n\r\n",
    "GET /200?x=1&y=2 HTTP/1.1\r\nHost: a.test\r\nuser-agent: kube-probe/1.30\r\nx-number: 2\r\n\r\n",
    "GET /404 HTTP/1.1\r\nHost: a.test\r\nx-none: 1\r\nreferer: http://b.test/\r\n\r\n",
    "GET /503 HTTP/1.1\r\nHost: Shop.Example:8080\r\nx-none: 2\r\nx-number: 4\r\n\r\n",
    "POST /201 HTTP/1.1\r\nHost: shop.example\r\ncontent-length: 5\r\nuser-agent: Amazon-Route53-Health-Check-Service (x)\r\n\r\nhello",
    "GET /apis/v1beta3 HTTP/1.1\r\nHost: a.test\r\nx-number: none\r\nuser-agent: curl/8\r\n\r\n",
    "GET /hold HTTP/1.1\r\nHost: a.test\r\nuser-agent: curl/8\r\nx-number: 7\r\n\r\n",
];

/// The name of a log: of all requests, as text, as JSON and as JSON without what is missing, or of those of a filter.
fn formats() -> [(&'static str, String); 3] {
    let each = |write: fn(&str) -> String| OPERATORS.iter().map(move |one| write(one));
    let labels = each(|one| format!("\"{one}\": '%{one}%'"));
    let mixed =
        "mixed: 'a %RESPONSE_CODE% b', lone: {code: '%RESPONSE_CODE%', absent: '%REQ(X-ABSENT)%'}";
    let labels = format!("{{{}, {mixed}}}", labels.collect::<Vec<_>>().join(", "));
    let text = each(|one| format!("%{one}%")).collect::<Vec<_>>();
    [
        ("text", format!("{{text: '{}'}}", text.join("|"))),
        ("json", format!("{{labels: {labels}}}")),
        ("short", format!("{{labels: {labels}}}")),
    ]
}

const NUMBER: &str = "%REQ(:PATH)%";

/// Returns a log of Envoy with a form and a filter.
fn envoy_log(path: &Path, form: &str, filter: Option<&str>) -> String {
    const TYPES: &str = "\"@type\": type.googleapis.com/envoy.extensions.access_loggers";
    let filter = filter.map(|expression| {
        let expression = serde_json::to_string(expression).unwrap();
        format!(
            "filter: {{extension_filter: {{name: cel, typed_config: {{{TYPES}.filters.cel.v3.ExpressionFilter, \
             expression: {expression}}}}}}}, "
        )
    });
    format!(
        "          - {{name: file, {}typed_config: {{{TYPES}.file.v3.FileAccessLog, path: {}, log_format: {form}}}}}\n",
        filter.unwrap_or_default(),
        path.display()
    )
}

fn envoy_config(edge: SocketAddr, origin: SocketAddr, files: &Path) -> String {
    let form = |(name, form): &(&str, String)| {
        let text = form.strip_prefix("{text: ").map(|text| {
            let text = text.trim_end_matches('}').trim_matches('\'');
            format!("{{text_format_source: {{inline_string: \"{text}\\n\"}}}}")
        });
        let json = form.strip_prefix("{labels: ").map(|labels| {
            let omit = *name == "short";
            format!("{{omit_empty_values: {omit}, json_format: {labels}")
        });
        envoy_log(&files.join(name), &text.or(json).unwrap(), None)
    };
    let mut logs: String = formats().iter().map(form).collect();
    for (number, filter) in FILTERS.iter().enumerate() {
        let form = format!("{{text_format_source: {{inline_string: \"{NUMBER}\\n\"}}}}");
        logs += &envoy_log(&files.join(number.to_string()), &form, Some(filter));
    }
    edge_config(edge, origin, &format!("          access_log:\n{logs}"))
}

/// Starts a gateway that has the formats and some of the filters.
fn edge(filters: &[(usize, &&str)]) -> Edge {
    let mut providers = String::from("extensionProviders:\n");
    let mut entries = Vec::new();
    for (name, form) in formats() {
        let omit = name == "short";
        providers += &format!(
            "- {{name: {name}, envoyFileAccessLog: {{path: FILES/{name}, omitEmptyValues: {omit}, logFormat: {form}}}}}\n"
        );
        entries.push(format!("{{providers: [{{name: {name}}}]}}"));
    }
    for (number, filter) in filters {
        providers += &format!(
            "- {{name: f{number}, envoyFileAccessLog: {{path: FILES/{number}, logFormat: {{text: '{NUMBER}'}}}}}}\n"
        );
        let filter = serde_json::to_string(filter).unwrap();
        let filter = format!("filter: {{expression: {filter}}}");
        entries.push(format!("{{providers: [{{name: f{number}}}], {filter}}}"));
    }
    let spec = format!("{{accessLogging: [{}]}}", entries.join(", "));
    let start = Start::new().without_log_flags().args(["--pre-drain", "0s"]);
    Edge::start_with(start, &providers, &[&telemetry("log", "default", &spec)])
}

/// Sends all requests; the client of the last one leaves once the origin has it.
fn send_all(address: SocketAddr, origin: &Origin) {
    let mut all = REQUESTS.iter();
    let last = all.next_back().unwrap();
    for request in all {
        Raw::connect(address).send(request).reply();
    }
    let before = origin.seen().len();
    let mut leaving = Raw::connect(address);
    leaving.send(last);
    eventually("the request arrives", || origin.seen().len() > before);
}

fn sorted(file: &Path) -> Vec<String> {
    let mut lines = lines(file);
    lines.sort();
    lines
}

/// The objects of a log, by the path of their requests.
fn objects(file: &Path) -> Vec<Value> {
    let parsed = lines(file).into_iter();
    let mut all: Vec<Value> = parsed
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    all.sort_by_key(|one| one["REQ(:PATH)"].to_string());
    all
}

#[test]
fn filters_and_formats_write_what_envoy_writes() {
    let indexed: Vec<_> = FILTERS.iter().enumerate().collect();
    let mut edges: Vec<Edge> = indexed.chunks(FILTERS_PER_PROXY).map(edge).collect();
    let (address, theirs) = (free_address(), tempfile::tempdir().unwrap());
    let origin = &edges[0].origin;
    let config = envoy_config(address, origin.address, theirs.path());
    let Some(envoy) = Envoy::start(&config, &[address]) else {
        return;
    };
    send_all(address, origin);
    for edge in &edges {
        send_all(edge.proxy.edge, &edge.origin);
        edge.lines("text", REQUESTS.len());
    }
    eventually("Envoy has seen the last client leave", || {
        lines(&theirs.path().join("text")).len() == REQUESTS.len()
    });
    // both write all lines before they end
    envoy.stop();
    for edge in &mut edges {
        edge.proxy.signal("TERM");
        assert!(edge.proxy.wait().success());
    }
    // endpoints of the other proxies have other addresses
    let both = |edge: &Edge, name: &str| [edge.file(name), theirs.path().join(name)];
    let [ours, theirs_text] = both(&edges[0], "text").map(|file| sorted(&file));
    assert_eq!(ours, theirs_text);
    for name in ["json", "short"] {
        let [ours, theirs] = both(&edges[0], name).map(|file| objects(&file));
        assert_eq!(ours.len(), REQUESTS.len());
        for (our, their) in ours.iter().zip(&theirs) {
            assert_eq!(our, their, "{name}");
        }
    }
    for (number, filter) in FILTERS.iter().enumerate() {
        let edge = &edges[number / FILTERS_PER_PROXY];
        let [ours, theirs] = both(edge, &number.to_string()).map(|file| sorted(&file));
        assert_eq!(ours, theirs, "{filter}");
    }
}
