//! The multi-cluster kinds.

use super::row::Row;
use crate::kind::Kind;
use crate::load::Body;
use crate::parse::fields_of;
use crate::{raw, validate};

const FLOMESH: &[&str] = &["flomesh.io/v1alpha1", "multicluster.flomesh.io/v1alpha1"];

const MCS_API: &[&str] = &[
    "multicluster.x-k8s.io/v1alpha1",
    "multicluster.x-k8s.io/v1beta1",
];

/// The rows of this file.
pub(super) const ROWS: &[Row] = &[
    Row {
        kind: Kind::Cluster,
        api_versions: FLOMESH,
        body: Body::Whole,
        read: |draft| draft.check(validate::flomesh::cluster),
        fields: fields_of::<raw::flomesh::Cluster>,
    },
    Row {
        kind: Kind::GlobalTrafficPolicy,
        api_versions: FLOMESH,
        body: Body::Whole,
        read: |draft| draft.check(validate::flomesh::global_traffic_policy),
        fields: fields_of::<raw::flomesh::GlobalTrafficPolicy>,
    },
    Row {
        kind: Kind::ServiceExport,
        api_versions: FLOMESH,
        body: Body::Whole,
        read: |draft| draft.check(validate::flomesh::service_export),
        fields: fields_of::<raw::flomesh::ServiceExport>,
    },
    Row {
        kind: Kind::ServiceImport,
        api_versions: FLOMESH,
        body: Body::Whole,
        read: |draft| draft.check(validate::flomesh::service_import),
        fields: fields_of::<raw::flomesh::ServiceImport>,
    },
    Row {
        kind: Kind::ServiceImport,
        api_versions: MCS_API,
        body: Body::Whole,
        read: |draft| draft.check(validate::mcs_api::service_import),
        fields: fields_of::<raw::mcs_api::ServiceImport>,
    },
    Row {
        kind: Kind::Destination,
        api_versions: &["discovery.mesh.gloo.solo.io/v1"],
        body: Body::Whole,
        read: |draft| draft.check(validate::gloo::destination),
        fields: fields_of::<raw::gloo::Destination>,
    },
    Row {
        kind: Kind::MultiClusterService,
        api_versions: &["networking.karmada.io/v1alpha1"],
        body: Body::Whole,
        read: |draft| draft.check(validate::karmada::multi_cluster_service),
        fields: fields_of::<raw::karmada::MultiClusterService>,
    },
];
