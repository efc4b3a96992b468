//! Annotations of `strait.io`, and one of flomesh, for settings that no resource has a field for.
//!
//! Each setting has its own key, so that an error has its own location and `kubectl annotate` can change a single
//! setting.

mod own;

use std::ops::RangeInclusive;
use std::sync::Arc;

pub use own::Annotations;

use super::{Check, scalar};
use crate::diagnostic::codes::common::{CM033, CM034};
use crate::diagnostic::suggest;
use crate::kind::Kind;
use crate::raw::Field;
use crate::resource::flomesh::GlobalTrafficPolicy;
use crate::resource::gateway_api::RouteExtensions;
use crate::resource::istio::authorization_policy::DRY_RUN;
use crate::resource::{HealthCheck, HealthChecked, Probe};

/// Annotation that turns on active health checks of endpoints, and selects their type.
const HEALTH_CHECK: &str = "strait.io/health-check";

/// Annotations with details of health checks, each with the check types that use it; empty for all types.
const HEALTH_CHECK_DETAILS: [(&str, &[&str]); 9] = [
    ("strait.io/health-check-healthy-threshold", &[]),
    ("strait.io/health-check-host", &["grpc", "http"]),
    ("strait.io/health-check-interval", &[]),
    ("strait.io/health-check-path", &["http"]),
    ("strait.io/health-check-port", &[]),
    ("strait.io/health-check-service", &["grpc"]),
    ("strait.io/health-check-statuses", &["http"]),
    ("strait.io/health-check-timeout", &[]),
    ("strait.io/health-check-unhealthy-threshold", &[]),
];

/// Annotation that tells whether connections to a Gateway begin with a PROXY header, with its values.
const PROXY_PROTOCOL: (&str, [&str; 3]) =
    ("strait.io/proxy-protocol", ["accept", "off", "require"]);

/// Largest length of a path, in bytes.
const PATH_BYTES_MAX: usize = 1_024;

/// Whether a kind supports health check annotations.
fn checks_health(kind: Kind) -> bool {
    matches!(kind, Kind::DestinationRule | Kind::ServiceEntry)
}

/// Reports annotations without effect, and checks the ones that no other validator reads.
pub fn report_strange(check: &mut Check<'_>) {
    let kind = check.kind();
    for (key, span, _) in check.annotations().iter() {
        let details = HEALTH_CHECK_DETAILS.iter().map(|(key, _)| *key);
        let of_health = || details.clone().chain([HEALTH_CHECK]);
        let here: Vec<&str> = match kind {
            Kind::AuthorizationPolicy => vec![DRY_RUN],
            Kind::Gateway => vec![PROXY_PROTOCOL.0],
            Kind::GlobalTrafficPolicy => vec![GlobalTrafficPolicy::FAILOVER_ORDER],
            Kind::HTTPRoute => RouteExtensions::ANNOTATIONS.to_vec(),
            kind if checks_health(kind) => of_health().collect(),
            _ => Vec::new(),
        };
        if here.contains(&key) {
            continue;
        }
        let message = format!("annotation `{key}` has no effect on a {kind}");
        let found = check.warning(CM033, span, message);
        if of_health().any(|known| known == key) {
            found.help("write it on a ServiceEntry or a DestinationRule");
        } else if key == PROXY_PROTOCOL.0 {
            found.help("write it on a Gateway");
        } else if key == GlobalTrafficPolicy::FAILOVER_ORDER {
            found.help("write it on a GlobalTrafficPolicy");
        } else if key == DRY_RUN {
            found.help("write it on an AuthorizationPolicy");
        } else if RouteExtensions::ANNOTATIONS.contains(&key) {
            found.help("write it on an HTTPRoute");
        } else if let Some(near) = suggest::nearest(key, here) {
            found.help(format!("did you mean `{near}`?"));
        }
    }
    if kind == Kind::Gateway
        && let Some(field) = check.annotations().get(PROXY_PROTOCOL.0)
        && let Some(text) = field.get()
        && !PROXY_PROTOCOL.1.contains(&text.as_str())
    {
        refuse(field, "write `accept`, `require` or `off`", check);
    }
}

fn refuse(field: &Field<String>, help: impl Into<String>, check: &mut Check<'_>) {
    let text = field.get().map_or("", String::as_str);
    let message = format!("`{text}` is not a value of this annotation");
    check.error(CM034, field.span(), message).help(help);
}

