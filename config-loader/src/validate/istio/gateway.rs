//! Gateway: raw to checked.

use std::sync::Arc;

use super::Check;
use super::shared::{flag, text, text_or_empty};
use crate::raw;
use crate::resource::istio::{Bind, Gateway, NamespaceFilter, Protocol, Server, ServerHost};
use crate::validate::scalar;

/// Checks a Gateway.
pub fn gateway(raw: &raw::istio::Gateway, check: &mut Check<'_>) -> Gateway {
    let servers = scalar::items(&raw.servers, check)
        .into_iter()
        .map(|(field, server)| {
            let port = server.port.get().cloned().unwrap_or_default();
            let hosts = scalar::items(&server.hosts, check);
            let hosts = hosts.into_iter().map(|(field, host)| {
                let (namespace, name) = host.split_once('/').unwrap_or(("*", host));
                ServerHost {
                    namespace: match namespace {
                        "*" => NamespaceFilter::Any,
                        "." => NamespaceFilter::Only(check.namespace().into()),
                        name => NamespaceFilter::Only(name.into()),
                    },
                    host: name.into(),
                    line: check.line(field.span()),
                }
            });
            let hosts = hosts.collect();
            Server {
                name: text_or_empty(&server.name),
                port: scalar::port(&port.number, check).unwrap_or(0),
                port_name: text_or_empty(&port.name),
                protocol: text(&port.protocol)
                    .and_then(Protocol::from_name)
                    .unwrap_or_default(),
                bind: match text(&server.bind) {
                    None => Bind::Default,
                    Some(text) => match text.parse() {
                        Ok(ip) => Bind::Ip(ip),
                        Err(_) => Bind::Unix(Arc::from(text)),
                    },
                },
                hosts,
                tls: None,
                https_redirect: server
                    .tls
                    .get()
                    .is_some_and(|tls| flag(&tls.https_redirect)),
                line: check.line(field.span()),
            }
        })
        .collect();
    Gateway {
        selector: scalar::selector(&raw.selector, check),
        servers,
    }
}
