//! HTTP/2 peer, client or server, that sends exactly the frames that a test specifies.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::DEADLINE;

/// END_STREAM flag of HEADERS and DATA.
pub const END_STREAM: u8 = 1;
/// END_HEADERS flag of HEADERS and CONTINUATION.
pub const END_HEADERS: u8 = 4;
/// PADDED flag of HEADERS and DATA.
pub const PADDED: u8 = 8;

/// Frame types.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// Client connection preface (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Header block of `GET http://a/` in HPACK: three entries of the static table, and a literal authority.
pub const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];

/// HTTP/2 frame.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// Serializes a frame.
    pub fn bytes(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    }

    /// Returns four bytes of the payload as a number.
    pub fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// Bidirectional byte stream: a socket, or TLS over one.
pub trait Wire: Read + Write + Send {}

impl<T: Read + Write + Send> Wire for T {}

/// Connection on which a test controls every frame.
pub struct Frames {
    stream: Box<dyn Wire>,
}

impl Frames {
    /// Connects, and sends the preface and empty SETTINGS.
    pub fn connect(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(PREFACE).unwrap();
        let mut this = Self::over(stream);
        this.send(SETTINGS, 0, 0, &[]);
        this
    }

    /// Wraps a connection without sending anything.
    pub fn over(stream: impl Wire + 'static) -> Self {
        Self {
            stream: Box::new(stream),
        }
    }

    /// Wraps an accepted connection, reads the client's preface, and sends SETTINGS.
    pub fn accept(mut stream: TcpStream, settings: &[u8]) -> Self {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).unwrap();
        assert!(preface.starts_with(b"PRI * HTTP/2.0"));
        let mut this = Self::over(stream);
        this.send(SETTINGS, 0, 0, settings);
        this
    }

    /// Returns the next frame of this type.
    pub fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next()?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// Sends a frame; returns `false` if the peer has closed the connection.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let frame = Frame::bytes(kind, flags, stream, payload);
        self.stream.write_all(&frame).is_ok()
    }

    /// Returns the underlying byte stream.
    pub fn stream(&mut self) -> &mut dyn Wire {
        &mut *self.stream
    }

    /// Returns the next frame; `None` when the peer closes. A reset counts as closed.
    pub fn next(&mut self) -> Option<Frame> {
        self.try_next().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the next frame; `None` when the peer closes. A reset counts as closed.
    ///
    /// # Errors
    ///
    /// When no frame arrives within the socket's timeout.
    pub fn try_next(&mut self) -> io::Result<Option<Frame>> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match self.read_frame() {
            Ok(frame) => Ok(Some(frame)),
            Err(error) => match error.kind() {
                BrokenPipe | ConnectionReset | UnexpectedEof => Ok(None),
                _ => Err(error),
            },
        }
    }

    fn read_frame(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload)?;
        Ok(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        })
    }

    /// Whether the peer closes the connection, after any frames. A reset counts as closed.
    pub fn is_closed(&mut self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}
