//! A minimal HTTP/1.1 client over blocking sockets: enough to see whether a proxy answers, to hold idle
//! connections, and to notice when a changed route is in effect.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::compare::failure::{Failure, context};
use crate::compare::tls;

/// Timeout of a single response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum response size, in bytes.
const RESPONSE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Keep-alive connection to a proxy on this machine.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
}

/// Status and body size of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Bytes in the body, including chunk framing if the response is chunked.
    pub body_bytes: usize,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Connection {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Errors
    /// When nothing listens there.
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = Stream::Plain(connect(port)?);
        Ok(Self { stream })
    }

    /// Connects to a port of 127.0.0.1 with TLS, and completes the handshake.
    ///
    /// # Errors
    /// When nothing listens there, or the handshake fails.
    pub fn open_tls(port: u16, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let connection = ClientConnection::new(Arc::clone(config), tls::server_name());
        let mut connection = connection.map_err(io::Error::other)?;
        let mut socket = connect(port)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        if let Some(complaint) = tls::complaint(&connection) {
            return Err(io::Error::other(complaint));
        }
        let stream = Stream::Tls(Box::new(StreamOwned::new(connection, socket)));
        Ok(Self { stream })
    }

    /// Sends a GET request, reads the whole response and returns its status.
    ///
    /// # Errors
    /// When the connection breaks, or the response is not HTTP/1.1 that this client understands.
    pub fn get(&mut self, path: &str) -> io::Result<u16> {
        Ok(self.ask(path)?.status)
    }

    /// Sends a GET request, reads the whole response and returns its status and body size.
    ///
    /// # Errors
    /// When the connection breaks, or the response is not HTTP/1.1 that this client understands.
    pub fn ask(&mut self, path: &str) -> io::Result<Answer> {
        self.ask_with(path, &[])
    }

    /// Sends a GET request with additional headers; see [`Connection::ask`].
    ///
    /// # Errors
    /// When the connection breaks, or the response is not HTTP/1.1 that this client understands.
    pub fn ask_with(&mut self, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        let stream: &mut dyn ReadWrite = match &mut self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.as_mut(),
        };
        stream.write_all(&request_with(path, headers))?;
        let mut response = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            if let Some(answer) = parse_response(&response)? {
                return Ok(answer);
            }
            let read = stream.read(&mut chunk)?;
            if read == 0 || response.len() > RESPONSE_BYTES_MAX {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            response.extend_from_slice(&chunk[..read]);
        }
    }
}

trait ReadWrite: io::Read + io::Write {}

impl<T: io::Read + io::Write> ReadWrite for T {}

/// Connects to a port of 127.0.0.1, with a timeout on every blocking operation.
///
/// # Errors
/// When nothing listens there.
pub fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Returns the head of a GET request without a body.
pub fn request(path: &str) -> Vec<u8> {
    request_with(path, &[])
}

fn request_with(path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", tls::HOST);
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// Returns a free port of 127.0.0.1.
///
/// # Errors
/// When the system has none.
pub fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(context("no free port"))?;
    Ok(listener
        .local_addr()
        .map_err(context("no free port"))?
        .port())
}

/// Parses a response. Returns `None` while it is incomplete.
///
/// # Errors
/// When the bytes are not a supported HTTP/1.1 response.
pub fn parse_response(bytes: &[u8]) -> io::Result<Option<Answer>> {
    let Some(head_end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let head = std::str::from_utf8(&bytes[..head_end]).map_err(|_| invalid())?;
    let body = &bytes[head_end + 4..];
    let status = head
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(invalid)?;
    let header = |wanted: &str| {
        let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
    };
    let complete = match (header("content-length"), header("transfer-encoding")) {
        (Some(length), _) => body.len() >= length.parse().map_err(|_| invalid())?,
        (None, Some(_)) => body.ends_with(b"0\r\n\r\n"),
        (None, None) => return Err(invalid()),
    };
    let body_bytes = body.len();
    Ok(complete.then_some(Answer { status, body_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body_bytes: usize) -> Option<Answer> {
        Some(Answer { status, body_bytes })
    }

    #[test]
    fn response_is_complete_when_its_body_is() {
        assert_eq!(
            parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx").unwrap(),
            None
        );
        assert_eq!(
            parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy").unwrap(),
            answer(200, 2)
        );
        assert_eq!(
            parse_response(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n").unwrap(),
            answer(404, 0)
        );
        let chunked = b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
        assert_eq!(parse_response(&chunked[..chunked.len() - 2]).unwrap(), None);
        assert_eq!(parse_response(chunked).unwrap(), answer(503, 11));
    }

    #[test]
    fn response_without_a_length_is_refused() {
        assert!(parse_response(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(parse_response(b"nonsense\r\n\r\n").is_err());
    }

    #[test]
    fn free_ports_can_be_listened_on() {
        let port = free_port().unwrap();
        assert_ne!(port, 0);
    }
}
