use http::{HeaderMap, HeaderValue};
use serde_json::json;
use traffic::filter::Finished;
use traffic::pattern::Pattern;
use traffic::telemetry::ResponseFlags;

use super::*;

fn printed(format: &LogFormat) -> String {
    let mut headers = HeaderMap::new();
    headers.insert("x-id", HeaderValue::from_static("a \"b\" \\"));
    headers.insert("x-bytes", HeaderValue::from_bytes(b"\xff").expect("opaque"));
    headers.insert(
        "x-envoy-original-path",
        HeaderValue::from_static("/old?k=1"),
    );
    let finished = Finished {
        bytes_sent: 12,
        grpc_status: Some(14),
        transport_failure: Some("TLS error"),
        termination_details: Some("idle time"),
        destination_tier: Some(1),
        rule: Some("VirtualService/shop/web[0]"),
        ..Finished::default()
    };
    let context = TemplateContext {
        method: "GET",
        path: "/new?q=1&r=2",
        authority: "a.com",
        response_code: 503,
        response_flags: ResponseFlags::UF,
        response_code_details: "via upstream",
        duration: std::time::Duration::from_micros(1_500),
        request_duration: Some(std::time::Duration::from_micros(500)),
        attempts: 2,
        request_headers: Some(&headers),
        finished: Some(&finished),
        ..TemplateContext::default()
    };
    let mut out = Vec::new();
    line(&mut out, format, &context);
    String::from_utf8(out).expect("escaped")
}

fn compile(_: &str) -> Result<Pattern, String> {
    Err("no regular expressions here".to_owned())
}

fn text_of(text: &str, omits_empty: bool) -> String {
    let format = LogFormat::text(text, omits_empty, &mut compile).expect(text);
    printed(&format)
}

#[test]
fn operators_print_final_values() {
    for (text, expected) in [
        ("plain\n", "plain\n"),
        (
            "%REQ(:METHOD)% %RESPONSE_CODE% %RESPONSE_FLAGS%",
            "GET 503 UF\n",
        ),
        (
            "%BYTES_SENT% %DURATION% %GRPC_STATUS% %GRPC_STATUS_NUMBER%",
            "12 1 Unavailable 14\n",
        ),
        ("%RESPONSE_CODE_DETAILS%", "via_upstream\n"),
        ("%UPSTREAM_TRANSPORT_FAILURE_REASON%", "TLS error\n"),
        ("%CONNECTION_TERMINATION_DETAILS%", "idle_time\n"),
        ("%UPSTREAM_HOST% [%REQ(x-none)%]", "- [-]\n"),
        ("%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%", "/old?k=1\n"),
        (
            "%PATH(NQ)% %PATH(WQ:ORIG)% %PATH%",
            "/new /old?k=1 /new?q=1&r=2\n",
        ),
        ("%REQ_WITHOUT_QUERY(x-none?:PATH)%", "/new\n"),
        (
            "%QUERY_PARAM(r)% %QUERY_PARAM(s)% %QUERY_PARAMS%",
            "2 - q=1&r=2\n",
        ),
        ("%COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)%", "500\n"),
        ("%COMMON_DURATION(DS_RX_END:DS_TX_END:ms)%", "1\n"),
        ("%COMMON_DURATION(US_CX_BEG:US_CX_END:ms)%", "-\n"),
        (
            "%ACCESS_LOG_TYPE% %STRAIT_TIER% %STRAIT_CLUSTER%",
            "DownstreamEnd 1 -\n",
        ),
        (
            "%STRAIT_RULE% %STRAIT_SAMPLED_BY%",
            "VirtualService/shop/web[0] -\n",
        ),
        (
            "%CEL(response.code >= 500)% %CEL(request.headers['none'])%",
            "true -\n",
        ),
        ("%REQ(x-id):3%|%REQ(x-bytes)%", "a \\x22|\\xFF\n"),
        ("%DYNAMIC_METADATA(a:b)% %FILTER_STATE(other)%", "- -\n"),
        ("100%%", "100%\n"),
    ] {
        assert_eq!(text_of(text, false), expected, "{text}");
    }
    assert_eq!(text_of("[%UPSTREAM_HOST%]%PROTOCOL%", true), "[]HTTP/1.1\n");
}

#[test]
fn json_has_numbers_texts_and_nested_objects() {
    let labels = json!({
        "code": "%RESPONSE_CODE%",
        "method": "%REQ(:METHOD)%",
        "id": "%REQ(x-id)%",
        "bytes": "%REQ(x-bytes)%",
        "mixed": "to %REQ(:AUTHORITY)% by %UPSTREAM_HOST%",
        "none": "%UPSTREAM_HOST%",
        "port": "%UPSTREAM_REMOTE_PORT%",
        "nested": {"\"quoted\"": "x", "list": ["%DURATION%", 1, true, null]},
    });
    let object: Vec<(String, serde_json::Value)> = labels
        .as_object()
        .expect("an object")
        .clone()
        .into_iter()
        .collect();
    let format = |omits_empty| {
        let format = LogFormat::json(&object, omits_empty, &mut compile).expect("valid");
        printed(&format)
    };
    let expected = r#"{"code":503,"method":"GET","id":"a \"b\" \\","bytes":"X","mixed":"to a.com by -","none":null,"port":null,"nested":{"\"quoted\"":"x","list":[1,1,true,null]}}"#;
    assert_eq!(
        format(false),
        format!("{}\n", expected.replace('X', "\u{fffd}"))
    );
    let expected = r#"{"code":503,"method":"GET","id":"a \"b\" \\","bytes":"X","mixed":"to a.com by ","nested":{"\"quoted\"":"x","list":[1,1,true,null]}}"#;
    assert_eq!(
        format(true),
        format!("{}\n", expected.replace('X', "\u{fffd}"))
    );
}

#[test]
fn invalid_operators_are_refused() {
    for text in [
        "%REQ%",
        "%REQ(a b)%",
        "%CEL(response.cod)%",
        "%CEL()%",
        "%PATH(XX)%",
        "%QUERY_PARAM()%",
        "%COMMON_DURATION(a:b)%",
        "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:h)%",
        "%START_TIME(%q)%",
        "%open",
    ] {
        assert!(
            LogFormat::text(text, false, &mut compile).is_err(),
            "{text}"
        );
    }
}
