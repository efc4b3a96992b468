//! The error of a request: kind, origin, and whether it may be tried again.
//!
//! One type for everything that can go wrong between a request's head and the last byte of its response.
//! `exchange::message::local_reply` turns it into a local reply; nothing else looks at the kind.

use std::fmt;
use std::sync::Arc;

/// Any underlying cause.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The upstream connection could not be made.
    ConnectFailed,
    /// The upstream connection was not made in time.
    ConnectTimeout,
    /// The downstream peer's body broke off.
    DownstreamBody,
    /// The destination's cluster does not exist.
    NoCluster,
    /// The destination's cluster has no endpoint that may be used.
    NoHealthyUpstream,
    /// The destination is where the client dialled, and this proxy does not know where that was.
    NoOriginalDestination,
    /// A limit on connections or pending requests was reached.
    Overflow,
    /// The route's timeout ran out.
    RequestTimeout,
    /// The time for one attempt ran out.
    AttemptTimeout,
    /// The upstream closed the connection before a complete response head.
    UpstreamClosed,
    /// The upstream's response is not HTTP, or is malformed.
    UpstreamProtocol,
    /// The upstream refused the HTTP/2 stream unprocessed.
    UpstreamRefusedStream,
    /// The upstream reset the HTTP/2 stream.
    UpstreamReset,
}

/// Which side an error came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The peer that calls us.
    Downstream,
    /// This proxy.
    Internal,
    /// The endpoint that we call.
    Upstream,
}

/// Whether sending the request again is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Nothing of the request reached the endpoint.
    Always,
    /// Only if the connection was a reused one and the request is safe to repeat: the endpoint may have closed it
    /// before it saw the request.
    IfConnectionReused,
    /// The endpoint may have acted on the request.
    Never,
}

/// What a transport says of a connection that could not be made: `TLS_error: ...`. Names no file and no key.
#[derive(Debug)]
struct TransportFailure(Arc<str>);

impl fmt::Display for TransportFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TransportFailure {}

/// Why an exchange could not go on.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    origin: Origin,
    retry: Retry,
    source: Option<BoxError>,
}

impl Error {
    /// An error of this kind, with the origin and the retry safety that follow from it.
    pub fn new(kind: Kind) -> Self {
        let (origin, retry) = match kind {
            Kind::ConnectFailed | Kind::ConnectTimeout | Kind::UpstreamRefusedStream => {
                (Origin::Upstream, Retry::Always)
            }
            Kind::DownstreamBody => (Origin::Downstream, Retry::Never),
            Kind::NoCluster
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

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with the transport's reason, for the reply and the log.
    #[must_use]
    pub fn with_transport(self, text: impl Into<Arc<str>>) -> Self {
        self.with_source(TransportFailure(text.into()))
    }

    /// What the transport says of it, if it does.
    pub fn transport(&self) -> Option<&Arc<str>> {
        let failure: &TransportFailure = self.source.as_deref()?.downcast_ref()?;
        Some(&failure.0)
    }

    /// The same for another who waited for the same, without its cause.
    #[must_use]
    pub fn for_another(&self) -> Self {
        let another = Self::new(self.kind);
        match self.transport() {
            Some(text) => another.with_transport(Arc::clone(text)),
            None => another,
        }
    }

    /// What went wrong.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Which side it came from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether sending the request again is safe.
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
