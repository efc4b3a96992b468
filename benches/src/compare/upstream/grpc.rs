//! gRPC upstream: every unary call is answered with prepared headers, one message, and trailers with status 0.
//!
//! The server parses HTTP/2 frames but not the compressed headers in them: the response is the same for every path, and
//! its own headers use no dynamic table. It therefore needs far less CPU than a complete HTTP/2 server, so that the
//! core that it shares with the load generator is not the bottleneck. A call with an incomplete message is answered
//! with status 3 and no message.

use std::collections::{HashMap, VecDeque};
use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Path of the only method that is called.
pub const PATH: &str = "/bench.Echo/Unary";

/// Bytes of a message, in requests and responses alike.
const MESSAGE_BYTES: u8 = 128;

/// Bytes of a message with its gRPC prefix.
pub const FRAMED_BYTES: usize = MESSAGE_BYTES as usize + 5;

/// Client connection preface (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `:status: 200` and `content-type: application/grpc`, from the static table and as plain text.
const HEADERS_BLOCK: &[u8] = b"\x88\x0f\x10\x10application/grpc";

/// `grpc-status: 0` as plain text.
const TRAILERS_BLOCK: &[u8] = b"\x00\x0bgrpc-status\x010";

/// `grpc-status: 3` (invalid argument) as plain text.
const REFUSAL_BLOCK: &[u8] = b"\x00\x0bgrpc-status\x013";

/// Maximum number of concurrent streams per connection.
const STREAMS_MAX: u32 = 1024;

/// Received bytes after which the flow-control window is extended.
const CREDIT_BYTES: u32 = 32 * 1024;

const FRAME_HEAD_BYTES: usize = 9;
const FRAME_BYTES_MAX: usize = 16 * 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_CONCURRENT_STREAMS: u16 = 3;

/// Returns a protobuf message with one field of bytes, after its gRPC prefix (not compressed, and the length).
pub fn framed_message() -> Vec<u8> {
    let mut framed = vec![0, 0, 0, 0, MESSAGE_BYTES, 0x0a, MESSAGE_BYTES - 2];
    framed.resize(FRAMED_BYTES, b'x');
    framed
}

/// Serves one connection until it ends.
///
/// # Errors
/// When the connection breaks, or the peer does not speak HTTP/2 as proxies do.
pub async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await?;
    if preface != PREFACE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut calls = Calls::new();
    let mut unread = Vec::with_capacity(4 * FRAME_BYTES_MAX);
    loop {
        if !calls.out.is_empty() {
            stream.write_all(&calls.out).await?;
            calls.out.clear();
        }
        if stream.read_buf(&mut unread).await? == 0 {
            return Ok(());
        }
        let mut read = 0;
        while let Some(frame) = Frame::parse(&unread[read..])? {
            read += FRAME_HEAD_BYTES + frame.payload.len();
            if !calls.take(&frame)? {
                return Ok(());
            }
        }
        unread.drain(..read);
    }
}

struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Parses the first frame; `None` while it is incomplete.
    fn parse(bytes: &'a [u8]) -> io::Result<Option<Self>> {
        let Some((head, rest)) = bytes.split_first_chunk::<FRAME_HEAD_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, kind, flags, stream @ ..] = *head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(rest.get(..length).map(|payload| Self {
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
            payload,
        }))
    }

    fn ends_stream(&self) -> bool {
        self.flags & END_STREAM != 0
    }

    fn is_ack(&self) -> bool {
        self.flags & ACK != 0
    }
}

/// Calls of one connection.
struct Calls {
    /// Bytes to send.
    out: Vec<u8>,
    /// Bytes of messages received so far, by stream of an incomplete call.
    arrived: HashMap<u32, usize>,
    /// Complete calls that wait for room in the peer's flow-control window.
    waiting: VecDeque<u32>,
    /// Flow-control window of the peer, in bytes.
    window: i64,
    /// Bytes received since the last window update.
    used: u32,
    /// Response frames: headers, message and trailers.
    reply: [Vec<u8>; 3],
    refusal: [Vec<u8>; 2],
}

