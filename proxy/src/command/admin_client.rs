//! Client of the admin server of a running proxy.

use std::io::{BufRead, BufReader, Error, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout of connecting, and of each wait for data.
const WAIT: Duration = Duration::from_secs(10);

/// Maximum time without a sign of life from a page that goes on.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Maximum length of a response, in bytes: far more than the rules of one virtual host need.
const RESPONSE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Gets a page of the admin server at `admin`: `HOST:PORT`, with or without `http://`. Returns status and body.
///
/// # Errors
///
/// Fails if no connection is possible, or if the server does not speak HTTP.
pub(super) fn get(admin: &str, target: &str) -> std::io::Result<(u16, String)> {
    request("GET", admin, target)
}

/// Sends a request with this method and no body.
///
/// # Errors
///
/// Fails as [`get`] does.
pub(super) fn request(method: &str, admin: &str, target: &str) -> std::io::Result<(u16, String)> {
    let authority = authority_of(admin);
    let request =
        format!("{method} {target} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
    let text = exchange(authority, request.as_bytes())?;
    let no_http = || Error::other("not an HTTP response");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(no_http)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or_else(no_http)?, body.to_owned()))
}

/// Gets a page that goes on, and returns its body. The connection has no limit of time but that of each wait for data,
/// [`SILENCE_MAX`].
///
/// # Errors
///
/// Fails if no connection is possible, and with the first line of the response if its status is not 200.
pub(super) fn stream(admin: &str, target: &str) -> std::io::Result<impl BufRead> {
    let authority = authority_of(admin);
    // HTTP/1.0: the body is not in chunks, and ends with the connection
    let request = format!("GET {target} HTTP/1.0\r\nhost: {authority}\r\n\r\n");
    let mut stream = connect(authority)?;
    stream.write_all(request.as_bytes())?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    let mut stream = BufReader::new(stream);
    let (mut status, mut line) = (None, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(Error::other("not an HTTP response"));
        }
        match status {
            None => status = Some(line.split(' ').nth(1).unwrap_or_default().to_owned()),
            Some(_) if line.trim_end().is_empty() => break,
            Some(_) => {}
        }
    }
    match status.as_deref() {
        Some("200") => Ok(stream),
        status => {
            line.clear();
            stream.read_line(&mut line)?;
            let status = status.unwrap_or_default();
            Err(Error::other(format!(
                "answered {status}: {}",
                line.trim_end()
            )))
        }
    }
}

fn authority_of(admin: &str) -> &str {
    let authority = admin.strip_prefix("http://").unwrap_or(admin);
    authority.trim_end_matches('/')
}

fn connect(authority: &str) -> std::io::Result<TcpStream> {
    let mut last = Error::other("expected HOST:PORT");
    for address in authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, WAIT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(WAIT))?;
                stream.set_write_timeout(Some(WAIT))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sends a request and reads until the server closes the connection.
fn exchange(authority: &str, request: &[u8]) -> std::io::Result<String> {
    let mut stream = connect(authority)?;
    stream.write_all(request)?;
    let mut text = String::new();
    stream.take(RESPONSE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Percent-encodes everything but unreserved characters (RFC 3986, section 2.3).
pub(super) fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}
