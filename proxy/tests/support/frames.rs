//! An HTTP/2 peer, client or server, that sends exactly the frames it is told to.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::DEADLINE;

/// Flags of HEADERS.
pub const END_STREAM: u8 = 1;
/// Flag of HEADERS and CONTINUATION.
pub const END_HEADERS: u8 = 4;
/// Flag of HEADERS and DATA.
pub const PADDED: u8 = 8;

/// Types of frames.
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

/// What a client sends first.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `GET http://a/` in HPACK: three entries of the static table, and a literal authority.
pub const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];

/// A frame.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame as it is sent.
    pub fn bytes(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    }

    /// Four bytes of the payload as a number.
    pub fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// Bytes both ways: a socket, or TLS over one.
pub trait Wire: Read + Write + Send {}

impl<T: Read + Write + Send> Wire for T {}

/// A connection whose every frame is ours.
pub struct Frames {
    stream: Box<dyn Wire>,
}

impl Frames {
    /// Connects, sends the preface and empty settings.
    pub fn connect(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(PREFACE).unwrap();
        let mut this = Self::over(stream);
        this.send(SETTINGS, 0, 0, &[]);
        this
    }

    /// A connection that nothing was sent on.
    pub fn over(stream: impl Wire + 'static) -> Self {
        Self {
            stream: Box::new(stream),
        }
    }

    /// Takes a connection, reads the client's preface, and sends settings.
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

    /// The next frame of this type.
    pub fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next()?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// Sends a frame; `false` when the peer has closed.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let frame = Frame::bytes(kind, flags, stream, payload);
        self.stream.write_all(&frame).is_ok()
    }

    /// The bytes below.
    pub fn stream(&mut self) -> &mut dyn Wire {
        &mut *self.stream
    }

    /// The next frame; `None` when the peer closes. A reset counts as closed.
    pub fn next(&mut self) -> Option<Frame> {
        self.try_next().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The next frame; `None` when the peer closes. A reset counts as closed.
    ///
    /// # Errors
    ///
    /// None within the socket's timeout.
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

    /// Whether the peer closes, whatever it says before. A reset counts as closed.
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
