//! `connectionPool`, also of a Sidecar.

use std::time::Duration;

use crate::diagnostic::Code;
use crate::diagnostic::codes::istio::{
    DR137, DR138, DR139, DR140, DR141, DR142, DR144, DR145, DR146, DR305,
};
use crate::raw::{self, Field};
use crate::resource::istio::{
    ConnectionPool, Http2KeepAlive, HttpPool, TcpKeepalive, TcpPool, UpgradePolicy,
};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the connection pool limits.
pub(in crate::validate::istio) fn connection_pool(
    field: &Field<raw::istio::ConnectionPoolSettings>,
    check: &mut Check<'_>,
) -> Option<ConnectionPool> {
    let raw = field.get()?;
    if !raw.tcp.is_set() && !raw.http.is_set() {
        check
            .error(DR137, field.span(), "empty connectionPool")
            .help("write `tcp` or `http`, or remove it");
    }
    let (tcp, idle) = tcp(&raw.tcp, check);
    Some(ConnectionPool {
        http: http(&raw.http, idle, check),
        tcp,
        line: check.line(field.span()),
    })
}

/// Returns the TCP settings, and the idle timeout if it is present; zero means never.
fn tcp(
    field: &Field<raw::istio::TcpSettings>,
    check: &mut Check<'_>,
) -> (TcpPool, Option<Duration>) {
    let Some(raw) = field.get() else {
        return (TcpPool::default(), None);
    };
    let idle = scalar::duration_or_zero(&raw.idle_timeout, check);
    let pool = TcpPool {
        connections_max: count(&raw.max_connections, "maxConnections", DR146, check)
            .unwrap_or(u32::MAX),
        connect_timeout: scalar::duration(&raw.connect_timeout, check),
        keepalive: keepalive(&raw.tcp_keepalive, check),
        connection_duration_max: scalar::duration(&raw.max_connection_duration, check),
        idle_timeout: or_never(idle),
    };
    (pool, idle)
}

/// Returns an idle timeout, where zero means never.
fn or_never(written: Option<Duration>) -> Option<Duration> {
    Some(written.unwrap_or(TcpPool::IDLE_TIMEOUT_DEFAULT)).filter(|idle| !idle.is_zero())
}

/// Returns a number; `None` for 0, which counts as missing.
fn count(field: &Field<i64>, name: &str, code: Code, check: &mut Check<'_>) -> Option<u32> {
    scalar::int32(field, name, code, check).filter(|count| *count > 0)
}

/// Returns the settings of TCP keepalive.
pub(in crate::validate::istio) fn keepalive(
    field: &Field<raw::istio::TcpKeepalive>,
    check: &mut Check<'_>,
) -> Option<TcpKeepalive> {
    let raw = field.get()?;
    Some(TcpKeepalive {
        time: scalar::duration(&raw.time, check),
        interval: scalar::duration(&raw.interval, check),
        probes: scalar::non_negative(&raw.probes, "probes", DR305, check)
            .filter(|count| *count > 0),
    })
}

fn http(
    field: &Field<raw::istio::HttpSettings>,
    tcp_idle: Option<Duration>,
    check: &mut Check<'_>,
) -> HttpPool {
    let Some(raw) = field.get() else {
        return HttpPool {
            idle_timeout: or_never(tcp_idle),
            ..HttpPool::default()
        };
    };
    let upgrade = upgrade(raw, check);
    let pending = count(
        &raw.http1_max_pending_requests,
        "http1MaxPendingRequests",
        DR138,
        check,
    );
    let requests = count(&raw.http2_max_requests, "http2MaxRequests", DR139, check);
    let retries = count(&raw.max_retries, "maxRetries", DR141, check);
    HttpPool {
        pending_requests_max: pending.unwrap_or(u32::MAX),
        requests_max: requests.unwrap_or(u32::MAX),
        requests_per_connection_max: count(
            &raw.max_requests_per_connection,
            "maxRequestsPerConnection",
            DR140,
            check,
        ),
        retries_max: retries.unwrap_or(u32::MAX),
        idle_timeout: or_never(scalar::duration(&raw.idle_timeout, check).or(tcp_idle)),
        upgrade,
        use_client_protocol: shared::flag(&raw.use_client_protocol),
        concurrent_streams_max: count(
            &raw.max_concurrent_streams,
            "maxConcurrentStreams",
            DR142,
            check,
        ),
        http2_keep_alive: http2_keep_alive(&raw.http2_keep_alive, check),
    }
}

fn upgrade(raw: &raw::istio::HttpSettings, check: &mut Check<'_>) -> UpgradePolicy {
    let names = [
        ("DEFAULT", UpgradePolicy::Default),
        ("DO_NOT_UPGRADE", UpgradePolicy::DoNotUpgrade),
        ("UPGRADE", UpgradePolicy::Upgrade),
    ];
    let policy = scalar::enum_of(&raw.h2_upgrade_policy, &names, check).unwrap_or_default();
    if policy == UpgradePolicy::Upgrade && shared::flag(&raw.use_client_protocol) {
        let location = check.location(raw.h2_upgrade_policy.span());
        check
            .error(
                DR144,
                raw.use_client_protocol.span(),
                "useClientProtocol contradicts h2UpgradePolicy UPGRADE",
            )
            .help("remove one of them")
            .related(location, "h2UpgradePolicy is set here");
    }
    policy
}

fn http2_keep_alive(
    field: &Field<raw::istio::Http2KeepAlive>,
    check: &mut Check<'_>,
) -> Option<Http2KeepAlive> {
    let raw = field.get()?;
    if shared::text_span(&raw.interval).is_none() || shared::text_span(&raw.timeout).is_none() {
        check
            .error(
                DR145,
                field.span(),
                "http2KeepAlive needs interval and timeout",
            )
            .help("write for example `{interval: 30s, timeout: 5s}`");
    }
    let interval = scalar::duration(&raw.interval, check);
    let timeout = scalar::duration(&raw.timeout, check);
    Some(Http2KeepAlive {
        interval: interval?,
        timeout: timeout?,
    })
}
