//! The multi-cluster kinds.

use super::api::{AGE, Api, text};
use super::draft::Body;
use super::row::Row;
use crate::kind::Kind;
use crate::parse::fields_of;
use crate::{raw, validate};

const FLOMESH: &[&str] = &["flomesh.io/v1alpha1", "multicluster.flomesh.io/v1alpha1"];

const MCS_API: &[&str] = &[
    "multicluster.x-k8s.io/v1alpha1",
    "multicluster.x-k8s.io/v1beta1",
];

/// Rows of this family of kinds.
pub(super) const ROWS: &[Row] = &[
    Row {
        kind: Kind::Cluster,
        api_versions: FLOMESH,
        api: Api::of("clusters").cluster_scoped(),
        body: Body::Whole,
        read: |draft| draft.check(validate::flomesh::cluster),
        fields: fields_of::<raw::flomesh::Cluster>,
    },
    Row {
        kind: Kind::GlobalTrafficPolicy,
        api_versions: FLOMESH,
        api: Api::of("globaltrafficpolicies")
            .short(&["gtp"])
            .columns(&[text("LB Type", ".spec.lbType"), AGE]),
        body: Body::Whole,
        read: |draft| draft.check(validate::flomesh::global_traffic_policy),
        fields: fields_of::<raw::flomesh::GlobalTrafficPolicy>,
    },
    Row {
        kind: Kind::ServiceExport,
        api_versions: FLOMESH,
        api: Api::of("serviceexports").short(&["sexp"]).columns(&[
            text("Valid", ".status.conditions[?(@.type=='Valid')].status"),
            text(
                "Conflict",
                ".status.conditions[?(@.type=='Conflict')].status",
            ),
            AGE,
        ]),
        body: Body::Whole,
        read: |draft| draft.check(validate::flomesh::service_export),
        fields: fields_of::<raw::flomesh::ServiceExport>,
    },
    Row {
        kind: Kind::ServiceImport,
        api_versions: FLOMESH,
        api: Api::of("serviceimports").short(&["simp"]),
        body: Body::Whole,
        read: |draft| draft.check(validate::flomesh::service_import),
        fields: fields_of::<raw::flomesh::ServiceImport>,
    },
    Row {
        kind: Kind::ServiceImport,
        api_versions: MCS_API,
        api: Api::of("serviceimports").short(&["svcim"]).columns(&[
            text("Type", ".spec.type"),
            text("IP", ".spec.ips"),
            AGE,
        ]),
        body: Body::Whole,
        read: |draft| draft.check(validate::mcs_api::service_import),
        fields: fields_of::<raw::mcs_api::ServiceImport>,
    },
    Row {
        kind: Kind::Destination,
        api_versions: &["discovery.mesh.gloo.solo.io/v1"],
        api: Api::of("destinations").columns(&[
            text("Cluster", ".spec.kubeService.ref.clusterName"),
            text("Host", ".status.appliedFederation.federatedHostname"),
            AGE,
        ]),
        body: Body::Whole,
        read: |draft| draft.check(validate::gloo::destination),
        fields: fields_of::<raw::gloo::Destination>,
    },
    Row {
        kind: Kind::MultiClusterService,
        api_versions: &["networking.karmada.io/v1alpha1"],
        api: Api::of("multiclusterservices")
            .short(&["mcs"])
            .categories(&["karmada-io"]),
        body: Body::Whole,
        read: |draft| draft.check(validate::karmada::multi_cluster_service),
        fields: fields_of::<raw::karmada::MultiClusterService>,
    },
];
