//! TLS client hello, as far as it selects a server: name, protocols, versions.
//!
//! Pure and non-consuming: the parser is called with all bytes received so far, and again when there are more. Bounded
//! by [`HELLO_BYTES_MAX`]. Strict about the lengths of the fields that it reads, and about the name; everything else is
//! left to the TLS server that terminates the connection, so that old and new clients pass alike.

use std::borrow::Cow;

/// Maximum bytes of a client hello with its record headers; beyond it, the connection is closed. The limit of rustls is
/// higher, known clients send less than a tenth of this, and post-quantum key shares take about 1.2 KiB.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

/// Parsed fields of a client hello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// Requested server name (RFC 6066, section 3), in lower case and without a trailing dot.
    pub server_name: Option<Box<str>>,
    /// Offered application protocols (RFC 7301) in wire format: each after its length.
    alpn: Box<[u8]>,
    /// Newest offered version, as on the wire: 0x0303 is TLS 1.2, 0x0304 TLS 1.3.
    pub version: u16,
}

impl ClientHello {
    /// Returns the offered application protocols, in the client's order.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = Reader(&self.alpn);
        std::iter::from_fn(move || rest.prefixed8().ok())
    }
}

/// Reason that the first bytes of a connection are no valid client hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HelloError {
    /// A length points beyond the end.
    Malformed,
    /// Invalid server name: empty, too long, or with invalid bytes.
    Name,
    /// Another TLS message.
    NotHello,
    /// No TLS.
    NotTls,
    /// Longer than [`HELLO_BYTES_MAX`].
    TooLarge,
}

/// Parses a client hello from the first bytes of a connection; `None` while more of them are needed.
///
/// # Errors
///
/// If no further bytes can make it valid.
pub fn parse(bytes: &[u8]) -> Result<Option<ClientHello>, HelloError> {
    // Bytes beyond the limit are ignored, so that the result does not depend on when this is called.
    let bytes = &bytes[..bytes.len().min(HELLO_BYTES_MAX + 1)];
    let Some(message) = message(bytes)? else {
        return Ok(None);
    };
    body(&message).map(Some)
}

/// Content type of a handshake record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

/// Message type of a client hello (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;

/// Maximum bytes of a record's content.
const RECORD_BYTES_MAX: usize = 16 * 1024;

/// Returns the message without its header; joined if it spans several records.
fn message(bytes: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HelloError> {
    let mut whole: Cow<'_, [u8]> = Cow::Borrowed(&[]);
    let mut rest = bytes;
    loop {
        match rest {
            [] => {}
            [HANDSHAKE] => {}
            [HANDSHAKE, 3, ..] => {}
            // an alert or another record in the middle of a message
            _ if !whole.is_empty() => return Err(HelloError::Malformed),
            _ => return Err(HelloError::NotTls),
        }
        let (Some(header), [_, _, _, high, low, ..]) = (rest.get(..5), rest) else {
            return more(bytes);
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if length == 0 || length > RECORD_BYTES_MAX {
            return Err(HelloError::Malformed);
        }
        let content = &rest[header.len()..];
        let here = &content[..length.min(content.len())];
        if whole.is_empty() {
            whole = Cow::Borrowed(here);
        } else {
            whole.to_mut().extend_from_slice(here);
        }
        if let Some(needed) = needed(&whole)?
            && whole.len() >= needed
        {
            return Ok(Some(tail(whole, needed)));
        }
        if here.len() < length {
            return more(bytes);
        }
        rest = &content[length..];
    }
}

/// Returns the length of a message with its header, once that is received.
fn needed(message: &[u8]) -> Result<Option<usize>, HelloError> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(HelloError::NotHello);
    }
    let [_, a, b, c, ..] = message else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, *a, *b, *c]) as usize + 4;
    if length > HELLO_BYTES_MAX {
        return Err(HelloError::TooLarge);
    }
    Ok(Some(length))
}

