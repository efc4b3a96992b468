//! The first message of a TLS client, as far as it selects a server: name, protocols, versions.
//!
//! Pure and without consuming: it is called with all the bytes so far, and again when there are more. Bounded by
//! [`HELLO_BYTES_MAX`]. Strict about the lengths that it walks by, and about the name; whatever else a client says is
//! left to the TLS server that terminates the connection, so that old and new clients pass alike.

use std::borrow::Cow;

/// Bytes of a first message with its record headers; past it, the connection is closed. Rustls's limit is higher, no
/// client known to us sends a tenth of this, and post-quantum key shares take about 1.2 KiB.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

/// What a client says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The name that it asks for (RFC 6066, section 3), in lower case and without a trailing dot.
    pub server_name: Option<Box<str>>,
    /// The protocols that it offers (RFC 7301), each with its length in front, as they came.
    alpn: Box<[u8]>,
    /// The newest version that it offers, as on the wire: 0x0303 is TLS 1.2, 0x0304 TLS 1.3.
    pub version: u16,
}

impl ClientHello {
    /// The protocols that it offers, in its order.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = Reader(&self.alpn);
        std::iter::from_fn(move || rest.prefixed8().ok())
    }
}

/// Why the first bytes of a connection are no first message of a TLS client that we can go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HelloError {
    /// A length in it points beyond its end.
    Malformed,
    /// The name is not one: empty, too long, or with bytes that no name has.
    Name,
    /// TLS, but some other message.
    NotHello,
    /// No TLS at all.
    NotTls,
    /// It is longer than [`HELLO_BYTES_MAX`].
    TooLarge,
}

/// Reads the message from the first bytes of a connection; `None` while more of them are needed.
///
/// # Errors
///
/// When no further bytes can make it one.
pub fn parse(bytes: &[u8]) -> Result<Option<ClientHello>, HelloError> {
    // What lies beyond the limit changes nothing, so that a verdict is the same whenever it is asked for.
    let bytes = &bytes[..bytes.len().min(HELLO_BYTES_MAX + 1)];
    let Some(message) = message(bytes)? else {
        return Ok(None);
    };
    body(&message).map(Some)
}

/// Content type of a handshake record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

/// Type of the message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;

/// Most bytes of a record's content.
const RECORD_BYTES_MAX: usize = 16 * 1024;

/// The message without its header; put together if it came in several records.
fn message(bytes: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HelloError> {
    let mut whole: Cow<'_, [u8]> = Cow::Borrowed(&[]);
    let mut rest = bytes;
    loop {
        match rest {
            [] => {}
            [HANDSHAKE] => {}
            [HANDSHAKE, 3, ..] => {}
            // an alert or anything else in the middle of a message
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

/// How long a message is with its header, once that is known.
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

/// Numbers of the extensions that are looked at.
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const ALPN: u16 = 16;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
}

/// The fields of the message (RFC 8446, section 4.1.2). Clients without extensions end after the compression methods.
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
        // Two of a kind (RFC 8446, section 4.2): going by either could be wrong.
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

/// A list of names by type, of which type 0 is a host; no other type is defined.
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

/// Bytes of a DNS name at most.
const NAME_BYTES_MAX: usize = 255;

/// A name without anything that could end it early in a log or a lookup.
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

/// The versions that a client of TLS 1.3 offers; the newest that is not one of the values that only test servers
/// (RFC 8701).
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
