//! Kinds of networking.istio.io, checked.
//!
//! Host names are kept as written: short names are resolved later, with the whole set and the namespace of the object.
//! References to other objects are resolved here, because that needs only the object itself.

mod address;
pub mod authorization_policy;
mod connection_pool;
mod delegation;
mod destination_rule;
mod gateway;
mod headers;
mod http_action;
mod http_match;
mod http_rule;
mod load_balancer;
mod locality;
mod mesh_config;
mod moved;
mod names;
mod peer_authentication;
mod protocol;
mod providers;
mod proxy_config;
mod request_authentication;
mod security_policies;
mod service_entry;
mod sidecar;
mod string_match;
pub mod telemetry;
mod tls;
mod traffic_policy;
mod virtual_service;
mod workload_entry;

pub use address::{Bind, EndpointAddress};
pub use authorization_policy::AuthorizationPolicy;
pub use connection_pool::{
    ConnectionPool, Http2KeepAlive, HttpPool, TcpKeepalive, TcpPool, UpgradePolicy,
};
pub use delegation::conflict;
pub use destination_rule::{DestinationRule, Subset};
pub use gateway::{Gateway, NamespaceFilter, Server, ServerHost};
pub use headers::{HeaderOperations, Headers};
pub use http_action::{
    Delegate, Destination, DirectResponse, HttpAction, HttpDestination, Redirect, RedirectPath,
    RedirectPort, Scheme,
};
pub use http_match::{HeaderKey, HeaderMatch, HttpMatch, QueryMatch};
pub use http_rule::{
    Abort, AbortStatus, CorsPolicy, Delay, Fault, GrpcStatus, HttpRule, Mirror, RegexRewrite,
    RetryCondition, RetryPolicy, Rewrite, RewritePath, UnmatchedPreflights,
};
pub use load_balancer::{
    Aggression, Algorithm, ConsistentHash, CookieAttribute, HashAlgorithm, HashKey, LoadBalancer,
    Warmup,
};
pub use locality::{
    Distribute, Failover, FailoverLabel, Locality, LocalityPattern, LocalitySetting,
    ZoneAwareSetting,
};
pub use mesh_config::{MeshConfig, MeshNetwork, TlsDefaults, TrafficDefaults};
pub use names::{GatewayRef, Lined};
pub use peer_authentication::{MutualTls, PeerAuthentication, PortMutualTls};
pub use protocol::Protocol;
pub use providers::{
    DefaultProviders, FileFormat, FileLog, ProviderKind, RecordLog, TRACERS_OF_FLAGS,
    TelemetryProvider, Tracer, TracerHeader, TracerProtocol,
};
pub use proxy_config::{FlagValue, ProxyConfig, ProxySettings, ProxyTracing, ServiceNameForm};
pub use request_authentication::{
    JwtRule, KeySource, RemoteKeys, RequestAuthentication, TokenLocation,
};
pub use security_policies::{PolicyScope, PolicyTarget};
pub use service_entry::{Location, Resolution, ServiceEntry, ServiceEntryPort};
pub use sidecar::{
    CaptureMode, EgressHost, EgressListener, EgressNamespace, IngressListener, LocalEndpoint,
    OutboundPolicy, Sidecar, SidecarPort,
};
pub use string_match::{Pattern, StringMatch};
pub use telemetry::Telemetry;
pub use tls::{
    CURVES, Certificates, CipherSuite, ClientTls, ClientTlsMode, FileCertificate, ServerTls,
    ServerTlsMode, TlsVersion,
};
pub use traffic_policy::{
    OutlierDetection, PortPolicy, ProxyProtocolVersion, RetryBudget, TrafficPolicy, Tunnel,
    TunnelMethod,
};
pub(crate) use virtual_service::PUBLIC;
pub use virtual_service::{L4Destination, TcpMatch, TcpRule, TlsMatch, TlsRule, VirtualService};
pub use workload_entry::WorkloadEntry;
