//! Tunnel through another proxy: opened by an HTTP/1.1 request, raw bytes afterwards.
//!
//! After a CONNECT the bytes are unframed (RFC 9110, section 9.3.6). With POST they are the chunked bodies of the
//! request and of the response.

use std::io::{self};
use std::sync::Arc;

use bytes::BytesMut;
use http::HeaderMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::stream::Stream;
use super::tunnelled::{Coding, Tunnelled};
use traffic::error::{Error, Kind};
use wire::http1::response::head::{self, ExpectedResponse, Head};

/// Maximum interim responses before the final one.
const INTERIM_MAX: usize = 32;

/// Destination and method of a tunnel.
///
/// Source: DestinationRule `tunnel`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// HTTP method that opens the tunnel.
    pub method: TunnelMethod,
    /// Host and port of the destination.
    pub authority: Arc<str>,
}

/// HTTP method that opens a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TunnelMethod {
    /// CONNECT.
    #[default]
    Connect,
    /// POST, with bodies of unknown length.
    Post,
}

impl TunnelMethod {
    /// Returns the name of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::Post => "POST",
        }
    }
}

impl Tunnel {
    /// Opens the tunnel over a connection to the proxy.
    ///
    /// # Errors
    ///
    /// [`Kind::ConnectFailed`] if the proxy does not reply with a 2xx; no byte went through the tunnel then.
    pub async fn open(&self, mut stream: Stream) -> Result<Stream, Error> {
        let failed = |error: io::Error| Error::new(Kind::ConnectFailed).with_source(error);
        let request = self.request();
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        stream.flush().await.map_err(failed)?;
        let mut input = BytesMut::new();
        let mut interim = 0;
        let head = loop {
            let head = self.head(&mut stream, &mut input).await?;
            interim += 1;
            if !head.status.is_informational() || interim > INTERIM_MAX {
                break head;
            }
        };
        if !head.status.is_success() {
            let text = format!(
                "the proxy answers {} with {}",
                self.method.as_str(),
                head.status
            );
            return Err(Error::new(Kind::ConnectFailed).with_source(text));
        }
        Ok(match self.method {
            TunnelMethod::Connect if input.is_empty() => stream,
            TunnelMethod::Connect => wrap(stream, input, Coding::None),
            TunnelMethod::Post => wrap(stream, input, Coding::Bodies(head.decoder)),
        })
    }

    fn request(&self) -> String {
        let authority = &self.authority;
        match self.method {
            TunnelMethod::Connect => {
                format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n")
            }
            TunnelMethod::Post => format!(
                "POST / HTTP/1.1\r\nhost: {authority}\r\ntransfer-encoding: chunked\r\n\r\n"
            ),
        }
    }

    async fn head(&self, stream: &mut Stream, input: &mut BytesMut) -> Result<Head, Error> {
        let asked = ExpectedResponse {
            head: false,
            upgrade: None,
        };
        loop {
            if !input.is_empty()
                && let Some(head) = head::parse(input, &mut HeaderMap::new(), &asked)?
            {
                return Ok(head);
            }
            let closed = || Error::new(Kind::ConnectFailed);
            match stream.read_buf(input).await {
                Ok(0) => return Err(closed().with_source("the proxy closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(closed().with_source(error)),
            }
        }
    }
}

fn wrap(stream: Stream, input: BytesMut, coding: Coding) -> Stream {
    Stream::Tunnelled(Box::new(Tunnelled::new(stream, input, coding)))
}
