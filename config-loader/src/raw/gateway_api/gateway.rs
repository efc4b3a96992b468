//! GatewayClass, Gateway and ListenerSet as written.

use serde::Deserialize;

use super::{LocalReference, ObjectReference};
use crate::raw::{Field, Map};

/// GatewayClass as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayClass {
    /// Controller that serves the Gateways of the class: a domain and a path.
    pub controller_name: Field<String>,
    /// Object with parameters of the class.
    pub parameters_ref: Field<ObjectReference>,
    /// Description for people.
    pub description: Field<String>,
}

/// Gateway as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gateway {
    /// Name of the GatewayClass.
    pub gateway_class_name: Field<String>,
    /// Listeners of the Gateway.
    pub listeners: Field<Vec<Field<Listener>>>,
    /// Addresses that the Gateway is bound to. Default: assigned addresses.
    pub addresses: Field<Vec<Field<Address>>>,
    /// Attributes of what is created for the Gateway.
    pub infrastructure: Field<Infrastructure>,
    /// ListenerSets that may add listeners.
    pub allowed_listeners: Field<AllowedListeners>,
    /// TLS settings of the Gateway as a whole.
    pub tls: Field<GatewayTls>,
    /// Routes without parents that use the Gateway; experimental.
    pub default_scope: Field<String>,
}

/// ListenerSet as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerSet {
    /// Gateway that gets the listeners.
    pub parent_ref: Field<ObjectReference>,
    /// Listeners of the set.
    pub listeners: Field<Vec<Field<Listener>>>,
}

/// Listener of a Gateway or a ListenerSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listener {
    /// Name of the listener.
    pub name: Field<String>,
    /// Host that the listener accepts. Default: every host.
    pub hostname: Field<String>,
    /// Port of the listener.
    pub port: Field<i64>,
    /// Protocol: `HTTP`, `HTTPS`, `TLS` or `TCP`.
    pub protocol: Field<String>,
    /// TLS settings.
    pub tls: Field<ListenerTls>,
    /// Routes that may attach.
    pub allowed_routes: Field<AllowedRoutes>,
}

/// TLS settings of a listener.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerTls {
    /// `Terminate` or `Passthrough`. Default: `Terminate`.
    pub mode: Field<String>,
    /// Secrets with certificates.
    pub certificate_refs: Field<Vec<Field<ObjectReference>>>,
    /// Further settings by key.
    pub options: Field<Map<String>>,
}

/// Routes that may attach to a listener.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedRoutes {
    /// Namespaces of the routes. Default: that of the listener.
    pub namespaces: Field<NamespaceSelection>,
    /// Kinds of the routes. Default: all kinds that the protocol carries.
    pub kinds: Field<Vec<Field<RouteKind>>>,
}

/// ListenerSets that may add listeners to a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedListeners {
    /// Namespaces of the ListenerSets. Default: none.
    pub namespaces: Field<NamespaceSelection>,
}

/// Selection of namespaces.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceSelection {
    /// `All`, `Selector`, `Same`, and for ListenerSets `None`.
    pub from: Field<String>,
    /// Labels of the namespaces, for `Selector`.
    pub selector: Field<LabelSelector>,
}

/// Label selector of Kubernetes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be present.
    pub match_labels: Field<Map<String>>,
    /// Further conditions.
    pub match_expressions: Field<Vec<Field<LabelExpression>>>,
}

/// Condition of a label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelExpression {
    /// Key of the label.
    pub key: Field<String>,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: Field<String>,
    /// Values, for `In` and `NotIn`.
    pub values: Field<Vec<Field<String>>>,
}

/// Kind of routes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteKind {
    /// API group. Default: `gateway.networking.k8s.io`.
    pub group: Field<String>,
    /// Kind.
    pub kind: Field<String>,
}

/// Address of a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Address {
    /// Type of the address. Default: `IPAddress`.
    #[serde(rename = "type")]
    pub address_type: Field<String>,
    /// Value. Default: an address that is assigned.
    pub value: Field<String>,
}

/// Attributes of what is created for a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Infrastructure {
    /// Labels.
    pub labels: Field<Map<String>>,
    /// Annotations.
    pub annotations: Field<Map<String>>,
    /// Object with parameters of the Gateway.
    pub parameters_ref: Field<LocalReference>,
}

/// TLS settings of a Gateway as a whole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayTls {
    /// Connections to backends.
    pub backend: Field<BackendTls>,
    /// Connections of clients.
    pub frontend: Field<FrontendTls>,
}

/// TLS settings of connections to backends.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendTls {
    /// Secret with the certificate that backends get.
    pub client_certificate_ref: Field<ObjectReference>,
}

/// TLS settings of connections of clients.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FrontendTls {
    /// Settings of all ports without an entry in `perPort`.
    pub default: Field<TlsSettings>,
    /// Settings by port.
    pub per_port: Field<Vec<Field<PortTls>>>,
}

/// TLS settings of a port.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortTls {
    /// Port of listeners.
    pub port: Field<i64>,
    /// Settings.
    pub tls: Field<TlsSettings>,
}

/// TLS settings of connections of clients to some ports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsSettings {
    /// Validation of client certificates. Default: none are requested.
    pub validation: Field<FrontendValidation>,
}

/// Validation of client certificates.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FrontendValidation {
    /// ConfigMaps or Secrets with CA certificates.
    pub ca_certificate_refs: Field<Vec<Field<ObjectReference>>>,
    /// `AllowValidOnly` or `AllowInsecureFallback`. Default: `AllowValidOnly`.
    pub mode: Field<String>,
}
