//! Compresses a body while it is sent, piece by piece, so that neither the text nor its compressed form is ever in
//! memory as a whole.

use std::io::Write;
use std::mem;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Iterator over the compressed form of these pieces.
pub(super) struct Gzip<I> {
    chunks: I,
    /// `None` after the last piece.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl<I> Gzip<I> {
    /// Makes a fast rather than a strong compressor: metrics are so repetitive that the level hardly matters.
    pub(super) fn new(chunks: I) -> Self {
        Self {
            chunks,
            encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())),
        }
    }
}

impl<I: Iterator<Item = Vec<u8>>> Iterator for Gzip<I> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        while let Some(encoder) = &mut self.encoder {
            let Some(chunk) = self.chunks.next() else {
                break;
            };
            // Writing to a vector cannot fail, here and below.
            let _ = encoder.write_all(&chunk);
            let out = mem::take(encoder.get_mut());
            if !out.is_empty() {
                return Some(out);
            }
        }
        self.encoder.take()?.finish().ok()
    }
}
