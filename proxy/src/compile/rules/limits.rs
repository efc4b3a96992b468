//! BackendTrafficPolicies that apply to routes: the one of the rule, else that of its VirtualService, else that of a
//! Gateway; for the workload of a sidecar that of its Service. Of several, the oldest.

use std::collections::HashMap;
use std::sync::Arc;

use config_loader::catalog::View;
use config_loader::resource::Object;
use config_loader::resource::envoy_gateway::BackendTrafficPolicy;
use config_loader::resource::envoy_gateway::backend_traffic_policy::{
    PathMatch as WrittenPath, Selector as WrittenSelector, Target, TargetKind,
    ValueMatch as WrittenValue,
};
use config_loader::resource::istio::GatewayRef;
use http::Method;

use crate::compile::clusters::Clusters;
use crate::compile::conditions::{text, uri_match};
use crate::compile::provenance::provenance_of;
use crate::compile::route_source::RouteSource;
use crate::compile::rules::scope::{RuleScope, Sourced};
use traffic::limit::{
    GlobalRule, LimitRule, PathMatch, RouteLimits, Selector, Sources, ValueMatch,
};
use traffic::provenance::Provenance;
use traffic::registry::Rate;
use traffic::route::{HeaderKey, TextMatch, normalize_host};

type Policy = Arc<Object<BackendTrafficPolicy>>;

/// Returns the limits of a rule of a route source.
pub(in crate::compile) fn of_rule(
    sourced: &Sourced<'_>,
    scope: &RuleScope<'_>,
    clusters: &Clusters<'_>,
) -> Option<Arc<RouteLimits>> {
    let view = clusters.view();
    if view.is_empty::<BackendTrafficPolicy>() {
        return None;
    }
    let own = of_source(&sourced.source, sourced.written_name(view), view);
    let of_root = || {
        let (root, rule) = sourced.root?;
        of_source(root, &rule.name, view)
    };
    let route = sourced.root.map_or(&sourced.source, |(root, _)| root).id();
    let of_gateways = || {
        let policy = scope.gateways.iter().find_map(|gateway| match gateway {
            GatewayRef::Named(name) => find(view, &name.namespace, |target| {
                target.kind == TargetKind::Gateway && target.name == name.name
            }),
            _ => None,
        });
        Some((policy?, route.to_string()))
    };
    let (policy, target) = own.or_else(of_root).or_else(of_gateways)?;
    limits(policy, &target, clusters)
}

/// Returns the policy of a rule of a VirtualService, else that of the VirtualService; with the name of its target.
fn of_source<'a>(source: &RouteSource, rule: &str, view: View<'a>) -> Option<(&'a Policy, String)> {
    let id = source.id();
    let has_section = |section: Option<&str>| {
        find(view, &id.namespace, |target| {
            target.kind == TargetKind::VirtualService
                && target.name == id.name
                && target.section.as_deref() == section
        })
    };
    let of_rule = (!rule.is_empty())
        .then(|| has_section(Some(rule)))
        .flatten();
    match of_rule {
        Some(policy) => Some((policy, format!("{id}/{rule}"))),
        None => Some((has_section(None)?, id.to_string())),
    }
}

/// Returns the limits of requests to the workload of a sidecar, by its service.
pub(in crate::compile) fn of_service(
    service: &Provenance,
    clusters: &Clusters<'_>,
) -> Option<Arc<RouteLimits>> {
    let (namespace, name) = service.object.strip_prefix("Service/")?.split_once('/')?;
    let policy = find(clusters.view(), namespace, |target| {
        target.kind == TargetKind::Service && *target.name == *name
    })?;
    limits(policy, &service.object, clusters)
}

/// Returns the oldest policy of a namespace with such a target.
fn find<'a>(
    view: View<'a>,
    namespace: &str,
    is_target: impl Fn(&Target) -> bool,
) -> Option<&'a Policy> {
    let policies = view.in_namespace::<BackendTrafficPolicy>(namespace);
    policies
        .filter(|policy| policy.spec.targets.iter().any(&is_target))
        .min_by(|a, b| a.age().cmp(&b.age()))
}

