//! One new connection to an endpoint, within its timeout.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::Protocol;
use super::counts::{Counted, Counts};
use crate::error::{BoxError, Error, Kind};
use crate::registry::Address;
use crate::runtime::gather::Gathered;

/// Largest response head that is accepted, in bytes; a longer one is a protocol error. Envoy's default.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 60 * 1024;

/// Most header lines in a response head; more is a protocol error.
pub const RESPONSE_HEADERS_MAX: usize = 100;

/// Receive window of one HTTP/2 stream and of a connection: large enough to fill a fast link, small enough to bound
/// what a slow reader makes us hold.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// How a connection is to be made.
#[derive(Clone, Copy, Debug)]
pub struct ConnectSettings {
    /// What it speaks.
    pub protocol: Protocol,
    /// How long it may take until the connection can carry a request.
    pub timeout: Duration,
}

/// The sending half of an upstream connection.
pub enum Sender<B> {
    /// One request at a time.
    Http1(http1::SendRequest<B>),
    /// Many requests at a time.
    Http2(Http2Sender<B>),
}

/// The sending half of an HTTP/2 connection.
pub struct Http2Sender<B> {
    /// Sends requests.
    pub sender: http2::SendRequest<B>,
    /// How many streams the peer allows at a time, kept up to date by the driver.
    pub streams_max: Rc<Cell<usize>>,
}

/// Connects and starts the connection's driver.
///
/// # Errors
///
/// [`Kind::ConnectFailed`] when the endpoint refuses or cannot be reached, [`Kind::ConnectTimeout`] when it does not
/// answer within the timeout. Nothing of a request has been sent in either case.
pub async fn connect<B>(
    address: &Address,
    settings: ConnectSettings,
    counts: &Rc<Counts>,
) -> Result<Sender<B>, Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let opening = open(address, settings.protocol, counts);
    let result = match tokio::time::timeout(settings.timeout, opening).await {
        Ok(result) => result,
        Err(_) => Err(Error::new(Kind::ConnectTimeout)),
    };
    result.inspect_err(|error| counts.connect_failed(error))
}

async fn open<B>(
    address: &Address,
    protocol: Protocol,
    counts: &Rc<Counts>,
) -> Result<Sender<B>, Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let failed = |error: io::Error| Error::new(Kind::ConnectFailed).with_source(error);
    match address {
        Address::Ip(address) => {
            let stream = TcpStream::connect(address).await.map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            handshake(stream, protocol, counts).await
        }
        Address::Unix(path) => {
            handshake(
                UnixStream::connect(path).await.map_err(failed)?,
                protocol,
                counts,
            )
            .await
        }
    }
}

async fn handshake<S, B>(
    stream: S,
    protocol: Protocol,
    counts: &Rc<Counts>,
) -> Result<Sender<B>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let failed = |error: hyper::Error| Error::new(Kind::ConnectFailed).with_source(error);
    let io = TokioIo::new(Gathered(stream));
    match protocol {
        Protocol::Http1 => {
            let (sender, connection) = http1::Builder::new()
                .max_headers(RESPONSE_HEADERS_MAX)
                .max_header_size(RESPONSE_HEAD_BYTES_MAX)
                .handshake(io)
                .await
                .map_err(failed)?;
            // how the connection ended is told to the request that was on it; between requests nobody cares
            let counted = Counted::opened(counts);
            tokio::task::spawn_local(async move {
                drop(connection.with_upgrades().await);
                drop(counted);
            });
            Ok(Sender::Http1(sender))
        }
        Protocol::Http2 => {
            let (sender, mut connection) = http2::Builder::new(LocalExecutor)
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .max_header_list_size(RESPONSE_HEAD_BYTES_MAX as u32)
                .handshake(io)
                .await
                .map_err(failed)?;
            let streams_max = Rc::new(Cell::new(connection.current_max_send_streams()));
            let announced = Rc::clone(&streams_max);
            let counted = Counted::opened(counts);
            tokio::task::spawn_local(poll_fn(move |cx| {
                let _open = &counted;
                let polled = Pin::new(&mut connection).poll(cx);
                announced.set(connection.current_max_send_streams());
                polled.map(drop)
            }));
            Ok(Sender::Http2(Http2Sender {
                sender,
                streams_max,
            }))
        }
    }
}

/// Runs the tasks of an HTTP/2 connection on the worker's own thread.
#[derive(Clone, Copy, Debug)]
struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
