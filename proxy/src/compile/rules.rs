//! Compiles rules into routes: each match block that can apply here becomes a route of its own, in order.

pub(in crate::compile) mod delegates;
mod early;
mod gateway_extensions;
mod gateway_filters;
mod gateway_matches;
pub(in crate::compile) mod gateway_routes;
pub(in crate::compile) mod limits;
pub(in crate::compile) mod retries;
pub(in crate::compile) mod scope;

pub(in crate::compile) mod destinations;
mod shifts;

use std::sync::Arc;

use bytes::Bytes;
use config_loader::catalog::View;
use config_loader::resource::istio::{
    GatewayRef, HeaderOperations, Headers, HttpAction, HttpMatch, HttpRule,
    Redirect as RawRedirect, RedirectPath, RedirectPort as RawRedirectPort, RewritePath,
    Scheme as RawScheme,
};
use http::{HeaderValue, StatusCode};

use crate::compile::clusters::Clusters;
use crate::compile::conditions::{conditions, pattern_of};
use crate::compile::route_source::RouteSource;
use crate::compile::rules::destinations::split;
use crate::compile::rules::destinations::{Placed, destination};
use crate::compile::rules::scope::{RuleScope, Sourced};
use crate::compile::rules::shifts::Variant;
use crate::snapshot::{Mirror, Route};
use traffic::filter::chain::HeaderScopes;
use traffic::filter::{
    Action, DirectResponse, Draws, HeaderError, HeaderScope, MatchedUri, Mirrors, PathChange,
    PathRewrite, Redirect, RedirectPort, RouteFilters, Scheme,
};
use traffic::provenance::Provenance;
use traffic::route::{Conditions, Rule, UriMatch};

/// Rule of the route table with its route.
pub(in crate::compile) type Compiled = (Rule, Route);

/// Compiles rules in order into `compiled`. A match block that matches every request ends the list: no rule after it is
/// reached. If blocks name gateways, all rules for the first gateway of the scope precede those for the next.
pub(in crate::compile) fn compile(
    rules: &[Sourced<'_>],
    scope: &RuleScope<'_>,
    clusters: &mut Clusters<'_>,
    compiled: &mut Vec<Compiled>,
) {
    compiled.reserve(rules.len());
    for gateways in by_gateway(rules, scope) {
        compile_for(rules, &RuleScope { gateways, ..*scope }, clusters, compiled);
    }
}

/// Returns the gateways whose rules are compiled together: all, or one after the other if a block names gateways.
fn by_gateway<'s>(
    rules: &[Sourced<'_>],
    scope: &RuleScope<'s>,
) -> impl Iterator<Item = &'s [&'s GatewayRef]> {
    let mut blocks = rules.iter().flat_map(|sourced| &sourced.rule.matches);
    let size = match blocks.any(|block| !block.gateways.is_empty()) {
        true => 1,
        false => scope.gateways.len().max(1),
    };
    scope.gateways.chunks(size)
}

fn compile_for(
    rules: &[Sourced<'_>],
    scope: &RuleScope<'_>,
    clusters: &mut Clusters<'_>,
    compiled: &mut Vec<Compiled>,
) {
    for Block {
        sourced,
        position,
        block,
    } in blocks(rules)
    {
        let conditions = match block {
            None => Some(Conditions::default()),
            Some(block) if scope.admits(block) => Some(conditions(block)),
            Some(_) => None,
        };
        let Some(conditions) = conditions else {
            continue;
        };
        let last = conditions.is_catch_all();
        let mut routes = compile_one(sourced, block, conditions, scope, clusters);
        let stats = clusters.rule_stats(|view| sourced.label(view, position));
        for (_, route) in &mut routes {
            route.rule_stats.clone_from(&stats);
        }
        compiled.extend(routes);
        if last {
            return;
        }
    }
}

/// Returns the match blocks of rules in matching order, each with its rule. A rule without blocks matches every
/// request.
fn blocks<'r, 'a>(rules: &'r [Sourced<'a>]) -> impl Iterator<Item = Block<'r, 'a>> {
    rules.iter().enumerate().flat_map(|(position, sourced)| {
        let all = sourced.rule.matches.is_empty().then_some(None);
        let blocks = sourced.rule.matches.iter().map(Some);
        all.into_iter().chain(blocks).map(move |block| Block {
            sourced,
            position,
            block,
        })
    })
}

/// Match block of a rule.
struct Block<'r, 'a> {
    sourced: &'r Sourced<'a>,
    /// Position of the rule.
    position: usize,
    /// `None` for a rule without blocks.
    block: Option<&'r HttpMatch>,
}

