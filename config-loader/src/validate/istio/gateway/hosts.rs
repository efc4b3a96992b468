//! `hosts` of a Gateway server.

use std::sync::Arc;

use crate::diagnostic::codes::istio::{GW198, GW199, GW200, GW201, GW202, GW203};
use crate::raw::Field;
use crate::resource::istio::{NamespaceFilter, ServerHost};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the hosts of the server at the span `around`.
pub(super) fn hosts(
    field: &Field<Vec<Field<String>>>,
    around: Span,
    check: &mut Check<'_>,
) -> Vec<ServerHost> {
    if shared::list(field).is_none() {
        check
            .error(
                GW198,
                shared::location(field, around),
                "server without hosts",
            )
            .help("list the hosts that it serves; `\"*\"` for all");
    }
    let mut hosts = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        let span = entry.span();
        let (namespace, name) = text.split_once('/').unwrap_or(("*", text));
        if namespace.is_empty() || name.is_empty() {
            check
                .error(GW199, span, format!("host `{text}` lacks a part"))
                .help("write `host` or `namespace/host`");
            continue;
        }
        let namespace = match namespace {
            "*" => NamespaceFilter::Any,
            "." => NamespaceFilter::Only(Arc::from(check.namespace())),
            name => {
                if !scalar::is_dns_label(name) {
                    check
                        .error(GW200, span, format!("`{name}` is not a namespace"))
                        .help("write `*/host`, `./host` or the name of a namespace before the `/`");
                }
                NamespaceFilter::Only(Arc::from(name))
            }
        };
        is_host(name, span, check);
        hosts.push(ServerHost {
            namespace,
            host: Arc::from(name),
            line: check.line(span),
        });
    }
    hosts
}

fn is_host(name: &str, span: Span, check: &mut Check<'_>) {
    let is_ipv6 = scalar::ip(name).is_some() && !name.contains('.');
    if is_ipv6 {
        check
            .error(GW202, span, format!("`{name}` is an IPv6 address"))
            .help("write `*`: Gateways take IPv4 addresses only, and Istio rejects this one");
        return;
    }
    if scalar::ip(name).is_some() || name == "*" {
        return;
    }
    if is_partial_wildcard(name) {
        let rest = name.trim_start_matches(['*', '-', '.']);
        check
            .error(GW203, span, format!("partial wildcard `{name}`"))
            .help(format!("a wildcard matches whole labels: write `*.{rest}`"));
    } else if !scalar::is_wildcard_domain(name) {
        let found = check.error(GW202, span, format!("`{name}` is not a host"));
        if name.contains(':') {
            found.help("a host has no port and no scheme");
        } else {
            found.help("write a name such as `www.example.com`, `*.example.com` or `*`");
        }
    } else if !name.contains('.') {
        check
            .error(GW201, span, format!("`{name}` is not fully qualified"))
            .help(format!(
                "write for example `{name}.example.com`; Gateways know no short names"
            ));
    }
}

/// Whether a `*` replaces only a part of a label.
pub(in crate::validate::istio) fn is_partial_wildcard(name: &str) -> bool {
    let rest = name.strip_prefix('*');
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('.'))
        && scalar::is_wildcard_domain(name)
}
