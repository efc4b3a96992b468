//! Types that several kinds about services share.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// DNS name or IP address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// DNS name to resolve.
    Dns(Arc<str>),
    /// IP address.
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

/// Transport protocol of a port. Only TCP ports have routes.
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
    /// Returns the name as in Kubernetes.
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

/// Session affinity: whether requests of one client go to one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAffinity {
    /// Affinity by the client's address.
    ClientIp {
        /// Time after the last request until the affinity entry expires.
        ///
        /// Unit: time, 1 s to 1 day. Default: [`SessionAffinity::TIMEOUT_DEFAULT`].
        timeout: Duration,
    },
    /// No affinity.
    #[default]
    None,
}

impl SessionAffinity {
    /// Default timeout of Kubernetes: three hours.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10_800);
}
