//! Rules of HTTPRoutes: a route per match, with its rank among the routes of a host.

use std::cmp::Reverse;
use std::sync::Arc;

use config_loader::catalog::gateway_api::backend;
use config_loader::catalog::hostname;
use config_loader::resource::gateway_api::{
    Backend, BackendRef, Filter, HTTPRoute, HeaderEdits, HttpMatch, PathMatch, PathModifier,
    Redirect as WrittenRedirect, RouteRule,
};
use config_loader::resource::istio::Scheme as WrittenScheme;
use config_loader::resource::{Line, Object};
use http::{HeaderValue, StatusCode};

use super::gateway_filters::cors;
use crate::compile::clusters;
use crate::compile::clusters::Clusters;
use crate::compile::conditions::{header, pattern_of, text};
use crate::compile::provenance::provenance_of;
use crate::compile::rules::Compiled;
use crate::snapshot::{Destination, INVALID_BACKEND, Route};
use traffic::cluster::Split;
use traffic::filter::chain::HeaderScopes;
use traffic::filter::retry::{BackOff, Condition, Conditions as RetryConditions};
use traffic::filter::{
    Action, Draws, Early, HeaderError, HeaderScope, MatchedUri, Mirrors, PathChange, PathRewrite,
    Redirect, RedirectPort, RetryPolicy, RouteFilters, Scheme,
};
use traffic::provenance::Provenance;
use traffic::route::{Conditions, QueryMatch, Rule, TextMatch, UriMatch};

/// HTTPRoute that is attached to a listener.
#[derive(Debug)]
pub(in crate::compile) struct Attachment<'r> {
    pub route: &'r Arc<Object<HTTPRoute>>,
    /// Hosts that it shares with the listener.
    pub hosts: Vec<Arc<str>>,
}

/// Rank of a match among those of a host, in the order of its fields.
///
/// Source: HTTPRoute `spec.rules[].matches`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::compile) struct Rank {
    /// Exact hosts, then longer wildcards.
    host: Reverse<(bool, usize)>,
    /// Exact paths, then prefixes, then expressions; within each, longer ones.
    path: (u8, Reverse<usize>),
    method: Reverse<bool>,
    headers: Reverse<usize>,
    query: Reverse<usize>,
    /// Position of the route, the oldest first.
    age: usize,
    rule: usize,
    position: usize,
}

/// Compiles the rules of an HTTPRoute for one host.
pub(in crate::compile) struct RouteCompiler<'a> {
    pub route: &'a Arc<Object<HTTPRoute>>,
    /// Host by which the route serves.
    pub host: &'a str,
    /// Position of the route, the oldest first.
    pub age: usize,
    /// Domain of the mesh.
    pub domain: &'a str,
}

