use crate::validate::istio::testing::{check_of, load};

fn document(spec: &str) -> String {
    format!(
        "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {{name: own, namespace: ns}}\nspec: {{{spec}}}\n"
    )
}

#[test]
fn values_of_a_telemetry_are_checked() {
    let log = |rest: &str| format!("accessLogging: [{{providers: [{{name: a}}], {rest}}}]");
    let filter = |text: &str| log(&format!("filter: {{expression: \"{text}\"}}"));
    let trace = |rest: &str| format!("tracing: [{{{rest}}}]");
    let tag = |rest: &str| trace(&format!("customTags: {{t: {{{rest}}}}}"));
    let metric = |rest: &str| format!("metrics: [{{overrides: [{{{rest}}}]}}]");
    let label = |name: &str, rest: &str| metric(&format!("tagOverrides: {{{name}: {{{rest}}}}}"));
    let gateway = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]";
    let many = vec!["{kind: Gateway, group: gateway.networking.k8s.io, name: g}"; 17].join(", ");
    let tags: Vec<String> = (0..33)
        .map(|one| format!("t{one}: {{literal: {{value: a}}}}"))
        .collect();
    for (spec, expected) in [
        (String::new(), &[][..]),
        (gateway.into(), &[]),
        ("targetRefs: [{group: networking.istio.io, kind: Gateway, name: g}]".into(), &["W TL003 4"]),
        ("targetRef: {group: '', kind: Service, name: s}".into(), &["W TL004 4"]),
        (format!("targetRefs: [{many}]"), &["E TL005 4"]),
        (format!("selector: {{matchLabels: {{a: b}}}}, {gateway}"), &["E TL005 4"]),
        (log("match: {mode: CLIENT}"), &[]),
        (log("match: {mode: CLIENTS}"), &["E CM017 4"]),
        (log("disabled: true"), &[]),
        ("accessLogging: [{providers: [{}]}]".into(), &["E TL005 4"]),
        ("accessLogging: [{providers: [{name: a}]}, {filter: {expression: 'request.path == request.host'}}]".into(), &["W TL013 4"]),
        (filter("!has(response.code) || response.code >= 400"), &[]),
        (filter("response.code >= 400"), &["W TL014 4"]),
        (filter("!request.useragent.startsWith('kube')"), &["W TL014 4"]),
        (filter("request.host == 'a' || 'x' in request.headers"), &[]),
        (filter("response.cod >= 400"), &["E TL015 4"]),
        (filter("1 < 2"), &["W TL016 4"]),
        (filter("request.host.lowerAscii() == 'a'"), &["N TL017 4"]),
        (filter("request.path.matches('(')"), &["E TL015 4"]),
        (trace("randomSamplingPercentage: 0.01"), &[]),
        (trace("randomSamplingPercentage: 100.5"), &["E TL005 4"]),
        (trace("randomSamplingPercentage: -1"), &["E TL005 4"]),
        (trace("randomSamplingPercentage: 100"), &["N TL023 4"]),
        (trace("match: {mode: SERVER}, randomSamplingPercentage: 100"), &[]),
        (trace("providers: [{name: a}, {name: b}]"), &["W TL006 4"]),
        ("tracing: [{}, {}]".into(), &["W TL006 4"]),
        ("tracing: [{match: {mode: SERVER}}, {match: {mode: CLIENT}}]".into(), &[]),
        ("tracing: [{match: {mode: SERVER}}, {}]".into(), &["W TL006 4"]),
        (label("a", "value: \"request.headers['authorization']\""), &["W TL021 4"]),
        (label("a", "value: request.headers.cookie"), &["W TL021 4"]),
        (tag("literal: {value: a}"), &[]),
        (tag("literal: {value: ''}"), &["E TL005 4"]),
        (tag("environment: {name: A, defaultValue: b}"), &[]),
        (tag("header: {name: X-A}"), &[]),
        (tag("header: {name: 'a b'}"), &["E TL005 4"]),
        (tag("header: {name: Authorization}"), &["W TL021 4"]),
        (tag("formatter: {value: '%RESPONSE_CODE%'}"), &[]),
        (tag("formatter: {value: 'a %REQ(Authorization)%'}"), &["W TL021 4"]),
        (tag("formatter: {value: '%RESPONSE_COD%'}"), &["E TL020 4"]),
        (tag("formatter: {value: '%DYNAMIC_METADATA(a)%'}"), &["W TL020 4"]),
        (tag("literal: {value: a}, header: {name: b}"), &["E TL005 4"]),
        (tag(""), &["E TL005 4"]),
        (trace(&format!("customTags: {{{}}}", tags.join(", "))), &["E TL005 4"]),
        (metric("match: {metric: REQUEST_COUNT, mode: SERVER}, disabled: true"), &[]),
        (metric("match: {metric: REQUEST_COUNTS}"), &["E CM017 4"]),
        (metric("match: {customMetric: requests_total}"), &[]),
        (metric("match: {customMetric: mine}"), &["W TL008 4"]),
        (metric("match: {metric: REQUEST_COUNT, customMetric: a}"), &["E TL005 4", "W TL008 4"]),
        (label("response_code", "operation: REMOVE"), &[]),
        (label("respons_code", "operation: REMOVE"), &["W TL009 4"]),
        (label("a", "operation: REMOVE, value: a"), &["E TL005 4"]),
        (label("a", "operation: UPSERT"), &["E TL005 4"]),
        (label("host", "value: request.host"), &[]),
        (label("port", "value: string(destination.port)"), &[]),
        (label("path", "value: request.path"), &["W TL022 4"]),
        (label("a", "value: \"request.path == '/a' ? 'a' : request.url_path.lowerAscii()\""), &["W TL022 4"]),
        (label("a", "value: \"request.path == '/a' ? 'a' : 'b'\""), &[]),
        (label("team", "value: \"'shop'\""), &[]),
        (label("a", "value: \"request.headers['x'].exists(h, h)\""), &["E TL015 4"]),
        (label("le", "value: request.host"), &["E TL005 4"]),
        (label("__a", "value: request.host"), &["E TL005 4"]),
        (label("a-b", "value: request.host"), &["E TL005 4"]),
        ("metrics: [{reportingInterval: 5s, providers: [{name: prometheus}]}]".into(), &[]),
        ("accessLoging: []".into(), &["E CM021 4"]),
    ] {
        check_of(&document(&spec), expected);
    }
}