/// Returns the health check settings from the annotations.
pub fn health_check(check: &mut Check<'_>) -> HealthChecked {
    let annotations = check.annotations();
    let Some(asked) = annotations.get(HEALTH_CHECK) else {
        let of_ours = |key: &str| HEALTH_CHECK_DETAILS.iter().any(|(known, _)| *known == key);
        if let Some((key, span, _)) = annotations.iter().find(|(key, ..)| of_ours(key)) {
            let message = format!("annotation `{key}` without `{HEALTH_CHECK}` checks nothing");
            check
                .error(CM034, span, message)
                .help(format!("add `{HEALTH_CHECK}: http`, `tcp` or `grpc`"));
        }
        return HealthChecked::Unsaid;
    };
    let sort = asked.get().map_or("", String::as_str);
    if !["grpc", "http", "none", "tcp"].contains(&sort) {
        refuse(asked, "write `http`, `tcp`, `grpc` or `none`", check);
        return HealthChecked::Unsaid;
    }
    for (key, sorts) in HEALTH_CHECK_DETAILS {
        if let Some(field) = annotations.get(key)
            && (sort == "none" || !sorts.is_empty() && !sorts.contains(&sort))
        {
            let message = format!("annotation `{key}` means nothing with `{HEALTH_CHECK}: {sort}`");
            check.error(CM034, field.span(), message).help("remove it");
        }
    }
    if sort == "none" {
        return HealthChecked::Never;
    }
    let detail = |name: &str| annotations.get(&format!("{HEALTH_CHECK}-{name}"));
    let probe = match sort {
        "grpc" => Probe::Grpc {
            service: Arc::from(text(detail("service"))),
            host: host(detail("host"), check),
        },
        "http" => Probe::Http {
            path: path(detail("path"), check),
            host: host(detail("host"), check),
            statuses: statuses(detail("statuses"), check),
        },
        _ => Probe::Tcp,
    };
    let duration = |name: &str, check: &mut Check<'_>| scalar::duration(detail(name)?, check);
    let (healthy, unhealthy) = ("healthy-threshold", "unhealthy-threshold");
    let interval = duration("interval", check);
    if interval.is_some_and(|interval| interval < HealthCheck::INTERVAL_MIN)
        && let Some(field) = detail("interval")
    {
        refuse(field, "the shortest interval is 100ms", check);
    }
    let timeout = duration("timeout", check);
    if timeout.is_some_and(|timeout| timeout > HealthCheck::TIMEOUT_MAX)
        && let Some(field) = detail("timeout")
    {
        refuse(field, "the longest timeout is 1m", check);
    }
    HealthChecked::By(Arc::new(HealthCheck {
        probe,
        port: number(detail("port"), u16::MAX.into(), check).map(|port| port as u16),
        interval: interval.unwrap_or(HealthCheck::INTERVAL_DEFAULT),
        timeout: timeout.unwrap_or(HealthCheck::TIMEOUT_DEFAULT),
        healthy_threshold: number(detail(healthy), HealthCheck::THRESHOLD_MAX, check)
            .unwrap_or(HealthCheck::HEALTHY_THRESHOLD_DEFAULT),
        unhealthy_threshold: number(detail(unhealthy), HealthCheck::THRESHOLD_MAX, check)
            .unwrap_or(HealthCheck::UNHEALTHY_THRESHOLD_DEFAULT),
    }))
}

fn text(field: Option<&Field<String>>) -> &str {
    field.and_then(Field::get).map_or("", String::as_str)
}

fn host(field: Option<&Field<String>>, check: &mut Check<'_>) -> Option<Arc<str>> {
    let field = field?;
    let host = text(Some(field));
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    let fits = (scalar::is_fqdn(name) || scalar::ip(host).is_some()) && port.parse::<u16>().is_ok();
    if !fits {
        refuse(
            field,
            "write a host name, with a port if it takes one",
            check,
        );
    }
    Some(Arc::from(host))
}

fn path(field: Option<&Field<String>>, check: &mut Check<'_>) -> Arc<str> {
    let Some(field) = field else {
        return Arc::from("/");
    };
    let path = text(Some(field));
    let visible = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !path.starts_with('/') || !visible || path.len() > PATH_BYTES_MAX {
        refuse(field, "write a path such as `/healthz`", check);
    }
    Arc::from(path)
}

/// Parses `200` or a comma-separated list of statuses and ranges such as `200-299`.
fn statuses(field: Option<&Field<String>>, check: &mut Check<'_>) -> Vec<RangeInclusive<u16>> {
    const OK: RangeInclusive<u16> = 200..=200;
    let Some(field) = field else {
        return vec![OK];
    };
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last && first >= 200 && last <= 599).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text(Some(field))
        .split(',')
        .map(|part| range(part.trim()))
        .collect();
    ranges.unwrap_or_else(|| {
        let help = "write statuses from 200 to 599, as in `200,204` or `200-399`";
        refuse(field, help, check);
        vec![OK]
    })
}

