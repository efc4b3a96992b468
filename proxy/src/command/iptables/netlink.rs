//! Netlink client: builds messages to the kernel, sends them, and waits for their acknowledgment (netlink(7), RFC
//! 3549).

use std::io::{self, Read};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
/// Flag: fail if the object exists.
pub(crate) const EXCLUSIVE: u16 = 0x200;
/// Flag: create the object if it does not exist.
pub(crate) const CREATE: u16 = 0x400;
/// Flag: add the object at the end.
pub(crate) const APPEND: u16 = 0x800;

/// Flag of an attribute that contains attributes.
const NESTED: u16 = 0x8000;

/// Type of a message that reports the result of another one.
const ERROR: u16 = 2;

const HEADER: usize = 16;

/// Timeout for an answer of the kernel.
const PATIENCE: Duration = Duration::from_secs(30);

/// Subsystem of the kernel that speaks netlink.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subsystem {
    /// Addresses, routes and routing rules.
    Route,
    /// Netfilter.
    Netfilter,
}

/// Message that is being built.
#[derive(Clone, Debug)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Starts a message with a header of the subsystem.
    pub(crate) fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | REQUEST).to_ne_bytes());
        bytes.extend(header);
        Self(bytes)
    }

    /// Adds an attribute.
    pub(crate) fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.attribute(kind, |message| message.0.extend(value));
    }

    /// Adds a number in network byte order.
    pub(crate) fn number(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// Adds a text with a terminating zero.
    pub(crate) fn text(&mut self, kind: u16, value: &str) {
        self.bytes(kind, &[value.as_bytes(), b"\0"].concat());
    }

    /// Adds an attribute that contains attributes.
    pub(crate) fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Self)) {
        self.attribute(kind | NESTED, write);
    }

    fn attribute(&mut self, kind: u16, write: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        write(self);
        // our attributes are far smaller than 64 KiB
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn request_ack(&mut self) {
        let flags = u16::from_ne_bytes([self.0[6], self.0[7]]) | ACK;
        self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// Sends messages at once, and waits until the one with index `last` has succeeded.
///
/// # Errors
///
/// Returns the index of the first message that failed, with the kernel's reason.
pub(crate) fn send(
    subsystem: Subsystem,
    messages: Vec<Message>,
    last: usize,
) -> Result<(), (usize, io::Error)> {
    let sent = |error| (0, error);
    let socket = open(subsystem).map_err(sent)?;
    let mut bytes = Vec::new();
    for (index, mut message) in messages.into_iter().enumerate() {
        if index == last {
            message.request_ack();
        }
        bytes.extend(message.finish(u32::try_from(index).unwrap_or(u32::MAX)));
    }
    socket.send(&bytes).map_err(sent)?;
    wait(&socket, last)
}

fn open(subsystem: Subsystem) -> io::Result<Socket> {
    let protocol = match subsystem {
        Subsystem::Route => libc::NETLINK_ROUTE,
        Subsystem::Netfilter => libc::NETLINK_NETFILTER,
    };
    let domain = Domain::from(libc::AF_NETLINK);
    let kind = Type::RAW.cloexec();
    let socket = Socket::new(domain, kind, Some(Protocol::from(protocol)))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // a long list of ports is one message to the socket; the kernel reduces this to its limit
    socket.set_send_buffer_size(4 << 20)?;
    Ok(socket)
}

fn wait(mut socket: &Socket, last: usize) -> Result<(), (usize, io::Error)> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = socket.read(&mut buffer).map_err(|error| (last, error))?;
        let mut rest = &buffer[..length];
        while let Some((message, after)) = next(rest) {
            if let Some((index, error)) = ended(message) {
                match error {
                    0 if index >= last => return Ok(()),
                    0 => {}
                    error => return Err((index, io::Error::from_raw_os_error(error))),
                }
            }
            rest = after;
        }
    }
}

/// Splits the first message from the rest.
fn next(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    if length < HEADER || length > bytes.len() {
        return None;
    }
    let after = length.next_multiple_of(4).min(bytes.len());
    Some((&bytes[..length], &bytes[after..]))
}

/// Returns the index of the message that a result is for, and its error number; `None` for any other message.
fn ended(message: &[u8]) -> Option<(usize, i32)> {
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    if kind != ERROR {
        return None;
    }
    let sequence = u32::from_ne_bytes(message.get(8..12)?.try_into().ok()?);
    let error = i32::from_ne_bytes(message.get(HEADER..HEADER + 4)?.try_into().ok()?);
    Some((usize::try_from(sequence).ok()?, error.saturating_neg()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested() {
        let mut message = Message::new(7, CREATE, &[1, 0, 0, 0]);
        message.nested(2, |inner| inner.text(1, "abcd"));
        let bytes = message.finish(9);
        assert_eq!(bytes.len(), HEADER + 4 + 4 + 12);
        assert_eq!(bytes[0], u8::try_from(bytes.len()).unwrap());
        assert_eq!(&bytes[HEADER + 4..HEADER + 8], &[16, 0, 2, 0x80]);
        assert_eq!(&bytes[HEADER + 8..], b"\x09\0\x01\0abcd\0\0\0\0");
    }

    #[test]
    fn malformed_answers_end_the_reading() {
        assert!(next(&[]).is_none());
        assert!(next(&[3, 0, 0, 0]).is_none());
        assert!(next(&[200, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert_eq!(ended(&[16, 0, 0, 0, 2, 0]), None);
    }

    #[test]
    fn the_kernel_answers() {
        // no table of this name: the request needs no rights in the test's network namespace
        let mut ask = Message::new(0x0a01, 0, &[2, 0, 0, 0]);
        ask.text(1, "strait_no_such_table");
        let error = send(Subsystem::Netfilter, vec![ask], 0).unwrap_err();
        assert_eq!(error.0, 0);
    }
}
