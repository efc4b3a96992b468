use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;

use super::decoder::{Decoder, Sink};
use super::encoder::Encoder;
use super::table::{Field, Name};
use super::*;

/// Collects all fields as text.
#[derive(Default)]
struct All(Vec<(String, String)>);

impl Sink for All {
    fn wants(&mut self, _: usize) -> bool {
        true
    }

    fn field(&mut self, field: Field) {
        let own = |text: &str| text.to_owned();
        self.0.push(match &field {
            Field::Authority(value) => (own(":authority"), own(value.as_str())),
            Field::Header(name, value) => (own(name.as_str()), own(value.to_str().unwrap_or("?"))),
            Field::Malformed(Name::Malformed(_)) => (own("malformed"), String::new()),
            Field::Malformed(_) => (own("malformed value"), String::new()),
            Field::Method(value) => (own(":method"), own(value.as_str())),
            Field::Path(value) => (own(":path"), own(value.as_str())),
            Field::Protocol(value) => (own(":protocol"), own(value.to_str().unwrap_or("?"))),
            Field::Scheme(value) => (own(":scheme"), own(value.as_str())),
            Field::Status(value) => (own(":status"), own(value.as_str())),
        });
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Undecodable> {
    let mut all = All::default();
    decoder.decode(block, &mut all).map(|()| all.0)
}

/// A block, its fields, and the size of the table after it.
type Block<'a> = (&'a str, &'a [(&'a str, &'a str)], usize);

/// Decodes blocks in order; each must produce these fields and leave a table of this size.
fn check(limit: usize, blocks: &[Block<'_>]) {
    let mut decoder = Decoder::new(limit);
    for (hex, fields, table) in blocks {
        let made = decode(&mut decoder, &bytes(hex)).unwrap();
        let expected: Vec<_> = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(made, expected, "{hex}");
        assert_eq!(decoder.table_bytes(), *table, "{hex}");
    }
}

#[test]
fn single_fields_equal_the_rfc_examples() {
    // RFC 7541, appendix C.2
    for (hex, field, table) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            ("custom-key", "custom-header"),
            55,
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            (":path", "/sample/path"),
            0,
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            ("password", "secret"),
            0,
        ),
        ("82", (":method", "GET"), 0),
    ] {
        check(4096, &[(hex, &[field], table)]);
    }
}

#[test]
fn requests_equal_the_rfc_examples() {
    let first = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];
    let second = [&first[..], &[("cache-control", "no-cache")]].concat();
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    // appendix C.3, without Huffman code
    check(
        4096,
        &[
            (
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                &first,
                57,
            ),
            ("8286 84be 5808 6e6f 2d63 6163 6865", &second, 110),
            (
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                &third,
                164,
            ),
        ],
    );
    // appendix C.4, with Huffman code
    check(
        4096,
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", &first, 57),
            ("8286 84be 5886 a8eb 1064 9cbf", &second, 110),
            (
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
                &third,
                164,
            ),
        ],
    );
}

#[test]
fn responses_equal_the_rfc_examples() {
    let location = ("location", "https://www.example.com");
    let date = ("date", "Mon, 21 Oct 2013 20:13:21 GMT");
    let private = ("cache-control", "private");
    let first = [(":status", "302"), private, date, location];
    let second = [(":status", "307"), private, date, location];
    let third = [
        (":status", "200"),
        private,
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        location,
        ("content-encoding", "gzip"),
        (
            "set-cookie",
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ),
    ];
    // appendix C.5
    check(
        256,
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a
                 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                &first,
                222,
            ),
            ("4803 3330 37c1 c0bf", &second, 222),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04
                 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49
                 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
                &third,
                215,
            ),
        ],
    );
    // appendix C.6, with Huffman code
    check(
        256,
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
                 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                &first,
                222,
            ),
            ("4883 640e ffc1 c0bf", &second, 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
                 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
                 4ee5 b106 3d50 07",
                &third,
                215,
            ),
        ],
    );
}

#[test]
fn invalid_blocks_are_rejected() {
    for hex in [
        "80",                   // index 0
        "be",                   // an entry that is not there
        "ff 80 80 80 80 80 01", // an index without an end
        "7f 80 80 80 80 01 00", // the same as a name
        "41",                   // no value
        "41 05 61",             // half a value
        "41 81 00",             // padding that is no padding
        "41 84 ff ff ff ff",    // the end of a string, in it
        "3f e2 1f",             // a table of 4097 bytes
        "82 3f e1 1f",          // a size that comes too late
        "00",                   // no name
    ] {
        assert_eq!(
            decode(&mut Decoder::new(4096), &bytes(hex)),
            Err(Undecodable),
            "{hex}"
        );
    }
}

