//! Kubernetes core kinds: kinds of services, and cluster state (`Kind::is_state`).

use super::api::{AGE, Api, text};
use super::draft::Body;
use super::row::Row;
use crate::kind::Kind;
use crate::parse::fields_of;
use crate::{raw, validate};

/// Rows of this family of kinds.
pub(super) const ROWS: &[Row] = &[
    Row {
        kind: Kind::ConfigMap,
        api_versions: &["v1"],
        api: Api::of("configmaps").short(&["cm"]).without_status(),
        body: Body::Whole,
        read: |draft| draft.check(validate::core::config_map),
        fields: fields_of::<raw::core::ConfigMap>,
    },
    Row {
        kind: Kind::EndpointSlice,
        api_versions: &["discovery.k8s.io/v1"],
        api: Api::of("endpointslices").without_status().columns(&[
            text("AddressType", ".addressType"),
            text("Ports", ".ports[*].port"),
            text("Endpoints", ".endpoints[*].addresses[*]"),
            AGE,
        ]),
        body: Body::Whole,
        read: |draft| draft.check(validate::core::endpoint_slice),
        fields: fields_of::<raw::core::EndpointSlice>,
    },
    Row {
        kind: Kind::Namespace,
        api_versions: &["v1"],
        api: Api::of("namespaces").cluster_scoped(),
        body: Body::Whole,
        read: |draft| draft.check(validate::core::namespace),
        fields: fields_of::<raw::core::Namespace>,
    },
    Row {
        kind: Kind::Node,
        api_versions: &["v1"],
        api: Api::of("nodes").cluster_scoped(),
        body: Body::Whole,
        read: |draft| draft.check(validate::core::node),
        fields: fields_of::<raw::core::Node>,
    },
    Row {
        kind: Kind::Pod,
        api_versions: &["v1"],
        api: Api::of("pods"),
        body: Body::Whole,
        read: |draft| draft.check(validate::core::pod),
        fields: fields_of::<raw::core::Pod>,
    },
    Row {
        kind: Kind::Secret,
        api_versions: &["v1"],
        api: Api::of("secrets")
            .without_status()
            .columns(&[text("Type", ".type"), AGE]),
        body: Body::Whole,
        read: |draft| draft.check(validate::core::secret),
        fields: fields_of::<raw::core::Secret>,
    },
    Row {
        kind: Kind::Service,
        api_versions: &["v1"],
        api: Api::of("services")
            .short(&["svc"])
            .categories(&["all"])
            .columns(&[
                text("Type", ".spec.type"),
                text("Cluster-IP", ".spec.clusterIP"),
                text("External-IP", ".spec.externalIPs[*]"),
                text("Port(s)", ".spec.ports[*].port"),
                AGE,
            ]),
        body: Body::Whole,
        read: |draft| draft.check(validate::core::service),
        fields: fields_of::<raw::core::Service>,
    },
];
