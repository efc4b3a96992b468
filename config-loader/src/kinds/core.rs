//! The Kubernetes core kinds.

use super::row::Row;
use crate::kind::Kind;
use crate::load::Body;
use crate::parse::fields_of;
use crate::{raw, validate};

/// The rows of this file.
pub(super) const ROWS: &[Row] = &[
    Row {
        kind: Kind::EndpointSlice,
        api_versions: &["discovery.k8s.io/v1"],
        body: Body::Whole,
        read: |draft| draft.check(validate::core::endpoint_slice),
        fields: fields_of::<raw::core::EndpointSlice>,
    },
    Row {
        kind: Kind::Secret,
        api_versions: &["v1"],
        body: Body::Whole,
        read: |draft| draft.check(validate::core::secret),
        fields: fields_of::<raw::core::Secret>,
    },
    Row {
        kind: Kind::Service,
        api_versions: &["v1"],
        body: Body::Whole,
        read: |draft| draft.check(validate::core::service),
        fields: fields_of::<raw::core::Service>,
    },
];
