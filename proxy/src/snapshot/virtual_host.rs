//! Virtual hosts with their routes and destinations.

use std::sync::Arc;

use crate::telemetry::RouteStats;
use traffic::cluster::Split;
use traffic::filter::{Mirrors, RouteFilters};
use traffic::provenance::Provenance;
use traffic::registry::ClusterId;
use traffic::route::{RuleIdx, Table};

/// Name of the cluster of backends that are not valid: requests for them get a response with status 500.
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
    pub routes: Box<[Route]>,
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
    /// Direct responses, header edits, rewrites, and the timeout.
    pub filters: RouteFilters,
    /// Weighted destinations; `None` for rules that do not forward.
    pub split: Option<Split<Destination>>,
    /// Destinations of mirrored requests.
    pub mirrors: Option<Mirrors<Destination>>,
}

impl Route {
    /// Whether header edits or mirrors read the headers of a request.
    pub fn reads_request_headers(&self) -> bool {
        let filters = &self.filters;
        self.mirrors.is_some()
            || !filters.leaves_request_headers()
            || !filters.leaves_response_headers()
    }

    /// All destinations, including those of mirrors.
    pub fn destinations(&self) -> impl Iterator<Item = &Destination> {
        let split = self.split.iter().flat_map(Split::entries);
        let mirrors = self.mirrors.iter().flat_map(Mirrors::entries);
        split
            .map(|(_, destination)| destination)
            .chain(mirrors.map(|(_, mirror)| mirror))
    }
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
