//! Source of a listener's connections.

/// Source of a listener's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Intake {
    /// A socket that is bound to the address.
    #[default]
    Socket,
    /// A transparent socket (TPROXY): the kernel hands over connections to any address.
    TransparentSocket,
    /// Captured connections to the workload. The address is the one that the client dialed; the unspecified address and
    /// port 0 are wildcards.
    CapturedInbound,
    /// Captured connections from the workload, with an address as for [`Self::CapturedInbound`].
    CapturedOutbound,
    /// Requests to the HTTP proxy of a sidecar. The port is the one that the client named; port 0 is the wildcard.
    HttpProxy,
}

impl Intake {
    /// The name in pages and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Socket | Self::TransparentSocket => "socket",
            Self::CapturedInbound => "inbound",
            Self::CapturedOutbound => "outbound",
            Self::HttpProxy => "http_proxy",
        }
    }
}
