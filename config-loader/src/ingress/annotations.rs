//! Annotations of ingress-nginx, and what becomes of each.

use Treatment::{Closes, Drops, Follows};

/// Treatment of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It restricts or redirects requests, and is not followed: paths of its Ingress answer 500.
    Closes,
    /// It has no effect.
    Drops,
    /// It is followed.
    Follows,
}

// Reasons that several annotations have.
const CIPHERS: &str = "cipher suites are those of the proxy";
const COOKIE: &str = "attributes of the cookie";
const GLOBAL_LIMITS: &str = "rate limits of all proxies";
const PASSWORDS: &str = "basic and digest authentication";
const RESPONSE_HEADERS: &str = "rewriting of response headers";
const STREAMED: &str = "responses are streamed";
const SUBREQUEST: &str = "headers of the check of `auth-url`";
const TRACING: &str = "tracing is a setting of the proxy";

/// Known annotations by their names without the prefix, each with its treatment and the reason or the effect.
pub const KNOWN: &[(&str, Treatment, &str)] = &[
    (
        "affinity",
        Follows,
        "DestinationRule `consistentHash.httpCookie`",
    ),
    (
        "affinity-canary-behavior",
        Drops,
        "a canary has session affinity of its own",
    ),
    (
        "affinity-mode",
        Follows,
        "sessions stay as far as consistent hashing keeps them",
    ),
    (
        "allowlist-source-range",
        Follows,
        "`strait.io/allowed-sources`",
    ),
    ("app-root", Follows, "redirect 302 of `/`"),
    (
        "auth-always-set-cookie",
        Follows,
        "`strait.io/ext-authz-cookies`",
    ),
    ("auth-cache-duration", Drops, "nothing is cached"),
    ("auth-cache-key", Drops, "nothing is cached"),
    ("auth-keepalive", Drops, "connections are kept"),
    ("auth-keepalive-requests", Drops, "connections are kept"),
    (
        "auth-keepalive-share-vars",
        Drops,
        "there are no variables of nginx",
    ),
    ("auth-keepalive-timeout", Drops, "connections are kept"),
    ("auth-method", Follows, "`strait.io/ext-authz-method`"),
    ("auth-proxy-set-headers", Closes, SUBREQUEST),
    ("auth-realm", Closes, PASSWORDS),
    ("auth-request-redirect", Closes, SUBREQUEST),
    (
        "auth-response-headers",
        Follows,
        "`strait.io/ext-authz-headers`",
    ),
    ("auth-secret", Closes, PASSWORDS),
    ("auth-secret-type", Closes, PASSWORDS),
    ("auth-signin", Follows, "`strait.io/ext-authz-sign-in`"),
    (
        "auth-signin-redirect-param",
        Follows,
        "parameter of `auth-signin`",
    ),
    ("auth-snippet", Closes, "configuration of nginx"),
    (
        "auth-tls-error-page",
        Drops,
        "a client without a valid certificate gets no page",
    ),
    ("auth-tls-match-cn", Closes, "names in client certificates"),
    (
        "auth-tls-pass-certificate-to-upstream",
        Drops,
        "backends get `x-forwarded-client-cert`",
    ),
    (
        "auth-tls-secret",
        Follows,
        "client certificates of the host's listener",
    ),
    (
        "auth-tls-verify-client",
        Follows,
        "mode of client certificates",
    ),
    (
        "auth-tls-verify-depth",
        Drops,
        "chains may be as long as the certificates allow",
    ),
    ("auth-type", Closes, PASSWORDS),
    ("auth-url", Follows, "`strait.io/ext-authz`"),
    (
        "backend-protocol",
        Follows,
        "protocol and TLS to the backend",
    ),
    ("canary", Follows, "backend beside the stable one"),
    ("canary-by-cookie", Follows, "match on the cookie"),
    ("canary-by-header", Follows, "match on the header"),
    ("canary-by-header-pattern", Follows, "match on the header"),
    ("canary-by-header-value", Follows, "match on the header"),
    ("canary-weight", Follows, "weight"),
    ("canary-weight-total", Follows, "sum of the weights"),
    ("client-body-buffer-size", Drops, "bodies are streamed"),
    ("configuration-snippet", Closes, "configuration of nginx"),
    (
        "connection-proxy-header",
        Drops,
        "connections to backends are kept by HTTP itself",
    ),
    ("cors-allow-credentials", Follows, "CORS"),
    ("cors-allow-headers", Follows, "CORS"),
    ("cors-allow-methods", Follows, "CORS"),
    ("cors-allow-origin", Follows, "CORS"),
    ("cors-expose-headers", Follows, "CORS"),
    ("cors-max-age", Follows, "CORS"),
    ("custom-headers", Follows, "filter ResponseHeaderModifier"),
    ("custom-http-errors", Drops, "error pages are passed on"),
    (
        "default-backend",
        Drops,
        "a Service without endpoints answers 503",
    ),
    (
        "denylist-source-range",
        Follows,
        "`strait.io/denied-sources`",
    ),
    (
        "disable-proxy-intercept-errors",
        Drops,
        "error pages are passed on",
    ),
    (
        "enable-access-log",
        Drops,
        "the access log is a setting of the proxy",
    ),
    ("enable-cors", Follows, "CORS"),
    (
        "enable-global-auth",
        Drops,
        "there is no authorization of all Ingresses",
    ),
    ("enable-modsecurity", Closes, "ModSecurity"),
    ("enable-opentelemetry", Drops, TRACING),
    ("enable-opentracing", Drops, TRACING),
    ("enable-owasp-core-rules", Closes, "ModSecurity"),
    (
        "enable-rewrite-log",
        Drops,
        "`strait explain` shows rewrites",
    ),
    ("force-ssl-redirect", Follows, "redirect 308 to https"),
    (
        "from-to-www-redirect",
        Follows,
        "redirect 308 between the two names",
    ),
    ("global-rate-limit", Closes, GLOBAL_LIMITS),
    ("global-rate-limit-ignored-cidrs", Closes, GLOBAL_LIMITS),
    ("global-rate-limit-key", Closes, GLOBAL_LIMITS),
    ("global-rate-limit-window", Closes, GLOBAL_LIMITS),
    ("http2-push-preload", Drops, "clients ignore pushes"),
    ("limit-allowlist", Closes, "clients without a limit"),
    ("limit-burst-multiplier", Follows, "`strait.io/client-rate`"),
    (
        "limit-connections",
        Closes,
        "limit on the connections of a client",
    ),
    ("limit-rate", Drops, "responses are not slowed down"),
    ("limit-rate-after", Drops, "responses are not slowed down"),
    ("limit-rpm", Follows, "`strait.io/client-rate`"),
    ("limit-rps", Follows, "`strait.io/client-rate`"),
    ("limit-whitelist", Closes, "clients without a limit"),
    ("load-balance", Follows, "DestinationRule `loadBalancer`"),
    ("mirror-host", Drops, "copies have the host of the request"),
    (
        "mirror-request-body",
        Drops,
        "copies have the body of the request",
    ),
    ("mirror-target", Follows, "filter RequestMirror"),
    ("modsecurity-snippet", Closes, "ModSecurity"),
    ("modsecurity-transaction-id", Closes, "ModSecurity"),
    ("opentelemetry-operation-name", Drops, TRACING),
    ("opentelemetry-trust-incoming-span", Drops, TRACING),
    ("opentracing-trust-incoming-span", Drops, TRACING),
    ("permanent-redirect", Follows, "filter RequestRedirect"),
    ("permanent-redirect-code", Follows, "status of the redirect"),
    ("preserve-trailing-slash", Drops, "paths are kept"),
    ("proxy-body-size", Follows, "`strait.io/max-request-bytes`"),
    ("proxy-buffer-size", Drops, STREAMED),
    ("proxy-buffering", Drops, STREAMED),
    ("proxy-buffers-number", Drops, STREAMED),
    ("proxy-busy-buffers-size", Drops, STREAMED),
    (
        "proxy-connect-timeout",
        Follows,
        "DestinationRule `connectTimeout`",
    ),
    ("proxy-cookie-domain", Closes, RESPONSE_HEADERS),
    ("proxy-cookie-path", Closes, RESPONSE_HEADERS),
    (
        "proxy-http-version",
        Drops,
        "the protocol is that of the port",
    ),
    ("proxy-max-temp-file-size", Drops, STREAMED),
    ("proxy-next-upstream", Follows, "retries"),
    (
        "proxy-next-upstream-timeout",
        Drops,
        "retries have no common timeout",
    ),
    ("proxy-next-upstream-tries", Follows, "retries"),
    ("proxy-read-timeout", Follows, "`strait.io/idle-timeout`"),
    ("proxy-redirect-from", Closes, RESPONSE_HEADERS),
    ("proxy-redirect-to", Closes, RESPONSE_HEADERS),
    ("proxy-request-buffering", Drops, "bodies are streamed"),
    (
        "proxy-send-timeout",
        Drops,
        "a body waits as long as the backend does not take it",
    ),
    ("proxy-ssl-ciphers", Drops, CIPHERS),
    ("proxy-ssl-name", Follows, "server name to the backend"),
    ("proxy-ssl-protocols", Drops, "versions are TLS 1.2 and 1.3"),
    (
        "proxy-ssl-secret",
        Follows,
        "DestinationRule `tls.credentialName`",
    ),
    (
        "proxy-ssl-server-name",
        Follows,
        "server name to the backend",
    ),
    (
        "proxy-ssl-verify",
        Follows,
        "DestinationRule `tls.subjectAltNames`",
    ),
    (
        "proxy-ssl-verify-depth",
        Drops,
        "chains may be as long as the certificates allow",
    ),
    ("relative-redirects", Drops, "redirects are absolute"),
    ("rewrite-target", Follows, "new path"),
    ("satisfy", Closes, "one of several authorizations"),
    ("server-alias", Follows, "further hosts"),
    ("server-snippet", Closes, "configuration of nginx"),
    (
        "service-upstream",
        Drops,
        "endpoints of the Service are used in place of its address",
    ),
    (
        "session-cookie-change-on-failure",
        Drops,
        "a session moves when its endpoint is gone",
    ),
    ("session-cookie-conditional-samesite-none", Drops, COOKIE),
    ("session-cookie-domain", Drops, COOKIE),
    ("session-cookie-expires", Follows, "lifetime of the cookie"),
    ("session-cookie-max-age", Follows, "lifetime of the cookie"),
    ("session-cookie-name", Follows, "name of the cookie"),
    ("session-cookie-path", Follows, "path of the cookie"),
    ("session-cookie-samesite", Drops, COOKIE),
    ("session-cookie-secure", Drops, COOKIE),
    ("ssl-ciphers", Drops, CIPHERS),
    ("ssl-passthrough", Follows, "TLSRoute"),
    ("ssl-prefer-server-ciphers", Drops, CIPHERS),
    (
        "ssl-redirect",
        Follows,
        "redirect 308 to https of hosts with a certificate",
    ),
    ("stream-snippet", Closes, "configuration of nginx"),
    ("temporal-redirect", Follows, "filter RequestRedirect"),
    ("temporal-redirect-code", Follows, "status of the redirect"),
    (
        "upstream-hash-by",
        Follows,
        "DestinationRule `consistentHash`",
    ),
    (
        "upstream-hash-by-subset",
        Drops,
        "endpoints have no subsets",
    ),
    (
        "upstream-hash-by-subset-size",
        Drops,
        "endpoints have no subsets",
    ),
    ("upstream-vhost", Follows, "host of requests to the backend"),
    ("use-regex", Follows, "expressions in paths"),
    (
        "whitelist-source-range",
        Follows,
        "`strait.io/allowed-sources`",
    ),
    ("x-forwarded-prefix", Follows, "header of requests"),
];

/// Returns the treatment of an annotation by its name without the prefix.
pub(super) fn treatment(name: &str) -> Option<(Treatment, &'static str)> {
    let found = KNOWN
        .binary_search_by(|(known, ..)| (*known).cmp(name))
        .ok()?;
    let (_, treatment, text) = KNOWN[found];
    Some((treatment, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_annotations_are_sorted() {
        assert!(KNOWN.is_sorted_by(|(one, ..), (other, ..)| one < other));
        assert_eq!(treatment("auth-type").map(|(known, _)| known), Some(Closes));
        assert_eq!(treatment("use-regexp"), None);
    }
}
