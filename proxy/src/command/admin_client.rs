//! Client of the admin server of a running proxy.

use std::io::{Error, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout of connecting, and of each wait for data.
const WAIT: Duration = Duration::from_secs(10);

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
    let authority = admin.strip_prefix("http://").unwrap_or(admin);
    let authority = authority.trim_end_matches('/');
    let request =
        format!("{method} {target} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
    let text = exchange(authority, request.as_bytes())?;
    let no_http = || Error::other("not an HTTP response");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(no_http)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or_else(no_http)?, body.to_owned()))
}

/// Sends a request and reads until the server closes the connection.
fn exchange(authority: &str, request: &[u8]) -> std::io::Result<String> {
    let mut last = Error::other("expected HOST:PORT");
    for address in authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, WAIT) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(WAIT))?;
                stream.set_write_timeout(Some(WAIT))?;
                stream.write_all(request)?;
                let mut text = String::new();
                stream.take(RESPONSE_BYTES_MAX).read_to_string(&mut text)?;
                return Ok(text);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
