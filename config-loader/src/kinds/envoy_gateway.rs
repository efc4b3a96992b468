//! The gateway.envoyproxy.io kinds.

use super::api::Api;
use super::draft::Body;
use super::row::Row;
use crate::kind::Kind;
use crate::parse::fields_of;
use crate::{raw, validate};

/// Rows of this family of kinds.
pub(super) const ROWS: &[Row] = &[Row {
    kind: Kind::BackendTrafficPolicy,
    api_versions: &["gateway.envoyproxy.io/v1alpha1"],
    api: Api::of("backendtrafficpolicies")
        .short(&["btp"])
        .categories(&["envoy-gateway"]),
    body: Body::Spec,
    read: |draft| draft.check(validate::envoy_gateway::backend_traffic_policy),
    fields: fields_of::<raw::envoy_gateway::BackendTrafficPolicy>,
}];
