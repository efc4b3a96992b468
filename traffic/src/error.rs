//! Error of a request: kind, origin, and whether a retry is safe.
//!
//! One type covers every failure between the head of a request and the last byte of its response.
//! `exchange::message::local_reply` turns it into a local reply; no other code checks the kind.

use std::fmt;
use std::sync::Arc;

use wire::http1::response::Malformed;

/// Underlying cause of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The upstream connection could not be made.
    ConnectFailed,
    /// The upstream connection was not made in time.
    ConnectTimeout,
    /// The body of the downstream request broke off.
    DownstreamBody,
    /// The downstream request was not complete in time.
    DownstreamTimeout,
    /// The reference to the backend is not valid.
    ///
    /// Source: `backendRefs` of the Gateway API.
    InvalidBackend,
    /// The cluster of the destination does not exist.
    NoCluster,
    /// The cluster of the destination has no available endpoint.
    NoHealthyUpstream,
    /// The destination is the address that the client dialed, which this proxy does not know.
    NoOriginalDestination,
    /// A limit on connections or pending requests was reached.
    Overflow,
    /// The timeout of the route expired.
    RequestTimeout,
    /// The timeout of one attempt expired.
    AttemptTimeout,
    /// The upstream closed the connection before a complete response head.
    UpstreamClosed,
    /// The upstream's response is not HTTP, or is malformed.
    UpstreamProtocol,
    /// The upstream refused the HTTP/2 stream and did not process it.
    UpstreamRefusedStream,
    /// The upstream reset the HTTP/2 stream.
    UpstreamReset,
}

/// Side that an error comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The downstream client.
    Downstream,
    /// This proxy.
    Internal,
    /// The upstream endpoint.
    Upstream,
}

/// Whether a retry is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Safe: nothing of the request reached the endpoint.
    Always,
    /// Safe only if the connection was reused and the request is safe to repeat: the endpoint may have closed the
    /// connection before it saw the request.
    IfConnectionReused,
    /// Unsafe: the endpoint may have processed the request.
    Never,
}

/// Reason of a transport for a failed connection: `TLS_error: ...`. Names no file and no key.
#[derive(Debug)]
struct TransportFailure(Arc<str>);

impl fmt::Display for TransportFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TransportFailure {}

/// Reason why an exchange ended early.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    origin: Origin,
    retry: Retry,
    source: Option<BoxError>,
}

impl Error {
    /// Makes an error of this kind, with the origin and retry safety that follow from it.
    pub fn new(kind: Kind) -> Self {
        let (origin, retry) = match kind {
            Kind::ConnectFailed | Kind::ConnectTimeout | Kind::UpstreamRefusedStream => {
                (Origin::Upstream, Retry::Always)
            }
            Kind::DownstreamBody | Kind::DownstreamTimeout => (Origin::Downstream, Retry::Never),
            Kind::InvalidBackend
            | Kind::NoCluster
            | Kind::NoHealthyUpstream
            | Kind::NoOriginalDestination
            | Kind::Overflow
            | Kind::RequestTimeout
            | Kind::AttemptTimeout => (Origin::Internal, Retry::Never),
            Kind::UpstreamClosed => (Origin::Upstream, Retry::IfConnectionReused),
            Kind::UpstreamProtocol | Kind::UpstreamReset => (Origin::Upstream, Retry::Never),
        };
        Self {
            kind,
            origin,
            retry,
            source: None,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the transport's reason, for the reply and the log.
    #[must_use]
    pub fn with_transport(self, text: impl Into<Arc<str>>) -> Self {
        self.with_source(TransportFailure(text.into()))
    }

    /// Reason of the transport, if it gave one.
    pub fn transport(&self) -> Option<&Arc<str>> {
        let failure: &TransportFailure = self.source.as_deref()?.downcast_ref()?;
        Some(&failure.0)
    }

    /// Copies the error, without its cause, for another request that waited for the same connection.
    #[must_use]
    pub fn for_another(&self) -> Self {
        let another = Self::new(self.kind);
        match self.transport() {
            Some(text) => another.with_transport(Arc::clone(text)),
            None => another,
        }
    }

    /// Kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Side that the error comes from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether a retry is safe.
    pub fn retry(&self) -> Retry {
        self.retry
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::ConnectFailed => "upstream connection failed",
            Kind::ConnectTimeout => "upstream connection timed out",
            Kind::DownstreamBody => "downstream body broke off",
            Kind::DownstreamTimeout => "downstream request was not complete in time",
            Kind::InvalidBackend => "reference to the backend is not valid",
            Kind::NoCluster => "destination is not known",
            Kind::NoHealthyUpstream => "no healthy upstream",
            Kind::NoOriginalDestination => "no original destination is known",
            Kind::Overflow => "upstream limit reached",
            Kind::RequestTimeout => "request timed out",
            Kind::AttemptTimeout => "attempt timed out",
            Kind::UpstreamClosed => "upstream closed the connection before a response",
            Kind::UpstreamProtocol => "upstream response is malformed",
            Kind::UpstreamRefusedStream => "upstream refused the stream",
            Kind::UpstreamReset => "upstream reset the stream",
        })
    }
}

/// An endpoint's response that is malformed.
impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::new(Kind::UpstreamProtocol).with_source(malformed.0)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
