//! Fuzz target: arbitrary bytes from an HTTP/1 endpoint. The result does not depend on how the bytes are split, nothing
//! is read past the end of the response, and an ambiguous length is refused. `httparse` accepts and refuses the same
//! heads.
//!
//! The first byte selects the request; the remaining bytes are the response.

use std::error::Error as _;

use bytes::BytesMut;
use httparse::Status;
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use wire::http1::response::decoder::{Decoder, Step};
use wire::http1::response::head::{self, ExpectedResponse};
use wire::http1::response::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};

/// Reasons to refuse a head that `httparse` accepts.
const OF_FRAMING: [&str; 4] = [
    "101 to a protocol that was not asked for",
    "content-length is not one number",
    "transfer coding other than chunked",
    "transfer-encoding in an HTTP/1.0 response",
];

/// Result of reading a response.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    head: Option<(u16, HeaderMap, bool)>,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    ended: bool,
    refused: bool,
    /// Bytes after the end of the response.
    rest: Vec<u8>,
}

/// Reads the bytes whole and in pieces, and reads the head with `httparse`.
pub fn run(bytes: &[u8]) {
    let Some((asked, bytes)) = bytes.split_first() else {
        return;
    };
    let asked = ExpectedResponse {
        head: asked & 1 != 0,
        upgrade: (asked & 2 != 0).then(|| Box::new(HeaderValue::from_static("websocket"))),
    };
    compare(bytes, &asked);
    let whole = read(bytes, bytes.len().max(1), &asked);
    for piece in [1, 2, 3, 7, 64, 4096] {
        let mut pieces = read(bytes, piece, &asked);
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
        // those of a 101 delimit nothing, and are not sent on
        assert!(*status == 101 || headers.get_all("content-length").iter().count() <= 1);
    }
    assert!(whole.body.len() + whole.rest.len() <= bytes.len());
}

/// Compares our result for a head with that of `httparse`.
fn compare(bytes: &[u8], asked: &ExpectedResponse) {
    let mut input = BytesMut::from(bytes);
    let ours = head::parse(&mut input, &mut HeaderMap::new(), asked);
    let ours = ours.map_err(|error| error.source().expect("a reason").to_string());
    let mut lines = [httparse::EMPTY_HEADER; RESPONSE_HEADERS_MAX];
    let mut theirs = httparse::Response::new(&mut lines);
    let parsed = theirs.parse(bytes);
    let long = match parsed {
        Ok(Status::Complete(length)) => length > RESPONSE_HEAD_BYTES_MAX,
        _ => bytes.len() >= RESPONSE_HEAD_BYTES_MAX,
    };
    if long && matches!(&ours, Err(text) if text == "response head too long") {
        return;
    }
    let status = theirs.code.map(StatusCode::from_u16);
    match (ours, parsed, status) {
        (Ok(None), Ok(Status::Partial), _) => assert!(!long, "a head without end is awaited"),
        (Err(ours), Err(theirs), _) => assert_eq!(ours, theirs.to_string()),
        (Err(ours), Ok(Status::Complete(_)), Some(Err(theirs))) => {
            assert_eq!(ours, theirs.to_string());
        }
        (Err(ours), Ok(Status::Complete(_)), Some(Ok(_))) => {
            assert!(OF_FRAMING.contains(&&*ours), "only we refuse: {ours}");
        }
        (Ok(Some(mut ours)), Ok(Status::Complete(length)), Some(Ok(status))) => {
            assert_eq!((ours.status, &*input), (status, &bytes[length..]));
            let reason = ours.reason.as_ref().map(|reason| reason.as_bytes());
            let usual = status.canonical_reason().unwrap_or_default().as_bytes();
            let expected = theirs.reason.expect("it is complete").as_bytes();
            assert_eq!(reason.unwrap_or(usual), expected);
            // lengths that agree are one afterwards, and one beside a coding is none
            let mut expected = map(theirs.headers);
            expected.remove(CONTENT_LENGTH);
            ours.headers.remove(CONTENT_LENGTH);
            assert_eq!(ours.headers, expected);
        }
        (ours, theirs, _) => panic!("we: {ours:?}, httparse: {theirs:?}"),
    }
}

fn map(lines: &[httparse::Header<'_>]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).expect("a token");
        map.append(
            name,
            HeaderValue::from_bytes(line.value).expect("no control bytes"),
        );
    }
    map
}

fn read(bytes: &[u8], piece: usize, asked: &ExpectedResponse) -> Read {
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

/// Reads as much input as possible; returns whether no more can be read.
fn advance(
    read: &mut Read,
    decoder: &mut Option<Decoder>,
    input: &mut BytesMut,
    asked: &ExpectedResponse,
) -> bool {
    let decoder = match decoder {
        Some(decoder) => decoder,
        None => match head::parse(input, &mut HeaderMap::new(), asked) {
            Ok(None) => return false,
            Ok(Some(head)) => {
                read.head = Some((head.status.as_u16(), head.headers, head.persistent));
                decoder.insert(head.decoder)
            }
            Err(_) => {
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
            Err(_) => {
                read.refused = true;
                return true;
            }
        }
    }
}
