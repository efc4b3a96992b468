//! Kinds of gateway.networking.k8s.io, checked.
//!
//! Defaults of the API are filled in, so that objects of a file and of an API server are equal. References are not
//! resolved: whether their objects exist, and whether a ReferenceGrant permits them, is decided with the whole set.

mod backend_tls_policy;
mod extensions;
mod filter;
mod gateway;
mod grant;
mod reference;
mod route;
mod rule;

pub use backend_tls_policy::{
    Authorities, BackendTLSPolicy, BackendVerification, PolicyService, SubjectAltName,
};
pub use extensions::{ClientRate, RouteExtensions};
pub use filter::{
    Cors, CorsOrigin, Filter, HeaderEdits, OriginHost, PathModifier, Redirect, RequestMirror,
    Respond, Rewrite, Unusable,
};
pub use gateway::{
    AddressType, ClientCertificates, ClientValidation, FrontendTls, GatewayAddress, GatewayClass,
    KubernetesGateway, LabelRequirement, LabelSelector, Listener, ListenerProtocol, ListenerSet,
    ListenerTls, NamespaceSelection, Requirement, RouteKind, Termination, TlsOptions,
};
pub use grant::{GrantFrom, GrantTo, ReferenceGrant};
pub use reference::{BackendRef, ObjectReference, ParentRef};
pub use route::{GRPCRoute, HTTPRoute, L4Rule, TCPRoute, TLSRoute};
pub use rule::{Backend, GrpcMatch, HttpMatch, PathMatch, Retry, RouteRule};

/// API group of these kinds.
pub const GROUP: &str = "gateway.networking.k8s.io";
