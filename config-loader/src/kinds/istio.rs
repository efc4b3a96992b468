//! The networking.istio.io, security.istio.io and telemetry.istio.io kinds.

use super::api::{AGE, Api, text};
use super::draft::Body;
use super::row::Row;
use crate::kind::Kind;
use crate::parse::fields_of;
use crate::{raw, validate};

const API_VERSIONS: &[&str] = &[
    "networking.istio.io/v1",
    "networking.istio.io/v1beta1",
    "networking.istio.io/v1alpha3",
];

const NETWORKING: &[&str] = &["istio-io", "networking-istio-io"];

const SECURITY: &[&str] = &["security.istio.io/v1", "security.istio.io/v1beta1"];

const TELEMETRY: &[&str] = &["telemetry.istio.io/v1", "telemetry.istio.io/v1alpha1"];

const IN_SECURITY: &[&str] = &["istio-io", "security-istio-io"];

/// Rows of this family of kinds.
pub(super) const ROWS: &[Row] = &[
    Row {
        kind: Kind::AuthorizationPolicy,
        api_versions: SECURITY,
        api: Api::of("authorizationpolicies")
            .short(&["ap"])
            .categories(IN_SECURITY)
            .columns(&[text("Action", ".spec.action"), AGE]),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::authorization_policy),
        fields: fields_of::<raw::istio::AuthorizationPolicy>,
    },
    Row {
        kind: Kind::DestinationRule,
        api_versions: API_VERSIONS,
        api: Api::of("destinationrules")
            .short(&["dr"])
            .categories(NETWORKING)
            .columns(&[text("Host", ".spec.host"), AGE]),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::destination_rule),
        fields: fields_of::<raw::istio::DestinationRule>,
    },
    Row {
        kind: Kind::Gateway,
        api_versions: API_VERSIONS,
        api: Api::of("gateways").short(&["gw"]).categories(NETWORKING),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::gateway),
        fields: fields_of::<raw::istio::Gateway>,
    },
    Row {
        kind: Kind::PeerAuthentication,
        api_versions: SECURITY,
        api: Api::of("peerauthentications")
            .short(&["pa"])
            .categories(IN_SECURITY)
            .columns(&[text("Mode", ".spec.mtls.mode"), AGE]),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::peer_authentication),
        fields: fields_of::<raw::istio::PeerAuthentication>,
    },
    Row {
        kind: Kind::ProxyConfig,
        api_versions: &["networking.istio.io/v1beta1"],
        api: Api::of("proxyconfigs").categories(NETWORKING),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::proxy_config),
        fields: fields_of::<raw::istio::ProxyConfig>,
    },
    Row {
        kind: Kind::RequestAuthentication,
        api_versions: SECURITY,
        api: Api::of("requestauthentications")
            .short(&["ra"])
            .categories(IN_SECURITY),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::request_authentication),
        fields: fields_of::<raw::istio::RequestAuthentication>,
    },
    Row {
        kind: Kind::ServiceEntry,
        api_versions: API_VERSIONS,
        api: Api::of("serviceentries")
            .short(&["se"])
            .categories(NETWORKING)
            .columns(&[
                text("Hosts", ".spec.hosts"),
                text("Location", ".spec.location"),
                text("Resolution", ".spec.resolution"),
                AGE,
            ]),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::service_entry),
        fields: fields_of::<raw::istio::ServiceEntry>,
    },
    Row {
        kind: Kind::Sidecar,
        api_versions: API_VERSIONS,
        api: Api::of("sidecars").categories(NETWORKING),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::sidecar),
        fields: fields_of::<raw::istio::Sidecar>,
    },
    Row {
        kind: Kind::Telemetry,
        api_versions: TELEMETRY,
        api: Api::of("telemetries")
            .short(&["telemetry"])
            .categories(&["istio-io", "telemetry-istio-io"])
            .columns(&[AGE]),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::telemetry),
        fields: fields_of::<raw::istio::Telemetry>,
    },
    Row {
        kind: Kind::VirtualService,
        api_versions: API_VERSIONS,
        api: Api::of("virtualservices")
            .short(&["vs"])
            .categories(NETWORKING)
            .columns(&[
                text("Gateways", ".spec.gateways"),
                text("Hosts", ".spec.hosts"),
                AGE,
            ]),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::virtual_service),
        fields: fields_of::<raw::istio::VirtualService>,
    },
    Row {
        kind: Kind::WorkloadEntry,
        api_versions: API_VERSIONS,
        api: Api::of("workloadentries")
            .short(&["we"])
            .categories(NETWORKING)
            .columns(&[AGE, text("Address", ".spec.address")]),
        body: Body::Spec,
        read: |draft| draft.check(validate::istio::workload_entry),
        fields: fields_of::<raw::istio::WorkloadEntry>,
    },
];
