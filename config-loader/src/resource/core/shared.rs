//! Values that several kinds about services share.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Where something can be reached: by a name that DNS knows, or by an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A domain name, to be resolved.
    Dns(Arc<str>),
    /// An address.
    Ip(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Dns(name) => f.write_str(name),
            Host::Ip(address) => address.fmt(f),
        }
    }
}

/// The transport protocol of a port. Only TCP ports carry requests that can be routed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// `SCTP`
    Sctp,
    /// `TCP`
    #[default]
    Tcp,
    /// `UDP`
    Udp,
}

impl Protocol {
    /// The name, as Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Sctp => "SCTP",
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether requests of one client stay with one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAffinity {
    /// By the client's address.
    ClientIp {
        /// How long after the last request the endpoint is remembered.
        ///
        /// Unit: time, 1 s to 1 day. Default: [`SessionAffinity::TIMEOUT_DEFAULT`].
        timeout: Duration,
    },
    /// No.
    #[default]
    None,
}

impl SessionAffinity {
    /// The timeout that Kubernetes sets where none is written: three hours.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10_800);
}
