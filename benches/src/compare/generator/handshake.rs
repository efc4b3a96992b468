//! Load of TLS handshakes: each unit is a new connection with its handshake, one request, and an orderly close.
//!
//! The request shows that the proxy has accepted the handshake, and makes proxies send session tickets that only send
//! them with their first response.

use std::cell::Cell;
use std::io;
use std::net::Ipv4Addr;

use rustls::HandshakeKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::compare::arguments::{Generate, GeneratedWork};
use crate::compare::client::{Answer, parse_response, request};
use crate::compare::failure::Failure;
use crate::compare::tls;
use crate::compare::upstream::http::SMALL_BODY;

/// Maximum size of a response, in bytes.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

const EXPECTED: Answer = Answer {
    status: 200,
    body_bytes: SMALL_BODY,
};

/// Client that opens connections repeatedly; if it resumes sessions, with the ticket from the previous connection.
pub(super) struct Caller {
    port: u16,
    connector: TlsConnector,
    resumes: bool,
    /// Whether an earlier connection has received tickets.
    has_tickets: Cell<bool>,
}

impl Caller {
    /// Creates a client without tickets.
    pub(super) fn new(wanted: &Generate) -> Result<Self, Failure> {
        let path = wanted.certificate.as_deref();
        let path = path.ok_or_else(|| Failure::new("TLS needs the certificate"))?;
        let resumes = wanted.work == GeneratedWork::Resumed;
        let config = tls::pinned_client(tls::read_certificate(path)?, resumes)?;
        Ok(Self {
            port: wanted.port,
            connector: TlsConnector::from(config),
            resumes,
            has_tickets: Cell::new(false),
        })
    }

    /// Opens one connection and sends one request on it. Returns `Ok(false)` for the first connection of a client that
    /// resumes sessions: it only fetches a session ticket and does not count.
    pub(super) async fn once(&self) -> Result<bool, String> {
        let address = (Ipv4Addr::LOCALHOST, self.port);
        let stream = TcpStream::connect(address).await.map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        let stream = self.connector.connect(tls::server_name(), stream).await;
        let mut stream = stream.map_err(text)?;
        let counts = self.judge(stream.get_ref().1)?;
        ask(&mut stream).await?;
        self.has_tickets.set(true);
        close(&mut stream).await.map_err(text)?;
        Ok(counts)
    }

    fn judge(&self, connection: &rustls::ClientConnection) -> Result<bool, String> {
        if let Some(complaint) = tls::complaint(connection) {
            return Err(complaint);
        }
        match (connection.handshake_kind(), self.resumes) {
            (Some(HandshakeKind::Full), false) | (Some(HandshakeKind::Resumed), true) => Ok(true),
            (Some(HandshakeKind::Full), true) if !self.has_tickets.get() => Ok(false),
            (kind, _) => Err(format!("handshake was {kind:?}")),
        }
    }
}

async fn ask(stream: &mut TlsStream<TcpStream>) -> Result<(), String> {
    stream.write_all(&request("/")).await.map_err(text)?;
    let mut response = Vec::with_capacity(1024);
    loop {
        match parse_response(&response).map_err(text)? {
            Some(EXPECTED) => return Ok(()),
            Some(answer) => return Err(format!("answered with {answer:?}")),
            None if response.len() > RESPONSE_BYTES_MAX => return Err("no end".to_owned()),
            None => {}
        }
        if stream.read_buf(&mut response).await.map_err(text)? == 0 {
            return Err("closed without an answer".to_owned());
        }
    }
}

/// Sends close_notify, and waits until the proxy closes the connection.
async fn close(stream: &mut TlsStream<TcpStream>) -> io::Result<()> {
    let mut rest = [0; 256];
    let mut end = stream.shutdown().await;
    while end.is_ok() {
        match stream.read(&mut rest).await {
            Ok(0) => break,
            Ok(_) => end = Err(io::ErrorKind::InvalidData.into()),
            Err(error) => end = Err(error),
        }
    }
    end.or_else(|error| match error.kind() {
        // Not every proxy says goodbye, and one that has closed already may answer ours with a reset.
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => Ok(()),
        _ => Err(error),
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
