//! A minimal HTTP/1.1 client over blocking sockets: enough to see whether a proxy answers, to hold idle
//! connections, and to notice when a changed route is in force.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use crate::compare::failure::{Failure, context};

/// How long a single response may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest response that is read.
const RESPONSE_BYTES_MAX: usize = 1024 * 1024;

/// One keep-alive connection to a proxy on this machine.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Errors
    /// When nothing listens there.
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream })
    }

    /// Asks for a path, reads the whole response and returns its status.
    ///
    /// # Errors
    /// When the connection breaks, or the response is not HTTP/1.1 that this client understands.
    pub fn get(&mut self, path: &str) -> io::Result<u16> {
        self.stream
            .write_all(format!("GET {path} HTTP/1.1\r\nhost: bench.example\r\n\r\n").as_bytes())?;
        let mut response = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            if let Some(status) = parse_response(&response)? {
                return Ok(status);
            }
            let read = self.stream.read(&mut chunk)?;
            if read == 0 || response.len() > RESPONSE_BYTES_MAX {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            response.extend_from_slice(&chunk[..read]);
        }
    }
}

/// A port of 127.0.0.1 that is free now.
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

/// The status once all of a response is there.
fn parse_response(bytes: &[u8]) -> io::Result<Option<u16>> {
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
    Ok(complete.then_some(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_complete_when_its_body_is() {
        assert_eq!(
            parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx").unwrap(),
            None
        );
        assert_eq!(
            parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy").unwrap(),
            Some(200)
        );
        assert_eq!(
            parse_response(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n").unwrap(),
            Some(404)
        );
        let chunked = b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
        assert_eq!(parse_response(&chunked[..chunked.len() - 2]).unwrap(), None);
        assert_eq!(parse_response(chunked).unwrap(), Some(503));
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
