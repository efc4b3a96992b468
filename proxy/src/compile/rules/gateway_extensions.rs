//! Settings of HTTPRoutes from their annotations.

use std::sync::Arc;

use config_loader::catalog::gateway_api::GatewayRoute;
use config_loader::resource::Object;
use config_loader::resource::gateway_api::{HTTPRoute, PathMatch, RouteExtensions};
use ipnet::IpNet;

use super::gateway_matches::RouteMatch;
use crate::compile::clusters::{Clusters, name};
use crate::compile::conditions::pattern_of;
use crate::compile::provenance::provenance_of;
use traffic::filter::PathRewrite;
use traffic::filter::chain::ClusterCheck;
use traffic::limit::{LimitRule, RouteLimits, Selector, Sources};
use traffic::registry::Rate;
use traffic::route::{Conditions, TextMatch};

/// Networks of all clients.
const EVERYWHERE: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// Returns the limits of a route on its clients and on bodies of requests.
pub(super) fn limits(
    route: &Object<HTTPRoute>,
    clusters: &Clusters<'_>,
) -> Option<Arc<RouteLimits>> {
    let extensions = route.spec.extensions.as_deref()?;
    let provenance = provenance_of(route, 0);
    let sources = Sources {
        allowed: extensions.allowed_sources.as_slice().into(),
        denied: extensions.denied_sources.as_slice().into(),
    };
    let rules = extensions.client_rate.into_iter().flat_map(|rate| {
        let nets = EVERYWHERE.iter().filter_map(|net| net.parse().ok());
        nets.map(move |net: IpNet| (rate, net))
    });
    let rules = rules.map(|(rate, net)| {
        // the buckets stay as long as the rate is the same
        let name = format!("{} {} {:?} {net}", route.id, rate.requests, rate.unit);
        LimitRule {
            selectors: [Selector::Source {
                net,
                is_distinct: true,
            }]
            .into(),
            cost: 1,
            is_shadow: false,
            buckets: clusters.buckets(&name, Rate::new(rate.requests, rate.unit)),
            provenance: provenance.clone(),
        }
    });
    let rules: Box<[LimitRule]> = rules.collect();
    let body_max = extensions.body_max;
    let is_empty = rules.is_empty() && body_max.is_none() && sources.is_empty();
    (!is_empty).then(|| {
        Arc::new(RouteLimits {
            rules,
            global: Box::default(),
            body_max,
            sources,
            is_unavailable: extensions.rate_is_unavailable,
            reads_added: false,
            fingerprint: route.fingerprint,
            provenance,
        })
    })
}

/// Returns the check of the requests of a route.
pub(super) fn check(route: GatewayRoute<'_>, clusters: &mut Clusters<'_>) -> Option<ClusterCheck> {
    let GatewayRoute::Http(route) = route else {
        return None;
    };
    let check = route.spec.extensions.as_ref()?.check.as_ref()?;
    let host = clusters.destination(&check.host, &route.id.namespace);
    let (name, cluster) = clusters.need(&name(check.port, "", &host));
    Some(ClusterCheck {
        settings: Arc::clone(check),
        name,
        cluster,
    })
}

/// Adds the condition on the host in which a wildcard is one label.
pub(super) fn on_hosts(mut conditions: Conditions, extensions: &RouteExtensions) -> Conditions {
    let hosts = extensions.hosts.as_ref().map(pattern_of);
    conditions.authority = hosts.map(TextMatch::Regex);
    conditions
}

/// Returns the rewrite of a path that an expression matches, by its groups.
pub(super) fn path_rewrite<M: RouteMatch>(
    written: &M,
    extensions: &RouteExtensions,
) -> Option<PathRewrite> {
    let with = extensions.rewritten_path.as_deref()?;
    match written.path()? {
        PathMatch::Regex(pattern) => Some(PathRewrite::regex(pattern_of(pattern), with)),
        PathMatch::Exact(_) | PathMatch::Segments(_) => None,
    }
}
