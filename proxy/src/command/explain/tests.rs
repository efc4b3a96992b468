//! Golden explanations for configurations of every kind.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    explain: ExplainArgs,
}

/// Explains a command line with the configuration `proxy/testdata/explain/FILE.yaml`; paths are shortened.
fn explain_with(file: &str, arguments: &[&str]) -> Explanation {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/explain");
    let path = format!("{dir}/{file}.yaml");
    let fixed = ["explain", "--config", &path];
    let line = Line::try_parse_from(fixed.iter().chain(arguments)).unwrap();
    let args = line.explain;
    let loaded =
        config_loader::load_files(&args.files.paths, config_loader::LoadOptions::default());
    let errors: Vec<&Diagnostic> = loaded
        .diagnostics
        .iter()
        .filter(|found| {
            found.severity == Severity::Error && !found.code.to_string().starts_with('X')
        })
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    answer(&args, &question(&args).unwrap(), &loaded)
}

/// Renders the brief text for a gateway with the label that the configurations select.
fn text_of(file: &str, arguments: &[&str]) -> String {
    let identity = ["--labels", "istio=ingressgateway"];
    let arguments: Vec<&str> = identity.iter().chain(arguments).copied().collect();
    let answer = explain_with(file, &arguments);
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/explain/");
    text::render(&answer, Detail::Brief).replace(dir, "")
}

macro_rules! golden {
    ($($name:ident: $file:literal $arguments:expr;)*) => {$(
        #[test]
        fn $name() {
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path("../../../testdata/explain");
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            settings.bind(|| insta::assert_snapshot!(stringify!($name), text_of($file, &$arguments)));
        }
    )*};
}

golden! {
    clusters_excluded_by_a_policy: "clusters" ["--cluster", "c1", "GET", "http://some.example:8080/"];
    clusters_excluded_by_a_locality_policy: "clusters" ["--cluster", "c1", "GET", "http://near.example:8080/"];
    clusters_with_unresolved_gateway_names: "clusters" ["--cluster", "c1", "GET", "http://named.example:8080/"];
    policy_that_excludes_all_clusters: "clusters" ["--cluster", "c1", "GET", "http://excluded.example:8080/"];
    replays_of_idempotent_methods: "clusters" ["--cluster", "c1", "GET", "http://backed.example:8080/"];
    replays_of_other_methods: "clusters" ["--cluster", "c1", "POST", "http://backed.example:8080/"];
    replays_like_fsm: "clusters" ["--cluster", "c1", "--failover-replay", "fsm", "POST", "http://backed.example:8080/"];
    tiers_without_replays: "clusters" ["--cluster", "c1", "--failover-replay", "off", "GET", "http://backed.example:8080/"];
    faults_and_cors: "early" ["GET", "http://shop.example:8080/cart"];
    preflight_gets_a_local_reply: "early" ["OPTIONS", "http://shop.example:8080/cart", "-H", "origin: https://www.example", "-H", "access-control-request-method: PUT"];
    request_of_an_allowed_origin: "early" ["GET", "http://shop.example:8080/cart", "-H", "origin: http://localhost:3000"];
    abort_of_all_requests: "early" ["POST", "http://shop.example:8080/down"];
    header_mismatch_and_weights: "shop" ["GET", "http://shop.example:8080/cart?x=1", "-H", "end-user: ann"];
    header_match: "shop" ["POST", "http://shop.example:8080/cart", "-H", "end-user: jason"];
    regex_rewrites_path_authority_and_headers: "shop" ["GET", "http://shop.example:8080/items/42"];
    without_headers_mismatch: "shop" ["GET", "http://shop.example:8080/items/42", "-H", "x-legacy: 1"];
    path_is_normalized: "shop" ["GET", "http://shop.example:8080/a/../%63art"];
    redirect_shows_location: "shop" ["GET", "http://shop.example:8080/old?q=1"];
    direct_response_shows_body: "shop" ["GET", "http://shop.example:8080/tea"];
    unknown_subset_lists_known_subsets: "shop" ["GET", "http://shop.example:8080/typo"];
    unknown_host_suggests_a_similar_one: "shop" ["GET", "http://shop.example:8080/nowhere"];
    subset_without_endpoints: "shop" ["GET", "http://shop.example:8080/empty"];
    weight_zero: "shop" ["GET", "http://shop.example:8080/paused"];
    dns_endpoints: "shop" ["GET", "http://shop.example:8080/outside"];
    no_matching_rule: "shop" ["DELETE", "http://shop.example:8080/cart"];
    wildcard_host_and_delegate: "shop" ["GET", "http://t1.shop.example:8080/search/fast"];
    rule_after_a_catch_all: "shop" ["GET", "http://t1.shop.example:8080/"];
    second_listener_by_port: "shop" ["GET", "http://shop.example:8081/admin"];
    listener_selected_by_flag: "shop" ["--listener", "127.0.0.1:8081", "GET", "http://shop.example/admin"];
    unknown_listener: "shop" ["--listener", "9999", "GET", "/"];
    no_virtual_host_lists_hosts: "shop" ["GET", "http://shop.exampel:8080/"];
    host_of_a_gateway_that_no_virtual_service_names: "unnamed" ["GET", "http://a.dev.example:8080/"];
    host_bound_to_the_mesh: "shop" ["GET", "http://inside.example:8080/"];
    path_without_host: "shop" ["GET", "/cart"];
    https_redirect_of_the_gateway: "redirect" ["GET", "http://a.example/x?y"];
}