fn tail(whole: Cow<'_, [u8]>, end: usize) -> Cow<'_, [u8]> {
    match whole {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[4..end]),
        Cow::Owned(mut bytes) => {
            bytes.truncate(end);
            bytes.drain(..4);
            Cow::Owned(bytes)
        }
    }
}

fn more<T>(bytes: &[u8]) -> Result<Option<T>, HelloError> {
    if bytes.len() > HELLO_BYTES_MAX {
        return Err(HelloError::TooLarge);
    }
    Ok(None)
}

/// Numbers of the extensions that are read.
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const ALPN: u16 = 16;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
}

/// Parses the fields of the message (RFC 8446, section 4.1.2). Clients without extensions end after the compression
/// methods.
fn body(message: &[u8]) -> Result<ClientHello, HelloError> {
    let mut reader = Reader(message);
    let mut hello = ClientHello {
        version: reader.u16()?,
        ..ClientHello::default()
    };
    reader.take(32)?; // random
    reader.prefixed8()?; // session
    reader.prefixed16()?; // cipher suites
    reader.prefixed8()?; // compression methods
    if reader.0.is_empty() {
        return Ok(hello);
    }
    let mut extensions = Reader(reader.prefixed16()?);
    let mut seen = [false; 3];
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let data = Reader(extensions.prefixed16()?);
        let index = match kind {
            extension::SERVER_NAME => 0,
            extension::ALPN => 1,
            extension::SUPPORTED_VERSIONS => 2,
            _ => continue,
        };
        // Duplicate extension (RFC 8446, section 4.2): either could be the wrong one.
        if std::mem::replace(&mut seen[index], true) {
            return Err(HelloError::Malformed);
        }
        match kind {
            extension::SERVER_NAME => read_name(&mut hello, data)?,
            extension::ALPN => read_alpn(&mut hello, data)?,
            _ => read_versions(&mut hello, data)?,
        }
    }
    Ok(hello)
}

/// Reads a list of names by type. Type 0 is a host name; no other type is defined.
fn read_name(hello: &mut ClientHello, mut data: Reader<'_>) -> Result<(), HelloError> {
    let mut names = Reader(data.prefixed16()?);
    while !names.0.is_empty() {
        let kind = names.take(1)?;
        let name = names.prefixed16()?;
        if kind == [0] && hello.server_name.is_none() {
            hello.server_name = Some(host_name(name)?);
        }
    }
    Ok(())
}

/// Maximum bytes of a DNS name.
const NAME_BYTES_MAX: usize = 255;

/// Parses a name; rejects bytes that could end it early in a log or a lookup.
fn host_name(bytes: &[u8]) -> Result<Box<str>, HelloError> {
    let bytes = bytes.strip_suffix(b".").unwrap_or(bytes);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:".contains(byte);
    if bytes.is_empty() || bytes.len() > NAME_BYTES_MAX || !bytes.iter().all(plain) {
        return Err(HelloError::Name);
    }
    let name = std::str::from_utf8(bytes).map_err(|_| HelloError::Name)?;
    Ok(name.to_ascii_lowercase().into())
}

fn read_alpn(hello: &mut ClientHello, mut data: Reader<'_>) -> Result<(), HelloError> {
    let list = data.prefixed16()?;
    let mut names = Reader(list);
    while !names.0.is_empty() {
        names.prefixed8()?;
    }
    hello.alpn = list.into();
    Ok(())
}

/// Reads the versions that a client of TLS 1.3 offers; keeps the newest, ignoring the values that only probe servers
/// (GREASE, RFC 8701).
fn read_versions(hello: &mut ClientHello, mut data: Reader<'_>) -> Result<(), HelloError> {
    let mut versions = Reader(data.prefixed8()?);
    while !versions.0.is_empty() {
        let version = versions.u16()?;
        if version >> 8 == 3 {
            hello.version = hello.version.max(version);
        }
    }
    Ok(())
}

/// Reads fields from the front.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], HelloError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(HelloError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, HelloError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn prefixed8(&mut self) -> Result<&'a [u8], HelloError> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    fn prefixed16(&mut self) -> Result<&'a [u8], HelloError> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests;
