//! Connecting to an endpoint, and what its failures mean.
//!
//! An HTTP/1 connection is driven by the request that uses it, in `http1`; of an HTTP/2 connection, which many share, one
//! task on the worker's own thread moves the bytes, in `http2`.

pub mod buffers;
pub mod connect;
pub mod counts;
pub mod failure;
pub mod grpc_health;
pub mod http1;
pub mod http2;
pub mod proxy_protocol;
mod sender;
pub mod stream;
pub mod streams;
pub mod tls;
pub mod tunnel;
mod tunnelled;

pub use buffers::Buffers;
pub use connect::{ConnectSettings, ConnectionInfo, TcpConnection, dial};
pub use counts::Counts;
pub use proxy_protocol::{AnnouncedClient, Client};
pub use sender::{Connected, Sender, connect};
pub use streams::StreamLimit;
pub use tls::{ConnectionTls, Host, NegotiatedTls, TlsTarget};
pub use traffic::connection::{Alternates, Protocol, ProxyProtocol, Reach, TcpKeepalive};
pub use tunnel::{Tunnel, TunnelMethod};
