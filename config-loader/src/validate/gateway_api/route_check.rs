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
    let (host, port, target) = value_of(
        RouteExtensions::EXT_AUTHZ,
        "write the URL of a service, such as `http://auth.login.svc.cluster.local:4180/check`",
        check,
        url,
    )?;
    let exact = |name: &str| HeaderNames([Pattern::of(name)].into());
    Some(Arc::new(RouteCheck {
        host,
        port,
        target,
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

/// Returns host, port, and the path with the query of a URL of plain HTTP.
fn url(text: &str) -> Option<(Arc<str>, u16, PathAndQuery)> {
    let uri: Uri = text.parse().ok()?;
    let host = uri.host().filter(|host| scalar::is_dns_subdomain(host))?;
    let target = uri.path_and_query().cloned();
    let has_user = uri.authority()?.as_str().contains('@');
    (uri.scheme() == Some(&Scheme::HTTP) && !has_user).then(|| {
        let target = target.unwrap_or(PathAndQuery::from_static("/"));
        (host.into(), uri.port_u16().unwrap_or(80), target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_is_a_host_of_plain_http() {
        let (host, port, target) = url("http://auth.login:4180/check?a=b").unwrap();
        assert_eq!(
            (&*host, port, target.as_str()),
            ("auth.login", 4180, "/check?a=b")
        );
        let (_, port, target) = url("http://auth").unwrap();
        assert_eq!((port, target.as_str()), (80, "/"));
        for wrong in [
            "https://auth/x",
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