#[test]
fn gateways_of_other_proxies_are_named_when_nothing_listens() {
    let answer = explain_with("redirect", &["GET", "http://a.example/"]);
    assert!(!answer.outcome.is_served());
    let [hint] = &answer.hints[..] else {
        panic!("{answer:#?}");
    };
    assert_eq!(
        hint.text,
        "selects istio=ingressgateway; the labels of this proxy: none (--labels)"
    );
}

#[test]
fn probabilities_sum_to_one() {
    let answer = explain_with(
        "shop",
        &[
            "--labels",
            "istio=ingressgateway",
            "GET",
            "http://shop.example:8080/cart",
        ],
    );
    let endpoints = answer
        .destinations
        .iter()
        .filter_map(|destination| destination.cluster.as_ref())
        .flat_map(|cluster| &cluster.endpoints);
    let sum: f64 = endpoints.filter_map(|endpoint| endpoint.probability).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
}

#[test]
fn json_has_all_fields_of_the_text() {
    let answer = explain_with(
        "shop",
        &[
            "--labels",
            "istio=ingressgateway",
            "GET",
            "http://shop.example:8080/cart",
        ],
    );
    let json: serde_json::Value = serde_json::to_value(&answer).unwrap();
    assert_eq!(json["outcome"]["kind"], "forwarded");
    assert_eq!(json["listener"]["address"], "[::]:8080");
    assert_eq!(json["rules"][0]["conditions"][0]["field"], "uri.exact");
    assert_eq!(json["rules"][0]["matched"], false);
    assert_eq!(
        json["destinations"][0]["cluster"]["endpoints"][0]["share"],
        0.75
    );
    assert_eq!(
        json["destinations"][1]["response_headers"][0]["operation"],
        "add"
    );
}

#[test]
fn server_without_its_secret_serves_nothing() {
    let arguments = [
        "--labels",
        "istio=ingressgateway",
        "GET",
        "https://a.example/",
    ];
    let answer = explain_with("https", &arguments);
    assert!(!answer.outcome.is_served());
    let why = "the server has no certificate that can be used, so that TLS handshakes fail; see `strait check`";
    let json = serde_json::to_value(&answer).unwrap();
    assert_eq!(json["outcome"]["kind"], "rejected");
    assert_eq!(json["outcome"]["reason"], why);
    let text = text::render(&answer, Detail::Brief);
    let expected = format!("outcome       not accepted: {why}\n");
    assert!(text.contains(&expected), "{text}");
}
