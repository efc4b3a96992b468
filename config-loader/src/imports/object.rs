//! Conversion of a ServiceImport to an API object.

use serde_json::{Value, json};

use super::types::Import;
use crate::resource::core::{Host, SessionAffinity};
use crate::resource::flomesh::{
    ImportEndpoint, ImportPort, ImportType, ServiceAccount, ServiceImport,
};

/// Returns the API object with every field of the spec that an import can have, including defaults, so that server-side
/// apply owns all of them.
pub fn object(import: &Import) -> Value {
    let Import { name, group, spec } = import;
    json!({
        "apiVersion": format!("{group}/v1alpha1"),
        "kind": "ServiceImport",
        "metadata": {"name": &*name.name, "namespace": &*name.namespace},
        "spec": spec_of(spec),
    })
}

fn spec_of(import: &ServiceImport) -> Value {
    let import_type = match import.import_type {
        ImportType::ClusterSetIp => "ClusterSetIP",
        ImportType::Headless => "Headless",
    };
    let account = match &import.service_account {
        None => "",
        Some(ServiceAccount::Any) => "*",
        Some(ServiceAccount::Named(name)) => name,
    };
    let ports: Vec<Value> = import.ports.iter().map(port).collect();
    let mut spec = json!({
        "type": import_type, "ports": ports, "sessionAffinity": "None", "serviceAccountName": account,
    });
    if !import.vips.is_empty() {
        let vips: Vec<String> = import.vips.iter().map(ToString::to_string).collect();
        spec["ips"] = json!(vips);
    }
    if let SessionAffinity::ClientIp { timeout } = import.session_affinity {
        spec["sessionAffinity"] = json!("ClientIP");
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": timeout.as_secs()}});
    }
    spec
}

fn port(port: &ImportPort) -> Value {
    let endpoints: Vec<Value> = port.endpoints.iter().map(endpoint).collect();
    let mut value = json!({
        "port": port.port, "protocol": port.protocol.to_string(), "endpoints": endpoints,
    });
    if !port.name.is_empty() {
        value["name"] = json!(&*port.name);
    }
    if let Some(protocol) = &port.app_protocol {
        value["appProtocol"] = json!(&**protocol);
    }
    value
}

/// Returns an endpoint with all fields of its target, including empty ones, because the API requires them.
fn endpoint(endpoint: &ImportEndpoint) -> Value {
    let target = &endpoint.target;
    let ip = match target.address {
        Host::Dns(_) => String::new(),
        Host::Ip(ip) => ip.to_string(),
    };
    json!({
        "clusterKey": endpoint.cluster.as_str(),
        "target": {
            "host": target.server_name.as_deref().unwrap_or_default(),
            "ip": ip,
            "port": target.port,
            "path": &*target.path_prefix,
        },
    })
}
