use std::collections::BTreeMap;

use super::*;
use crate::Diagnostics;
use crate::resource::ResourceSet;
use crate::settings_file::SettingsFile;

fn load(texts: &[String]) -> ResourceSet {
    let mut found = Diagnostics::default();
    crate::load_bytes("test.yaml", texts.join("---\n").as_bytes(), &mut found)
}

/// A Telemetry, created at this second of 2024.
fn telemetry(name: &str, namespace: &str, second: u8, spec: &str) -> String {
    format!(
        "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
         metadata: {{name: {name}, namespace: {namespace}, creationTimestamp: '2024-01-01T00:00:{second:02}Z'}}\n\
         spec: {spec}\n"
    )
}

fn mesh(text: &str) -> MeshConfig {
    MeshConfig::parse(&"mesh".into(), text).expect("valid").0
}

/// Calls `act` with the Telemetries of a workload `app: cart` in namespace `shop`.
fn of_cart<T>(set: &ResourceSet, act: impl FnOnce(&Telemetries<'_>) -> T) -> T {
    let labels = BTreeMap::from([("app".to_owned(), "cart".to_owned())]);
    let workload = Workload {
        namespace: "shop",
        labels: &labels,
        root_namespace: "istio-system",
    };
    act(&telemetries_of(set, workload, None))
}

#[test]
fn wider_resources_come_first_and_of_each_level_the_oldest() {
    let cart = "{selector: {matchLabels: {app: cart}}}";
    let set = load(&[
        telemetry("young", "istio-system", 9, "{}"),
        telemetry("old", "istio-system", 1, "{}"),
        telemetry("of-root-carts", "istio-system", 1, cart),
        telemetry("b", "shop", 3, "{selector: {}}"),
        telemetry("a", "shop", 2, "{}"),
        telemetry("cart-2", "shop", 5, cart),
        telemetry("cart-1", "shop", 6, cart),
        telemetry("web", "shop", 1, "{selector: {matchLabels: {app: web}}}"),
        telemetry("other", "bank", 1, "{}"),
        telemetry(
            "gone",
            "shop",
            1,
            "{targetRefs: [{kind: Service, group: '', name: cart}]}",
        ),
    ]);
    let names = of_cart(&set, |all| {
        let names = all.iter().map(|one| one.id.name.to_string());
        names.collect::<Vec<_>>()
    });
    assert_eq!(names, ["old", "a", "cart-2", "cart-1"]);
}

#[test]
fn logs_are_merged_as_istio_merges_them() {
    let mesh = mesh(
        "extensionProviders: [{name: a, envoyFileAccessLog: {path: /a}}, {name: b, envoyFileAccessLog: {path: /b}}, \
         {name: als, envoyTcpAls: {service: a.b, port: 1}}, {name: p, prometheus: {}}]\n\
         defaultProviders: {accessLogging: [b]}\n",
    );
    let log = |spec: &str| format!("{{accessLogging: [{spec}]}}");
    let filter = |code: u16| format!("filter: {{expression: response.code >= {code}}}");
    let table: Vec<(Vec<String>, &str, &str)> = vec![
        (vec![], "b", "b"),
        (vec!["{metrics: [{}]}".to_owned()], "b", "b"),
        (vec![log("{providers: [{name: a}]}")], "a", "a"),
        (vec![log("{providers: [{name: A}]}")], "A", "A"),
        (
            vec![log("{providers: [{name: a}, {name: envoy}]}")],
            "a envoy",
            "a envoy",
        ),
        // without providers: those of the entry before, at first the default ones
        (vec![log("{disabled: true}")], "", ""),
        (
            vec![log("{providers: [{name: a}]}, {disabled: true}")],
            "",
            "",
        ),
        (
            vec![
                log("{providers: [{name: a}]}"),
                log("{disabled: true, match: {mode: SERVER}}"),
            ],
            "a",
            "",
        ),
        // the last resource that names providers decides which are in scope
        (
            vec![
                log("{providers: [{name: a}]}"),
                log("{providers: [{name: b}]}"),
            ],
            "b",
            "b",
        ),
        (
            vec![log(&format!(
                "{{providers: [{{name: a}}], {}}}",
                filter(400)
            ))],
            "a:400",
            "a:400",
        ),
        (
            vec![log(&format!(
                "{{providers: [{{name: a}}], match: {{mode: CLIENT}}, {}}}, {{providers: [{{name: a}}], match: {{mode: SERVER}}, {}}}",
                filter(400),
                filter(500)
            ))],
            "a:400",
            "a:500",
        ),
        // an entry without a filter clears the one before
        (
            vec![
                log(&format!("{{providers: [{{name: a}}], {}}}", filter(400))),
                log("{providers: [{name: a}]}"),
            ],
            "a",
            "a",
        ),
        // a filter in an entry of its own has no effect
        (
            vec![log(&format!(
                "{{providers: [{{name: a}}]}}, {{{}}}",
                filter(400)
            ))],
            "a",
            "a",
        ),
        // no provider of logs: the log of the mesh
        (vec![log("{providers: [{name: unknown}]}")], "none", "none"),
        (vec![log("{providers: [{name: p}]}")], "none", "none"),
        (
            vec![log("{providers: [{name: a}], match: {mode: SERVER}}")],
            "none",
            "a",
        ),
        (vec![log("{providers: [{name: als}]}")], "als", "als"),
    ];
    for (specs, client, server) in table {
        let texts: Vec<String> = specs
            .iter()
            .zip([("m", "istio-system"), ("own", "shop")])
            .map(|(spec, (name, namespace))| telemetry(name, namespace, 1, spec))
            .collect();
        let set = load(&texts);
        for (side, expected) in [(TrafficSide::Client, client), (TrafficSide::Server, server)] {
            let logs = of_cart(&set, |all| access_logs(all, &mesh, side));
            let shown = logs.map(|logs| {
                let logs = logs.iter().map(|log| match &log.filter {
                    Some(filter) => format!("{}:{}", log.provider, &filter.written()[17..]),
                    None => log.provider.to_string(),
                });
                logs.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(
                shown.as_deref().unwrap_or("none"),
                expected,
                "{side:?} {specs:?}"
            );
        }
    }
}

#[test]
fn tracing_of_narrower_resources_replaces_single_values() {
    let mesh = mesh("defaultProviders: {tracing: [zipkin]}");
    let set = load(&[
        telemetry(
            "m",
            "istio-system",
            1,
            "{tracing: [{randomSamplingPercentage: 10, customTags: {a: {literal: {value: x}}}}]}",
        ),
        telemetry(
            "own",
            "shop",
            1,
            "{tracing: [{providers: [{name: otel}], randomSamplingPercentage: 50, enableIstioTags: false}]}",
        ),
        telemetry(
            "w",
            "shop",
            1,
            "{selector: {matchLabels: {app: cart}}, tracing: [{match: {mode: SERVER}, disableSpanReporting: true, \
             customTags: {b: {header: {name: X-B}}}}]}",
        ),
    ]);
    let merged = |side| of_cart(&set, |all| tracing(all, &mesh, side)).expect("tracing");
    let (client, server) = (merged(TrafficSide::Client), merged(TrafficSide::Server));
    let names = |one: &MergedTracing| {
        let tags = one.custom_tags.as_ref().expect("tags");
        tags.iter()
            .map(|tag| tag.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!((client.sampling, server.sampling), (Some(50.0), Some(50.0)));
    assert_eq!(
        (names(&client), names(&server)),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
    assert!(!client.disables_reporting && server.disables_reporting);
    assert!(!client.has_istio_tags && client.uses_request_id);
    assert_eq!(client.provider.as_deref(), Some("otel"));
    let none = load(&[]);
    let default = of_cart(&none, |all| tracing(all, &mesh, TrafficSide::Client));
    assert_eq!(
        default.expect("a default provider").provider.as_deref(),
        Some("zipkin")
    );
    let nothing = of_cart(&none, |all| {
        tracing(all, &MeshConfig::default(), TrafficSide::Client)
    });
    assert_eq!(nothing, None);
}

#[test]
fn metrics_of_all_levels_are_merged_by_metric_and_label() {
    let mesh = mesh("defaultProviders: {metrics: [prometheus]}");
    let of = |specs: &[&str], side| {
        let texts: Vec<String> = specs
            .iter()
            .zip([("m", "istio-system"), ("own", "shop")])
            .map(|(spec, (name, namespace))| telemetry(name, namespace, 1, spec))
            .collect();
        of_cart(&load(&texts), |all| metrics(all, &mesh, side))
    };
    let (client, server) = (TrafficSide::Client, TrafficSide::Server);
    let off = "{metrics: [{overrides: [{disabled: true}]}]}";
    assert!(of(&[off], client).is_off);
    let of_clients = "{metrics: [{overrides: [{match: {mode: CLIENT}, disabled: true}]}]}";
    assert!(of(&[of_clients], client).is_off && !of(&[of_clients], server).is_off);
    // any later override brings all of them back
    let tag = "{metrics: [{overrides: [{match: {metric: REQUEST_COUNT}, tagOverrides: {host: {value: request.host}}}]}]}";
    let merged = of(&[off, tag], client);
    assert!(!merged.is_off);
    assert_eq!(
        merged.changes.keys().collect::<Vec<_>>(),
        [&Metric::RequestCount]
    );
    // labels that a later override does not name stay
    let first = "{metrics: [{overrides: [{tagOverrides: {a: {operation: REMOVE}, b: {operation: REMOVE}}}]}]}";
    let second = "{metrics: [{overrides: [{match: {customMetric: requests_total}, disabled: false, tagOverrides: {b: {value: \"'x'\"}}}]}]}";
    let merged = of(&[first, second], server);
    assert_eq!(merged.changes.len(), 10);
    let tags = &merged.changes[&Metric::RequestCount].tags;
    assert_eq!(tags["a"], TagOperation::Remove);
    assert_ne!(tags["b"], TagOperation::Remove);
    assert_eq!(
        merged.changes[&Metric::RequestSize].tags["b"],
        TagOperation::Remove
    );
    let other = "{metrics: [{providers: [{name: stackdriver}], overrides: [{disabled: true}]}]}";
    assert_eq!(of(&[other], client), MergedMetrics::default());
}
