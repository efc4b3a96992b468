//! HTTP/1.1 upstream: every request head is answered with prepared bytes.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;

/// Path that is answered with [`LARGE_BODY`] bytes; paths without a constant here get [`SMALL_BODY`].
pub const LARGE_PATH: &str = "/large";

/// Path that is answered with [`HUGE_BODY`] bytes.
pub const HUGE_PATH: &str = "/huge";

/// Path whose requests are never answered; their bodies are not read.
pub const HELD_PATH: &str = "/held";

/// Interval between checks whether the peer has closed a connection with an unanswered request.
const HELD_INTERVAL: Duration = Duration::from_millis(250);

/// Bytes in the usual body.
pub const SMALL_BODY: usize = 128;

/// Bytes in the large body.
pub const LARGE_BODY: usize = 1024 * 1024;

/// Bytes in a body that is larger than any kernel buffer.
pub const HUGE_BODY: usize = 16 * 1024 * 1024;

/// Maximum size of a request head, in bytes; the peers are proxies that we configure.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Prepared responses, head and body.
#[derive(Debug)]
pub struct Responses {
    small: Vec<u8>,
    large: Vec<u8>,
    huge: Vec<u8>,
}

impl Responses {
    /// Creates the responses, to be shared by all connections.
    pub fn new() -> Rc<Self> {
        Rc::new(Self {
            small: response(SMALL_BODY),
            large: response(LARGE_BODY),
            huge: response(HUGE_BODY),
        })
    }
}

/// Returns the number of body bytes in the response for a path.
pub fn body_bytes(path: &str) -> usize {
    if path.ends_with(LARGE_PATH) {
        LARGE_BODY
    } else if path.ends_with(HUGE_PATH) {
        HUGE_BODY
    } else {
        SMALL_BODY
    }
}

/// Answers the requests of one connection in order. Requests have no bodies.
///
/// # Errors
/// When the connection breaks.
pub async fn answer(mut stream: TcpStream, responses: &Responses) -> io::Result<()> {
    let mut unread = Vec::with_capacity(1024);
    loop {
        while let Some(end) = head_end(&unread) {
            let is_for = |wanted: &str| {
                path(&unread[..end]).is_some_and(|path| path.ends_with(wanted.as_bytes()))
            };
            if is_for(HELD_PATH) {
                return wait_for_close(&stream).await;
            }
            let response = if is_for(LARGE_PATH) {
                &responses.large
            } else if is_for(HUGE_PATH) {
                &responses.huge
            } else {
                &responses.small
            };
            unread.drain(..end);
            stream.write_all(response).await?;
        }
        if unread.len() > HEAD_BYTES_MAX || stream.read_buf(&mut unread).await? == 0 {
            return Ok(());
        }
    }
}

/// Waits until the peer closes the connection, without reading.
async fn wait_for_close(stream: &TcpStream) -> io::Result<()> {
    while !stream.ready(Interest::READABLE).await?.is_read_closed() {
        tokio::time::sleep(HELD_INTERVAL).await;
    }
    Ok(())
}

/// Returns the end of the first head; `None` while it is incomplete.
fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|start| start + 4)
}

/// Returns the path of a request head.
fn path(head: &[u8]) -> Option<&[u8]> {
    head.split(|byte| *byte == b' ').nth(1)
}

fn response(body_bytes: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {body_bytes}\r\n\r\n"
    );
    let mut response = head.into_bytes();
    response.resize(response.len() + body_bytes, b'x');
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_ends_after_the_empty_line() {
        assert_eq!(head_end(b"GET / HTTP/1.1\r\nhost: a\r\n"), None);
        assert_eq!(head_end(b"GET / HTTP/1.1\r\n\r\nGET"), Some(18));
    }

    #[test]
    fn path_is_the_second_word() {
        assert_eq!(path(b"GET /large HTTP/1.1\r\n\r\n"), Some(&b"/large"[..]));
        assert_eq!(path(b"GET"), None);
    }

    #[test]
    fn body_length_follows_from_the_path() {
        assert_eq!(body_bytes("/"), SMALL_BODY);
        assert_eq!(body_bytes("/route-00001/large"), LARGE_BODY);
        assert_eq!(body_bytes("/huge"), HUGE_BODY);
    }

    #[test]
    fn response_carries_the_length_it_states() {
        let text = String::from_utf8(response(3)).unwrap();
        assert!(
            text.contains("content-length: 3\r\n") && text.ends_with("\r\n\r\nxxx"),
            "{text}"
        );
    }
}
