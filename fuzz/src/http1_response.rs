//! Any bytes as what an endpoint sends over HTTP/1: what we read does not depend on how the bytes arrive, nothing is
//! read past the end of the response, and no length is taken from a head that could be read in two ways.
//!
//! The first byte selects the request; the rest is the response.

use bytes::BytesMut;
use hyper::HeaderMap;
use proxy::error::Kind;
use proxy::upstream::http1::RESPONSE_HEAD_BYTES_MAX;
use proxy::upstream::http1::decoder::{Decoder, Step};
use proxy::upstream::http1::head::{self, ExpectedResponse};

/// What was made of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    head: Option<(u16, HeaderMap, bool)>,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    ended: bool,
    refused: bool,
    /// Bytes after the end.
    rest: Vec<u8>,
}

/// Reads the bytes whole and in pieces.
pub fn run(bytes: &[u8]) {
    let Some((asked, bytes)) = bytes.split_first() else {
        return;
    };
    let asked = ExpectedResponse {
        head: asked & 1 != 0,
        upgrade: asked & 2 != 0,
    };
    let whole = read(bytes, bytes.len().max(1), asked);
    for piece in [1, 2, 3, 7, 64, 4096] {
        let mut pieces = read(bytes, piece, asked);
        if whole.refused {
            // where in the bytes it was refused may differ, and with it the body so far
            assert!(pieces.refused, "taken in pieces of {piece}");
            continue;
        }
        if !whole.ended {
            pieces.rest.clone_from(&whole.rest);
        }
        assert_eq!(pieces, whole, "cut into pieces of {piece}");
    }
    if let Some((status, headers, _)) = &whole.head {
        assert!((100..=999).contains(status));
        assert!(headers.get_all("content-length").iter().count() <= 1);
    }
    assert!(whole.body.len() + whole.rest.len() <= bytes.len());
}

fn read(bytes: &[u8], piece: usize, asked: ExpectedResponse) -> Read {
    let mut read = Read::default();
    let mut input = BytesMut::new();
    let mut decoder = None;
    let mut pieces = bytes.chunks(piece);
    loop {
        if advance(&mut read, &mut decoder, &mut input, asked) {
            break;
        }
        let Some(piece) = pieces.next() else {
            break;
        };
        assert!(
            decoder.is_some() || input.len() < RESPONSE_HEAD_BYTES_MAX,
            "the input does not grow without end"
        );
        input.extend_from_slice(piece);
    }
    read.rest = input.to_vec();
    read.rest.extend(pieces.flatten());
    read
}

/// Takes what it can from the input; returns whether that was the last.
fn advance(
    read: &mut Read,
    decoder: &mut Option<Decoder>,
    input: &mut BytesMut,
    asked: ExpectedResponse,
) -> bool {
    let decoder = match decoder {
        Some(decoder) => decoder,
        None => match head::parse(input, &mut HeaderMap::new(), asked) {
            Ok(None) => return false,
            Ok(Some(head)) => {
                read.head = Some((head.status.as_u16(), head.headers, head.persistent));
                decoder.insert(head.decoder)
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::UpstreamProtocol);
                read.refused = true;
                return true;
            }
        },
    };
    loop {
        match decoder.step(input) {
            Ok(Step::Data(data)) => {
                assert!(!data.is_empty());
                read.body.extend_from_slice(&data);
            }
            Ok(Step::More) => return false,
            Ok(Step::End(trailers)) => {
                assert!(decoder.is_end());
                read.trailers = trailers;
                read.ended = true;
                return true;
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::UpstreamProtocol);
                read.refused = true;
                return true;
            }
        }
    }
}
