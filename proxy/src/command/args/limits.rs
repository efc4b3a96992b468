//! Arguments about rate limits.

use std::time::Duration;

use clap::Args;

use crate::identity::NamedService;
use crate::runtime::duration::duration;

/// Settings of rate limits that a service counts, which the configuration is compiled with.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Rate limits")]
pub struct LimitServiceArgs {
    /// Rate limit service that counts `rateLimit.global` over all proxies: `envoy.service.ratelimit.v3` over gRPC
    #[arg(
        long,
        value_name = "[NAMESPACE/]HOST:PORT",
        env = "STRAIT_RATE_LIMIT_SERVICE",
        value_parser = service
    )]
    pub rate_limit_service: Option<ServiceArg>,
}

/// `--rate-limit-service`; `None` for empty text, as manifests leave variables empty.
#[derive(Clone, Debug)]
pub struct ServiceArg(pub Option<NamedService>);

/// Parses the address of a service.
fn service(text: &str) -> Result<ServiceArg, String> {
    if text.is_empty() {
        return Ok(ServiceArg(None));
    }
    let (namespace, rest) = match text.split_once('/') {
        Some((namespace, rest)) => (Some(namespace.to_owned()), rest),
        None => (None, text),
    };
    let parsed = rest
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok().filter(|port| *port > 0)?)));
    match parsed {
        Some((host, port)) if !host.is_empty() => Ok(ServiceArg(Some(NamedService {
            namespace,
            host: host.to_owned(),
            port,
        }))),
        _ => Err("expected [NAMESPACE/]HOST:PORT with a port from 1 to 65535".to_owned()),
    }
}

/// Settings of rate limits.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Rate limits")]
pub struct LimitArgs {
    /// Length of the networks by which clients with IPv6 are told apart
    #[arg(
        long,
        value_name = "BITS",
        default_value_t = 64,
        env = "STRAIT_RATE_LIMIT_IPV6_PREFIX",
        value_parser = clap::value_parser!(u8).range(1..=128)
    )]
    pub rate_limit_ipv6_prefix: u8,
    /// Count requests before their tokens are verified and policies judge them, by the rules that read no headers
    #[arg(long, env = "STRAIT_RATE_LIMIT_BEFORE_AUTHORIZATION")]
    pub rate_limit_before_authorization: bool,
    /// Domain that the rate limit service is asked about
    #[arg(
        long,
        value_name = "NAME",
        default_value = "strait",
        env = "STRAIT_RATE_LIMIT_DOMAIN"
    )]
    pub rate_limit_domain: String,
    /// Time for an answer of the rate limit service
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "20ms",
        env = "STRAIT_RATE_LIMIT_TIMEOUT",
        value_parser = duration
    )]
    pub rate_limit_timeout: Duration,
    /// Refuse requests with 500 when the rate limit service fails, or does not answer in time
    #[arg(long, env = "STRAIT_RATE_LIMIT_FAIL_CLOSED")]
    pub rate_limit_fail_closed: bool,
}
