//! Connecting to an endpoint, and what its failures mean.
//!
//! An HTTP/1 connection is driven by the request that uses it, in `http1`; of an HTTP/2 connection, which many share, one
//! task on the worker's own thread moves the bytes, in `http2`.

pub mod alternates;

pub mod buffers;

pub mod connect;

pub mod counts;

pub mod failure;

pub mod http1;

pub mod http2;

pub mod proxy_protocol;

pub mod stream;

pub mod streams;

pub mod tls;

pub mod tunnel;

pub use alternates::{Alternates, Reach};

pub use buffers::Buffers;

pub use counts::Counts;

pub use connect::{ConnectSettings, Connected, Dialed, Ends, Sender, TcpKeepalive, connect, dial};

pub use proxy_protocol::{Announced, Client, ProxyProtocol};

pub use streams::StreamLimit;

pub use tls::{Agreed, Host, Secured, TlsTarget};

pub use tunnel::{Tunnel, TunnelMethod};

/// What the connections to an endpoint speak.
///
/// Source: the port's `appProtocol`, its name or its protocol field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

impl Protocol {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}
