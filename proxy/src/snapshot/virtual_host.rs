//! Virtual hosts with their routes and destinations.

use std::sync::Arc;

use crate::telemetry::{RouteStats, RuleStats};
use traffic::cluster::Split;
use traffic::error::Kind;
use traffic::filter::{Mirrors, RouteFilters};
use traffic::provenance::Provenance;
use traffic::registry::ClusterId;
use traffic::route::{RuleIdx, Table};

/// Name of the destination of a backend that is not valid, followed by the kind and name of the backend. They are
/// missing if the rule has no backend that is used.
///
/// Source: `backendRefs` of the Gateway API.
pub const INVALID_BACKEND: &str = "InvalidBackend";

/// A host name of a listener, and its routes.
#[derive(Debug)]
pub struct VirtualHost {
    /// The host, exact or with a wildcard.
    pub name: Arc<str>,
    /// Conditions of the rules, indexed to find the first rule that matches a request.
    pub table: Table,
    /// Actions of each rule, by rule number.
    pub routes: Arc<[Route]>,
    /// Whether gRPC-Web requests are translated to gRPC.
    pub is_grpc_web: bool,
    /// Resource whose change rebuilt it last.
    pub cause: Option<Arc<str>>,
    /// Hash of all properties of the routes.
    pub fingerprint: u64,
}

impl VirtualHost {
    /// The route of a rule.
    pub fn route(&self, rule: RuleIdx) -> &Route {
        &self.routes[rule.index()]
    }
}

/// The actions for a request that a rule matched.
#[derive(Debug)]
pub struct Route {
    /// Name in logs and header values: `rule.match`; empty for a rule without a name.
    pub name: Arc<str>,
    /// The rule that the route was compiled from.
    pub provenance: Provenance,
    /// Metrics of a rule with a `statPrefix`.
    pub stats: Option<Arc<RouteStats>>,
    /// Metrics of the rule; `None` for rules without a resource, and if rules are not counted.
    pub rule_stats: Option<Arc<RuleStats>>,
    /// Direct responses, header edits, rewrites, and the timeout.
    pub filters: RouteFilters,
    /// Weighted destinations; `None` for rules that do not forward.
    pub split: Option<Split<Destination>>,
    /// Destinations of mirrored requests.
    pub mirrors: Option<Mirrors<Mirror>>,
    /// Routes that replace this one once a destination is drawn, by its position; empty unless filters of a
    /// destination edit more than headers.
    pub shares: Box<[Route]>,
}

impl Route {
    /// Whether header edits or mirrors read the headers of a request.
    pub fn reads_request_headers(&self) -> bool {
        let filters = &self.filters;
        self.mirrors.is_some()
            || !filters.leaves_request_headers()
            || !filters.leaves_response_headers()
    }

    /// Names and numbers of the clusters of all destinations, of mirrors and of the check.
    pub fn clusters(&self) -> impl Iterator<Item = (&str, ClusterId)> {
        let split = self.split.iter().flat_map(Split::entries);
        let routes = std::iter::once(self).chain(&self.shares);
        let mirrors = routes.flat_map(|route| route.mirrors.iter().flat_map(Mirrors::entries));
        let early = self.filters.early.as_ref();
        let check = early.and_then(|early| early.check.as_ref());
        split
            .map(|(_, destination)| destination)
            .chain(mirrors.map(|(_, mirror)| &mirror.destination))
            .map(|one| (&*one.name, one.cluster))
            .chain(check.map(|check| (&*check.name, check.cluster)))
    }

    /// The route of requests for one of the destinations.
    pub fn share(&self, position: usize) -> &Self {
        self.shares.get(position).unwrap_or(self)
    }
}

/// Mirror of a route.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Destination of the copies.
    pub destination: Destination,
    /// Filters before the mirror, if others follow it; `None` to copy the request as it is sent.
    ///
    /// Source: place of `RequestMirror` in the filters of an HTTPRoute or GRPCRoute.
    pub filters: Option<Box<RouteFilters>>,
}

/// One weighted destination of a route.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Name of the cluster: `outbound|PORT|SUBSET|HOST`.
    pub name: Arc<str>,
    /// Number of the cluster. The snapshot has no cluster with it if the host or subset is unknown.
    pub cluster: ClusterId,
    /// Position in the rule, by which filters find the header edits of the destination.
    pub position: usize,
    /// The destination in the configuration.
    pub provenance: Provenance,
}

impl Destination {
    /// The backend of the Gateway API, if it is not valid; empty if no backend of the rule is used.
    pub fn invalid_backend(&self) -> Option<&str> {
        let backend = self.name.strip_prefix(INVALID_BACKEND)?;
        Some(backend.trim_start())
    }

    /// The error if the snapshot has no cluster for the destination.
    pub fn missing_kind(&self) -> Kind {
        match self.invalid_backend() {
            Some(_) => Kind::InvalidBackend,
            None => Kind::NoCluster,
        }
    }
}
