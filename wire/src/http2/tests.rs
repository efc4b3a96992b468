//! Support for tests of both sides: frames built by hand, and the output of an engine.

use super::connection::Connection;
use super::frame::{self, HEAD_BYTES, Head, Kind};
use super::output::SLICES;

/// Builds a frame.
pub(super) fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // longer payloads than permitted are possible
    frame::write_head(&mut bytes, 0, kind, flags, stream);
    bytes[..3].copy_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(payload);
    bytes
}

/// Frame in the output: type, flags, stream, payload.
pub(super) type Said = (Kind, u8, u32, Vec<u8>);

/// Takes the complete output.
pub(super) fn bytes_said<R>(side: &mut Connection<R>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !side.output().is_empty() {
        let mut slices = [std::io::IoSlice::new(&[]); SLICES];
        let count = side.output().slices(&mut slices);
        let front: Vec<u8> = slices[..count].iter().flat_map(|s| s.to_vec()).collect();
        bytes.extend_from_slice(&front);
        side.output().advance(front.len());
    }
    bytes
}

/// Takes the output as frames, without the preface.
pub(super) fn said<R>(side: &mut Connection<R>) -> Vec<Said> {
    let bytes = bytes_said(side);
    let mut frames = Vec::new();
    let mut rest = bytes.strip_prefix(frame::PREFACE).unwrap_or(&bytes);
    while let Some(head) = Head::parse(rest) {
        let end = HEAD_BYTES + head.len;
        frames.push((
            head.kind,
            head.flags,
            head.stream,
            rest[HEAD_BYTES..end].to_vec(),
        ));
        rest = &rest[end..];
    }
    assert!(rest.is_empty());
    frames
}