#[test]
fn dynamic_table_stays_within_its_size_and_follows_updates() {
    let mut decoder = Decoder::new(4096);
    for number in 0..1000 {
        let mut block = bytes("40 04");
        block.extend(format!("{number:04}").bytes());
        integer::write(&mut block, 0, 7, 300);
        block.extend([b'x'; 300]);
        decode(&mut decoder, &block).unwrap();
        assert!(decoder.table_bytes() <= 4096);
    }
    // an entry that is larger than the table empties it
    let mut block = bytes("40 01 78");
    integer::write(&mut block, 0, 7, 5000);
    block.extend([b'x'; 5000]);
    decode(&mut decoder, &block).unwrap();
    assert_eq!(decoder.table_bytes(), 0);
    // shrink to 0, and grow again
    let made = decode(&mut decoder, &bytes("20 3f e1 1f 40 01 78 01 79 be")).unwrap();
    assert_eq!(made.len(), 2);
    assert_eq!(decoder.table_bytes(), 34);
    assert!(decode(&mut decoder, &bytes("20")).unwrap().is_empty());
    assert_eq!(decoder.table_bytes(), 0);
}

#[test]
fn malformed_names_occupy_the_dynamic_table() {
    let mut decoder = Decoder::new(4096);
    // "X-Up" is no valid name, but the peer has it in its table and may refer to it
    let made = decode(&mut decoder, &bytes("40 04 58 2d 55 70 01 79 7e 01 7a"));
    assert_eq!(made.unwrap().len(), 2);
    assert_eq!(decoder.table_bytes(), 2 * (4 + 1 + 32));
    // ":path" with a value that is no path
    decode(&mut decoder, &bytes("44 01 78")).unwrap();
    assert_eq!(decoder.table_bytes(), 2 * 37 + 38);
    let made = decode(&mut decoder, &bytes("7e 01 2f be")).unwrap();
    assert_eq!(made[0], (":path".to_owned(), "/".to_owned()));
}

#[test]
fn table_is_updated_after_the_sink_stops() {
    struct None;
    impl Sink for None {
        fn wants(&mut self, _: usize) -> bool {
            false
        }
        fn field(&mut self, _: Field) {
            panic!("not wanted");
        }
    }
    let mut decoder = Decoder::new(4096);
    let block = bytes("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d");
    decoder.decode(&block, &mut None).unwrap();
    assert_eq!(decoder.table_bytes(), 57);
}

/// A change of the table's size, and the list after it: kinds of names, kinds of values, and lengths.
type List = (Option<usize>, Vec<(u8, u8, usize)>);

fn lists() -> impl Strategy<Value = Vec<List>> {
    let size = proptest::option::weighted(0.2, 0_usize..6000);
    let header = (0_u8..40, 0_u8..6, 0_usize..300);
    proptest::collection::vec((size, proptest::collection::vec(header, 0..20)), 1..40)
}

proptest! {
    #[test]
    fn decoder_decodes_encoder_output(lists in lists()) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        for (size, list) in lists {
            if let Some(size) = size {
                encoder.resize(size);
            }
            let mut headers = HeaderMap::new();
            for (name, kind, len) in list {
                let name = match name {
                    0 => http::header::SERVER,
                    1 => http::header::SET_COOKIE,
                    2 => http::header::CONTENT_LENGTH,
                    other => HeaderName::try_from(format!("x-{other}")).unwrap(),
                };
                let mut value = HeaderValue::try_from(format!("{kind}").repeat(len)).unwrap();
                value.set_sensitive(kind == 5);
                headers.append(name, value);
            }
            let mut block = Vec::new();
            encoder.begin(&mut block);
            encoder.status(StatusCode::OK, &mut block);
            encoder.headers(&headers, &mut block);
            let made = decode(&mut decoder, &block).unwrap();
            let expected = headers.iter().map(|(name, value)| {
                (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
            });
            prop_assert_eq!(&made[1..], &expected.collect::<Vec<_>>()[..]);
        }
    }

    #[test]
    fn huffman_code_round_trips(text: Vec<u8>) {
        let mut coded = Vec::new();
        huffman::encode(&text, &mut coded);
        let mut plain = Vec::new();
        huffman::decode(&coded, &mut plain).unwrap();
        prop_assert_eq!(plain, text);
    }

    #[test]
    fn any_bytes_are_decoded_or_rejected(block: Vec<u8>) {
        let mut decoder = Decoder::new(4096);
        let _ = decode(&mut decoder, &block);
        prop_assert!(decoder.table_bytes() <= 4096);
    }
}