impl RouteCompiler<'_> {
    /// Compiles each match of the rules into `compiled`.
    pub(in crate::compile) fn compile(
        &self,
        clusters: &mut Clusters<'_>,
        compiled: &mut Vec<(Rank, Compiled)>,
    ) {
        clusters.view().found(self.route);
        for (number, rule) in self.route.spec.rules.iter().enumerate() {
            for (position, written) in rule.matches.iter().enumerate() {
                let route = self.compile_match(rule, written, clusters);
                // `check` reports headers that do not compile, and the resource is rejected
                debug_assert!(
                    route.is_ok(),
                    "validation accepts {}: {route:?}",
                    self.route.id
                );
                let rank = self.rank(written, (number, position));
                compiled.extend(route.ok().map(|route| (rank, route)));
            }
        }
    }

    fn rank(&self, written: &HttpMatch, (rule, position): (usize, usize)) -> Rank {
        Rank {
            host: Reverse(hostname::specificity(self.host)),
            path: match &written.path {
                PathMatch::Exact(path) => (0, Reverse(path.len())),
                PathMatch::Segments(path) => (1, Reverse(path.len())),
                PathMatch::Regex(pattern) => (2, Reverse(pattern.source.len())),
            },
            method: Reverse(written.method.is_some()),
            headers: Reverse(written.headers.len()),
            query: Reverse(written.query_params.len()),
            age: self.age,
            rule,
            position,
        }
    }

    fn compile_match(
        &self,
        rule: &RouteRule<HttpMatch>,
        written: &HttpMatch,
        clusters: &mut Clusters<'_>,
    ) -> Result<Compiled, HeaderError> {
        let conditions = conditions(written);
        let name: Arc<str> = rule.name.clone().unwrap_or_default();
        let route = self.route(rule, &conditions, &name, clusters)?;
        let rule = Rule {
            name,
            conditions,
            provenance: self.provenance(written.line),
        };
        Ok((rule, route))
    }

    fn provenance(&self, line: Line) -> Provenance {
        provenance_of(self.route.as_ref(), line.0)
    }

    fn route(
        &self,
        rule: &RouteRule<HttpMatch>,
        conditions: &Conditions,
        name: &Arc<str>,
        clusters: &mut Clusters<'_>,
    ) -> Result<Route, HeaderError> {
        let matched = match &conditions.uri {
            UriMatch::Segments(value) => MatchedUri::Prefix(value.len()),
            UriMatch::Any => MatchedUri::Prefix(0),
            _ => MatchedUri::Whole,
        };
        let of_rule = scopes(&rule.filters);
        let of_backends = rule.backends.iter();
        let of_backends = of_backends.map(|one| after(&of_rule, &scopes(&one.filters)));
        let of_backends: Vec<HeaderScopes> = of_backends.collect();
        let is_forwarded = !rule.backends.is_empty();
        // with backends, the edits of the rule are among those of each
        let own = if is_forwarded {
            HeaderScopes::default()
        } else {
            of_rule
        };
        let mut filters = RouteFilters::new(&own, &of_backends, authority(&rule.filters))?;
        filters.path = rule.filters.iter().find_map(|filter| match filter {
            Filter::Rewrite(rewrite) => path_rewrite(&rewrite.path, matched),
            _ => None,
        });
        filters.timeout = rule.timeout;
        filters.retry = retry(rule, clusters);
        let redirect = rule.filters.iter().find_map(|filter| match filter {
            Filter::Redirect(redirect) => Some(redirect),
            _ => None,
        });
        let cors = rule.filters.iter().find_map(|filter| match filter {
            Filter::Cors(written) => Some(cors(written)),
            _ => None,
        });
        filters.early = cors.map(|cors| {
            Box::new(Early {
                cors: Some(cors),
                ..Early::default()
            })
        });
        if let Some(redirect) = redirect {
            filters.action = Action::Redirect(Box::new(redirect_of(redirect, matched)));
        }
        let split = match redirect {
            Some(_) => None,
            None => self.split(rule, clusters),
        };
        Ok(Route {
            stats: None,
            name: Arc::clone(name),
            provenance: self.provenance(rule.line),
            filters,
            split,
            mirrors: self.mirrors(rule, clusters),
        })
    }

    /// Returns the backends of a rule by weight. One that is not valid, and a rule without backends, answers with 500.
    fn split(
        &self,
        rule: &RouteRule<HttpMatch>,
        clusters: &mut Clusters<'_>,
    ) -> Option<Split<Destination>> {
        let is_usable = !has_unusable(&rule.filters);
        let backends = rule.backends.iter().enumerate();
        let entries = backends.map(|(position, one): (usize, &Backend)| {
            let is_usable = is_usable && one.has_only_header_edits();
            let target = Some(&one.target).filter(|_| is_usable);
            let line = one.target.object.line;
            (
                one.weight,
                self.destination(target, (position, line), clusters),
            )
        });
        let mut entries: Vec<_> = entries.collect();
        if entries.iter().all(|(weight, _)| *weight == 0) {
            entries = vec![(1, self.destination(None, (0, rule.line), clusters))];
        }
        Split::build(entries)
    }

    /// Returns the destination of a backend; one that answers with 500 if its reference does not hold.
    fn destination(
        &self,
        target: Option<&BackendRef>,
        (position, line): (usize, Line),
        clusters: &mut Clusters<'_>,
    ) -> Destination {
        let found = target
            .and_then(|target| backend(clusters.view(), &self.route.id, target, self.domain).ok());
        let name = match found {
            Some(found) => clusters::name(found.port, "", &found.host),
            None => INVALID_BACKEND.to_owned(),
        };
        let (name, cluster) = clusters.need(&name);
        Destination {
            name,
            cluster,
            position,
            provenance: self.provenance(line),
        }
    }

    fn mirrors(
        &self,
        rule: &RouteRule<HttpMatch>,
        clusters: &mut Clusters<'_>,
    ) -> Option<Mirrors<Destination>> {
        let mirrors = rule.filters.iter().filter_map(|filter| match filter {
            Filter::Mirror(mirror) => Some(mirror),
            _ => None,
        });
        let entries = mirrors.enumerate().map(|(position, mirror)| {
            let at = (position, mirror.line);
            let share = mirror.percentage.parts_per_million();
            (share, self.destination(Some(&mirror.target), at, clusters))
        });
        let entries: Vec<_> = entries.collect();
        let valid = entries.into_iter();
        Mirrors::build(
            Draws::Each,
            valid.filter(|(_, one)| *one.name != *INVALID_BACKEND),
        )
    }
}

fn has_unusable(filters: &[Filter]) -> bool {
    filters.iter().any(|one| matches!(one, Filter::Unusable(_)))
}

fn conditions(written: &HttpMatch) -> Conditions {
    let query = written.query_params.iter().map(|query| QueryMatch {
        name: (*query.name).into(),
        value: text(&query.value),
    });
    Conditions {
        uri: match &written.path {
            PathMatch::Exact(path) => UriMatch::Exact {
                value: (**path).into(),
                ignore_case: false,
            },
            PathMatch::Segments(path) if path.is_empty() => UriMatch::Any,
            PathMatch::Segments(path) => UriMatch::Segments((**path).into()),
            PathMatch::Regex(pattern) => UriMatch::Regex(pattern_of(pattern)),
        },
        method: written
            .method
            .as_deref()
            .map(|method| TextMatch::Exact(method.into())),
        headers: written.headers.iter().filter_map(header).collect(),
        query: query.collect(),
        ..Conditions::default()
    }
}

