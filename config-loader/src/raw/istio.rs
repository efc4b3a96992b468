//! Kinds of networking.istio.io, security.istio.io and telemetry.istio.io as written. All versions of a kind have the same fields.
//!
//! Deprecated fields are read too, so that diagnostics can name their replacement. `validate` knows which fields are
//! deprecated.

pub mod authorization_policy;
mod connection_pool;
mod connection_settings;
mod destination_rule;
mod gateway;
mod http_route;
mod load_balancer;
mod mesh_config;
mod mesh_networks;
mod peer_authentication;
mod proxy_config;
mod request_authentication;
mod service_entry;
mod sidecar;
mod string_match;
pub mod telemetry;
mod tls;
mod traffic_policy;
mod virtual_service;
mod workload_entry;

pub use authorization_policy::{AuthorizationPolicy, PolicyTargetReference};
pub use connection_pool::{
    ConnectionPoolSettings, Http2KeepAlive, HttpSettings, TcpKeepalive, TcpSettings,
};
pub use connection_settings::ConnectionSettings;
pub use destination_rule::{DestinationRule, LabelSelector, Subset};
pub use gateway::{Gateway, Port, Server};
pub use http_route::{
    Abort, CorsPolicy, Delay, Delegate, Destination, HeaderOperations, Headers, HttpBody,
    HttpDirectResponse, HttpFaultInjection, HttpMatchRequest, HttpMirrorPolicy, HttpRedirect,
    HttpRetry, HttpRewrite, HttpRoute, HttpRouteDestination, PortSelector, RegexRewrite,
};
pub use load_balancer::{
    ConsistentHash, CookieAttribute, Distribute, Failover, HttpCookie, LoadBalancerSettings,
    LocalityLoadBalancerSetting, MagLev, RingHash, WarmupConfiguration,
    ZoneAwareLoadBalancerSetting,
};
pub use mesh_config::{
    CertificateData, DefaultProviders, ExtAuthzProvider, ExtensionProvider, FileAccessLog,
    MeshConfig, NamespaceSelector, OpenTelemetryProvider, OtelLogProvider, RequestBody,
    ServiceSettings, TlsConfig, TracerHeader, ZipkinProvider,
};
pub use mesh_networks::{MeshNetworks, Network, NetworkGateway};
pub use peer_authentication::{MutualTls, PeerAuthentication};
pub use proxy_config::{GatewayTopology, ProxyConfig, ProxyHeaders, ProxySettings, ProxyTracing};
pub use request_authentication::{ClaimToHeader, JwtHeader, JwtRule, RequestAuthentication};
pub use service_entry::{ServiceEntry, ServicePort};
pub use sidecar::{
    IstioEgressListener, IstioIngressListener, OutboundTrafficPolicy, Sidecar, WorkloadSelector,
};
pub use string_match::{Percent, StringMatch};
pub use telemetry::Telemetry;
pub use tls::{ClientTlsSettings, ServerTlsSettings, TlsCertificate};
pub use traffic_policy::{
    OutlierDetection, PortTrafficPolicy, ProxyProtocol, RetryBudget, TrafficPolicy, TunnelSettings,
};
pub use virtual_service::{
    L4MatchAttributes, RouteDestination, TcpRoute, TlsMatchAttributes, TlsRoute, VirtualService,
};
pub use workload_entry::WorkloadEntry;
