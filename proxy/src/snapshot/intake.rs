//! How connections get to a listener.

/// How connections get to a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Intake {
    /// A socket is open at its address.
    #[default]
    Socket,
    /// The same, for connections to any address that the kernel hands over (TPROXY).
    TransparentSocket,
    /// From the socket for captured connections to the workload. The address is what the client dialed; the unspecified
    /// address is for all, and port 0 for every port.
    CapturedInbound,
    /// From the socket for captured connections of the workload; the address as for [`Self::CapturedInbound`].
    CapturedOutbound,
    /// Requests to the HTTP proxy of a sidecar. The address has the port that the client named, port 0 for all others.
    HttpProxy,
}

impl Intake {
    /// What it is, in a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Socket | Self::TransparentSocket => "socket",
            Self::CapturedInbound => "inbound",
            Self::CapturedOutbound => "outbound",
            Self::HttpProxy => "http_proxy",
        }
    }
}
