//! Vectored writes: one plain `send` where it is cheaper than a vectored one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum bytes that are copied into one buffer for a plain call. A vectored call costs the kernel about as much as
/// this copy; bodies are larger and are never copied.
const TOGETHER_BYTES_MAX: usize = 2048;

/// Writes pieces in order, as [`AsyncWrite::poll_write_vectored`] does.
///
/// # Errors
///
/// Returns errors of the stream.
pub fn poll_write<S: AsyncWrite>(
    stream: Pin<&mut S>,
    cx: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    if let [piece] = pieces {
        return stream.poll_write(cx, piece);
    }
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    if bytes > TOGETHER_BYTES_MAX {
        return stream.poll_write_vectored(cx, pieces);
    }
    let mut together = SmallVec::<[u8; TOGETHER_BYTES_MAX]>::new();
    for piece in pieces {
        together.extend_from_slice(piece);
    }
    stream.poll_write(cx, &together)
}

/// Stream that writes its pieces with [`poll_write`].
#[derive(Debug)]
pub struct Gathered<S>(pub S);

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, space)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_write(Pin::new(&mut self.0), cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Records each call: the number of pieces and the bytes; 0 pieces for a plain call.
    #[derive(Default)]
    struct Calls(Vec<(usize, Vec<u8>)>);

    impl AsyncWrite for Calls {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.push((0, bytes.to_vec()));
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            pieces: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
            let written = bytes.len();
            self.0.push((pieces.len(), bytes));
            Poll::Ready(Ok(written))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn small_chunks_are_coalesced_and_large_ones_are_not_copied() {
        let large = vec![7; TOGETHER_BYTES_MAX];
        for (pieces, expected) in [
            (&[&b"head"[..]][..], 0),
            (&[&large[..]], 0),
            (&[b"head", b"", b"body"], 0),
            (&[b"head", &large], 2),
            (&[], 0),
        ] {
            let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
            let mut calls = Calls::default();
            let written = poll_fn(|cx| poll_write(Pin::new(&mut calls), cx, &slices)).await;
            let bytes = pieces.concat();
            assert_eq!(written.unwrap(), bytes.len());
            assert_eq!(calls.0, [(expected, bytes)]);
        }
    }
}
