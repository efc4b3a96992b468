//! Interface through which the codec calls the rest of the proxy.

use std::error::Error as StdError;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::header::HeaderValue;
use hyper::{Request, Response};

use crate::exchange::record::log::Unserved;
use crate::exchange::tcp::{DownstreamTcp, Opened};
use crate::exchange::{Connection, DownstreamBody};
use crate::snapshot::{Listener, ListenerKey};

/// Answers requests and connects raw TCP connections: `exchange::run` in the proxy, a closure in tests.
pub trait Handler: 'static {
    /// Body of responses.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Unpin + 'static;

    /// Future that resolves to the response.
    type Future: Future<Output = Response<Self::Body>> + 'static;

    /// Answers one request of this connection.
    fn answer(&self, connection: &Rc<Connection>, request: Request<DownstreamBody>)
    -> Self::Future;

    /// Returns the listener as configured now. `None` if it is not configured, or unknown here: its connections are
    /// then served as HTTP.
    fn listener(&self, _key: &ListenerKey, _local: SocketAddr) -> Option<Arc<Listener>> {
        None
    }

    /// Returns the value of the `server` header of responses; `None` keeps the upstream's.
    fn server_header(&self, _key: &ListenerKey, _local: SocketAddr) -> Option<HeaderValue> {
        None
    }

    /// Connects a raw TCP connection to its destination; `None` if it has none.
    fn open(&self, _asked: DownstreamTcp) -> impl Future<Output = Option<Opened>> + 'static {
        std::future::ready(None)
    }

    /// Draws the destination of a raw TCP connection before its handshake; `None` if it has none.
    fn draw(&self, _asked: &DownstreamTcp) -> Option<u64> {
        None
    }

    /// Records a request that the codec rejected.
    fn refused(&self, _connection: &Connection, _unserved: &Unserved<'_>) {}
}

impl<F, Fut, B> Handler for F
where
    F: Fn(Rc<Connection>, Request<DownstreamBody>) -> Fut + 'static,
    Fut: Future<Output = Response<B>> + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Unpin + 'static,
{
    type Body = B;
    type Future = Fut;

    fn answer(&self, connection: &Rc<Connection>, request: Request<DownstreamBody>) -> Fut {
        self(Rc::clone(connection), request)
    }
}
