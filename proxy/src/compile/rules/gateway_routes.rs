//! Rules of HTTPRoutes and GRPCRoutes: a route per match, with its rank among the routes of a host.

use std::sync::Arc;

use bytes::Bytes;
use config_loader::catalog::gateway_api::{GatewayRoute, backend, mesh_backend, raw_backend};
use config_loader::resource::Line;
use config_loader::resource::gateway_api::{
    Backend, BackendRef, Filter, ObjectReference, RouteExtensions, RouteRule,
};
use http::StatusCode;

use super::gateway_extensions;
use super::gateway_filters::{authority, cors, path_rewrite, redirect_of, scopes};
use super::gateway_matches::{MatchRank, RouteMatch};
use crate::compile::clusters;
use crate::compile::clusters::Clusters;
use crate::compile::provenance::provenance_of;
use crate::compile::rules::Compiled;
use crate::snapshot::{Destination, INVALID_BACKEND, Mirror, OpaqueRoute, Route};
use traffic::cluster::Split;
use traffic::filter::chain::HeaderScopes;
use traffic::filter::retry::{BackOff, Condition, Conditions as RetryConditions};
use traffic::filter::{
    Action, DirectResponse, Draws, Early, HeaderError, MatchedUri, Mirrors, RedirectPort,
    RetryPolicy, RouteFilters,
};
use traffic::limit::RouteLimits;
use traffic::provenance::Provenance;
use traffic::route::{Conditions, Rule, UriMatch};

/// Route that is attached to a parent.
#[derive(Clone, Copy, Debug)]
pub(in crate::compile) struct Attachment<'r> {
    pub route: GatewayRoute<'r>,
    /// Position among the routes of the parent and host, the oldest first.
    pub age: usize,
}

/// Rank of a match among those of a host, in the order of its fields.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::compile) struct Rank {
    of_match: MatchRank,
    /// Position of the route, the oldest first.
    age: usize,
    rule: usize,
    position: usize,
}

/// Parent for which the rules of a route are compiled.
#[derive(Clone, Copy, Debug)]
pub(in crate::compile) enum Parent {
    /// Listener with its port as written.
    Listener(u16),
    /// Listener that passes bytes on as they are.
    RawListener,
    /// Port of a Service.
    Service(u16),
}

impl Parent {
    fn port(self) -> RedirectPort {
        match self {
            Self::Listener(port) | Self::Service(port) => RedirectPort::Fixed(port),
            Self::RawListener => RedirectPort::Unset,
        }
    }
}

/// Compiles the rules of a route for one parent.
pub(in crate::compile) struct RouteCompiler<'a> {
    pub attachment: Attachment<'a>,
    pub parent: Parent,
    /// Domain of the mesh.
    pub domain: &'a str,
    /// Secret with the certificate that the Gateway shows to backends.
    pub client: Option<&'a ObjectReference>,
}