#[test]
fn every_field_of_a_telemetry_is_read() {
    let (set, found) = load(&document(
        "selector: {matchLabels: {app: a}}, \
         tracing: [{match: {mode: CLIENT}, providers: [{name: p}], randomSamplingPercentage: 2.5, disableSpanReporting: true, \
         customTags: {e: {environment: {name: V, defaultValue: d}}}, useRequestIdForTraceSampling: false, \
         enableIstioTags: false, disableContextPropagation: true}], \
         metrics: [{providers: [{name: prometheus}], reportingInterval: 1s, overrides: [{match: {metric: TCP_SENT_BYTES}, \
         disabled: true, tagOverrides: {reporter: {operation: REMOVE}}}]}], \
         accessLogging: [{match: {mode: SERVER}, providers: [{name: l}], disabled: true, filter: {expression: connection.mtls}}]",
    ));
    assert!(found.is_empty(), "{found:#?}");
    let telemetry = &set.telemetries.values().next().expect("it is good").spec;
    assert_eq!(telemetry.scope.selector["app"], "a");
    let tracing = &telemetry.tracing[0];
    assert_eq!(tracing.provider.as_deref(), Some("p"));
    assert_eq!(tracing.sampling, Some(2.5));
    assert_eq!(tracing.disables_reporting, Some(true));
    assert_eq!(tracing.uses_request_id, Some(false));
    assert_eq!(tracing.has_istio_tags, Some(false));
    assert_eq!(tracing.disables_propagation, Some(true));
    assert_eq!(tracing.custom_tags.as_ref().map(|tags| tags.len()), Some(1));
    let change = &telemetry.metrics[0].overrides[0];
    assert_eq!((change.disabled, change.tags.len()), (Some(true), 1));
    let log = &telemetry.access_logging[0];
    assert!(log.disabled && log.filter.is_some());
    assert_eq!(*log.providers[0], *"l");
}
