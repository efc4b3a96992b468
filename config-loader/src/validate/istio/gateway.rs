//! Gateway: validation.

mod hosts;
mod server_tls;

use std::collections::HashMap;

use super::Check;
use super::shared;
use crate::diagnostic::codes::istio::{
    GW187, GW188, GW189, GW190, GW191, GW192, GW193, GW194, GW195, GW196, GW197, GW204, GW205,
    GW206, GW207, GW301, GW306,
};
use crate::diagnostic::{Code, suggest};
use crate::raw::{self, Field};
use crate::resource::istio::{Bind, Gateway, Protocol, Server};
use crate::span::Span;
use crate::validate::scalar;

pub(super) use hosts::is_partial_wildcard;
pub(super) use server_tls::{cipher_suites, server_tls};

/// Checks a Gateway.
pub fn gateway(raw: &raw::istio::Gateway, check: &mut Check<'_>) -> Gateway {
    if !check.name().is_empty() && !scalar::is_dns_label(check.name()) {
        let message = format!("`{}` is not the name of a Gateway", check.name());
        check.error(GW187, check.name_span(), message).help(
            "VirtualServices name it as `namespace/name`: use letters, digits and `-`, no dots",
        );
    }
    if shared::list(&raw.servers).is_none() {
        check
            .error(
                GW188,
                shared::location(&raw.servers, check.body()),
                "the Gateway has no servers",
            )
            .help(
                "write `servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [...]}]`",
            );
    }
    let mut names: HashMap<&str, Span> = HashMap::new();
    let mut servers = Vec::new();
    for (entry, server_raw) in scalar::items(&raw.servers, check) {
        let name = server_raw.port.get().map(|port| &port.name);
        if let Some((field, name)) = name.and_then(|field| Some((field, shared::text(field)?))) {
            unique_port_name(name, field.span(), &mut names, check);
        }
        servers.push(server(server_raw, entry.span(), check));
    }
    Gateway {
        selector: scalar::labels(&raw.selector, check),
        servers,
    }
}

fn unique_port_name<'f>(
    name: &'f str,
    span: Span,
    names: &mut HashMap<&'f str, Span>,
    check: &mut Check<'_>,
) {
    if let Some(first) = names.get(name) {
        let location = check.location(*first);
        check
            .error(GW191, span, format!("port name `{name}` is used twice"))
            .help("give each port of the Gateway its own name")
            .related(location, "first used here");
    } else {
        names.insert(name, span);
    }
}

fn server(raw: &raw::istio::Server, span: Span, check: &mut Check<'_>) -> Server {
    if !raw.port.is_set() {
        check
            .error(
                GW189,
                shared::location(&raw.port, span),
                "server without port",
            )
            .help("write `port: {number: 80, name: http, protocol: HTTP}`");
    }
    if !shared::text_span(&raw.default_endpoint).is_none() {
        check
            .warning(
                GW301,
                raw.default_endpoint.span(),
                "defaultEndpoint has no effect",
            )
            .help("Istio never implemented it: remove it");
    }
    let bind = bind(&raw.bind, GW195, GW196, check);
    let nothing = raw::istio::Port::default();
    let port = raw.port.get().unwrap_or(&nothing);
    let number = port_number(&raw.port, port, &bind, check);
    if raw.port.get().is_some() && shared::text(&port.name).is_none() && !port.name.is_invalid() {
        let message = format!("port {number} has no name");
        check
            .error(
                GW190,
                shared::location(&port.name, raw.port.span()),
                message,
            )
            .help("write for example `name: http`");
    }
    no_target_port(port, GW194, check);
    let protocol = if raw.port.get().is_some() {
        protocol(&raw.port, port, check)
    } else {
        None
    };
    if let Some(protocol) = protocol {
        tls_fits(raw, protocol, port.protocol.span(), check);
    }
    let asks_redirect = |tls: &raw::istio::ServerTlsSettings| shared::flag(&tls.https_redirect);
    let https_redirect =
        protocol.is_some_and(Protocol::is_http) && raw.tls.get().is_some_and(asks_redirect);
    let plain = protocol.is_some_and(|protocol| !protocol.is_tls());
    let tls = if plain {
        None
    } else {
        server_tls(&raw.tls, check)
    };
    Server {
        name: shared::text_or_empty(&raw.name),
        port: number,
        port_name: shared::text_or_empty(&port.name),
        protocol: protocol.unwrap_or_default(),
        bind,
        hosts: hosts::hosts(&raw.hosts, span, check),
        tls: tls.map(Box::new),
        https_redirect,
        line: check.line(span),
    }
}

