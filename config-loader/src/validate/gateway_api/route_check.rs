//! Check of the requests of an HTTPRoute by another service, from annotations.

use std::sync::Arc;

use http::uri::{PathAndQuery, Scheme};
use http::{Method, Uri};
use traffic::authz::{HeaderNames, HttpCheck, Pattern, RouteCheck, UrlTemplate};

use super::shared::value_of;
use crate::diagnostic::codes::common::CM034;
use crate::resource::gateway_api::RouteExtensions;
use crate::validate::{Check, scalar};

/// Annotations that are details of the first one.
const DETAILS: [&str; 4] = [
    RouteExtensions::EXT_AUTHZ_COOKIES,
    RouteExtensions::EXT_AUTHZ_HEADERS,
    RouteExtensions::EXT_AUTHZ_METHOD,
    RouteExtensions::EXT_AUTHZ_SIGN_IN,
];

/// Returns the check; `None` without the annotation.
pub(super) fn route_check(check: &mut Check<'_>) -> Option<Arc<RouteCheck>> {
    let annotations = check.annotations();
    if annotations.get(RouteExtensions::EXT_AUTHZ).is_none() {
        let details = DETAILS.iter().filter_map(|key| annotations.get(key));
        for span in details.map(|field| field.span()).collect::<Vec<_>>() {
            let message = "without the URL of a service, nothing is checked".to_owned();
            let found = check.error(CM034, span, message);
            found.help(format!("add `{}`", RouteExtensions::EXT_AUTHZ));
        }
        return None;
    }
    let headers = value_of(
        RouteExtensions::EXT_AUTHZ_HEADERS,
        "write names of headers between commas",
        check,
        header_names,
    );
    let method = value_of(
        RouteExtensions::EXT_AUTHZ_METHOD,
        "write a method, such as `GET`",
        check,
        |text| Method::from_bytes(text.as_bytes()).ok(),
    );
    let sign_in = value_of(
        RouteExtensions::EXT_AUTHZ_SIGN_IN,
        "write a URL; its variables are `$scheme`, `$host`, `$http_host`, `$request_uri` and `$escaped_request_uri`",
        check,
        UrlTemplate::parse,
    );
    let always_sets_cookies = value_of(
        RouteExtensions::EXT_AUTHZ_COOKIES,
        "write `always`",
        check,
        |text| (text == "always").then_some(()),
    );
    let service = value_of(
        RouteExtensions::EXT_AUTHZ,
        "write the URL of a service, such as `http://auth.login.svc.cluster.local:4180/check`",
        check,
        url,
    )?;
    let exact = |name: &str| HeaderNames([Pattern::of(name)].into());
    Some(Arc::new(RouteCheck {
        needs_tls: service.needs_tls,
        host: service.host,
        port: service.port,
        target: service.target,
        method: method.unwrap_or(Method::GET),
        headers: HttpCheck {
            request_headers: HeaderNames([Pattern::Any].into()),
            to_upstream: headers.unwrap_or_default(),
            to_denied: exact("www-authenticate"),
            to_client: exact("set-cookie"),
            ..HttpCheck::default()
        },
        sign_in,
        always_sets_cookies: always_sets_cookies.is_some(),
    }))
}

fn header_names(text: &str) -> Option<HeaderNames> {
    let names = text.split(',').map(str::trim);
    let names = names
        .map(|name| scalar::is_header_name(name).then(|| Pattern::of(&name.to_ascii_lowercase())));
    let names: Option<Box<[Pattern]>> = names.collect();
    names.map(HeaderNames)
}

/// Whether a text is the URL of a service that can check requests.
pub fn is_check_url(text: &str) -> bool {
    url(text).is_some()
}

/// Whether a text is such a URL with TLS; returns its host.
pub fn check_host_with_tls(text: &str) -> Option<Arc<str>> {
    url(text).filter(|url| url.needs_tls).map(|url| url.host)
}

/// URL of a service that can check requests.
struct CheckUrl {
    needs_tls: bool,
    host: Arc<str>,
    port: u16,
    target: PathAndQuery,
}

fn url(text: &str) -> Option<CheckUrl> {
    let uri: Uri = text.parse().ok()?;
    let host = uri.host().filter(|host| scalar::is_dns_subdomain(host))?;
    let target = uri.path_and_query().cloned();
    let has_user = uri.authority()?.as_str().contains('@');
    let needs_tls = uri.scheme() == Some(&Scheme::HTTPS);
    let is_http = needs_tls || uri.scheme() == Some(&Scheme::HTTP);
    (is_http && !has_user).then(|| CheckUrl {
        needs_tls,
        host: host.into(),
        port: uri.port_u16().unwrap_or(if needs_tls { 443 } else { 80 }),
        target: target.unwrap_or(PathAndQuery::from_static("/")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_is_a_host_with_or_without_tls() {
        for (text, expected) in [
            (
                "http://auth.login:4180/check?a=b",
                (false, "auth.login", 4180, "/check?a=b"),
            ),
            ("http://auth", (false, "auth", 80, "/")),
            ("https://auth.test/x", (true, "auth.test", 443, "/x")),
            ("https://auth:80", (true, "auth", 80, "/")),
        ] {
            let url = url(text).unwrap();
            let found = (url.needs_tls, &*url.host, url.port, url.target.as_str());
            assert_eq!(found, expected, "{text}");
        }
        for wrong in [
            "ftp://auth/x",
            "https://$host/x",
            "http://u@auth/",
            "/x",
            "auth",
            "http://$host/x",
        ] {
            assert!(url(wrong).is_none(), "{wrong}");
        }
        assert!(header_names("X-User, x-email").is_some());
        assert!(header_names("X User").is_none());
    }
}
