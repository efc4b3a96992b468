//! flomesh: routes that a gateway serves to other clusters. Each rule of a ServiceExport becomes a route for every
//! host, at every HTTP and HTTPS server, or only at those of `--export-listener`.
//!
//! Exported routes come after those of route sources, and lead only to endpoints of the gateway's own cluster, whatever
//! its policies say, so that requests cannot loop between clusters.

use std::sync::Arc;

use config_loader::catalog::served_exports;
use config_loader::resource::Object;
use config_loader::resource::flomesh::{ExportRule, PathType, ServiceExport};

use crate::compile::clusters;
use crate::compile::clusters::Clusters;
use crate::compile::conditions;
use crate::compile::listeners::kept_hosts::{HostPart, KeptHosts};
use crate::compile::provenance::provenance_of;
use crate::compile::rules::Compiled;
use crate::identity::{Identity, Mode};
use crate::snapshot::{Destination, Route, VirtualHost};
use traffic::cluster::Split;
use traffic::filter::{Action, PathRewrite, RouteFilters};
use traffic::route::{Conditions, Rule, UriMatch};

/// Name of the virtual host that has the exported routes.
const NAME: &str = "exports";

/// Rule of an export that becomes a route.
struct Exported<'a> {
    object: &'a Arc<Object<ServiceExport>>,
    rule: &'a ExportRule,
}

/// Returns the exported routes; those of the previous snapshot if they have not changed. `None` if there are no
/// exports.
pub(in crate::compile) fn compile(
    identity: &Identity,
    clusters: &mut Clusters<'_>,
    before: Option<&Arc<VirtualHost>>,
) -> Option<Arc<VirtualHost>> {
    if identity.mode != Mode::Gateway {
        return None;
    }
    let mut kept = KeptHosts::take(NAME.to_owned(), clusters);
    let host = HostPart {
        name: NAME.into(),
        // the other cluster has translated its requests
        is_grpc_web: false,
        inputs: 0,
        before,
    };
    let exports = kept.virtual_host(host, clusters, |clusters| {
        let exports = clusters.view().all::<ServiceExport>().values();
        let exported = collect(exports, identity, clusters);
        let routes = exported
            .iter()
            .flat_map(|exported| exported.routes(identity, clusters));
        let routes: Vec<Compiled> = routes.collect();
        (!routes.is_empty()).then_some(routes)
    });
    kept.put(false, clusters);
    exports
}

/// Returns the rules that become routes, in matching order: Exact before Prefix, then the longest path first.
fn collect<'a>(
    exports: impl Iterator<Item = &'a Arc<Object<ServiceExport>>>,
    identity: &Identity,
    clusters: &Clusters<'_>,
) -> Vec<Exported<'a>> {
    let mut rules = Vec::new();
    for object in served_exports(exports) {
        let host = host(object, identity);
        for rule in &object.spec.rules {
            if clusters.exports(&host, rule.port) {
                rules.push(Exported { object, rule });
            }
        }
    }
    rules.sort_by_key(|exported| {
        let rule = exported.rule;
        (
            rule.path_type == PathType::Prefix,
            std::cmp::Reverse(rule.path.len()),
        )
    });
    rules
}

/// Returns the host of the exported service.
fn host(object: &Object<ServiceExport>, identity: &Identity) -> String {
    let (name, namespace, domain) = (&object.id.name, &object.id.namespace, &identity.domain);
    format!("{name}.{namespace}.svc.{domain}")
}

impl Exported<'_> {
    /// Returns the routes of this rule: one for each form of its path. Path segments are matched as a whole, so that
    /// `/web` does not match `/webx`.
    fn routes(&self, identity: &Identity, clusters: &mut Clusters<'_>) -> Vec<Compiled> {
        let exact = |path: &str| UriMatch::Exact {
            value: path.into(),
            ignore_case: false,
        };
        let path = &*self.rule.path;
        let forms = match (self.rule.path_type, path.trim_end_matches('/')) {
            (PathType::Exact, _) => vec![exact(path)],
            (PathType::Prefix, "") => vec![UriMatch::Any],
            (PathType::Prefix, element) => vec![
                exact(element),
                UriMatch::Prefix {
                    value: format!("{element}/").into(),
                    ignore_case: false,
                },
            ],
        };
        let routes = forms.into_iter();
        routes
            .map(|uri| self.route(uri, identity, clusters))
            .collect()
    }

    fn route(&self, uri: UriMatch, identity: &Identity, clusters: &mut Clusters<'_>) -> Compiled {
        let object = self.object;
        let name: Arc<str> = format!("export.{}.{}", object.id.namespace, object.id.name).into();
        let provenance = provenance_of(object.as_ref(), self.rule.line.0);
        let cluster = clusters::exported_name(self.rule.port, &host(object, identity));
        let (cluster_name, cluster) = clusters.need(&cluster);
        let destination = Destination {
            name: cluster_name,
            cluster,
            position: 0,
            provenance: provenance.clone(),
        };
        let mut filters = RouteFilters::default();
        filters.action = Action::Forward;
        filters.retry = clusters.mesh_retries().cloned();
        filters.path = object
            .spec
            .path_rewrite
            .as_ref()
            .map(|rewrite| PathRewrite::First {
                regex: conditions::pattern_of(&rewrite.from),
                with: (*rewrite.to).into(),
            });
        let rule = Rule {
            name: Arc::clone(&name),
            conditions: Conditions {
                uri,
                ..Conditions::default()
            },
            provenance: provenance.clone(),
        };
        let route = Route {
            stats: None,
            rule_stats: None,
            name,
            provenance,
            filters,
            split: Split::build(vec![(1, destination)]),
            mirrors: None,
            shares: Box::default(),
        };
        (rule, route)
    }
}
