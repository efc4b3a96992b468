//! One new connection to an endpoint, within its timeout: to its own address, or to another of the same host when that
//! one takes none (RFC 8305, "Happy Eyeballs").

use std::borrow::Cow;
use std::ffi::OsString;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};

use super::Protocol;
use super::alternates::Reach;
use super::counts::{Counted, Counts};
use super::http1::{Connection, RESPONSE_HEAD_BYTES_MAX};
use super::proxy_protocol::Announced;
use super::stream::Stream;
use super::streams::{ConnectionTasks, StreamLimit, UNKNOWN};
use crate::error::{BoxError, Error, Kind};
use crate::registry::Address;
use crate::runtime::gather::Gathered;

/// Time after which the next address is tried while the one before has not answered; one that is refused is followed at
/// once. RFC 8305, section 5, recommends it.
pub const NEXT_ADDRESS_DELAY: Duration = Duration::from_millis(250);

/// Receive window of one HTTP/2 stream and of a connection: large enough to fill a fast link, small enough to bound
/// what a slow reader makes us hold.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// How a connection is to be made.
#[derive(Clone, Copy, Debug)]
pub struct ConnectSettings {
    /// What it speaks.
    pub protocol: Protocol,
    /// How long it may take until the connection can carry a request, over all addresses.
    pub timeout: Duration,
    /// What it begins with.
    pub announced: Option<Announced>,
}

/// A connection that was just made.
pub struct Connected<B> {
    /// Its sending half.
    pub sender: Sender<B>,
    /// What it connects.
    pub ends: Rc<Ends>,
}

/// The two ends of an upstream connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Our address; none on a Unix socket.
    pub local: Option<SocketAddr>,
    /// The address that took the connection, which need not be the endpoint's own.
    pub remote: Address,
}

/// The sending half of an upstream connection.
pub enum Sender<B> {
    /// One request at a time.
    Http1(Box<Connection>),
    /// Many requests at a time.
    Http2(Http2Sender<B>),
}

/// The sending half of an HTTP/2 connection.
pub struct Http2Sender<B> {
    /// Sends requests.
    pub sender: http2::SendRequest<B>,
    /// How many streams the peer allows at a time, kept up to date by the driver.
    pub limit: Rc<StreamLimit>,
}

/// Connects and starts the connection's driver.
///
/// # Errors
///
/// [`Kind::ConnectFailed`] when no address of the endpoint takes a connection, [`Kind::ConnectTimeout`] when none does
/// within the timeout. Nothing of a request has been sent in either case.
pub async fn connect<B>(
    reach: Reach<'_>,
    settings: ConnectSettings,
    counts: &Rc<Counts>,
) -> Result<Connected<B>, Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let opening = open(reach, &settings, counts);
    within(settings.timeout, opening, counts).await
}

/// What `connecting` comes to, if it does in time.
async fn within<T>(
    timeout: Duration,
    connecting: impl Future<Output = Result<T, Error>>,
    counts: &Counts,
) -> Result<T, Error> {
    match tokio::time::timeout(timeout, connecting).await {
        Ok(result) => result,
        Err(_) => {
            let error = Error::new(Kind::ConnectTimeout);
            counts.connect_failed(&error);
            Err(error)
        }
    }
}

/// A connection that speaks nothing yet.
#[derive(Debug)]
pub struct Dialed {
    /// The socket.
    pub stream: Stream,
    /// What it connects.
    pub ends: Rc<Ends>,
    /// Counts it as open.
    pub counted: Counted,
}

/// Connects, for bytes that are carried as they are.
///
/// # Errors
///
/// Those of [`connect`].
pub async fn dial(
    reach: Reach<'_>,
    timeout: Duration,
    counts: &Rc<Counts>,
) -> Result<Dialed, Error> {
    let (stream, ends) = within(timeout, socket(reach, counts), counts).await?;
    Ok(Dialed {
        stream,
        ends,
        counted: Counted::opened(counts),
    })
}

/// A connected socket.
async fn socket(reach: Reach<'_>, counts: &Rc<Counts>) -> Result<(Stream, Rc<Ends>), Error> {
    let failed = |error: io::Error| connect_failed(error, counts);
    let (stream, remote) = match reach.address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(socket_path(path))
                .await
                .map_err(failed)?;
            (Stream::Unix(stream), reach.address.clone())
        }
        Address::Ip(_) | Address::Name { .. } => {
            let (stream, remote) = first_to_connect(&reach.candidates(), counts).await?;
            stream.set_nodelay(true).map_err(failed)?;
            (Stream::Tcp(stream), Address::Ip(remote))
        }
    };
    let local = stream.local_address();
    Ok((stream, Rc::new(Ends { local, remote })))
}

