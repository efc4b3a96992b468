//! The gateway.networking.k8s.io kinds.

use super::api::{AGE, Api, text};
use super::draft::Body;
use super::row::Row;
use crate::kind::Kind;
use crate::parse::fields_of;
use crate::{raw, validate};

const V1: &[&str] = &["gateway.networking.k8s.io/v1"];

const V1_AND_V1BETA1: &[&str] = &[
    "gateway.networking.k8s.io/v1",
    "gateway.networking.k8s.io/v1beta1",
];

const CATEGORY: &[&str] = &["gateway-api"];

/// Rows of this family of kinds.
pub(super) const ROWS: &[Row] = &[
    Row {
        kind: Kind::GatewayClass,
        api_versions: V1_AND_V1BETA1,
        api: Api::of("gatewayclasses")
            .short(&["gc"])
            .categories(CATEGORY)
            .cluster_scoped()
            .columns(&[
                text("Controller", ".spec.controllerName"),
                text(
                    "Accepted",
                    ".status.conditions[?(@.type==\"Accepted\")].status",
                ),
                AGE,
            ]),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::gateway_class),
        fields: fields_of::<raw::gateway_api::GatewayClass>,
    },
    Row {
        kind: Kind::KubernetesGateway,
        api_versions: V1_AND_V1BETA1,
        api: Api::of("gateways")
            .short(&["gtw"])
            .categories(CATEGORY)
            .columns(&[
                text("Class", ".spec.gatewayClassName"),
                text("Address", ".status.addresses[*].value"),
                text(
                    "Programmed",
                    ".status.conditions[?(@.type==\"Programmed\")].status",
                ),
                AGE,
            ]),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::gateway),
        fields: fields_of::<raw::gateway_api::Gateway>,
    },
    Row {
        kind: Kind::ListenerSet,
        api_versions: V1,
        api: Api::of("listenersets")
            .short(&["lset"])
            .categories(CATEGORY)
            .columns(&[
                text(
                    "Accepted",
                    ".status.conditions[?(@.type==\"Accepted\")].status",
                ),
                text(
                    "Programmed",
                    ".status.conditions[?(@.type==\"Programmed\")].status",
                ),
                AGE,
            ]),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::listener_set),
        fields: fields_of::<raw::gateway_api::ListenerSet>,
    },
    Row {
        kind: Kind::HTTPRoute,
        api_versions: V1_AND_V1BETA1,
        api: Api::of("httproutes")
            .categories(CATEGORY)
            .columns(&[text("Hostnames", ".spec.hostnames"), AGE]),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::http_route),
        fields: fields_of::<raw::gateway_api::HttpRoute>,
    },
    Row {
        kind: Kind::GRPCRoute,
        api_versions: V1,
        api: Api::of("grpcroutes")
            .categories(CATEGORY)
            .columns(&[text("Hostnames", ".spec.hostnames"), AGE]),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::grpc_route),
        fields: fields_of::<raw::gateway_api::GrpcRoute>,
    },
    Row {
        kind: Kind::TLSRoute,
        api_versions: &[
            "gateway.networking.k8s.io/v1",
            "gateway.networking.k8s.io/v1alpha3",
            "gateway.networking.k8s.io/v1alpha2",
        ],
        api: Api::of("tlsroutes")
            .categories(CATEGORY)
            .columns(&[text("Hostnames", ".spec.hostnames"), AGE]),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::tls_route),
        fields: fields_of::<raw::gateway_api::TlsRoute>,
    },
    Row {
        kind: Kind::TCPRoute,
        api_versions: &[
            "gateway.networking.k8s.io/v1",
            "gateway.networking.k8s.io/v1alpha2",
        ],
        api: Api::of("tcproutes").categories(CATEGORY),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::tcp_route),
        fields: fields_of::<raw::gateway_api::TcpRoute>,
    },
    Row {
        kind: Kind::ReferenceGrant,
        api_versions: V1_AND_V1BETA1,
        api: Api::of("referencegrants")
            .short(&["refgrant"])
            .categories(CATEGORY)
            .without_status(),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::reference_grant),
        fields: fields_of::<raw::gateway_api::ReferenceGrant>,
    },
    Row {
        kind: Kind::BackendTLSPolicy,
        api_versions: &[
            "gateway.networking.k8s.io/v1",
            "gateway.networking.k8s.io/v1alpha3",
        ],
        api: Api::of("backendtlspolicies")
            .short(&["btlspolicy"])
            .categories(CATEGORY),
        body: Body::Spec,
        read: |draft| draft.check(validate::gateway_api::backend_tls_policy),
        fields: fields_of::<raw::gateway_api::BackendTlsPolicy>,
    },
];
