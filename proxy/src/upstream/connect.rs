//! Opens one connection to an endpoint within its timeout: to its own address, or to another address of its host if
//! that refuses (RFC 8305, "Happy Eyeballs").

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

use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

use super::counts::{Counted, Counts};
use super::proxy_protocol::AnnouncedClient;
use super::stream::Stream;
use super::tls::{ConnectionTls, NegotiatedTls};
use super::tunnel::Tunnel;
use crate::runtime::clock;
use crate::runtime::interception::InboundSource;
use crate::telemetry::Counter;
use crate::tls::Inside;
use traffic::connection::{Protocol, Reach, TcpKeepalive};
use traffic::error::{BoxError, Error, Kind};
use traffic::filter::TlsContext;
use traffic::registry::Address;
use wire::http2::keep_alive::KeepAlive;

/// Time without an answer after which the next address is tried as well; after a failure it is tried at once. RFC 8305,
/// section 5, recommends this value.
pub const NEXT_ADDRESS_DELAY: Duration = Duration::from_millis(250);

/// Settings of a new connection.
#[derive(Clone, Debug)]
pub struct ConnectSettings {
    /// HTTP version of the connection.
    pub protocol: Protocol,
    /// Time until the connection can carry a request, over all addresses.
    pub timeout: Duration,
    /// PROXY header to send first.
    pub announced: Option<AnnouncedClient>,
    /// Source address of a connection to the sidecar's own workload; by default the kernel chooses.
    pub source: Option<InboundSource>,
    /// Timing of PINGs that detect a dead HTTP/2 peer; none by default.
    pub keep_alive: Option<KeepAlive>,
    /// TCP keepalive; off by default.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// TLS settings; `None` for plain text.
    pub tls: Option<ConnectionTls>,
}

/// Sets the TCP keepalive of a socket.
fn set_keepalive(keepalive: &TcpKeepalive, stream: &TcpStream) -> io::Result<()> {
    let mut asked = socket2::TcpKeepalive::new();
    if let Some(time) = keepalive.time {
        asked = asked.with_time(time);
    }
    if let Some(interval) = keepalive.interval {
        asked = asked.with_interval(interval);
    }
    if let Some(probes) = keepalive.probes {
        asked = asked.with_retries(probes);
    }
    let socket = SockRef::from(stream);
    socket.set_keepalive(true)?;
    socket.set_tcp_keepalive(&asked)
}

/// Addresses and TLS state of an upstream connection.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// Local address; `None` on a Unix socket.
    pub local: Option<SocketAddr>,
    /// Address that accepted the connection, not always the endpoint's own.
    pub remote: Address,
    /// Negotiated TLS; `None` in plain text.
    pub tls: Option<NegotiatedTls>,
    /// Times of its opening.
    pub opened: ConnectTimes,
}

/// Times of the opening of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectTimes {
    /// Begin of the connect.
    pub begun: Instant,
    /// Time when the socket was connected.
    pub connected: Instant,
    /// End of the TLS handshake; that of the connect in plain text.
    pub secured: Instant,
}

impl ConnectTimes {
    /// A connection whose opening begins and ends now.
    pub fn now() -> Self {
        let now = clock::now();
        Self {
            begun: now,
            connected: now,
            secured: now,
        }
    }

    /// Notes that the socket is connected.
    pub(crate) fn connects(&mut self) {
        self.connected = clock::now();
        self.secured = self.connected;
    }

    /// Notes the end of the TLS handshake.
    pub(crate) fn secures(&mut self) {
        self.secured = clock::now();
    }
}

impl ConnectionInfo {
    /// TLS values for templates.
    pub fn tls_context(&self) -> Option<TlsContext<'_>> {
        let tls = self.tls.as_ref()?;
        Some(TlsContext {
            version: tls.version.unwrap_or_default(),
            cipher: tls.cipher.unwrap_or_default(),
            peer: tls.certificate.as_ref().map(|peer| peer as _),
            own: tls.own.as_deref().map(|own| &own.facts),
        })
    }
}

