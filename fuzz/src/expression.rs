//! Fuzz target: arbitrary text as an expression of a filter, for a request without a response and one with it.
//!
//! Invariants: no panic; a filter that is decided without a request holds accordingly; one that holds prints `true`.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::HeaderValue;
use regex::bytes::Regex;
use traffic::filter::{Expression, Finished, TemplateContext};
use traffic::pattern::Pattern;

/// Parses the text and evaluates it.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // regular expressions have a target of their own
    let mut compile = |pattern: &str| {
        let compiled = Regex::new(&regex::escape(pattern)).map_err(|error| error.to_string())?;
        Ok(Pattern::new(pattern.into(), Arc::new(compiled)))
    };
    let Ok(expression) = Expression::parse(&text, &mut compile) else {
        return;
    };
    assert_eq!(expression.written(), text);
    let mut headers = HeaderMap::new();
    headers.insert("x-a", HeaderValue::from_bytes(b"1\xff").expect("a value"));
    let finished = Finished::default();
    for response_code in [0, 404] {
        let context = TemplateContext {
            method: "GET",
            path: "/a?b=c",
            authority: "A.test:80",
            response_code,
            request_headers: Some(&headers),
            finished: Some(&finished),
            ..TemplateContext::default()
        };
        let holds = expression.holds(&context);
        if let Some(fixed) = expression.fixed() {
            assert_eq!(holds, fixed, "{text}");
        }
        let mut printed = Vec::new();
        let is_known = expression.print(&mut printed, &context);
        assert!(!holds || (is_known && printed == b"true"), "{text}");
    }
    let _ = (expression.unguarded(), expression.is_beyond_envoy());
}
