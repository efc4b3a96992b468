//! Destinations and weights.

use std::sync::Arc;

use super::headers;
use crate::diagnostic::codes::istio::{VS102, VS103, VS104, VS106, VS107};
use crate::raw::{self, Field};
use crate::resource::istio::{Destination, HttpDestination};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns a required destination.
pub(super) fn required(
    field: &Field<raw::istio::Destination>,
    around: Span,
    check: &mut Check<'_>,
) -> Destination {
    if !field.is_set() {
        check
            .error(
                VS102,
                shared::location(field, around),
                "route without destination",
            )
            .help("write `destination: {host: SERVICE}`");
    }
    destination(field, check).unwrap_or_default()
}

/// Returns a destination, if there is one.
pub(in crate::validate::istio) fn destination(
    field: &Field<raw::istio::Destination>,
    check: &mut Check<'_>,
) -> Option<Destination> {
    let raw = field.get()?;
    let host = shared::text(&raw.host).unwrap_or("");
    if host.is_empty() {
        if !raw.host.is_invalid() {
            check
                .error(
                    VS103,
                    shared::location(&raw.host, field.span()),
                    "destination without host",
                )
                .help("write the name of a service");
        }
    } else if host == "*" || !scalar::is_wildcard_domain(host) {
        let found = check.error(
            VS103,
            raw.host.span(),
            format!("`{host}` is not a service host"),
        );
        if scalar::ip(host).is_some() {
            found.help(
                "name a service; an address needs a ServiceEntry that lists it as an endpoint",
            );
        } else if let Some((name, _)) = host.rsplit_once(':') {
            found.help(format!(
                "write `host: {name}`, and the port under `port.number`"
            ));
        } else {
            found.help("write a name such as `reviews` or `reviews.default.svc.cluster.local`");
        }
    }
    let subset = shared::text_arc(&raw.subset);
    if let Some(subset) = subset
        .as_deref()
        .filter(|subset| !scalar::is_dns_label(subset))
    {
        check
            .error(
                VS104,
                raw.subset.span(),
                format!("`{subset}` is not a subset name"),
            )
            .help("write up to 63 letters, digits and `-`, as in the DestinationRule");
    }
    Some(Destination {
        host: Arc::from(host),
        subset,
        port: shared::port_selector(&raw.port, check),
        line: check.line(shared::location(&raw.host, field.span())),
        subset_line: shared::line(&raw.subset, check),
        port_line: raw
            .port
            .get()
            .map_or_else(Default::default, |port| shared::line(&port.number, check)),
    })
}

/// Returns the destinations of an HTTP rule.
pub(super) fn http_destinations(
    field: &Field<Vec<Field<raw::istio::HttpRouteDestination>>>,
    check: &mut Check<'_>,
) -> Vec<HttpDestination> {
    let entries = scalar::items(field, check);
    let route: Vec<HttpDestination> = entries
        .into_iter()
        .map(|(entry, raw)| {
            let mut places = Vec::new();
            headers::authority_places(&raw.headers, &mut places);
            headers::set_once(&places, check);
            HttpDestination {
                destination: required(&raw.destination, entry.span(), check),
                weight: weight(&raw.weight, check),
                headers: headers::headers(&raw.headers, check).map(Box::new),
                line: check.line(entry.span()),
            }
        })
        .collect();
    weights(field, route.iter().map(|entry| entry.weight), check);
    route
}

/// Returns a weight; 0 if missing.
pub(super) fn weight(field: &Field<i64>, check: &mut Check<'_>) -> u32 {
    scalar::int32(field, "weight", VS106, check).unwrap_or(0)
}

/// Reports several destinations without any weight.
pub(super) fn weights<T>(
    field: &Field<Vec<Field<T>>>,
    weights: impl ExactSizeIterator<Item = u32>,
    check: &mut Check<'_>,
) {
    let several = weights.len() > 1;
    if several && weights.map(u64::from).sum::<u64>() == 0 {
        check.error(VS107, field.span(), "all weights are 0").help(
            "give the destinations a `weight`: their shares are relative, and need not sum to 100",
        );
    }
}
