//! What a proxy is configured for, and the files that this takes.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::ValueEnum;

use super::feature::{Feature, HEADERS};
use crate::compare::tls::Credentials;
use crate::compare::tool::Tool;

/// A proxy under comparison, in the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Proxy {
    /// The proxy of this workspace.
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
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Strait,
        Self::Before,
        Self::Nginx,
        Self::Haproxy,
        Self::Envoy,
    ];

    /// Whether it is a proxy of another project.
    pub fn is_peer(self) -> bool {
        !matches!(self, Self::Strait | Self::Before)
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strait => "Strait",
            Self::Before => "Strait before",
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Envoy => "Envoy",
        }
    }

    /// What it needs to pass this on.
    pub fn tool_for(self, work: Work) -> Tool {
        match (self, work) {
            (Self::Nginx, Work::Tcp) => Tool::NginxStream,
            _ => self.tool(),
        }
    }

    /// Its program.
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

/// What a proxy passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// HTTP requests, to an upstream that speaks HTTP/1.1.
    Http,
    /// Calls of gRPC, to an upstream that speaks HTTP/2 without TLS.
    Grpc,
    /// Bytes of TCP connections.
    Tcp,
}

/// Routes in addition to the measured one (Strait only).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// None.
    None,
    /// This many that only forward.
    Plain(usize),
    /// This many that use what rules have to offer.
    Featured(usize),
}

/// What a proxy shall do in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Port of 127.0.0.1 to listen on.
    pub listen: u16,
    /// Port of 127.0.0.1 for the admin page, of proxies with one.
    pub admin: u16,
    /// Port of the upstream on 127.0.0.1, and on the addresses of further endpoints.
    pub upstream: u16,
    /// Endpoints of the upstream, in turn; more than one only for HTTP.
    pub endpoints: u16,
    /// Path prefixes that go to the upstream, in order; nothing else does.
    pub prefixes: Vec<String>,
    /// Prefixes per VirtualService (Strait only; the others have one file).
    pub prefixes_per_object: usize,
    /// What passes.
    pub work: Work,
    /// Whether downstream speaks HTTP/2, for proxies that do not detect it.
    pub http2: bool,
    /// The certificate to show, if downstream speaks TLS.
    pub tls: Option<Credentials>,
    /// Routes that no request of the scenario takes.
    pub others: Others,
    /// A feature of the route that every request takes (Strait only). It then defines prefixes and endpoints.
    pub feature: Option<Feature>,
    /// The module that nginx has to load to proxy TCP, if any.
    pub nginx_module: Option<PathBuf>,
    /// Downstream connections that will be open at most.
    pub connections_max: u32,
}

impl Plan {
    /// A single route that takes everything.
    pub fn takes_everything(&self) -> bool {
        self.prefixes == ["/"]
    }

    /// Headers of the requests, beside the host.
    pub fn request_headers(&self) -> &'static [(&'static str, &'static str)] {
        request_headers(self.feature)
    }

    /// The addresses of the endpoints.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        (0..self.endpoints).map(address)
    }
}

/// Maximum concurrent streams of a connection, for proxies with another default.
pub(super) const STREAMS_MAX: u32 = 128;

/// Headers of the requests for a feature or a plain route, beside the host.
pub fn request_headers(feature: Option<Feature>) -> &'static [(&'static str, &'static str)] {
    match feature {
        Some(_) => &HEADERS,
        None => &[],
    }
}

/// The loopback address of an endpoint: 127.0.0.1 for the first one, 127.0.0.2 for the second one.
pub fn address(index: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + u32::from(index))
}

/// A prefix of the routing scenarios.
pub fn prefix(index: usize) -> String {
    format!("/route-{index:05}/")
}

/// A configuration file, by its path below the proxy's own directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Path below the directory.
    pub path: PathBuf,
    /// Content.
    pub text: String,
}

impl ConfigFile {
    /// A file with this path and text.
    pub fn new(path: impl Into<PathBuf>, text: String) -> Self {
        Self {
            path: path.into(),
            text,
        }
    }
}
