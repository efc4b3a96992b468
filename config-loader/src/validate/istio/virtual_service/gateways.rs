//! `gateways` of a VirtualService and of its match blocks.

use crate::diagnostic::codes::istio::{VS024, VS025, VS026, VS027, VS028};
use crate::raw::Field;
use crate::resource::istio::{GatewayRef, Lined};
use crate::span::Line;
use crate::validate::istio::shared::name_of;
use crate::validate::{Check, scalar};

/// Returns the gateways of a VirtualService. Default: the mesh, unless it is a delegate.
pub(super) fn of_service(
    field: &Field<Vec<Field<String>>>,
    delegate: bool,
    check: &mut Check<'_>,
) -> Vec<Lined<GatewayRef>> {
    let mut gateways = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        if let Some(value) = gateway(text, entry, check) {
            let line = check.line(entry.span());
            gateways.push(Lined { value, line });
        }
    }
    if gateways.is_empty() && !delegate {
        gateways.push(Lined {
            value: GatewayRef::Mesh,
            line: check.line(check.body()),
        });
    }
    gateways.shrink_to_fit();
    gateways
}

/// Returns the gateways of a match block with their spans; empty if it names none.
pub(super) fn of_match(
    field: &Field<Vec<Field<String>>>,
    check: &mut Check<'_>,
) -> (Vec<GatewayRef>, Vec<Line>) {
    let entries = scalar::items(field, check);
    let gateways = entries.into_iter().filter_map(|(entry, text)| {
        let found = gateway(text, entry, check)?;
        Some((found, check.line(entry.span())))
    });
    gateways.unzip()
}

fn gateway(text: &str, entry: &Field<String>, check: &mut Check<'_>) -> Option<GatewayRef> {
    if text == "mesh" {
        return Some(GatewayRef::Mesh);
    }
    if let Some((namespace, name)) = text.split_once('/') {
        return qualified(text, namespace, name, entry, check);
    }
    if !scalar::is_fqdn(text) {
        check
            .error(
                VS027,
                entry.span(),
                format!("`{text}` is not the name of a gateway"),
            )
            .help("write `mesh`, `name` or `namespace/name`");
        return None;
    }
    let mut labels = text.split('.');
    let name = labels.next().unwrap_or(text);
    let Some(namespace) = labels.next().filter(|label| !label.is_empty()) else {
        return Some(GatewayRef::Named(name_of(check.namespace(), name)));
    };
    check
        .warning(
            VS028,
            entry.span(),
            format!("`{text}` is the old form of the name of a gateway"),
        )
        .help(format!("write `{namespace}/{name}`"));
    Some(GatewayRef::Named(name_of(namespace, name)))
}

fn qualified(
    text: &str,
    namespace: &str,
    name: &str,
    entry: &Field<String>,
    check: &mut Check<'_>,
) -> Option<GatewayRef> {
    let span = entry.span();
    if namespace.is_empty() || name.is_empty() {
        check
            .error(
                VS024,
                span,
                format!("gateway `{text}` lacks a namespace or a name"),
            )
            .help("write `namespace/name`");
        return None;
    }
    let own = namespace == ".";
    if !own && !scalar::is_dns_label(namespace) {
        check
            .error(VS025, span, format!("`{namespace}` is not a namespace"))
            .help("write `namespace/name`, or `./name` for the resource's own namespace");
        return None;
    }
    if !scalar::is_dns_label(name) {
        check
            .error(
                VS026,
                span,
                format!("`{name}` is not the name of a gateway"),
            )
            .help("the name of a Gateway has letters, digits and `-`, no dots");
        return None;
    }
    let namespace = if own { check.namespace() } else { namespace };
    Some(GatewayRef::Named(name_of(namespace, name)))
}
