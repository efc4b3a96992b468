//! Fuzz target: arbitrary bytes as a header block. It is decoded or refused, the table stays within its size, and our
//! encoder reproduces the decoded headers.

use hyper::HeaderMap;
use wire::http2::hpack::TABLE_BYTES_DEFAULT;
use wire::http2::hpack::decoder::{Decoder, Sink};
use wire::http2::hpack::encoder::{Encoder, is_of_connection};
use wire::http2::hpack::table::Field;

/// Header sink with a limit in bytes.
struct Headers {
    headers: HeaderMap,
    room: usize,
}

impl Sink for Headers {
    fn wants(&mut self, size: usize) -> bool {
        assert!(size >= 32);
        let left = self.room.checked_sub(size);
        self.room = left.unwrap_or(0);
        left.is_some()
    }

    fn field(&mut self, field: Field) {
        if let Field::Header(name, value) = field {
            self.headers.append(name, value);
        }
    }
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Option<HeaderMap> {
    let mut sink = Headers {
        headers: HeaderMap::new(),
        room: 16 * 1024,
    };
    let decoded = decoder.decode(block, &mut sink).ok();
    assert!(decoder.table_bytes() <= TABLE_BYTES_DEFAULT);
    decoded.map(|()| sink.headers)
}

/// Decodes the bytes as header blocks, each after its length in two bytes.
pub fn run(mut bytes: &[u8]) {
    let (mut theirs, mut ours) = (
        Decoder::new(TABLE_BYTES_DEFAULT),
        Decoder::new(TABLE_BYTES_DEFAULT),
    );
    let mut encoder = Encoder::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)).min(rest.len());
        let (block, rest) = rest.split_at(len);
        bytes = rest;
        let Some(mut headers) = decode(&mut theirs, block) else {
            return;
        };
        let dropped: Vec<_> = headers
            .keys()
            .filter(|name| is_of_connection(name))
            .cloned()
            .collect();
        for name in dropped {
            headers.remove(name);
        }
        let mut encoded = Vec::new();
        encoder.begin(&mut encoded);
        encoder.headers(&headers, &mut encoded);
        assert_eq!(decode(&mut ours, &encoded), Some(headers));
    }
}
