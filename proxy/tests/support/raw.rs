//! HTTP/1 client that sends exactly the bytes that a test specifies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::DEADLINE;

/// Connection on which a test controls every byte.
pub struct Raw {
    reader: BufReader<TcpStream>,
}

/// Response as received.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// Header lines as received.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Reply {
    /// Whether there is this header line, with its name in lower case.
    pub fn has(&self, line: &str) -> bool {
        self.headers.iter().any(|header| header == line)
    }
}

impl Raw {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    /// Sends bytes; ignores errors when the peer has closed the connection.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.reader.get_mut().write_all(bytes.as_ref());
        self
    }

    /// Returns the local address.
    pub fn local(&self) -> SocketAddr {
        self.reader.get_ref().local_addr().unwrap()
    }

    /// Returns a handle of the socket.
    pub fn stream(&self) -> TcpStream {
        self.reader.get_ref().try_clone().unwrap()
    }

    /// Shuts down the sending direction.
    pub fn finish(&mut self) {
        self.reader.get_mut().shutdown(Shutdown::Write).unwrap();
    }

    /// Reads one response with a content length, or without a body for 1xx, 204 and 304.
    pub fn reply(&mut self) -> Reply {
        self.try_reply().unwrap().expect("a response, not the end")
    }

    /// Reads one response; returns `None` if the peer closed the connection instead.
    pub fn try_reply(&mut self) -> io::Result<Option<Reply>> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let status = line.split(' ').nth(1).unwrap().trim().parse().unwrap();
        let mut headers = Vec::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            headers.push(line);
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        Ok(Some(Reply {
            status,
            headers,
            body,
        }))
    }

    /// Reads exactly this many bytes.
    pub fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reads this many bytes, or fewer if the peer closes the connection.
    pub fn try_read(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes).ok().map(|()| bytes)
    }

    /// Whether the peer closes the connection without sending more bytes. A reset counts as closed.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.reader.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// Request for `/` without a body.
pub const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
