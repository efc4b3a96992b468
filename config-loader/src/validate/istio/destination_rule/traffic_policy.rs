//! `trafficPolicy`, of a rule, a subset or a port.

use std::collections::HashMap;

use super::{client_tls, connection_pool, load_balancer, outlier_detection};
use crate::diagnostic::codes::istio::{
    DR124, DR125, DR129, DR130, DR177, DR178, DR179, DR180, DR304, DR305, DR306,
};
use crate::raw::{self, Field};
use crate::resource::istio::{
    PortPolicy, ProxyProtocolVersion, RetryBudget, TrafficPolicy, Tunnel, TunnelMethod,
};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns a traffic policy. `outliers` tells whether it may inherit outlier detection.
pub(super) fn traffic_policy(
    field: &Field<raw::istio::TrafficPolicy>,
    outliers: bool,
    check: &mut Check<'_>,
) -> TrafficPolicy {
    let Some(raw) = field.get() else {
        return TrafficPolicy::default();
    };
    is_not_empty(raw, field.span(), check);
    shared::exclude(
        [
            ("tunnel", shared::block(&raw.tunnel)),
            ("proxyProtocol", shared::block(&raw.proxy_protocol)),
        ],
        DR125,
        "a tunnel already says where the connection goes: remove one of them",
        check,
    );
    let outliers = outliers || raw.outlier_detection.is_set();
    TrafficPolicy {
        connection_pool: connection_pool::connection_pool(&raw.connection_pool, check)
            .map(Box::new),
        load_balancer: load_balancer::load_balancer(&raw.load_balancer, outliers, check)
            .map(Box::new),
        outlier_detection: outlier_detection::outlier_detection(&raw.outlier_detection, check)
            .map(Box::new),
        tls: client_tls::client_tls(&raw.tls, check).map(Box::new),
        tunnel: tunnel(&raw.tunnel, check).map(Box::new),
        proxy_protocol: proxy_protocol(&raw.proxy_protocol, check),
        retry_budget: retry_budget(&raw.retry_budget, check),
        ports: ports(&raw.port_level_settings, check),
    }
}

fn is_not_empty(raw: &raw::istio::TrafficPolicy, span: Span, check: &mut Check<'_>) {
    let blocks = [
        shared::block(&raw.connection_pool),
        shared::block(&raw.load_balancer),
        shared::block(&raw.outlier_detection),
        shared::block(&raw.tls),
        shared::block(&raw.tunnel),
        shared::block(&raw.proxy_protocol),
        shared::block(&raw.retry_budget),
        shared::list(&raw.port_level_settings),
    ];
    if blocks.iter().all(|block| block.is_none()) {
        check
            .error(DR124, span, "empty trafficPolicy")
            .help("write `loadBalancer`, `connectionPool`, `outlierDetection`, `tls` or another block, or remove it");
    }
}

fn ports(
    field: &Field<Vec<Field<raw::istio::PortTrafficPolicy>>>,
    check: &mut Check<'_>,
) -> Vec<PortPolicy> {
    let mut known: HashMap<u16, Span> = HashMap::new();
    let mut ports = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        if !raw.port.is_set() {
            check
                .error(
                    DR129,
                    shared::location(&raw.port, entry.span()),
                    "port-level settings without port",
                )
                .help("write `port: {number: 80}`, the port of the service");
        }
        let number = shared::port_selector(&raw.port, check);
        let policy = port_policy(raw, entry.span(), number, check);
        let first = number.and_then(|number| known.get(&number).copied());
        if let Some(first) = first {
            let location = check.location(first);
            check
                .warning(
                    DR306,
                    entry.span(),
                    format!("settings for port {} are given twice", policy.port),
                )
                .help("the first ones are used: remove these, or join them")
                .related(location, "first given here");
            continue;
        }
        known.extend(number.map(|number| (number, entry.span())));
        ports.push(policy);
    }
    ports.shrink_to_fit();
    ports
}

