//! `ingress` of a Sidecar.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::values::{capture_mode, protocol};
use crate::diagnostic::codes::istio::{
    SC223, SC224, SC228, SC229, SC230, SC231, SC232, SC233, SC234, SC235, SC313,
};
use crate::raw::{self, Field};
use crate::resource::istio::{
    Bind, IngressListener, LocalEndpoint, Protocol, ServerTls, ServerTlsMode, SidecarPort,
};
use crate::span::Span;
use crate::validate::istio::destination_rule::connection_pool;
use crate::validate::istio::gateway::server_tls;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the ingress listeners, for traffic that the workload accepts.
pub(super) fn listeners(
    field: &Field<Vec<Field<raw::istio::IstioIngressListener>>>,
    check: &mut Check<'_>,
) -> Vec<IngressListener> {
    let mut known: HashMap<u16, Span> = HashMap::new();
    let mut listeners = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let listener = listener(raw, entry.span(), check);
        let number = listener.port.number;
        let span = raw.port.get().map_or(entry.span(), |port| {
            shared::location(&port.number, entry.span())
        });
        if let Some(first) = known.insert(number, span).filter(|_| number > 0) {
            let location = check.location(first);
            check
                .error(SC229, span, format!("port {number} is listed twice"))
                .help("remove one of the two")
                .related(location, "first listed here");
        }
        listeners.push(listener);
    }
    listeners
}

fn listener(
    raw: &raw::istio::IstioIngressListener,
    span: Span,
    check: &mut Check<'_>,
) -> IngressListener {
    let port = port(&raw.port, span, check);
    if raw
        .connection_pool
        .get()
        .is_some_and(|pool| pool.http.is_set())
        && !port.protocol.is_http()
    {
        let location = raw
            .connection_pool
            .get()
            .map_or(span, |pool| pool.http.span());
        check
            .warning(
                SC235,
                location,
                format!(
                    "port {} is not declared HTTP: only tcp settings apply",
                    port.number
                ),
            )
            .help("write `protocol: HTTP`, or remove `http`");
    }
    IngressListener {
        bind: bind(&raw.bind, check),
        capture: capture_mode(&raw.capture_mode, check),
        default_endpoint: default_endpoint(&raw.default_endpoint, check),
        tls: tls(&raw.tls, port.protocol, check).map(Box::new),
        connection_pool: connection_pool(&raw.connection_pool, check).map(Box::new),
        port,
        line: check.line(span),
    }
}

fn port(field: &Field<raw::istio::Port>, around: Span, check: &mut Check<'_>) -> SidecarPort {
    let Some(raw) = field.get() else {
        if !field.is_invalid() {
            check
                .error(
                    SC223,
                    shared::location(field, around),
                    "ingress without port",
                )
                .help("write `port: {number: 8080, protocol: HTTP, name: http}`");
        }
        return SidecarPort::default();
    };
    if !raw.number.is_set() {
        check
            .error(
                SC224,
                shared::location(&raw.number, field.span()),
                "the port has no number",
            )
            .help("write for example `number: 8080`");
    }
    SidecarPort {
        number: scalar::port(&raw.number, check).unwrap_or(0),
        protocol: protocol(raw, check),
        name: shared::text_or_empty(&raw.name),
    }
}

fn bind(field: &Field<String>, check: &mut Check<'_>) -> Bind {
    let Some(text) = shared::text(field) else {
        return Bind::Default;
    };
    if let Some(ip) = scalar::ip(text) {
        return Bind::Ip(ip);
    }
    check
        .error(SC228, field.span(), format!("`{text}` is not an address"))
        .help("write an IP address");
    Bind::Default
}

fn default_endpoint(field: &Field<String>, check: &mut Check<'_>) -> Option<LocalEndpoint> {
    let text = shared::text(field)?;
    if let Some(path) = shared::unix_path(text) {
        if !shared::is_socket_path(path) {
            check
                .error(
                    SC230,
                    field.span(),
                    format!("`{path}` is not the path of a socket"),
                )
                .help("write `unix:///run/name.sock`, or `unix://@name` for an abstract one");
        }
        return Some(LocalEndpoint::Unix(Arc::from(path)));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let loopback = match host {
        "127.0.0.1" | "" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        "[::1]" => Some(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        "0.0.0.0" | "[::]" => None,
        _ => {
            check
                .error(SC230, field.span(), format!("`{text}` is not a local endpoint"))
                .help("write `127.0.0.1:PORT`, `0.0.0.0:PORT` for the pod's address, or `unix://` and a path");
            return None;
        }
    };
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Some(match loopback {
            Some(ip) => LocalEndpoint::Loopback(ip, port),
            None => LocalEndpoint::Workload(port),
        }),
        _ => {
            check
                .error(SC231, field.span(), format!("`{text}` has no valid port"))
                .help("write a number from 1 to 65535 after the colon");
            None
        }
    }
}

fn tls(
    field: &Field<raw::istio::ServerTlsSettings>,
    protocol: Protocol,
    check: &mut Check<'_>,
) -> Option<ServerTls> {
    let raw = field.get()?;
    if !protocol.is_tls() {
        let name = if protocol == Protocol::Detect {
            "undeclared"
        } else {
            protocol.as_str()
        };
        check
            .error(SC232, field.span(), format!("tls on a {name} port"))
            .help("write `protocol: HTTPS` or `protocol: TLS`");
    }
    let tls = server_tls(field, check)?;
    if matches!(
        tls.mode,
        ServerTlsMode::AutoPassthrough | ServerTlsMode::IstioMutual
    ) {
        check
            .error(
                SC233,
                raw.mode.span(),
                format!("mode {} is not possible here", tls.mode.as_str()),
            )
            .help("write `SIMPLE` or `MUTUAL`; the mesh brings its own TLS without any setting");
    }
    if tls.mode == ServerTlsMode::Passthrough {
        let span = match raw.mode.is_set() {
            true => raw.mode.span(),
            false => field.span(),
        };
        check
            .warning(
                SC313,
                span,
                "mode PASSTHROUGH, the default, has no effect here: where mutual TLS is off, TLS goes to the workload as it is",
            )
            .help("write `mode: SIMPLE` with serverCertificate and privateKey, or remove `tls`");
    }
    let redirect = if shared::flag(&raw.https_redirect) {
        raw.https_redirect.span()
    } else {
        Span::NONE
    };
    for (name, span) in [
        ("subjectAltNames", shared::list(&raw.subject_alt_names)),
        ("httpsRedirect", redirect),
        ("credentialName", shared::text_span(&raw.credential_name)),
        ("credentialNames", shared::list(&raw.credential_names)),
        ("tlsCertificates", shared::list(&raw.tls_certificates)),
    ] {
        if !span.is_none() {
            check
                .error(
                    SC234,
                    span,
                    format!("`{name}` is not supported in the tls of a Sidecar"),
                )
                .help(
                    "certificates come from `serverCertificate`, `privateKey` and `caCertificates`",
                );
        }
    }
    Some(tls)
}
