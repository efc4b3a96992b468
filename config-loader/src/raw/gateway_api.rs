//! Kinds of gateway.networking.k8s.io as written.

mod backend_tls_policy;
mod filter;
mod gateway;
mod reference;
mod route;
mod rule;

pub use backend_tls_policy::{BackendTlsPolicy, BackendValidation, PolicyTarget, SubjectAltName};
pub use filter::{
    CorsFilter, Filter, Fraction, GrpcFilter, HeaderFilter, HeaderValue, MirrorFilter,
    PathModifier, RedirectFilter, RewriteFilter,
};
pub use gateway::{
    Address, AllowedListeners, AllowedRoutes, BackendTls, FrontendTls, FrontendValidation, Gateway,
    GatewayClass, GatewayTls, Infrastructure, LabelExpression, LabelSelector, Listener,
    ListenerSet, ListenerTls, NamespaceSelection, PortTls, RouteKind, TlsSettings,
};
pub use reference::{
    BackendObject, BackendReference, FilteredBackend, GrantFrom, GrantTo, LocalReference,
    ObjectReference, ParentReference, ReferenceGrant,
};
pub use route::{GrpcRoute, HttpRoute, L4Rule, TcpRoute, TlsRoute};
pub use rule::{
    GrpcMatch, GrpcMethod, GrpcRule, HttpMatch, HttpRule, KeyMatch, PathMatch, Retry, Timeouts,
};