/// Returns the address or socket that a listener binds to.
pub(in crate::validate::istio) fn bind(
    field: &Field<String>,
    no_address: Code,
    no_path: Code,
    check: &mut Check<'_>,
) -> Bind {
    let Some(text) = shared::text(field) else {
        return Bind::Default;
    };
    if let Some(path) = shared::unix_path(text) {
        if !shared::is_socket_path(path) {
            check
                .error(
                    no_path,
                    field.span(),
                    format!("`{path}` is not the path of a socket"),
                )
                .help("write `unix:///run/name.sock`, or `unix://@name` for an abstract one");
        }
        return Bind::Unix(path.into());
    }
    if let Some(ip) = scalar::ip(text) {
        return Bind::Ip(ip);
    }
    check
        .error(
            no_address,
            field.span(),
            format!("`{text}` is not an address"),
        )
        .help("write an IP address, or `unix://` and the path of a socket");
    Bind::Default
}

fn port_number(
    field: &Field<raw::istio::Port>,
    port: &raw::istio::Port,
    bind: &Bind,
    check: &mut Check<'_>,
) -> u16 {
    let written = port.number.get().copied();
    if matches!(bind, Bind::Unix(_)) {
        if written.is_some_and(|number| number != 0) {
            check
                .error(GW197, port.number.span(), "a Unix socket takes port 0")
                .help("write `number: 0`");
        }
        return 0;
    }
    match written {
        None if port.number.is_invalid() || field.get().is_none() => 0,
        None => {
            check
                .error(
                    GW193,
                    shared::location(&port.number, field.span()),
                    "the port has no number",
                )
                .help("write for example `number: 80`");
            0
        }
        Some(0) => {
            check
                .error(GW193, port.number.span(), "port 0 is only for Unix sockets")
                .help("write a number from 1 to 65535");
            0
        }
        Some(_) => scalar::port(&port.number, check).unwrap_or(0),
    }
}

/// Reports a target port, which listeners do not have.
pub(super) fn no_target_port(port: &raw::istio::Port, code: Code, check: &mut Check<'_>) {
    if port.target_port.is_set() {
        check
            .error(
                code,
                port.target_port.span(),
                "targetPort has no effect here",
            )
            .help("remove it: routes say where requests go");
    }
}

fn protocol(
    field: &Field<raw::istio::Port>,
    port: &raw::istio::Port,
    check: &mut Check<'_>,
) -> Option<Protocol> {
    if shared::text(&port.protocol).is_none() {
        if !port.protocol.is_invalid() {
            check
                .error(
                    GW192,
                    shared::location(&port.protocol, field.span()),
                    "the port has no protocol",
                )
                .help("write for example `protocol: HTTP`");
        }
        return None;
    }
    known_protocol(&port.protocol, GW192, check)
}

/// Returns the protocol with the name in the field; `None` if it is missing or unknown.
pub(super) fn known_protocol(
    field: &Field<String>,
    code: Code,
    check: &mut Check<'_>,
) -> Option<Protocol> {
    let name = shared::text(field)?;
    let known = Protocol::from_name(name);
    if known.is_none() {
        let names = Protocol::NAMED.map(Protocol::as_str);
        let found = check.error(code, field.span(), format!("protocol `{name}` is unknown"));
        match suggest::nearest(name, names) {
            Some(near) => found.help(format!("did you mean `{near}`?")),
            None => found.help(format!("write one of {}", names.join(", "))),
        };
    }
    known
}

/// Checks that a server has TLS settings if, and only if, its protocol at `span` requires them.
fn tls_fits(raw: &raw::istio::Server, protocol: Protocol, span: Span, check: &mut Check<'_>) {
    let Some(tls) = raw.tls.get() else {
        if protocol.is_tls() && !raw.tls.is_invalid() {
            check
                .error(GW204, span, format!("protocol {protocol} needs `tls`"))
                .help("write `tls: {mode: SIMPLE, credentialName: NAME}`, or `tls: {mode: PASSTHROUGH}`");
        }
        return;
    };
    if protocol.is_http() {
        for (name, location) in server_tls::settings(tls) {
            let is_refused = match name {
                "mode" => shared::text(&tls.mode).is_some_and(|mode| mode != "PASSTHROUGH"),
                "caCertificates" | "privateKey" | "serverCertificate" => true,
                _ => false,
            };
            let found = if is_refused {
                let message = format!("`{name}` in tls on a plaintext HTTP port");
                check.error(GW205, location, message)
            } else {
                let message = format!("`{name}` has no effect on a plaintext HTTP port");
                check.warning(GW306, location, message)
            };
            found.help("write `protocol: HTTPS`, or leave `httpsRedirect` alone");
        }
        return;
    }
    if !protocol.is_tls() {
        check
            .error(GW206, raw.tls.span(), format!("tls on a {protocol} port"))
            .help("write `protocol: TLS`, or remove `tls`");
    }
    if shared::flag(&tls.https_redirect) {
        check
            .warning(
                GW207,
                tls.https_redirect.span(),
                "httpsRedirect only acts on HTTP ports",
            )
            .help("write it in the server whose protocol is HTTP");
    }
}

#[cfg(test)]
mod tests;
