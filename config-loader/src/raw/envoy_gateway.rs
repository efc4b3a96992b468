//! Kinds of gateway.envoyproxy.io as written.

mod backend_traffic_policy;
mod rate_limit;

pub use backend_traffic_policy::{BackendTrafficPolicy, RequestBuffer, TargetReference};
pub use rate_limit::{
    Cost, CostSource, HeaderMatch, LimitValue, MethodMatch, PathMatch, RateLimit, Rule, Rules,
    SelectCondition, SourceMatch,
};