impl RouteCompiler<'_> {
    /// Compiles each match of the rules into `compiled`.
    pub(in crate::compile) fn compile(
        &self,
        clusters: &mut Clusters<'_>,
        compiled: &mut Vec<(Rank, Compiled)>,
    ) {
        match self.attachment.route {
            GatewayRoute::Grpc(route) => {
                clusters.view().found(route);
                self.rules(&route.spec.rules, clusters, compiled);
            }
            GatewayRoute::Http(route) => {
                clusters.view().found(route);
                self.rules(&route.spec.rules, clusters, compiled);
            }
            GatewayRoute::Tcp(_) | GatewayRoute::Tls(_) => {}
        }
    }

    /// Compiles the rule of a route for connections; `None` for a route for requests.
    pub(in crate::compile) fn compile_connections(
        &self,
        clusters: &mut Clusters<'_>,
    ) -> Option<OpaqueRoute> {
        let rule = match self.attachment.route {
            GatewayRoute::Tcp(route) => {
                clusters.view().found(route);
                &route.spec.rule
            }
            GatewayRoute::Tls(route) => {
                clusters.view().found(route);
                &route.spec.rule
            }
            GatewayRoute::Grpc(_) | GatewayRoute::Http(_) => return None,
        };
        let split = self.weighted(&rule.backends, true, rule.line, clusters);
        let tunnel = split.as_ref().and_then(|split| {
            let (_, first) = split.entries().next()?;
            // with several destinations, the tunnel is that of the whole service
            clusters.tunnel(&first.name, split.entries().nth(1).is_some())
        });
        Some(OpaqueRoute {
            provenance: self.provenance(rule.line),
            split,
            tunnel: tunnel.map(Arc::new),
        })
    }

    /// Returns the settings of an HTTPRoute from annotations.
    fn extensions(&self) -> Option<&RouteExtensions> {
        match self.attachment.route {
            GatewayRoute::Http(route) => route.spec.extensions.as_deref(),
            _ => None,
        }
    }

    fn limits(&self, clusters: &Clusters<'_>) -> Option<Arc<RouteLimits>> {
        match self.attachment.route {
            GatewayRoute::Http(route) => gateway_extensions::limits(route, clusters),
            _ => None,
        }
    }

    fn rules<M: RouteMatch>(
        &self,
        rules: &[RouteRule<M>],
        clusters: &mut Clusters<'_>,
        compiled: &mut Vec<(Rank, Compiled)>,
    ) {
        let extensions = self.extensions();
        let as_prefixes = extensions.is_some_and(|own| own.path_prefix_expressions);
        for (number, rule) in rules.iter().enumerate() {
            for (position, written) in rule.matches.iter().enumerate() {
                let route = self.compile_match(rule, number, written, clusters);
                let rank = Rank {
                    of_match: written.rank(as_prefixes),
                    age: self.attachment.age,
                    rule: number,
                    position,
                };
                compiled.push((rank, route));
            }
        }
    }

    fn compile_match<M: RouteMatch>(
        &self,
        rule: &RouteRule<M>,
        number: usize,
        written: &M,
        clusters: &mut Clusters<'_>,
    ) -> Compiled {
        let mut conditions = written.conditions();
        let extensions = self.extensions();
        if let Some(extensions) = extensions {
            conditions = gateway_extensions::on_hosts(conditions, extensions);
        }
        let name: Arc<str> = rule.name.clone().unwrap_or_default();
        let route = self.route(rule, &conditions, &name, clusters);
        let id = self.attachment.route.id();
        debug_assert!(route.is_ok(), "validation accepts {id}: {route:?}");
        // without the rule, requests would go to a wider one
        let mut route = route.unwrap_or_else(|_| self.closed(rule, &name, clusters));
        let rewrite = extensions.and_then(|own| gateway_extensions::path_rewrite(written, own));
        if let Some(rewrite) = rewrite {
            for share in &mut route.shares {
                share.filters.path = Some(rewrite.clone());
            }
            route.filters.path = Some(rewrite);
        }
        route.rule_stats = clusters.rule_stats(|_| {
            let object = self.provenance(rule.line).object;
            match name.is_empty() {
                true => format!("{object}[{number}]").into(),
                false => format!("{object}[{name}]").into(),
            }
        });
        for share in &mut route.shares {
            share.rule_stats.clone_from(&route.rule_stats);
        }
        let rule = Rule {
            name,
            conditions,
            provenance: self.provenance(written.line()),
        };
        (rule, route)
    }

    /// Returns a route that answers its requests with 500.
    fn closed<M: RouteMatch>(
        &self,
        rule: &RouteRule<M>,
        name: &Arc<str>,
        clusters: &mut Clusters<'_>,
    ) -> Route {
        Route {
            stats: None,
            rule_stats: None,
            name: Arc::clone(name),
            provenance: self.provenance(rule.line),
            filters: RouteFilters::default(),
            split: self.weighted(&[], false, rule.line, clusters),
            mirrors: None,
            shares: Box::default(),
        }
    }

    fn provenance(&self, line: Line) -> Provenance {
        match self.attachment.route {
            GatewayRoute::Grpc(route) => provenance_of(route, line.0),
            GatewayRoute::Http(route) => provenance_of(route, line.0),
            GatewayRoute::Tcp(route) => provenance_of(route, line.0),
            GatewayRoute::Tls(route) => provenance_of(route, line.0),
        }
    }

    fn route<M: RouteMatch>(
        &self,
        rule: &RouteRule<M>,
        conditions: &Conditions,
        name: &Arc<str>,
        clusters: &mut Clusters<'_>,
    ) -> Result<Route, HeaderError> {
        let matched = match &conditions.uri {
            UriMatch::Segments(value) => MatchedUri::Prefix(value.len()),
            UriMatch::Any => MatchedUri::Prefix(0),
            _ => MatchedUri::Whole,
        };
        let part = Part {
            rule,
            matched,
            name,
            chosen: None,
        };
        let mut route = self.part(part, clusters)?;
        let mut backends = rule.backends.iter();
        let has_own = backends.any(|one| !one.has_only_header_edits());
        if has_own && rule.backends.iter().any(|one| one.weight > 0) {
            let shares = rule.backends.iter().map(|chosen| {
                let chosen = Some(chosen);
                self.part(Part { chosen, ..part }, clusters)
            });
            route.shares = shares.collect::<Result<_, _>>()?;
        }
        Ok(route)
    }

    fn part<M: RouteMatch>(
        &self,
        part: Part<'_, M>,
        clusters: &mut Clusters<'_>,
    ) -> Result<Route, HeaderError> {
        let Part { rule, matched, .. } = part;
        let (own, backends) = (part.filters(), part.backends());
        let of_backends = backends.iter().map(|one| match part.chosen {
            Some(_) => scopes(own.iter().copied()),
            None => scopes(own.iter().copied().chain(&one.filters)),
        });
        let of_backends: Vec<HeaderScopes> = of_backends.collect();
        // with backends, the edits of the rule are among those of each
        let of_rule = match backends.is_empty() {
            true => scopes(own.iter().copied()),
            false => HeaderScopes::default(),
        };
        let mut filters = RouteFilters::new(&of_rule, &of_backends, authority(&own))?;
        filters.path = path_rewrite(&own, matched);
        filters.timeout = rule.timeout;
        filters.retry = retry(rule, clusters);
        filters.idle_timeout = self.extensions().and_then(|own| own.idle_timeout);
        filters.is_http2 = M::IS_HTTP2 || self.extensions().is_some_and(|own| own.is_http2);
        let cors = rule.filters.iter().find_map(|filter| match filter {
            Filter::Cors(written) => Some(cors(written)),
            _ => None,
        });
        let mut early = Early {
            cors,
            limits: self.limits(clusters),
            ..Early::default()
        };
        let is_usable = own.iter().all(|one| !matches!(one, Filter::Unusable(_)))
            && part.chosen.is_none_or(Backend::is_followed);
        let redirect = own.iter().find_map(|filter| match filter {
            Filter::Redirect(redirect) if is_usable => Some(redirect),
            _ => None,
        });
        if let Some(redirect) = redirect {
            let redirect = redirect_of(redirect, matched, self.parent.port());
            filters.action = Action::Redirect(Box::new(redirect));
        }
        let response = own.iter().find_map(|filter| match filter {
            Filter::Respond(response) if is_usable => Some(response.status),
            _ => None,
        });
        if let Some(status) = response {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let response = DirectResponse::new(status, Bytes::new());
            filters.action = Action::DirectResponse(Box::new(response));
        }
        let split = match (redirect, response) {
            (Some(_), _) | (_, Some(_)) => None,
            (None, None) => {
                early.check = gateway_extensions::check(self.attachment.route, clusters);
                self.weighted(backends, is_usable, rule.line, clusters)
            }
        };
        filters.early = (!early.is_empty()).then(|| Box::new(early));
        Ok(Route {
            stats: None,
            rule_stats: None,
            name: Arc::clone(part.name),
            provenance: self.provenance(rule.line),
            filters,
            split,
            mirrors: self.mirrors(part, clusters)?,
            shares: Box::default(),
        })
    }

    /// Returns backends by weight. One that is not valid answers with 500, and so does a rule, on this line, without a
    /// weight. No backend is valid unless they are `usable`.
    fn weighted(
        &self,
        backends: &[Backend],
        usable: bool,
        line: Line,
        clusters: &mut Clusters<'_>,
    ) -> Option<Split<Destination>> {
        // what no route has in the end is not needed: kept hosts do not need it again
        let is_weightless = backends.iter().all(|one| one.weight == 0);
        let backends = backends.iter().filter(|_| !is_weightless).enumerate();
        let entries = backends.map(|(position, one): (usize, &Backend)| {
            let is_usable = usable && one.is_followed();
            let target = Some(&one.target).filter(|_| is_usable);
            let line = one.target.object.line;
            (
                one.weight,
                self.destination(target, position, line, clusters),
            )
        });
        let mut entries: Vec<_> = entries.collect();
        if is_weightless {
            entries = vec![(1, self.destination(None, 0, line, clusters))];
        }
        Split::build(entries)
    }

    /// Returns the destination of a backend; one that answers with 500 if its reference does not hold.
    fn destination(
        &self,
        target: Option<&BackendRef>,
        position: usize,
        line: Line,
        clusters: &mut Clusters<'_>,
    ) -> Destination {
        let name = self.name_of(target, clusters);
        let (name, cluster) = clusters.need(&name);
        Destination {
            name,
            cluster,
            position,
            provenance: self.provenance(line),
        }
    }

    /// Returns the name of the cluster of a backend.
    fn name_of(&self, target: Option<&BackendRef>, clusters: &Clusters<'_>) -> String {
        let (view, route) = (clusters.view(), self.attachment.route.id());
        let found = target.and_then(|target| match self.parent {
            Parent::Listener(_) => backend(view, route, target, self.domain).ok(),
            Parent::RawListener => raw_backend(view, route, target, self.domain).ok(),
            Parent::Service(_) => mesh_backend(view, target, self.domain).ok(),
        });
        match (found, target.map(|target| &target.object)) {
            (Some(found), _) => clusters::name_of_backend(&found, self.client),
            (None, Some(object))
                if object.is_service()
                    && self
                        .extensions()
                        .is_some_and(|own| own.missing_is_unavailable) =>
            {
                // the name of the cluster that the Service will have
                let host = format!("{}.{}.svc.{}", object.name, object.namespace, self.domain);
                let port = target.and_then(|target| target.port).unwrap_or_default();
                clusters::name(port, "", &host)
            }
            (None, Some(object)) => {
                format!("{INVALID_BACKEND} {} {}", object.kind, object.to_name())
            }
            (None, None) => INVALID_BACKEND.to_owned(),
        }
    }

    fn mirrors<M>(
        &self,
        part: Part<'_, M>,
        clusters: &mut Clusters<'_>,
    ) -> Result<Option<Mirrors<Mirror>>, HeaderError> {
        let own = part.filters();
        let mut entries = Vec::new();
        for (place, filter) in own.iter().enumerate() {
            let Filter::Mirror(written) = filter else {
                continue;
            };
            let target = Some(&written.target);
            if self.name_of(target, clusters).starts_with(INVALID_BACKEND) {
                continue;
            }
            let destination = self.destination(target, entries.len(), written.line, clusters);
            let (before, after) = own.split_at(place);
            let of_backends = part.backends().iter().flat_map(|one| &one.filters);
            let of_backends = of_backends.filter(|_| part.chosen.is_none());
            let mut after = after.iter().copied().chain(of_backends);
            let filters = match after.any(Filter::edits_requests) {
                false => None,
                true => {
                    let scopes = scopes(before.iter().copied());
                    let mut filters = RouteFilters::new(&scopes, &[], authority(before))?;
                    filters.path = path_rewrite(before, part.matched);
                    Some(Box::new(filters))
                }
            };
            let mirror = Mirror {
                destination,
                filters,
            };
            entries.push((written.percentage.parts_per_million(), mirror));
        }
        Ok(Mirrors::build(Draws::Each, entries))
    }
}

/// Rule, or its part for one of its backends.
struct Part<'a, M> {
    rule: &'a RouteRule<M>,
    /// Part of the path that the match covers.
    matched: MatchedUri,
    name: &'a Arc<str>,
    /// Backend that is drawn; `None` for all.
    chosen: Option<&'a Backend>,
}

impl<M> Clone for Part<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Part<'_, M> {}

impl<'a, M> Part<'a, M> {
    fn backends(self) -> &'a [Backend] {
        match self.chosen {
            Some(chosen) => std::slice::from_ref(chosen),
            None => &self.rule.backends,
        }
    }

    /// Returns the filters of the rule, followed by those of the backend.
    fn filters(self) -> Vec<&'a Filter> {
        let of_backend = self.chosen.into_iter().flat_map(|one| &one.filters);
        self.rule.filters.iter().chain(of_backend).collect()
    }
}

/// Returns the retries of a rule; those of the mesh if it has none.
fn retry<M>(rule: &RouteRule<M>, clusters: &Clusters<'_>) -> Option<Arc<RetryPolicy>> {
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
