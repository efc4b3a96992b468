//! The upstream of every comparison: one thread that answers any request head with a fixed body, and nothing more.
//!
//! It runs as a process of its own, so that its CPU time is never counted as somebody else's.

use std::io::{self, Write as _};
use std::rc::Rc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::compare::failure::{Failure, context};

/// The path that is answered with [`LARGE_BODY`] bytes; every other path gets [`SMALL_BODY`].
pub const LARGE_PATH: &str = "/large";

/// Bytes in the usual body.
pub const SMALL_BODY: usize = 128;

/// Bytes in the large body.
pub const LARGE_BODY: usize = 1024 * 1024;

/// Longest head that is read; the peers are proxies that we configured ourselves.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Ready-made responses, head and body.
struct Responses {
    small: Vec<u8>,
    large: Vec<u8>,
}

/// Prints the port on standard output, then serves until the process is ended.
///
/// # Errors
/// When no socket can be opened.
pub fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let runtime = runtime.map_err(context("cannot start the upstream"))?;
    LocalSet::new()
        .block_on(&runtime, accept())
        .map_err(context("upstream"))
}

async fn accept() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    let responses = Rc::new(Responses {
        small: response(SMALL_BODY),
        large: response(LARGE_BODY),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let responses = Rc::clone(&responses);
        // A peer that closes or resets ends its own connection only.
        tokio::task::spawn_local(async move { answer(stream, &responses).await });
    }
}

/// Answers the requests of one connection in order. Requests have no bodies.
async fn answer(mut stream: TcpStream, responses: &Responses) -> io::Result<()> {
    let mut unread = Vec::with_capacity(1024);
    loop {
        while let Some(end) = head_end(&unread) {
            let large =
                path(&unread[..end]).is_some_and(|path| path.ends_with(LARGE_PATH.as_bytes()));
            unread.drain(..end);
            stream
                .write_all(if large {
                    &responses.large
                } else {
                    &responses.small
                })
                .await?;
        }
        if unread.len() > HEAD_BYTES_MAX || stream.read_buf(&mut unread).await? == 0 {
            return Ok(());
        }
    }
}

/// Where the first head ends, if all of it is there.
fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|start| start + 4)
}

/// The path of a request head.
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
    fn response_carries_the_length_it_states() {
        let text = String::from_utf8(response(3)).unwrap();
        assert!(
            text.contains("content-length: 3\r\n") && text.ends_with("\r\n\r\nxxx"),
            "{text}"
        );
    }
}
