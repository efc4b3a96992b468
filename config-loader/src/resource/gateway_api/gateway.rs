//! GatewayClass, Gateway and ListenerSet, checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::ObjectReference;
use crate::resource::istio::{CipherSuite, TlsVersion};
use crate::span::Line;

/// Checked GatewayClass.
#[derive(Clone, Debug, Default)]
pub struct GatewayClass {
    /// Name of the controller: a domain and a path.
    pub controller: Arc<str>,
    /// Source line of `controllerName`.
    pub controller_line: Line,
    /// Source line of `parametersRef`, if it is set. No parameters are supported.
    pub parameters: Option<Line>,
}

/// Checked Gateway of gateway.networking.k8s.io.
#[derive(Clone, Debug, Default)]
pub struct KubernetesGateway {
    /// Name of the GatewayClass.
    pub class: Arc<str>,
    /// Source line of `gatewayClassName`.
    pub class_line: Line,
    /// Listeners. Never empty; their names are unique.
    pub listeners: Vec<Listener>,
    /// Addresses; empty for assigned ones.
    pub addresses: Vec<GatewayAddress>,
    /// Addresses in the status, which the controller has assigned; `None` if no controller has written the status.
    pub assigned: Option<Vec<IpAddr>>,
    /// Source line of `infrastructure.parametersRef`, if it is set. No parameters are supported.
    pub parameters: Option<Line>,
    /// Namespaces of the ListenerSets that may add listeners.
    pub allowed_listeners: NamespaceSelection,
    /// Validation of client certificates.
    pub frontend: Option<Box<FrontendTls>>,
    /// Secret with the certificate that backends get.
    pub client_certificate: Option<ObjectReference>,
}

/// Checked ListenerSet.
#[derive(Clone, Debug, Default)]
pub struct ListenerSet {
    /// Gateway that gets the listeners. Only a rejected object has none.
    pub parent: Option<ObjectReference>,
    /// Listeners. Never empty; their names are unique.
    pub listeners: Vec<Listener>,
}

/// Listener of a Gateway or a ListenerSet.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Name.
    pub name: Arc<str>,
    /// Host that the listener accepts, of which the first label may be `*`; `None` for every host.
    pub hostname: Option<Arc<str>>,
    /// Port.
    pub port: u16,
    /// Protocol, with its TLS settings.
    pub protocol: ListenerProtocol,
    /// Namespaces of the routes that may attach. Never [`NamespaceSelection::None`].
    pub namespaces: NamespaceSelection,
    /// Kinds of the routes that may attach; `None` for all that the protocol carries.
    pub kinds: Option<Vec<RouteKind>>,
    /// Source line within the document.
    pub line: Line,
}

/// Protocol of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerProtocol {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https(Termination),
    /// Other protocol, which is not supported.
    Other(Arc<str>),
    /// TCP.
    Tcp,
    /// TLS.
    Tls(ListenerTls),
    /// UDP, which is not supported.
    Udp,
}

impl ListenerProtocol {
    /// Returns the name as written.
    pub fn as_str(&self) -> &str {
        match self {
            ListenerProtocol::Http => "HTTP",
            ListenerProtocol::Https(_) => "HTTPS",
            ListenerProtocol::Other(name) => name,
            ListenerProtocol::Tcp => "TCP",
            ListenerProtocol::Tls(_) => "TLS",
            ListenerProtocol::Udp => "UDP",
        }
    }
}

/// Handling of TLS by a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerTls {
    /// Forwards TLS by its SNI.
    Passthrough,
    /// Terminates TLS.
    Terminate(Termination),
}

/// Termination of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Termination {
    /// Secrets with certificates, in the order of preference. Other kinds are unresolved references.
    pub certificates: Vec<ObjectReference>,
    /// Further settings.
    pub options: TlsOptions,
}

/// Settings of TLS that the API leaves to implementations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Client certificates, verified by `ca.crt` of the Secrets with the listener's certificates. The validation of the
    /// Gateway replaces it.
    pub clients: ClientCertificates,
    /// Secret with the CA certificates of clients; empty for the Secrets with the listener's certificates.
    pub client_authorities: Vec<ObjectReference>,
    /// Oldest version.
    pub version_min: TlsVersion,
    /// Newest version.
    pub version_max: TlsVersion,
    /// Cipher suites up to TLS 1.2; empty for all.
    pub cipher_suites: Vec<CipherSuite>,
}

/// Client certificates of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// None are requested.
    #[default]
    None,
    /// A client without one is served, one with an invalid one is not.
    Optional,
    /// Each client has a valid one.
    Required,
    /// A client with an invalid one, or without one, is served.
    Unverified,
}

/// Kind of routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteKind {
    /// API group.
    pub group: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
}

/// Selection of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamespaceSelection {
    /// Every namespace.
    All,
    /// No namespace.
    #[default]
    None,
    /// Namespaces with labels.
    Selector(LabelSelector),
    /// Namespace of the Gateway or ListenerSet.
    Same,
}

/// Label selector: all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<LabelRequirement>);

impl LabelSelector {
    /// Whether an object with these labels is selected. If it `may_have_more`, no requirement holds because a label is
    /// missing.
    pub fn selects(&self, labels: &BTreeMap<String, String>, may_have_more: bool) -> bool {
        self.0
            .iter()
            .all(|one| one.holds(labels) && (!may_have_more || labels.contains_key(&one.key)))
    }
}

/// Requirement of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRequirement {
    /// Key of the label.
    pub key: String,
    /// Condition on its value.
    pub requirement: Requirement,
}

impl LabelRequirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match &self.requirement {
            Requirement::Absent => value.is_none(),
            Requirement::In(values) => value.is_some_and(|value| values.contains(value)),
            Requirement::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Requirement::Present => value.is_some(),
        }
    }
}

/// Condition on the value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// No label.
    Absent,
    /// One of these values.
    In(Vec<String>),
    /// None of these values, or no label.
    NotIn(Vec<String>),
    /// Any value.
    Present,
}

/// Address of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayAddress {
    /// Type and value.
    pub address: AddressType,
    /// Source line within the document.
    pub line: Line,
}

/// Type and value of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressType {
    /// IP address; `None` for an assigned one.
    Ip(Option<IpAddr>),
    /// Address of another type, which is not supported.
    Other(Arc<str>),
}

/// Validation of client certificates, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontendTls {
    /// Validation on ports without an entry; `None` for no client certificates.
    pub default: Option<ClientValidation>,
    /// Validation by port.
    pub per_port: BTreeMap<u16, Option<ClientValidation>>,
}

/// Validation of client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientValidation {
    /// ConfigMaps and Secrets with CA certificates. Never empty. Other kinds are unresolved references.
    pub authorities: Vec<ObjectReference>,
    /// Whether clients without a valid certificate are served.
    pub is_insecure: bool,
    /// Source line within the document.
    pub line: Line,
}
