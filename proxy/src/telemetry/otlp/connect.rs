//! Connections to a collector: HTTP/1.1 for OTLP/HTTP, HTTP/2 for OTLP/gRPC, with or without TLS.

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, body};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio_rustls::TlsConnector;

use super::format::OtlpProtocol;
use super::settings::OtlpEndpoint;

/// Makes the TLS settings of a connection, from files as they are now.
pub type MakeTls = Box<dyn Fn() -> Result<TlsConnector, String> + Send + Sync>;

/// A connection that carries requests.
pub(super) enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    /// Connects; the connection is driven by a task of its own.
    pub(super) async fn open(endpoint: &OtlpEndpoint, tls: &MakeTls) -> Result<Self, String> {
        let connector = match endpoint.is_tls {
            true => Some(tls()?),
            false => None,
        };
        let place = endpoint.authority();
        let failed = |error: &dyn std::fmt::Display| format!("{place}: {error}");
        let stream = grpc_client::connect(&endpoint.host, endpoint.port, connector.as_ref());
        let io = TokioIo::new(stream.await.map_err(|error| failed(&error))?);
        Ok(match endpoint.protocol {
            OtlpProtocol::Http | OtlpProtocol::Zipkin => {
                let opened = http1::handshake(io).await;
                let (sender, connection) = opened.map_err(|error| failed(&error))?;
                tokio::spawn(connection);
                Self::Http1(sender)
            }
            OtlpProtocol::Grpc => {
                let opened = http2::handshake(TokioExecutor::new(), io).await;
                let (sender, connection) = opened.map_err(|error| failed(&error))?;
                tokio::spawn(connection);
                Self::Http2(sender)
            }
        })
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// Those of the connection; a canceled request was not sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<body::Incoming>, hyper::Error> {
        match self {
            Self::Http1(sender) => sender.send_request(request).await,
            Self::Http2(sender) => sender.send_request(request).await,
        }
    }

    /// Whether it can carry another request now.
    pub(super) fn is_usable(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_ready(),
            Self::Http2(sender) => sender.is_ready(),
        }
    }
}
