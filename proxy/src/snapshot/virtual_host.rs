//! The routes that share a host name, and where they send requests.

use std::sync::Arc;

use crate::cluster::Split;
use crate::filter::{Mirrors, RouteFilters};
use crate::provenance::Provenance;
use crate::registry::ClusterId;
use crate::route::{RuleIdx, Table};
use crate::telemetry::RouteStats;

/// A host name of a listener, and the routes that share it.
#[derive(Debug)]
pub struct VirtualHost {
    /// The host, exact or with a wildcard.
    pub name: Arc<str>,
    /// Finds the first route that takes a request.
    pub table: Table,
    /// What each rule of the table does, by rule number.
    pub routes: Box<[Route]>,
    /// Whether requests of gRPC-Web are translated into gRPC.
    pub is_grpc_web: bool,
    /// Hash over everything that the routes follow from.
    pub fingerprint: u64,
}

impl VirtualHost {
    /// What a rule of the table does.
    pub fn route(&self, rule: RuleIdx) -> &Route {
        &self.routes[rule.index()]
    }
}

/// What is done with a request that a rule took.
#[derive(Debug)]
pub struct Route {
    /// Name for log and header values: `rule.match`; empty for a rule without a name.
    pub name: Arc<str>,
    /// The rule that this was made from.
    pub provenance: Provenance,
    /// Where a rule with a `statPrefix` counts its requests.
    pub stats: Option<Arc<RouteStats>>,
    /// How the rule answers, its header edits and rewrites, and its timeout.
    pub filters: RouteFilters,
    /// Where a rule that forwards sends its requests; `None` for other rules.
    pub split: Option<Split<Destination>>,
    /// Who gets copies of its requests.
    pub mirrors: Option<Mirrors<Destination>>,
}

impl Route {
    /// Whether header edits or mirrors look at the headers of a request.
    pub fn reads_request_headers(&self) -> bool {
        let filters = &self.filters;
        self.mirrors.is_some()
            || !filters.leaves_request_headers()
            || !filters.leaves_response_headers()
    }

    /// Every destination, those of mirrors included.
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
    /// Number of the cluster. The snapshot may have no cluster under it: the host or subset is unknown.
    pub cluster: ClusterId,
    /// Position in the rule, by which the filters know its edits.
    pub position: usize,
    /// The destination as it was written.
    pub provenance: Provenance,
}
