use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    head_bytes_max: 512,
    headers_max: 8,
};

/// Position in the stream of requests at which the bytes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Between,
    Head,
    Body,
    Refused(Refusal),
}

use At::{Between, Body, Head as InHead, Refused};

/// Requests that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Read {
    /// Method, target, and the lines of each head.
    heads: Vec<String>,
    /// Bytes of each body.
    bodies: Vec<Vec<u8>>,
    trailers: Vec<String>,
}

fn lines(headers: &HeaderMap) -> String {
    let line = |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {value:?}\n");
    headers.iter().map(line).collect()
}

fn describe(head: &Head) -> String {
    let Head {
        request,
        body,
        persistent,
        expects,
        upgrade,
        takes_trailers,
    } = head;
    let line = format!("{} {}\n", request.method(), request.uri());
    let flags = format!("{body:?} {persistent} {expects} {upgrade} {takes_trailers}");
    line + &lines(request.headers()) + &flags
}

/// Decodes all complete parts of the input.
fn drain(decoder: &mut Decoder, input: &mut BytesMut, read: &mut Read) -> At {
    loop {
        let step = if decoder.is_in_body() {
            decoder.body(input).map(|piece| match piece {
                Piece::Data(bytes) => {
                    assert!(!bytes.is_empty(), "a piece has bytes");
                    read.bodies.last_mut().unwrap().extend_from_slice(&bytes);
                    None
                }
                Piece::End(trailers) => {
                    read.trailers.extend(trailers.iter().map(lines));
                    None
                }
                Piece::More => Some(Body),
            })
        } else if input.is_empty() {
            return Between;
        } else {
            decoder
                .head(input, &mut HeaderMap::new())
                .map(|head| match head {
                    Some(head) => {
                        read.heads.push(describe(&head));
                        read.bodies.push(Vec::new());
                        None
                    }
                    // no request has begun
                    None if input.is_empty() => Some(Between),
                    None => Some(InHead),
                })
        };
        match step {
            Ok(None) => {}
            Ok(Some(at)) => return at,
            Err(refusal) => return Refused(refusal),
        }
    }
}

/// Reads bytes split at these positions.
fn read_cut(bytes: &[u8], cuts: &[usize]) -> (Read, At) {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut decoder = Decoder::new(LIMITS);
    let (mut input, mut read, mut at) = (BytesMut::new(), Read::default(), Between);
    for piece in cuts.windows(2) {
        input.extend_from_slice(&bytes[piece[0]..piece[1]]);
        at = drain(&mut decoder, &mut input, &mut read);
        if matches!(at, Refused(_)) {
            break;
        }
    }
    (read, at)
}

/// Returns the number of valid heads and the position at the end; asserts that no split changes them.
fn read(bytes: &[u8]) -> (usize, At) {
    let whole = read_cut(bytes, &[]);
    for at in 0..bytes.len() {
        let cut = read_cut(bytes, &[at]);
        assert_eq!(cut, whole, "{} cut at {at}", bytes.escape_ascii());
    }
    (whole.0.heads.len(), whole.1)
}

#[test]
fn valid_requests_are_accepted() {
    for (bytes, heads, at) in [
        (&b""[..], 0, Between),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, Between),
        (b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, Between),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", 0, InHead),
        (b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", 2, Between),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 1, Between),
        (b"POST / HTTP/1.1\r\ncontent-length:3\r\n\r\nab", 1, Body),
        (b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 1, Between),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 9223372036854775807\r\n\r\n",
            1,
            Body,
        ),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n\r\n\rGET / HTTP/1.1\r\n\r\n",
            2,
            Between,
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            1,
            Between,
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nx-t: 1\r\n\r\nG",
            1,
            InHead,
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\r\n\r\r\n0\r\n\r\n",
            1,
            Between,
        ),
    ] {
        assert_eq!(read(bytes), (heads, at), "{:?}", bytes.escape_ascii());
    }
}