/// Whether a source has a rule for this scope, judged without a request.
pub(in crate::compile) fn keeps_any(
    source: &RouteSource,
    view: View<'_>,
    scope: &RuleScope<'_>,
) -> bool {
    let admits = |rule: &HttpRule| {
        rule.matches.is_empty() || rule.matches.iter().any(|block| scope.admits(block))
    };
    let delegates = |rule: &HttpRule| matches!(rule.action, HttpAction::Delegate(_));
    let own = source.http(view).iter();
    if own.clone().any(|rule| !delegates(rule) && admits(rule)) {
        return true;
    }
    let lent = || delegates::expand(source, view).into_iter();
    own.clone().any(|rule| delegates(rule)) && lent().any(|sourced| admits(&sourced.rule))
}

/// Returns the match blocks and rules that [`compile`] gives no route here, each with the reason for the first gateway.
pub(in crate::compile) fn left_out(
    rules: &[Sourced<'_>],
    scope: &RuleScope<'_>,
) -> Vec<(Provenance, LeftOut)> {
    by_gateway(rules, scope)
        .map(|gateways| left_out_for(rules, &RuleScope { gateways, ..*scope }))
        .reduce(|mut first, next| {
            first.retain(|(at, _)| next.iter().any(|(other, _)| other == at));
            first
        })
        .unwrap_or_default()
}

fn left_out_for(rules: &[Sourced<'_>], scope: &RuleScope<'_>) -> Vec<(Provenance, LeftOut)> {
    let mut out = Vec::new();
    let mut ended = None;
    for sourced in rules {
        let rule: &HttpRule = &sourced.rule;
        if let Some(end) = &ended {
            let at = sourced.provenance(rule.line);
            out.push((at, LeftOut::Behind(Provenance::clone(end))));
            continue;
        }
        if rule.matches.is_empty() {
            ended = Some(sourced.provenance(rule.line));
        }
        for block in &rule.matches {
            let at = sourced.provenance(block.line);
            if let Some(end) = &ended {
                out.push((at, LeftOut::Behind(Provenance::clone(end))));
            } else if let Some(field) = scope.objection(block) {
                out.push((at, LeftOut::Elsewhere(field)));
            } else {
                ended = conditions(block).is_catch_all().then_some(at);
            }
        }
    }
    out
}

/// Reason that a match block has no route here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compile) enum LeftOut {
    /// An earlier rule matches every request.
    Behind(Provenance),
    /// This field limits the block to other listeners or proxies.
    Elsewhere(&'static str),
}

/// Returns the routes of a rule with one of its match blocks: one, preceded by one for each traffic shift policy that
/// takes some of the requests.
fn compile_one(
    sourced: &Sourced<'_>,
    block: Option<&HttpMatch>,
    conditions: Conditions,
    scope: &RuleScope<'_>,
    clusters: &mut Clusters<'_>,
) -> Vec<Compiled> {
    let destinations = sourced.rule.routes();
    let variants = shifts::variants(sourced, conditions, destinations, clusters).into_iter();
    variants
        .filter_map(|variant| compile_variant(sourced, block, variant, scope, clusters))
        .collect()
}

fn compile_variant(
    sourced: &Sourced<'_>,
    block: Option<&HttpMatch>,
    variant: Variant,
    scope: &RuleScope<'_>,
    clusters: &mut Clusters<'_>,
) -> Option<Compiled> {
    let rule: &HttpRule = &sourced.rule;
    let line = block.map_or(rule.line, |block| block.line);
    let provenance = sourced.provenance(line);
    let name = route_name(&rule.name, block.map_or("", |block| &block.name));
    let route = route(sourced, &name, &variant, scope, clusters);
    // `check` reports headers that do not compile, and the resource is rejected
    debug_assert!(route.is_ok(), "validation accepts {provenance}: {route:?}");
    let mut route = route.ok()?;
    route.stats = block.and_then(|block| clusters.route_stats(&block.stat_prefix));
    let rule = Rule {
        name,
        conditions: variant.conditions,
        provenance,
    };
    Some((rule, route))
}

fn route_name(rule: &str, block: &str) -> Arc<str> {
    match (rule, block) {
        // a rule or block without a name adds nothing
        ("", name) | (name, "") => name.into(),
        (rule, block) => format!("{rule}.{block}").into(),
    }
}

fn route(
    sourced: &Sourced<'_>,
    name: &Arc<str>,
    variant: &Variant,
    scope: &RuleScope<'_>,
    clusters: &mut Clusters<'_>,
) -> Result<Route, HeaderError> {
    let rule: &HttpRule = &sourced.rule;
    let scopes = rule
        .headers
        .as_deref()
        .map_or_else(HeaderScopes::default, header_scopes);
    let matched = matched_uri(&variant.conditions.uri);
    let rewrite = rule.rewrite.as_deref();
    let authority = rewrite
        .and_then(|rewrite| rewrite.authority.as_deref())
        .and_then(|authority| HeaderValue::from_str(authority).ok());
    let destinations = sourced.rule.routes();
    let of_destinations: Vec<HeaderScopes> = destinations
        .iter()
        .map(|destination| {
            destination
                .headers
                .as_deref()
                .map_or_else(HeaderScopes::default, header_scopes)
        })
        .collect();
    let mut filters = RouteFilters::new(&scopes, &of_destinations, authority)?;
    filters.path = rewrite.and_then(|rewrite| path_rewrite(&rewrite.path, matched));
    filters.timeout = rule.timeout;
    filters.retry = retries::policy(rule, clusters.mesh_retries());
    filters.action = match &rule.action {
        HttpAction::DirectResponse(direct) => {
            let status =
                StatusCode::from_u16(direct.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Action::DirectResponse(Box::new(DirectResponse::new(
                status,
                Bytes::copy_from_slice(&direct.body),
            )))
        }
        HttpAction::Redirect(redirect) => {
            Action::Redirect(Box::new(redirect_of(redirect, matched)))
        }
        HttpAction::Delegate(_) | HttpAction::Route(_) => {
            filters.early = early::early(rule, limits::of_rule(sourced, scope, clusters));
            Action::Forward
        }
    };
    Ok(Route {
        stats: None,
        rule_stats: None,
        name: Arc::clone(name),
        provenance: sourced.provenance(rule.line),
        filters,
        split: split(sourced, destinations, &variant.shifts, scope, clusters),
        mirrors: mirrors(sourced, scope, clusters),
        shares: Box::default(),
    })
}

/// Returns the destinations of copies of a rule's requests.
fn mirrors(
    sourced: &Sourced<'_>,
    scope: &RuleScope<'_>,
    clusters: &mut Clusters<'_>,
) -> Option<Mirrors<Mirror>> {
    // a mirror with a share of 0 has no effect
    let written =
        retries::mirrors(&sourced.rule).filter(|(share, _, _)| share.parts_per_million() > 0);
    let entries = written
        .enumerate()
        .map(|(position, (share, written, line))| {
            let placed = Placed {
                written,
                position,
                line,
            };
            let mirror = Mirror {
                destination: destination(sourced, placed, scope, clusters),
                filters: None,
            };
            (share.parts_per_million(), mirror)
        });
    Mirrors::build(Draws::One, entries)
}

fn matched_uri(uri: &UriMatch) -> MatchedUri {
    match uri {
        UriMatch::Any => MatchedUri::ANY,
        UriMatch::Call(_) | UriMatch::Exact { .. } | UriMatch::Regex(_) => MatchedUri::Whole,
        UriMatch::Prefix { value, .. } | UriMatch::Segments(value) => {
            MatchedUri::Prefix(value.len())
        }
    }
}

fn path_rewrite(path: &RewritePath, matched: MatchedUri) -> Option<PathRewrite> {
    match path {
        RewritePath::Keep => None,
        RewritePath::Matched(with) => Some(PathRewrite::uri(matched, with)),
        RewritePath::Regex(rewrite) => Some(PathRewrite::regex(
            pattern_of(&rewrite.pattern),
            &rewrite.replacement,
        )),
    }
}

fn redirect_of(redirect: &RawRedirect, matched: MatchedUri) -> Redirect {
    Redirect {
        scheme: redirect.scheme.map(|scheme| match scheme {
            RawScheme::Http => Scheme::Http,
            RawScheme::Https => Scheme::Https,
        }),
        authority: redirect.authority.as_deref().map(Into::into),
        port: match redirect.port {
            RawRedirectPort::Default => RedirectPort::Unset,
            RawRedirectPort::Fixed(port) => RedirectPort::Fixed(port),
            RawRedirectPort::Request => RedirectPort::FromRequest,
        },
        path: match &redirect.path {
            RedirectPath::Keep => PathChange::Keep,
            RedirectPath::Prefix(with) => Redirect::prefix_rewrite(matched, with),
            RedirectPath::Replace(with) => PathChange::Whole((**with).into()),
        },
        code: StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::MOVED_PERMANENTLY),
    }
}

fn header_scopes(headers: &Headers) -> HeaderScopes {
    HeaderScopes {
        request: header_scope(&headers.request),
        response: header_scope(&headers.response),
    }
}

fn header_scope(operations: &HeaderOperations) -> HeaderScope {
    let pair = |(name, value): &(Arc<str>, Arc<str>)| (name.to_string(), value.to_string());
    let authority = operations
        .authority
        .iter()
        .map(|value| (":authority".to_owned(), value.to_string()));
    HeaderScope {
        remove: operations
            .remove
            .iter()
            .map(|name| name.to_string())
            .collect(),
        set: operations.set.iter().map(pair).chain(authority).collect(),
        add: operations.add.iter().map(pair).collect(),
    }
}