/// Returns the retries of a rule; those of the mesh if it has none.
fn retry(rule: &RouteRule<HttpMatch>, clusters: &Clusters<'_>) -> Option<Arc<RetryPolicy>> {
    let mesh = clusters.mesh_retries();
    let Some(written) = rule.retry.as_deref() else {
        return match (mesh, rule.attempt_timeout) {
            (mesh, None) => mesh.cloned(),
            (Some(mesh), timeout) => Some(Arc::new(RetryPolicy {
                per_try_timeout: timeout,
                ..RetryPolicy::clone(mesh)
            })),
            (None, timeout) => Some(Arc::new(RetryPolicy {
                attempts: 0,
                per_try_timeout: timeout,
                ..RetryPolicy::mesh_default(false)
            })),
        };
    };
    let mut conditions = RetryConditions::default();
    for condition in [
        Condition::ConnectFailure,
        Condition::RefusedStream,
        Condition::Reset,
        Condition::Unavailable,
        Condition::Cancelled,
    ] {
        conditions.insert(condition);
    }
    written
        .codes
        .iter()
        .for_each(|code| conditions.insert_status(*code));
    Some(Arc::new(RetryPolicy {
        attempts: written.attempts,
        per_try_timeout: rule.attempt_timeout,
        conditions,
        back_off: written
            .backoff
            .map_or_else(BackOff::default, |base| BackOff { base }),
        avoid_tried: None,
        avoid_priorities: false,
        implied: false,
    }))
}

fn authority(filters: &[Filter]) -> Option<HeaderValue> {
    filters.iter().find_map(|filter| match filter {
        Filter::Rewrite(rewrite) => HeaderValue::from_str(rewrite.hostname.as_deref()?).ok(),
        _ => None,
    })
}

fn path_rewrite(path: &PathModifier, matched: MatchedUri) -> Option<PathRewrite> {
    match path {
        PathModifier::Keep => None,
        PathModifier::Full(with) => Some(PathRewrite::Whole((**with).into())),
        PathModifier::Segments(with) => Some(PathRewrite::uri(matched, with)),
    }
}

fn redirect_of(written: &WrittenRedirect, matched: MatchedUri) -> Redirect {
    let scheme = written.scheme.map(|scheme| match scheme {
        WrittenScheme::Http => Scheme::Http,
        WrittenScheme::Https => Scheme::Https,
    });
    let of_scheme = scheme.map(|scheme| match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    });
    Redirect {
        scheme,
        authority: written.hostname.as_deref().map(Into::into),
        port: match written.port.or(of_scheme) {
            Some(port) => RedirectPort::Fixed(port),
            None => RedirectPort::FromRequest,
        },
        path: match &written.path {
            PathModifier::Keep => PathChange::Keep,
            PathModifier::Full(with) => PathChange::Whole((**with).into()),
            PathModifier::Segments(with) => Redirect::prefix_rewrite(matched, with),
        },
        code: StatusCode::from_u16(written.status).unwrap_or(StatusCode::FOUND),
    }
}

/// Returns the header edits of filters.
fn scopes(filters: &[Filter]) -> HeaderScopes {
    let mut scopes = HeaderScopes::default();
    for filter in filters {
        match filter {
            Filter::RequestHeaders(edits) => scopes.request = scope(edits),
            Filter::ResponseHeaders(edits) => scopes.response = scope(edits),
            _ => {}
        }
    }
    scopes
}

/// Returns edits with literal values: `%` begins an operator in a template.
fn scope(edits: &HeaderEdits) -> HeaderScope {
    let pair = |(name, value): &(Arc<str>, Arc<str>)| (name.to_string(), value.replace('%', "%%"));
    HeaderScope {
        remove: edits.remove.iter().map(ToString::to_string).collect(),
        set: edits.set.iter().map(pair).collect(),
        add: edits.add.iter().map(pair).collect(),
    }
}

/// Returns the edits of a rule, followed by those of a backend.
fn after(rule: &HeaderScopes, backend: &HeaderScopes) -> HeaderScopes {
    HeaderScopes {
        request: followed(&rule.request, &backend.request),
        response: followed(&rule.response, &backend.response),
    }
}

fn followed(first: &HeaderScope, then: &HeaderScope) -> HeaderScope {
    let is_kept = |(name, _): &&(String, String)| {
        !then.remove.contains(name) && then.set.iter().all(|(other, _)| other != name)
    };
    let chain = |first: &[(String, String)], then: &[(String, String)]| {
        first.iter().filter(is_kept).chain(then).cloned().collect()
    };
    HeaderScope {
        remove: first.remove.iter().chain(&then.remove).cloned().collect(),
        set: chain(&first.set, &then.set),
        add: chain(&first.add, &then.add),
    }
}