async fn open<B>(
    reach: Reach<'_>,
    settings: &ConnectSettings,
    counts: &Rc<Counts>,
) -> Result<Connected<B>, Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let (mut stream, ends) = socket(reach, counts).await?;
    if let Some(announced) = &settings.announced {
        let failed = |error| connect_failed(error, counts);
        stream
            .write_all(&announced.header())
            .await
            .map_err(failed)?;
    }
    let sender = match settings.protocol {
        Protocol::Http1 => {
            let counted = Counted::opened(counts);
            Sender::Http1(Connection::new(stream, Rc::clone(&ends), counted))
        }
        Protocol::Http2 => Sender::Http2(http2_handshake(stream, counts).await?),
    };
    Ok(Connected { sender, ends })
}

/// The path as the kernel wants it: a name in the abstract namespace begins with a zero byte.
fn socket_path(path: &Path) -> Cow<'_, Path> {
    match path.as_os_str().as_bytes() {
        [b'@', name @ ..] => {
            let name = [b"\0", name].concat();
            Cow::Owned(OsString::from_vec(name).into())
        }
        _ => Cow::Borrowed(path),
    }
}

fn connect_failed(error: impl Into<BoxError>, counts: &Counts) -> Error {
    let error = Error::new(Kind::ConnectFailed).with_source(error);
    counts.connect_failed(&error);
    error
}

/// A connection to the first of these addresses that takes one.
///
/// They are begun in order: the next when the one before has failed or has had [`NEXT_ADDRESS_DELAY`]. The first to
/// connect wins and ends the others.
async fn first_to_connect(
    addresses: &[SocketAddr],
    counts: &Counts,
) -> Result<(TcpStream, SocketAddr), Error> {
    let mut rest = addresses.iter().copied();
    let mut race = Race::default();
    let mut last = None;
    loop {
        if let Some(address) = rest.next() {
            race.begin(address);
        } else if race.is_over() {
            let none = || io::Error::new(io::ErrorKind::AddrNotAvailable, "no address is known");
            return Err(last.unwrap_or_else(|| connect_failed(none(), counts)));
        }
        let result = match rest.len() {
            0 => race.next().await,
            _ => match tokio::time::timeout(NEXT_ADDRESS_DELAY, race.next()).await {
                Ok(result) => result,
                Err(_) => continue,
            },
        };
        match result {
            Ok(connected) => return Ok(connected),
            Err(error) => last = Some(connect_failed(error, counts)),
        }
    }
}

/// Attempts to connect that are under way; at most as many as there are addresses.
#[derive(Default)]
struct Race(Vec<Pin<Box<dyn Future<Output = Finish>>>>);

/// How one attempt ended.
type Finish = io::Result<(TcpStream, SocketAddr)>;

impl Race {
    fn begin(&mut self, address: SocketAddr) {
        self.0.push(Box::pin(async move {
            Ok((TcpStream::connect(address).await?, address))
        }));
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The attempt that ends next; there must be one.
    async fn next(&mut self) -> Finish {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Finish> {
        for index in 0..self.0.len() {
            if let Poll::Ready(finish) = self.0[index].as_mut().poll(cx) {
                drop(self.0.remove(index));
                return Poll::Ready(finish);
            }
        }
        Poll::Pending
    }
}

/// Starts the connection's driver, a task of the worker's own thread; it ends when the peer closes or when the last
/// sender is dropped.
async fn http2_handshake<B>(stream: Stream, counts: &Rc<Counts>) -> Result<Http2Sender<B>, Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let failed = |error: hyper::Error| connect_failed(error, counts);
    let io = TokioIo::new(Gathered(stream));
    let limit = StreamLimit::new();
    let (sender, mut connection) = http2::Builder::new(ConnectionTasks::new(&limit))
        .timer(TokioTimer::new())
        .initial_max_send_streams(UNKNOWN)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(RESPONSE_HEAD_BYTES_MAX as u32)
        .handshake(io)
        .await
        .map_err(failed)?;
    let announced = Rc::clone(&limit);
    let counted = Counted::opened(counts);
    tokio::task::spawn_local(poll_fn(move |cx| {
        let _open = &counted;
        let polled = Pin::new(&mut connection).poll(cx);
        announced.update(connection.current_max_send_streams(), cx);
        if polled.is_ready() {
            announced.end();
        }
        polled.map(drop)
    }));
    Ok(Http2Sender { sender, limit })
}
