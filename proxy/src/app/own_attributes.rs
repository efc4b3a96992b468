//! Attributes of the proxy and its workload in spans.

use super::service_name;
use super::settings::Settings;
use crate::exchange::trace_parts::OwnAttributes;
use crate::identity::Identity;
use crate::telemetry::{Attributes, VALUE_BYTES_MAX};

/// Variable with the name of the mesh.
pub(super) const MESH_ID: &str = "ISTIO_META_MESH_ID";

/// Maximum number of attributes of the resource.
pub(super) const ATTRIBUTES_MAX: usize = 128;

/// Encodes the attributes of the proxy and its workload, which every server span has.
pub(super) fn own_attributes(settings: &Settings) -> OwnAttributes {
    let identity = &settings.identity;
    let label = |names: &[&str]| names.iter().find_map(|name| identity.labels.get(*name));
    let mut node = Vec::new();
    let mut out = Attributes::new(&mut node, 9, ATTRIBUTES_MAX, VALUE_BYTES_MAX);
    out.text("component", "proxy");
    out.text("node_id", node_id(identity, &settings.exchange.hostname));
    if let Some(zone) = identity
        .locality()
        .split('/')
        .nth(1)
        .filter(|zone| !zone.is_empty())
    {
        out.text("zone", zone);
    }
    let mut istio = Vec::new();
    let mut out = Attributes::new(&mut istio, 9, ATTRIBUTES_MAX, VALUE_BYTES_MAX);
    let service = label(&service_name::CANONICAL_NAME);
    let revision = label(&[
        "service.istio.io/canonical-revision",
        "app.kubernetes.io/version",
        "version",
    ]);
    let environment = &settings.exchange.environment;
    let mesh = environment.get(MESH_ID);
    out.text(
        "istio.canonical_service",
        service.map_or("unknown", String::as_str),
    );
    out.text(
        "istio.canonical_revision",
        revision.map_or("latest", String::as_str),
    );
    out.text("istio.mesh_id", mesh.map_or("default", String::as_str));
    out.text("istio.namespace", &identity.namespace);
    out.text("istio.cluster_id", identity.member());
    OwnAttributes {
        node: node.into(),
        istio: istio.into(),
    }
}

/// Name of the proxy in the form of Envoy's node ids.
fn node_id(identity: &Identity, host: &str) -> String {
    let kind = match identity.mode {
        crate::identity::Mode::Gateway => "router",
        crate::identity::Mode::Sidecar => "sidecar",
    };
    let (namespace, domain) = (&identity.namespace, &identity.domain);
    format!("{kind}~{host}.{namespace}~{namespace}.svc.{domain}")
}