/// Awaits `connecting` within the timeout, whose expiry is an error and counted.
pub(super) async fn within<T>(
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

/// A connection on which no protocol has begun.
#[derive(Debug)]
pub struct TcpConnection {
    /// Socket of the connection.
    pub stream: Stream,
    /// Addresses and TLS state.
    pub ends: Rc<ConnectionInfo>,
    /// Counts the connection as open.
    pub counted: Counted,
}

/// Connects for raw TCP, through the tunnel if there is one. `settings` decide on TLS; their protocol is ignored.
///
/// # Errors
///
/// [`Kind::ConnectFailed`] if no address of the endpoint accepts a connection, [`Kind::ConnectTimeout`] if none does
/// within the timeout.
pub async fn dial(
    reach: Reach<'_>,
    settings: &ConnectSettings,
    tunnel: Option<&Tunnel>,
    counts: &Rc<Counts>,
) -> Result<TcpConnection, Error> {
    let opening = async {
        let (stream, ends) = begin(reach, settings, Inside::Bytes, counts).await?;
        let Some(tunnel) = tunnel else {
            return Ok((stream, ends));
        };
        let opened = Box::pin(tunnel.open(stream)).await;
        let stream = opened.inspect_err(|error| counts.connect_failed(error))?;
        Ok((stream, ends))
    };
    let (stream, ends) = within(settings.timeout, opening, counts).await?;
    Ok(TcpConnection {
        stream,
        ends,
        counted: Counted::opened(counts),
    })
}

/// Connects a socket, and sends the PROXY header and performs the TLS handshake where settings ask for them.
pub(super) async fn begin(
    reach: Reach<'_>,
    settings: &ConnectSettings,
    inside: Inside,
    counts: &Rc<Counts>,
) -> Result<(Stream, Rc<ConnectionInfo>), Error> {
    let told = |error: Error| {
        counts.connect_failed(&error);
        error
    };
    if let Some(tls) = &settings.tls {
        tls.check().map_err(told)?;
    }
    let (mut stream, mut ends) = socket(reach, settings, counts).await?;
    if let Some(announced) = &settings.announced {
        let failed = |error| connect_failed(error, counts);
        stream
            .write_all(&announced.header())
            .await
            .map_err(failed)?;
    }
    if let Some(tls) = &settings.tls {
        let shaken = tls.shake_hands(stream, inside).await;
        counts.add(handshake(&shaken), 1);
        let (secured, agreed) = shaken.map_err(told)?;
        stream = secured;
        ends.tls = Some(agreed);
        ends.opened.secures();
    }
    Ok((stream, Rc::new(ends)))
}

fn handshake(shaken: &Result<(Stream, NegotiatedTls), Error>) -> Counter {
    match shaken {
        Ok((_, agreed)) if agreed.resumed => Counter::UpstreamTlsResumed,
        Ok(_) => Counter::UpstreamTlsFull,
        Err(_) => Counter::UpstreamTlsFailed,
    }
}

/// Connects a socket.
async fn socket(
    reach: Reach<'_>,
    settings: &ConnectSettings,
    counts: &Rc<Counts>,
) -> Result<(Stream, ConnectionInfo), Error> {
    let failed = |error: io::Error| connect_failed(error, counts);
    let mut opened = ConnectTimes::now();
    let (stream, remote) = match reach.address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(socket_path(path))
                .await
                .map_err(failed)?;
            (Stream::Unix(stream), reach.address.clone())
        }
        Address::Ip(_) | Address::Name { .. } => {
            let (stream, remote) =
                first_to_connect(&reach.candidates(), settings.source, counts).await?;
            stream.set_nodelay(true).map_err(failed)?;
            if let Some(keepalive) = settings.tcp_keepalive {
                set_keepalive(&keepalive, &stream).map_err(failed)?;
            }
            (Stream::Tcp(stream), Address::Ip(remote))
        }
    };
    opened.connects();
    let ends = ConnectionInfo {
        local: stream.local_address(),
        remote,
        tls: None,
        opened,
    };
    Ok((stream, ends))
}

/// Returns the path in the kernel's form: an abstract name begins with a zero byte instead of `@`.
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

/// Connects to the first of these addresses that accepts.
///
/// Attempts begin in order: the next one when the previous one has failed or has taken [`NEXT_ADDRESS_DELAY`]. The
/// first to connect wins and cancels the others.
async fn first_to_connect(
    addresses: &[SocketAddr],
    source: Option<InboundSource>,
    counts: &Counts,
) -> Result<(TcpStream, SocketAddr), Error> {
    let mut rest = addresses.iter().copied();
    let mut race = Race::default();
    let mut last = None;
    loop {
        if let Some(address) = rest.next() {
            race.begin(address, source);
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

/// Connection attempts in progress; at most one per address.
#[derive(Default)]
struct Race(Vec<Pin<Box<dyn Future<Output = Finish>>>>);

/// Result of one attempt.
type Finish = io::Result<(TcpStream, SocketAddr)>;

impl Race {
    fn begin(&mut self, address: SocketAddr, source: Option<InboundSource>) {
        self.0.push(Box::pin(async move {
            let stream = match source {
                None => TcpStream::connect(address).await?,
                Some(source) => source.socket(address)?.connect(address).await?,
            };
            Ok((stream, address))
        }));
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits for the next attempt to finish; there must be one.
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
