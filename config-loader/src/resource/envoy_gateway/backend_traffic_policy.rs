//! BackendTrafficPolicy, checked.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use crate::resource::istio::StringMatch;
use crate::span::Line;

/// Checked BackendTrafficPolicy.
#[derive(Clone, Debug, Default)]
pub struct BackendTrafficPolicy {
    /// Objects that the policy is attached to, in its namespace.
    pub targets: Vec<Target>,
    /// Limits of each proxy.
    pub local: Vec<LimitRule>,
    /// Limits that the rate limit service counts.
    pub global: Vec<LimitRule>,
    /// Maximum number of bytes of a request's body, with the line of the limit.
    pub body_max: Option<(u64, Line)>,
}

/// Object that a policy is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Kind of the object.
    pub kind: TargetKind,
    /// Name of the object.
    pub name: Arc<str>,
    /// Name of the rule of a VirtualService; `None` for all of them.
    pub section: Option<Arc<str>>,
    /// Source line.
    pub line: Line,
}

/// Kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// Gateway of networking.istio.io.
    Gateway,
    /// Service.
    Service,
    /// Kind of gateway.networking.k8s.io that is not read yet.
    Unread,
    /// VirtualService.
    VirtualService,
}

/// Limit, and the requests that it counts.
#[derive(Clone, Debug)]
pub struct LimitRule {
    /// Conditions on requests; all must hold.
    pub selectors: Vec<Selector>,
    /// Requests per unit of time.
    pub requests: u32,
    /// Unit of time.
    pub unit: Duration,
    /// Number by which a request counts.
    pub cost: u32,
    /// Whether all targets share the limit.
    pub is_shared: bool,
    /// Whether requests are counted and never refused.
    pub is_shadow: bool,
    /// Source line.
    pub line: Line,
}

/// Condition on requests.
#[derive(Clone, Debug)]
pub enum Selector {
    /// Header, with its name in lower case.
    Header(Arc<str>, ValueMatch),
    /// One of these methods; with `true`, any other method than this one.
    Methods(Vec<(Arc<str>, bool)>),
    /// Path without its query.
    Path(PathMatch, bool),
    /// Query parameter.
    QueryParam(Arc<str>, ValueMatch),
    /// Address of the client, and whether each has a limit of its own.
    Source(IpNet, bool),
}

/// Condition on a value.
#[derive(Clone, Debug)]
pub enum ValueMatch {
    /// Any value, each with a limit of its own.
    Distinct,
    /// Value that matches; with `true`, one that does not, or none.
    Matches(StringMatch, bool),
}

/// Condition on a path.
#[derive(Clone, Debug)]
pub enum PathMatch {
    /// Path that begins with these segments.
    Segments(Arc<str>),
    /// Path that matches.
    Whole(StringMatch),
}

impl LimitRule {
    /// Whether each client has a limit of its own.
    pub fn is_distinct(&self) -> bool {
        self.selectors.iter().any(|selector| {
            matches!(
                selector,
                Selector::Header(_, ValueMatch::Distinct)
                    | Selector::QueryParam(_, ValueMatch::Distinct)
                    | Selector::Source(_, true)
            )
        })
    }
}
