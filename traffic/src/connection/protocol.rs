//! HTTP version of the connections to an endpoint.

/// HTTP version of the connections to an endpoint.
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
    /// Returns the name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}
