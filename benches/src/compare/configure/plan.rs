//! Configuration plan of a proxy in a scenario, and the generated configuration files.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::ValueEnum;

use super::feature::{Feature, HEADERS};
use super::token;
use crate::compare::tls::Credentials;
use crate::compare::tool::Tool;

/// Proxy under comparison, in the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Proxy {
    /// Proxy of this workspace.
    Strait,
    /// Another build of the proxy of this workspace.
    #[value(skip)]
    Before,
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Envoy.
    Envoy,
}

impl Proxy {
    /// All proxies.
    pub const ALL: [Self; 5] = [
        Self::Strait,
        Self::Before,
        Self::Nginx,
        Self::Haproxy,
        Self::Envoy,
    ];

    /// Whether this is a proxy of another project.
    pub fn is_peer(self) -> bool {
        !matches!(self, Self::Strait | Self::Before)
    }

    /// Returns the name of the proxy in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strait => "Strait",
            Self::Before => "Strait before",
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Envoy => "Envoy",
        }
    }

    /// Returns the program or module that the proxy needs for this protocol.
    pub fn tool_for(self, work: Work) -> Tool {
        match (self, work) {
            (Self::Nginx, Work::Tcp) => Tool::NginxStream,
            _ => self.tool(),
        }
    }

    /// Returns the program of the proxy.
    pub fn tool(self) -> Tool {
        match self {
            Self::Strait => Tool::Strait,
            Self::Before => Tool::Before,
            Self::Nginx => Tool::Nginx,
            Self::Haproxy => Tool::Haproxy,
            Self::Envoy => Tool::Envoy,
        }
    }
}

/// Protocol that a proxy forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// HTTP requests, to an upstream that speaks HTTP/1.1.
    Http,
    /// gRPC calls, to an upstream that speaks HTTP/2 without TLS.
    Grpc,
    /// Bytes of TCP connections.
    Tcp,
}

/// Routes and policies in addition to the measured route. Routes: Strait only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// No additional routes.
    None,
    /// This many routes that only forward.
    Plain(usize),
    /// This many routes that use many features of rules.
    Featured(usize),
    /// This many policies that deny other requests by method and path.
    Policies(usize),
    /// Verification of the token that every request has.
    Tokens {
        /// Whether Envoy keeps verified tokens.
        envoy_keeps_them: bool,
    },
    /// Spans of this share of the requests, in percent, which are sent to a collector over gRPC.
    Traces(u8),
}

/// Configuration of a proxy in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Port of 127.0.0.1 to listen on.
    pub listen: u16,
    /// Port of 127.0.0.1 for the admin page, if the proxy has one.
    pub admin: u16,
    /// Port of the upstream on 127.0.0.1, and on the addresses of further endpoints.
    pub upstream: u16,
    /// Port of the collector of traces on 127.0.0.1.
    pub collector: u16,
    /// Number of upstream endpoints, used in turn; more than one only for HTTP.
    pub endpoints: u16,
    /// Path prefixes that are routed to the upstream, in order; all other paths have no route.
    pub prefixes: Vec<String>,
    /// Prefixes per VirtualService (Strait only; the other proxies have one file).
    pub prefixes_per_object: usize,
    /// Protocol that the proxy forwards.
    pub work: Work,
    /// Whether downstream speaks HTTP/2, for proxies that do not detect it.
    pub http2: bool,
    /// Downstream certificate, if downstream speaks TLS.
    pub tls: Option<Credentials>,
    /// Routes that no request of the scenario takes.
    pub others: Others,
    /// Feature of the route that every request matches (Strait only). It then defines prefixes and endpoints.
    pub feature: Option<Feature>,
    /// Module that nginx must load to proxy TCP, if any.
    pub nginx_module: Option<PathBuf>,
    /// Maximum number of downstream connections.
    pub connections_max: u32,
}

impl Plan {
    /// Whether a single route matches every path.
    pub fn takes_everything(&self) -> bool {
        self.prefixes == ["/"]
    }

    /// Returns the headers of the requests, except the host.
    pub fn request_headers(&self) -> &'static [(&'static str, &'static str)] {
        request_headers(self.feature, self.others)
    }

    /// Returns the addresses of the endpoints.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        (0..self.endpoints).map(address)
    }
}

/// Maximum concurrent streams of a connection, for proxies with another default.
pub(super) const STREAMS_MAX: u32 = 128;

/// Returns the headers of the requests for a feature or a plain route, except the host.
pub fn request_headers(
    feature: Option<Feature>,
    others: Others,
) -> &'static [(&'static str, &'static str)] {
    match (feature, others) {
        (Some(_), _) => &HEADERS,
        (None, Others::Tokens { .. }) => &token::HEADERS,
        (None, _) => &[],
    }
}

/// Returns the loopback address of an endpoint: 127.0.0.1 for the first one, 127.0.0.2 for the second one.
pub fn address(index: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + u32::from(index))
}

/// Returns a path prefix of the routing scenarios.
pub fn prefix(index: usize) -> String {
    format!("/route-{index:05}/")
}

/// Configuration file with its path below the proxy's own directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Path below the directory.
    pub path: PathBuf,
    /// Content.
    pub text: String,
}

impl ConfigFile {
    /// Creates a file from its path and text.
    pub fn new(path: impl Into<PathBuf>, text: String) -> Self {
        Self {
            path: path.into(),
            text,
        }
    }
}