#[test]
fn heads_and_bodies_arrive_unchanged() {
    let bytes = b"POST /a?b=%20 HTTP/1.1\r\nHost: a.example:80\r\nX-Two: 1\r\nx-two:\t 2 \t\r\nX-Empty:\r\n\
        X-Latin: \xe9\r\nTransfer-Encoding: chunked\r\n\r\n3;ext\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 7\r\n\r\n\
        GET http://b/ HTTP/1.0\r\nConnection: keep-alive, TE\r\nTE: trailers, gzip;q=0.5\r\n\r\n\
        PUT * HTTP/1.1\r\nConnection: Close\r\nExpect: 100-Continue\r\nContent-Length: 002\r\n\r\nxy\
        CONNECT b:443 HTTP/1.1\r\n\r\n\
        GET / HTTP/1.1\r\nUpgrade: a\r\nConnection: upgrade\r\nExpect: 100-continue\r\n\r\n";
    let expected = Read {
        heads: [
            "POST /a?b=%20\nhost: \"a.example:80\"\nx-two: \"1\"\nx-two: \"2\"\nx-empty: \"\"\nx-latin: \"\\xe9\"\n\
             transfer-encoding: \"chunked\"\nChunked true false false false",
            "GET http://b/\nconnection: \"keep-alive, TE\"\nte: \"trailers, gzip;q=0.5\"\nEmpty true false false true",
            "PUT *\nconnection: \"Close\"\nexpect: \"100-Continue\"\ncontent-length: \"002\"\nLength(2) false true false false",
            "CONNECT b:443\nEmpty true false true false",
            "GET /\nupgrade: \"a\"\nconnection: \"upgrade\"\nexpect: \"100-continue\"\nEmpty true false true false",
        ]
        .map(String::from)
        .to_vec(),
        bodies: vec![
            b"abc0123456789".to_vec(),
            Vec::new(),
            b"xy".to_vec(),
            Vec::new(),
            Vec::new(),
        ],
        trailers: vec!["x-sum: \"7\"\n".to_owned()],
    };
    for at in 0..bytes.len() {
        assert_eq!(
            read_cut(bytes, &[at]),
            (expected.clone(), Between),
            "cut at {at}"
        );
    }
}

#[test]
fn persistence_follows_version_and_connection() {
    for (line, connection, expected) in [
        ("GET / HTTP/1.1", "", true),
        ("GET / HTTP/1.1", "close", false),
        ("GET / HTTP/1.1", "te, close", false),
        ("GET / HTTP/1.1", "keep-alive, close", false),
        ("GET / HTTP/1.0", "", false),
        ("GET / HTTP/1.0", "Keep-Alive", true),
        ("GET / HTTP/1.0", "keep-alive\r\nConnection: close", false),
        ("GET / HTTP/1.0", "close\r\nConnection: keep-alive", false),
    ] {
        let text = format!("{line}\r\nConnection: {connection}\r\n\r\n");
        let mut input = BytesMut::from(text.as_str());
        let head = Decoder::new(LIMITS).head(&mut input, &mut HeaderMap::new());
        let head = head.unwrap().unwrap();
        assert_eq!(head.persistent, expected, "{text:?}");
    }
}

#[test]
fn ambiguous_heads_are_rejected() {
    for (headers, expected) in [
        (&b"Content-Length: 3\r\nTransfer-Encoding: chunked"[..], Refusal::Framing),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3", Refusal::Framing),
        (b"Content-Length: 3\r\nContent-Length: 3", Refusal::Framing),
        (b"Content-Length: 3\r\nContent-Length: 4", Refusal::Framing),
        (b"Content-Length: 3, 3", Refusal::Framing),
        (b"Content-Length: +3", Refusal::Framing),
        (b"Content-Length: -1", Refusal::Framing),
        (b"Content-Length: 0x3", Refusal::Framing),
        (b"Content-Length: ", Refusal::Framing),
        (b"Content-Length: 3 3", Refusal::Framing),
        (b"Content-Length: 18446744073709551616", Refusal::Framing),
        (b"Content-Length: 18446744073709551615", Refusal::Framing),
        (b"Content-Length: 9223372036854775808", Refusal::Framing),
        (
            b"Content-Length: 00000000000000000000000000000000000000000000000000000000000000000000003",
            Refusal::Framing,
        ),
        (b"Transfer-Encoding: identity", Refusal::TransferCoding),
        (b"Transfer-Encoding: gzip, chunked", Refusal::TransferCoding),
        (b"Transfer-Encoding: chunked, chunked", Refusal::TransferCoding),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", Refusal::TransferCoding),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", Refusal::TransferCoding),
        (b"Transfer-Encoding: \x0bchunked", Refusal::Header),
        (b"Transfer-Encoding: \"chunked\"", Refusal::TransferCoding),
        (b"Transfer-Encoding:", Refusal::TransferCoding),
        (b"Transfer-Encoding: gzip\r\nContent-Length: 3", Refusal::Framing),
        (b"X: a\r\n b", Refusal::Header),
        (b"X: a\r\n\tb", Refusal::Header),
        (b"X: a\r\n b: c", Refusal::Header),
        (b"X: a\rb", Refusal::Header),
        (b"X: a\nTransfer-Encoding: chunked", Refusal::Header),
        (b"X: a\r\rY: b", Refusal::Header),
        (b"X : a", Refusal::Header),
        (b"X\t: a", Refusal::Header),
        (b": a", Refusal::Header),
        (b"X", Refusal::Header),
        (b"X@: a", Refusal::Header),
        (b"X\xe9: a", Refusal::Header),
        (b"X: \0", Refusal::Header),
        (b"X: \x7f", Refusal::Header),
        (b"X: \x0b", Refusal::Header),
    ] {
        let bytes = [b"POST / HTTP/1.1\r\nHost: a\r\n", headers, b"\r\n\r\n"].concat();
        assert_eq!(read(&bytes), (0, Refused(expected)), "{:?}", headers.escape_ascii());
    }
}

