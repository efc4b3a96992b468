//! The networking.k8s.io kinds.

use super::api::{AGE, Api, text};
use super::draft::Body;
use super::row::Row;
use crate::kind::Kind;
use crate::parse::fields_of;
use crate::{raw, validate};

const V1: &[&str] = &["networking.k8s.io/v1"];

/// Rows of this family of kinds.
pub(super) const ROWS: &[Row] = &[
    Row {
        kind: Kind::Ingress,
        api_versions: V1,
        api: Api::of("ingresses").short(&["ing"]).columns(&[
            text("Class", ".spec.ingressClassName"),
            text("Hosts", ".spec.rules[*].host"),
            text("Address", ".status.loadBalancer.ingress[*].ip"),
            AGE,
        ]),
        body: Body::Spec,
        read: |draft| draft.check(validate::networking::ingress),
        fields: fields_of::<raw::networking::Ingress>,
    },
    Row {
        kind: Kind::IngressClass,
        api_versions: V1,
        api: Api::of("ingressclasses")
            .cluster_scoped()
            .without_status()
            .columns(&[text("Controller", ".spec.controller"), AGE]),
        body: Body::Spec,
        read: |draft| draft.check(validate::networking::ingress_class),
        fields: fields_of::<raw::networking::IngressClass>,
    },
];
