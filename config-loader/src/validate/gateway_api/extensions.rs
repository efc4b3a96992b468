//! Annotations of an HTTPRoute.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::route_check::route_check;
use super::shared::value_of;
use crate::raw::Field;
use crate::re2::{self, Extent};
use crate::resource::gateway_api::{ClientRate, RouteExtensions};
use crate::resource::istio::{Lined, Pattern};
use crate::validate::{Check, scalar};

/// Whether expressions of the route match the beginning of a path, without regard to case.
pub(super) fn has_prefix_expressions(check: &Check<'_>) -> bool {
    let field = check.annotations().get(RouteExtensions::PATH_EXPRESSIONS);
    field
        .and_then(Field::get)
        .is_some_and(|text| text == "prefix")
}

/// Returns the settings from annotations; `None` without any.
pub(super) fn extensions(
    hosts: &[Lined<Arc<str>>],
    check: &mut Check<'_>,
) -> Option<Box<RouteExtensions>> {
    let annotations = check.annotations();
    RouteExtensions::ANNOTATIONS
        .into_iter()
        .find(|key| annotations.get(key).is_some())?;
    let sources = |key, check: &mut Check<'_>| {
        let help = "write networks between commas, such as `192.0.2.0/24,2001:db8::/32`";
        value_of(key, help, check, networks).unwrap_or_default()
    };
    let is = |key, word: &str, check: &mut Check<'_>| {
        value_of(key, &format!("write `{word}`"), check, |text| {
            (text == word).then_some(())
        })
        .is_some()
    };
    let rewritten_path = value_of(
        RouteExtensions::REWRITE_PATH,
        "begin the path with `/` or a group",
        check,
        |text| text.starts_with(['/', '\\']).then(|| Arc::from(text)),
    );
    Some(Box::new(RouteExtensions {
        allowed_sources: sources(RouteExtensions::ALLOWED_SOURCES, check),
        body_max: value_of(
            RouteExtensions::REQUEST_BYTES,
            "write a number of bytes",
            check,
            |text| text.parse().ok(),
        ),
        check: route_check(check),
        client_rate: value_of(
            RouteExtensions::CLIENT_RATE,
            "write requests per time, such as `50/5s`",
            check,
            rate,
        ),
        denied_sources: sources(RouteExtensions::DENIED_SOURCES, check),
        hosts: is(RouteExtensions::WILDCARD, "one-label", check)
            .then(|| one_label(hosts))
            .flatten(),
        idle_timeout: value_of(
            RouteExtensions::IDLE_TIMEOUT,
            "write seconds, such as `60s`",
            check,
            |text| {
                let seconds = text.strip_suffix('s')?.parse().ok();
                seconds.filter(|one| *one > 0).map(Duration::from_secs)
            },
        ),
        is_http2: is(RouteExtensions::BACKEND_PROTOCOL, "http2", check),
        missing_is_unavailable: is(RouteExtensions::MISSING_BACKEND, "503", check),
        path_prefix_expressions: is(RouteExtensions::PATH_EXPRESSIONS, "prefix", check),
        rate_is_unavailable: value_of(
            RouteExtensions::CLIENT_RATE_STATUS,
            "write `429` or `503`",
            check,
            |text| ["429", "503"].contains(&text).then(|| text == "503"),
        )
        .unwrap_or(false),
        rewritten_path,
    }))
}

fn networks(text: &str) -> Option<Vec<IpNet>> {
    let parts = text.split(',').map(str::trim);
    let all: Option<Vec<IpNet>> = parts.map(scalar::subnet).collect();
    all.filter(|all| !all.is_empty())
}

fn rate(text: &str) -> Option<ClientRate> {
    let (requests, seconds) = text.split_once('/')?;
    let seconds: u32 = seconds.strip_suffix('s')?.parse().ok()?;
    let requests: u32 = requests.parse().ok()?;
    (requests > 0 && seconds > 0).then(|| ClientRate {
        requests,
        unit: Duration::from_secs(seconds.into()),
    })
}

/// Returns an expression of the hosts, in which a wildcard is one label; `None` without a wildcard.
fn one_label(hosts: &[Lined<Arc<str>>]) -> Option<Pattern> {
    if !hosts.iter().any(|host| host.value.starts_with("*.")) {
        return None;
    }
    let hosts = hosts.iter().map(|host| match host.value.strip_prefix('*') {
        Some(domain) => format!("[^.]+{}", domain.replace('.', "\\.")),
        None => host.value.replace('.', "\\."),
    });
    let hosts: Vec<String> = hosts.collect();
    let source = format!("(?i)(?:{})\\.?(?::[0-9]+)?", hosts.join("|"));
    let compiled = re2::compile(&source, Extent::Whole).ok()?;
    Some(Pattern {
        source: source.into(),
        regex: compiled.regex,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_requests_per_seconds() {
        let unit = Duration::from_secs(5);
        let expected = ClientRate { requests: 50, unit };
        assert_eq!(rate("50/5s"), Some(expected));
        for wrong in ["", "50", "50/s", "0/5s", "50/0s", "50/5m", "-1/5s"] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wildcard_is_one_label() {
        let lined = |host: &str| Lined {
            value: Arc::from(host),
            line: crate::span::Line(0),
        };
        assert!(one_label(&[lined("a.example")]).is_none());
        let hosts = one_label(&[lined("*.a.example"), lined("b.example")]).unwrap();
        for (host, expected) in [
            ("x.a.example", true),
            ("X.A.example:8080", true),
            ("b.example", true),
            ("x.y.a.example", false),
            (".a.example", false),
            ("a.example", false),
            ("x.aXexample", false),
        ] {
            assert_eq!(hosts.regex.is_match(host.as_bytes()), expected, "{host}");
        }
    }
}