impl Calls {
    fn new() -> Self {
        let limit = [
            &MAX_CONCURRENT_STREAMS.to_be_bytes()[..],
            &STREAMS_MAX.to_be_bytes(),
        ];
        let headers = frame(HEADERS, END_HEADERS, HEADERS_BLOCK);
        let last = END_HEADERS | END_STREAM;
        Self {
            out: frame(SETTINGS, 0, &limit.concat()),
            arrived: HashMap::new(),
            waiting: VecDeque::new(),
            window: 65_535,
            used: 0,
            reply: [
                headers.clone(),
                frame(DATA, 0, &framed_message()),
                frame(HEADERS, last, TRAILERS_BLOCK),
            ],
            refusal: [headers, frame(HEADERS, last, REFUSAL_BLOCK)],
        }
    }

    /// Processes a frame and adds the response; returns `false` when the peer closes the connection.
    fn take(&mut self, frame: &Frame<'_>) -> io::Result<bool> {
        match frame.kind {
            HEADERS if frame.ends_stream() => self.finish(frame.stream),
            HEADERS => {
                self.arrived.entry(frame.stream).or_default();
            }
            DATA => self.data(frame),
            RESET => {
                self.arrived.remove(&frame.stream);
                self.waiting.retain(|stream| *stream != frame.stream);
            }
            SETTINGS if !frame.is_ack() => {
                check_settings(frame.payload)?;
                self.out.extend_from_slice(&self::frame(SETTINGS, ACK, &[]));
            }
            PING if !frame.is_ack() => {
                let pong = self::frame(PING, ACK, frame.payload);
                self.out.extend_from_slice(&pong);
            }
            WINDOW_UPDATE if frame.stream == 0 => {
                let more = frame.payload.try_into().map(u32::from_be_bytes);
                self.window += i64::from(more.map_err(|_| io::ErrorKind::InvalidData)?);
                while let Some(stream) = self.room().then(|| self.waiting.pop_front()).flatten() {
                    self.reply(stream);
                }
            }
            GO_AWAY => return Ok(!self.arrived.is_empty() || !self.out.is_empty()),
            _ => {}
        }
        Ok(true)
    }

    fn data(&mut self, frame: &Frame<'_>) {
        // Counted with padding, which no peer uses; the credit is due for all of it.
        let bytes = frame.payload.len();
        *self.arrived.entry(frame.stream).or_default() += bytes;
        self.used += u32::try_from(bytes).unwrap_or(u32::MAX);
        if self.used >= CREDIT_BYTES {
            let credit = self::frame(WINDOW_UPDATE, 0, &self.used.to_be_bytes());
            self.out.extend_from_slice(&credit);
            self.used = 0;
        }
        if frame.ends_stream() {
            self.finish(frame.stream);
        }
    }

    /// Answers a stream whose request is complete.
    fn finish(&mut self, stream: u32) {
        if self.arrived.remove(&stream).unwrap_or_default() < FRAMED_BYTES {
            append(&mut self.out, &self.refusal, stream);
        } else if self.room() {
            self.reply(stream);
        } else {
            self.waiting.push_back(stream);
        }
    }

    fn room(&self) -> bool {
        self.window >= FRAMED_BYTES as i64
    }

    fn reply(&mut self, stream: u32) {
        self.window -= FRAMED_BYTES as i64;
        append(&mut self.out, &self.reply, stream);
    }
}

/// Returns a frame of stream 0; [`append`] sets another stream.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let [_, a, b, c] = length.to_be_bytes();
    [&[a, b, c, kind, flags, 0, 0, 0, 0], payload].concat()
}

fn append(out: &mut Vec<u8>, frames: &[Vec<u8>], stream: u32) {
    for frame in frames {
        let start = out.len();
        out.extend_from_slice(frame);
        out[start + 5..start + FRAME_HEAD_BYTES].copy_from_slice(&stream.to_be_bytes());
    }
}

/// Checks that the initial window has room for a whole message, since the windows of streams are not tracked.
fn check_settings(payload: &[u8]) -> io::Result<()> {
    for setting in payload.chunks_exact(6) {
        let (name, value) = setting.split_at(2);
        let too_small = value < &(FRAMED_BYTES as u32).to_be_bytes()[..];
        if name == INITIAL_WINDOW_SIZE.to_be_bytes() && too_small {
            return Err(io::ErrorKind::Unsupported.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