#[test]
fn malformed_request_lines_are_rejected() {
    for line in [
        &b"GET"[..],
        b"GET /",
        b" GET / HTTP/1.1",
        b"GET  / HTTP/1.1",
        b"GET /  HTTP/1.1",
        b"GET / HTTP/1.1 ",
        b"GET\t/ HTTP/1.1",
        b"GET /a b HTTP/1.1",
        b"GET HTTP/1.1",
        b"GET  HTTP/1.1",
        b"GET / HTTP/1.2",
        b"GET / HTTP/0.9",
        b"GET / HTTP/2.0",
        b"GET / http/1.1",
        b"GET / HTTP/11",
        b"G@T / HTTP/1.1",
        b"/ HTTP/1.1",
        b"-+",
        b"-+\rx",
        b"GET /\0 HTTP/1.1",
        b"GET /\x7f HTTP/1.1",
        b"\x16\x03\x01 / HTTP/1.1",
    ] {
        let bytes = [line, b"\r\n\r\n"].concat();
        assert_eq!(
            read(&bytes),
            (0, Refused(Refusal::Header)),
            "{}",
            line.escape_ascii()
        );
    }
}

#[test]
fn bodies_that_a_request_cannot_have_are_rejected() {
    for (bytes, expected) in [
        (
            &b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
            Refusal::Framing,
        ),
        (
            b"CONNECT a:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Refusal::TransferCoding,
        ),
        (
            b"CONNECT a:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
            Refusal::Framing,
        ),
    ] {
        assert_eq!(read(bytes), (0, Refused(expected)));
    }
    let bytes = b"CONNECT a:443 HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(read(bytes), (1, Between));
}

#[test]
fn a_target_with_a_fragment_is_rejected() {
    for (line, refused) in [
        (&b"GET /a#b HTTP/1.1"[..], true),
        (b"GET /a?b#c HTTP/1.1", true),
        (b"GET # HTTP/1.1", true),
        (b"GET http://a#b HTTP/1.1", true),
        (b"GET /a%23b HTTP/1.1", false),
        // a token may contain it
        (b"G#T / HTTP/1.1", false),
    ] {
        let bytes = [b"\r\n", line, b"\r\nX: #\r\n\r\n"].concat();
        let expected = match refused {
            true => (0, Refused(Refusal::Target)),
            false => (1, Between),
        };
        assert_eq!(read(&bytes), expected, "{}", line.escape_ascii());
    }
}

#[test]
fn malformed_chunks_are_rejected() {
    for body in [
        &b"\r\n"[..],
        b"x\r\n",
        b"0x3\r\nabc\r\n",
        b"+3\r\nabc\r\n",
        b"-3\r\nabc\r\n",
        b"3 \r\nabc\r\n",
        b" 3\r\nabc\r\n",
        b"3\nabc\r\n",
        b"3\rabc\r\n",
        b"3;a\nb\r\nabc\r\n",
        b"3\r\nabcd\r\n",
        b"3\r\nabc\n",
        b"3\r\nabc0\r\n",
        b"00000000000000003\r\nabc\r\n",
        b"10000000000000000\r\nabc\r\n",
        b"0\r\nx: a\r\n b\r\n\r\n",
        b"0\r\nx: a\nb\r\n\r\n",
        b"0\r\nx\r\n\r\n",
        b"0\r\nx : a\r\n\r\n",
        b"0\r\nx: \0\r\n\r\n",
    ] {
        let bytes = [
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            body,
        ]
        .concat();
        let refused = (1, Refused(Refusal::Chunk));
        assert_eq!(read(&bytes), refused, "{:?}", body.escape_ascii());
    }
}

