//! TCP upstream: a bulk transfer in both directions, or an echo.
//!
//! The first byte of a connection selects the mode. After [`ECHO`] every byte is echoed, and the end of the stream is
//! answered with the end of the stream. After [`BULK`] both sides send [`SESSION_BYTES`] at once, and the upstream
//! sends one more byte, [`ACK`], when all of the peer's bytes have arrived: the peer can then count them as proxied.

use std::io;
use std::mem::MaybeUninit;

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf;

/// First byte of an echo connection.
pub const ECHO: u8 = b'E';

/// First byte of a bulk connection.
pub const BULK: u8 = b'B';

/// Acknowledgment that all bytes of a session have arrived.
pub const ACK: u8 = b'A';

/// Number of bytes that each side sends in a session.
pub const SESSION_BYTES: usize = 64 * 1024 * 1024;

/// Number of bytes per write, and maximum per read.
const CHUNK_BYTES: usize = 256 * 1024;

/// `MSG_TRUNC` of `recv(2)`: the kernel discards the bytes instead of copying them. The value is the same on every
/// Linux.
const DISCARD: i32 = 0x20;

/// Serves one connection until it ends.
///
/// # Errors
/// When the connection breaks, or its first byte is neither of the two.
pub async fn answer(mut stream: TcpStream) -> io::Result<()> {
    match stream.read_u8().await? {
        ECHO => {
            let (mut reader, mut writer) = stream.split();
            tokio::io::copy(&mut reader, &mut writer).await?;
            writer.shutdown().await
        }
        BULK => {
            let (reader, mut writer) = stream.split();
            let stream: &TcpStream = reader.as_ref();
            let (received, sent) = tokio::join!(discard(stream, SESSION_BYTES), send(&mut writer));
            received.and(sent)?;
            writer.write_u8(ACK).await?;
            // The peer closes first once it has seen the byte.
            discard(stream, 1).await.or_else(ends)
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sends the bytes of one session.
///
/// # Errors
/// When the connection breaks.
pub async fn send(writer: &mut WriteHalf<'_>) -> io::Result<()> {
    let chunk = vec![b'x'; CHUNK_BYTES];
    for _ in 0..SESSION_BYTES / CHUNK_BYTES {
        writer.write_all(&chunk).await?;
    }
    Ok(())
}

/// Takes this many bytes from a connection without looking at them.
///
/// # Errors
/// When the connection breaks or ends early.
pub async fn discard(stream: &TcpStream, bytes: usize) -> io::Result<()> {
    let mut buffer = vec![MaybeUninit::uninit(); CHUNK_BYTES];
    let mut missing = bytes;
    while missing > 0 {
        let room = missing.min(CHUNK_BYTES);
        let taken = stream
            .async_io(Interest::READABLE, || {
                SockRef::from(stream).recv_with_flags(&mut buffer[..room], DISCARD)
            })
            .await?;
        if taken == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        missing -= taken;
    }
    Ok(())
}

fn ends(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn with_upstream<F: Future>(
        client: impl FnOnce(TcpStream) -> F,
    ) -> (io::Result<()>, F::Output) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (upstream, stream) = tokio::join!(listener.accept(), TcpStream::connect(address));
            tokio::join!(answer(upstream.unwrap().0), client(stream.unwrap()))
        })
    }

    #[test]
    fn echo_sends_everything_back_and_ends_when_the_peer_does() {
        let (served, echoed) = with_upstream(|mut stream| async move {
            stream.write_all(b"Eabc").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut echoed = Vec::new();
            stream.read_to_end(&mut echoed).await.unwrap();
            echoed
        });
        assert!(served.is_ok());
        assert_eq!(echoed, b"abc");
    }

    #[test]
    fn bulk_is_confirmed_after_all_bytes_of_both_sides() {
        let (served, last) = with_upstream(|mut stream| async move {
            stream.write_u8(BULK).await.unwrap();
            let (reader, mut writer) = stream.split();
            let (received, sent) =
                tokio::join!(discard(reader.as_ref(), SESSION_BYTES), send(&mut writer));
            received.and(sent).unwrap();
            stream.read_u8().await.unwrap()
        });
        assert!(served.is_ok());
        assert_eq!(last, ACK);
    }

    #[test]
    fn unknown_first_byte_is_refused() {
        let (served, ()) = with_upstream(|mut stream| async move {
            stream.write_all(b"G").await.unwrap();
        });
        assert_eq!(served.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