fn number(field: Option<&Field<String>>, max: u32, check: &mut Check<'_>) -> Option<u32> {
    let field = field?;
    let number = text(Some(field)).parse().ok();
    let number = number.filter(|number| (1..=max).contains(number));
    if number.is_none() {
        refuse(field, format!("write a number from 1 to {max}"), check);
    }
    number
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ResourceSet;
    use crate::validate::testing;

    fn entry(annotations: &str) -> String {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: a\n  annotations:\n{}spec:\n  \
             hosts: [a.test]\n  resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  \
             endpoints: [{{address: 10.0.0.1}}]\n",
            annotations
                .lines()
                .map(|line| format!("    {line}\n"))
                .collect::<String>()
        )
    }

    fn checked(set: &ResourceSet) -> HealthChecked {
        let mut entries = set.service_entries.values();
        entries.next().unwrap().spec.health_check.clone()
    }

    #[test]
    fn annotations_configure_health_checks() {
        let (set, found) = testing::load(&entry(
            "strait.io/health-check: http\nstrait.io/health-check-path: /healthz?deep=1\n\
             strait.io/health-check-host: live.test:8080\nstrait.io/health-check-statuses: 200, 204-299\n\
             strait.io/health-check-port: \"8081\"\nstrait.io/health-check-interval: 2s\n\
             strait.io/health-check-timeout: 250ms\nstrait.io/health-check-healthy-threshold: \"2\"\n\
             strait.io/health-check-unhealthy-threshold: \"5\"",
        ));
        assert!(found.is_empty(), "{found:?}");
        let HealthChecked::By(asked) = checked(&set) else {
            panic!("checks are asked for");
        };
        assert_eq!(
            *asked,
            HealthCheck {
                probe: Probe::Http {
                    path: "/healthz?deep=1".into(),
                    host: Some("live.test:8080".into()),
                    statuses: vec![200..=200, 204..=299],
                },
                port: Some(8081),
                interval: Duration::from_secs(2),
                timeout: Duration::from_millis(250),
                healthy_threshold: 2,
                unhealthy_threshold: 5,
            }
        );
        let (set, _) = testing::load(&entry("strait.io/health-check: none"));
        assert_eq!(checked(&set), HealthChecked::Never);
        let (set, _) = testing::load(&entry("other/health-check: what"));
        assert_eq!(checked(&set), HealthChecked::Unsaid);
    }

    #[test]
    fn invalid_annotations_are_reported() {
        let cases: &[(&str, &[&str])] = &[
            (
                "strait.io/health-check: grpc\nstrait.io/health-check-service: pkg.S",
                &[],
            ),
            (
                "strait.io/health-check: https",
                &[
                    "E CM034 6 metadata.annotations[\"strait.io/health-check\"]: `https` is not a value of this annotation",
                ],
            ),
            (
                "strait.io/health-check: tcp\nstrait.io/health-chek-interval: 1s",
                &[
                    "W CM033 7 metadata.annotations[\"strait.io/health-chek-interval\"]: annotation `strait.io/health-chek-interval` has no effect on a ServiceEntry",
                ],
            ),
        ];
        testing::check(entry, cases);
    }

    #[test]
    fn every_value_is_checked_against_its_bounds() {
        for (text, code) in [
            ("strait.io/health-check-interval: 1s", "E CM034"),
            (
                "strait.io/health-check: tcp\nstrait.io/health-check-path: /",
                "E CM034",
            ),
            (
                "strait.io/health-check: none\nstrait.io/health-check-interval: 1s",
                "E CM034",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-path: healthz",
                "E CM034",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-host: a b",
                "E CM034",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-statuses: 2xx",
                "E CM034",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-statuses: 299-200",
                "E CM034",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-port: \"0\"",
                "E CM034",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-interval: 50ms",
                "E CM034",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-interval: \"5\"",
                "E CM003",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-timeout: 2m",
                "E CM034",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-timeout: 0s",
                "E CM001",
            ),
            (
                "strait.io/health-check: http\nstrait.io/health-check-healthy-threshold: \"1000\"",
                "E CM034",
            ),
            ("strait.io/proxy-protocol: accept", "W CM033"),
        ] {
            let (_, found) = testing::load(&entry(text));
            let codes: Vec<&str> = found.iter().map(|found| &found[..7]).collect();
            assert_eq!(codes, [code], "{text}: {found:?}");
        }
    }
}