#[test]
fn chunk_extensions_of_a_body_are_bounded() {
    let start = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("1;{}\r\na\r\n", "x".repeat(255));
    let fits = EXTENSION_BYTES_MAX / 256;
    for (chunks, expected) in [(fits, Body), (fits + 1, Refused(Refusal::Chunk))] {
        let text = format!("{start}{}", chunk.repeat(chunks));
        assert_eq!(read_cut(text.as_bytes(), &[]).1, expected, "{chunks}");
    }
}

#[test]
fn request_before_a_malformed_one_is_accepted() {
    let good = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let bad = b"GET / HTTP/1.1\r\nX: a\nb\r\n\r\n";
    let refused = (1, Refused(Refusal::Header));
    assert_eq!(read(&[&good[..], bad].concat()), refused);
}

#[test]
fn head_limits_are_enforced() {
    let many: String = (0..8).map(|number| format!("x{number}: y\r\n")).collect();
    let fits = format!("GET / HTTP/1.1\r\n{many}\r\n");
    assert_eq!(read(fits.as_bytes()), (1, Between));
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(512 - 23));
    assert_eq!(long.len(), LIMITS.head_bytes_max);
    assert_eq!(read(long.as_bytes()), (1, Between));
    let fields = format!("GET / HTTP/1.1\r\n{many}one: more\r\n\r\n");
    let bytes = format!("GET /{} HTTP/1.1\r\n", "a".repeat(512));
    let one_more = long.replace("x: ", "x:  ");
    let endless = "x".repeat(513);
    let empty = "\r\n".repeat(300);
    // A line with two faults is rejected for the same one however it is split.
    let malformed_behind_limit = format!("{endless}\r\rx");
    for text in [
        fields,
        bytes,
        one_more,
        endless,
        empty,
        malformed_behind_limit,
    ] {
        let refused = (0, Refused(Refusal::HeadersTooLarge));
        assert_eq!(read(text.as_bytes()), refused);
    }
    let start = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        format!("3;{}\r\n", "x".repeat(512)),
        format!("0\r\n{}\r\n", "x: y\r\n".repeat(9)),
        format!("0\r\nx: {}\r\n", "y".repeat(512)),
    ] {
        let refused = (1, Refused(Refusal::Chunk));
        assert_eq!(read(format!("{start}{body}").as_bytes()), refused, "{body}");
    }
}

/// Random sequence of parts of requests and of attacks.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "GET / HTTP/1.1\r\n",
        "POST /x HTTP/1.1\r\n",
        "Host: a\r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Upgrade: h2c\r\n",
        "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "\r\n",
        "\r",
        "\n",
        " ",
        "5\r\nhello\r\n",
        "0\r\n",
        "hello",
        "0\r\n\r\n",
        "3;x\r\n",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn result_does_not_depend_on_segmentation(
        bytes in any_stream(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        prop_assert_eq!(read_cut(&bytes, &cuts), read_cut(&bytes, &[]));
    }

    #[test]
    fn any_bytes_are_parsed_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_cut(&bytes, &[]);
    }
}

#[test]
fn trailers_of_many_short_lines_are_limited_in_bytes() {
    let body = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    for (lines, expected) in [(4, Between), (5, Refused(Refusal::Chunk))] {
        let line = format!("x: {}\r\n", "y".repeat(100));
        let bytes = [&body[..], line.repeat(lines).as_bytes(), b"\r\n"].concat();
        assert_eq!(read(&bytes), (1, expected), "{lines}");
    }
}

#[test]
fn empty_lines_count_over_a_pause() {
    let head = b"GET / HTTP/1.1\r\n\r\n";
    for (before, fits) in [(400, true), (512, false)] {
        let mut decoder = Decoder::after(before, LIMITS);
        let found = decoder.head(&mut BytesMut::from(&head[..]), &mut HeaderMap::new());
        assert_eq!(found.is_ok(), fits);
        if fits {
            assert_eq!(decoder.skipped(), 0);
        }
    }
    let mut decoder = Decoder::new(LIMITS);
    let found = decoder.head(&mut BytesMut::from(&b"\r\n\r\n"[..]), &mut HeaderMap::new());
    assert!(matches!(found, Ok(None)));
    assert_eq!(decoder.skipped(), 4);
}
