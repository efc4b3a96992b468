//! Filter for request trailers.
//!
//! Rules, and the endpoint's own checks, have read the headers before trailers arrive; an endpoint that merges trailers
//! into them would trust unchecked values. Invariant: no field that frames, routes, identifies or authenticates is
//! forwarded as a trailer (RFC 9110, section 6.5.1).

use http::{HeaderMap, HeaderName};

/// Names of fields that must not be trailers, sorted.
const FORBIDDEN: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "age",
    "authorization",
    "b3",
    "baggage",
    "cache-control",
    "cf-connecting-ip",
    "connection",
    "content-disposition",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "early-data",
    "expect",
    "forwarded",
    "front-end-https",
    "host",
    "http2-settings",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "max-forwards",
    "origin",
    "pragma",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "referer",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "user-agent",
    "via",
    "x-amzn-trace-id",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-url",
    "x-ot-span-context",
    "x-real-ip",
    "x-request-id",
    "x-rewrite-url",
];

/// Prefixes of names that only the proxy, the mesh or a trusted proxy may set.
const FORBIDDEN_PREFIXES: &[&str] = &[
    "grpc-",
    "sec-",
    "x-b3-",
    "x-envoy-",
    "x-forwarded-",
    "x-goog-authenticated-",
    "x-istio-",
    "x-jwt-",
];

/// Removes fields that must not be trailers. Returns whether any are left.
pub(in crate::exchange) fn sanitize(trailers: &mut HeaderMap) -> bool {
    if trailers.keys().any(is_forbidden) {
        let names: Vec<HeaderName> = trailers
            .keys()
            .filter(|name| is_forbidden(name))
            .cloned()
            .collect();
        for name in names {
            trailers.remove(name);
        }
    }
    !trailers.is_empty()
}

fn is_forbidden(name: &HeaderName) -> bool {
    let name = name.as_str();
    FORBIDDEN.binary_search(&name).is_ok()
        || FORBIDDEN_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn names_are_sorted_for_binary_search() {
        assert!(FORBIDDEN.is_sorted());
    }

    #[test]
    fn sensitive_fields_are_removed_from_trailers() {
        let value = || HeaderValue::from_static("v");
        let mut trailers = HeaderMap::new();
        for name in ["x-sum", "server-timing", "etag", "digest"] {
            trailers.append(HeaderName::from_static(name), value());
        }
        let allowed = trailers.clone();
        for name in FORBIDDEN {
            trailers.append(HeaderName::from_static(name), value());
            trailers.append(HeaderName::from_static(name), value());
        }
        for name in [
            "x-forwarded-for",
            "x-forwarded-client-cert",
            "x-envoy-retry-on",
            "x-b3-traceid",
            "x-amzn-trace-id",
            "x-original-forwarded-for",
            "cf-connecting-ip",
            "front-end-https",
            "early-data",
            "grpc-timeout",
        ] {
            trailers.append(HeaderName::from_static(name), value());
        }
        assert!(sanitize(&mut trailers));
        assert_eq!(trailers, allowed);
        let mut only = HeaderMap::from_iter([(http::header::AUTHORIZATION, value())]);
        assert!(!sanitize(&mut only));
    }
}