fn port_policy(
    raw: &raw::istio::PortTrafficPolicy,
    span: Span,
    number: Option<u16>,
    check: &mut Check<'_>,
) -> PortPolicy {
    let blocks = [
        shared::block(&raw.connection_pool),
        shared::block(&raw.load_balancer),
        shared::block(&raw.outlier_detection),
        shared::block(&raw.tls),
    ];
    if blocks.iter().all(|block| block.is_none()) {
        let what = number.map_or_else(|| "the port".to_owned(), |number| format!("port {number}"));
        check
            .error(DR130, span, format!("the settings for {what} are empty"))
            .help("write `connectionPool`, `loadBalancer`, `outlierDetection` or `tls`");
    }
    let outliers = raw.outlier_detection.is_set();
    PortPolicy {
        port: number.unwrap_or(0),
        connection_pool: connection_pool::connection_pool(&raw.connection_pool, check)
            .map(Box::new),
        load_balancer: load_balancer::load_balancer(&raw.load_balancer, outliers, check)
            .map(Box::new),
        outlier_detection: outlier_detection::outlier_detection(&raw.outlier_detection, check)
            .map(Box::new),
        tls: client_tls::client_tls(&raw.tls, check).map(Box::new),
        line: check.line(span),
    }
}

fn tunnel(field: &Field<raw::istio::TunnelSettings>, check: &mut Check<'_>) -> Option<Tunnel> {
    let raw = field.get()?;
    let method = match shared::text(&raw.protocol) {
        None | Some("CONNECT") => TunnelMethod::Connect,
        Some("POST") => TunnelMethod::Post,
        Some(other) => {
            check
                .error(
                    DR177,
                    raw.protocol.span(),
                    format!("tunnel protocol `{other}` is unknown"),
                )
                .help("write `CONNECT` or `POST`");
            TunnelMethod::default()
        }
    };
    let host = shared::text(&raw.target_host).unwrap_or("");
    if !raw.target_host.is_invalid() && !scalar::is_fqdn(host) && scalar::ip(host).is_none() {
        let message = match host {
            "" => "the tunnel has no targetHost".to_owned(),
            host => format!("`{host}` is not the target of a tunnel"),
        };
        check
            .error(
                DR178,
                shared::location(&raw.target_host, field.span()),
                message,
            )
            .help("write a domain name or an IP address as `targetHost`");
    }
    let port = raw.target_port.get().copied();
    let target_port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
    if target_port == 0 && !raw.target_port.is_invalid() {
        let message = port.map_or_else(
            || "the tunnel has no targetPort".to_owned(),
            |port| format!("port {port} is outside 1..65535"),
        );
        check
            .error(
                DR179,
                shared::location(&raw.target_port, field.span()),
                message,
            )
            .help("write the port that the target takes connections on, such as 443");
    }
    Some(Tunnel {
        method,
        target_host: host.into(),
        target_port,
        line: check.line(field.span()),
    })
}

fn proxy_protocol(
    field: &Field<raw::istio::ProxyProtocol>,
    check: &mut Check<'_>,
) -> Option<ProxyProtocolVersion> {
    let raw = field.get()?;
    Some(match shared::text(&raw.version) {
        None | Some("V1") => ProxyProtocolVersion::V1,
        Some("V2") => ProxyProtocolVersion::V2,
        Some(other) => {
            check
                .error(
                    DR180,
                    raw.version.span(),
                    format!("unknown PROXY version `{other}`"),
                )
                .help("write `V1` or `V2`");
            ProxyProtocolVersion::default()
        }
    })
}

fn retry_budget(
    field: &Field<raw::istio::RetryBudget>,
    check: &mut Check<'_>,
) -> Option<RetryBudget> {
    let raw = field.get()?;
    let default = RetryBudget::default();
    let percent = raw.percent.get().copied();
    if let Some(percent) = percent.filter(|percent| !(0.0..=100.0).contains(percent)) {
        check
            .error(
                DR304,
                raw.percent.span(),
                format!("{percent} percent is outside 0..100"),
            )
            .help(format!("leave it out for {}", default.percent));
    }
    let least = scalar::non_negative(
        &raw.min_retry_concurrency,
        "minRetryConcurrency",
        DR305,
        check,
    );
    let interval = scalar::duration_or_zero(&raw.budget_interval, check);
    Some(RetryBudget {
        percent: percent.unwrap_or(default.percent),
        // 0 is what a missing number means.
        retry_concurrency_min: least
            .filter(|least| *least > 0)
            .unwrap_or(default.retry_concurrency_min),
        interval: interval.filter(|interval| !interval.is_zero()),
    })
}
