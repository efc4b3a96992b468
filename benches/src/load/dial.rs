//! Connections to the server under test.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::outcome::{FailureClass, Fault};

/// TLS settings of connections.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Client configuration: offered protocols and trusted certificates.
    pub config: Arc<ClientConfig>,
    /// Name that the server's certificate must have.
    pub name: ServerName<'static>,
}

/// Destination of connections.
#[derive(Clone)]
pub enum Dialer {
    /// Network address.
    Network {
        /// Address and port.
        address: SocketAddr,
        /// TLS settings; `None` for plain text.
        tls: Option<Tls>,
    },
    /// Server in the same test.
    #[cfg(test)]
    Memory(std::rc::Rc<dyn Fn() -> Option<tokio::io::DuplexStream>>),
}

impl Dialer {
    /// Opens a connection.
    ///
    /// # Errors
    /// When the connection is not accepted, or the handshake fails.
    pub async fn dial(&self) -> Result<Stream, Fault> {
        let (address, tls) = match self {
            Self::Network { address, tls } => (*address, tls),
            #[cfg(test)]
            Self::Memory(open) => {
                let refused = || Fault::new(FailureClass::Connect, "refused");
                return open().map(Stream::Memory).ok_or_else(refused);
            }
        };
        let failed = |error: io::Error| Fault::new(FailureClass::Connect, error);
        let stream = TcpStream::connect(address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let Some(tls) = tls else {
            return Ok(Stream::Plain(stream));
        };
        let connector = TlsConnector::from(Arc::clone(&tls.config));
        let secured = connector.connect(tls.name.clone(), stream).await;
        let secured = secured.map_err(|error| Fault::new(FailureClass::Tls, error))?;
        let chosen = secured.get_ref().1.alpn_protocol();
        let offered = tls.config.alpn_protocols.first().map(Vec::as_slice);
        // a server of HTTP/1.1 may ignore ALPN
        if chosen != offered && (chosen.is_some() || offered == Some(b"h2")) {
            let chosen = chosen.map(String::from_utf8_lossy);
            let reason = format!("ALPN chose {}", chosen.as_deref().unwrap_or("nothing"));
            return Err(Fault::new(FailureClass::Tls, reason));
        }
        Ok(Stream::Tls(Box::new(secured)))
    }
}

/// Connection with or without TLS.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
    /// In-memory pipe.
    #[cfg(test)]
    Memory(tokio::io::DuplexStream),
}

trait Io: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Io for T {}

impl Stream {
    fn io(self: Pin<&mut Self>) -> Pin<&mut dyn Io> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream),
            Self::Tls(stream) => Pin::new(stream.as_mut()),
            #[cfg(test)]
            Self::Memory(stream) => Pin::new(stream),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(cx)
    }
}
