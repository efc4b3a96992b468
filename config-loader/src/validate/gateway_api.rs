//! Validation of the gateway.networking.k8s.io kinds: the rules of the API's CustomResourceDefinitions.

mod backend_tls_policy;
mod cors;
mod extensions;
mod filter;
mod gateway;
mod grant;
mod listener;
mod matches;
mod options;
mod reference;
mod route;
mod route_check;
mod rule;
mod shared;

pub use backend_tls_policy::backend_tls_policy;
pub use gateway::{gateway, gateway_class, listener_set};
pub use grant::reference_grant;
pub use route::{grpc_route, http_route, tcp_route, tls_route};
pub use route_check::{check_host_with_tls, is_check_url};

#[cfg(test)]
mod tests;