fn limits(policy: &Policy, target: &str, clusters: &Clusters<'_>) -> Option<Arc<RouteLimits>> {
    let spec = &policy.spec;
    let mut known: HashMap<String, usize> = HashMap::new();
    let rules = spec.local.iter().map(|rule| {
        // the buckets stay as long as the rule is the same, wherever it is written
        let target = if rule.is_shared { "" } else { target };
        let selectors = &rule.selectors;
        let name = format!(
            "{} {target} {} {:?} {selectors:?}",
            policy.id, rule.requests, rule.unit
        );
        let number = known.entry(name.clone()).or_default();
        *number += 1;
        let rate = Rate::new(rule.requests, rule.unit);
        LimitRule {
            selectors: selectors.iter().filter_map(selector).collect(),
            cost: rule.cost,
            is_shadow: rule.is_shadow,
            buckets: clusters.buckets(&format!("{name} {number}"), rate),
            provenance: provenance_of(policy.as_ref(), rule.line.0),
        }
    });
    let rules: Box<[LimitRule]> = rules.collect();
    let mut counts = [0, 0];
    let global = spec.global.iter().map(|rule| {
        let count = &mut counts[usize::from(rule.is_shared)];
        *count += 1;
        GlobalRule {
            target: match rule.is_shared {
                true => format!("{}/{}", policy.id.namespace, policy.id.name).into(),
                false => target.into(),
            },
            number: *count - 1,
            selectors: rule.selectors.iter().filter_map(selector).collect(),
            requests: rule.requests,
            unit: rule.unit,
            cost: rule.cost,
            is_shadow: rule.is_shadow,
            provenance: provenance_of(policy.as_ref(), rule.line.0),
        }
    });
    let global: Box<[GlobalRule]> = global.collect();
    let body_max = spec.body_max.map(|(bytes, _)| bytes);
    let is_empty = rules.is_empty() && global.is_empty() && body_max.is_none();
    (!is_empty).then(|| {
        let local = rules.iter().flat_map(|rule| &rule.selectors);
        let of_service = global.iter().flat_map(|rule| &rule.selectors);
        let is_added = |one: &Selector| matches!(one, Selector::Header(key, _) if key.is_added());
        Arc::new(RouteLimits {
            reads_added: local.chain(of_service).any(is_added),
            rules,
            global,
            body_max,
            sources: Sources::default(),
            is_unavailable: false,
            fingerprint: policy.fingerprint,
            provenance: provenance_of(policy.as_ref(), 0),
        })
    })
}

fn selector(written: &WrittenSelector) -> Option<Selector> {
    Some(match written {
        WrittenSelector::Header(name, wanted) => match (HeaderKey::parse(name)?, value(wanted)) {
            (HeaderKey::Host, ValueMatch::Matches(TextMatch::Exact(host), is_inverted)) => {
                let host = TextMatch::Exact(normalize_host(&host).into());
                Selector::Header(HeaderKey::Host, ValueMatch::Matches(host, is_inverted))
            }
            (key, wanted) => Selector::Header(key, wanted),
        },
        WrittenSelector::Methods(methods) => {
            let methods = methods.iter().filter_map(|(method, is_inverted)| {
                Some((Method::from_bytes(method.as_bytes()).ok()?, *is_inverted))
            });
            Selector::Methods(methods.collect())
        }
        WrittenSelector::Path(WrittenPath::Segments(path), is_inverted) => {
            Selector::Path(PathMatch::Segments((**path).into()), *is_inverted)
        }
        WrittenSelector::Path(WrittenPath::Whole(path), is_inverted) => {
            Selector::Path(PathMatch::Whole(uri_match(path, false)), *is_inverted)
        }
        WrittenSelector::QueryParam(name, wanted) => {
            Selector::Query((**name).into(), value(wanted))
        }
        WrittenSelector::Source(net, is_distinct) => Selector::Source {
            net: *net,
            is_distinct: *is_distinct,
        },
    })
}

fn value(written: &WrittenValue) -> ValueMatch {
    match written {
        WrittenValue::Distinct => ValueMatch::Distinct,
        WrittenValue::Matches(wanted, is_inverted) => {
            ValueMatch::Matches(text(wanted), *is_inverted)
        }
    }
}
