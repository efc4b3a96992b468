use super::*;
use crate::http1::response::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};

mod lines;

const PLAIN: ExpectedResponse = ExpectedResponse {
    head: false,
    upgrade: None,
};
const HEAD: ExpectedResponse = ExpectedResponse {
    head: true,
    upgrade: None,
};
/// A request to switch to one of these protocols.
fn upgrading(protocols: &'static str) -> ExpectedResponse {
    ExpectedResponse {
        head: false,
        upgrade: Some(Box::new(HeaderValue::from_static(protocols))),
    }
}

fn parts(method: &str, target: &str, headers: &[(&'static str, &'static str)]) -> Parts {
    let request = http::Request::builder().method(method).uri(target);
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    for (name, value) in headers {
        parts.headers.append(*name, HeaderValue::from_static(value));
    }
    parts
}

#[test]
fn value_of_an_encoded_header_is_replaced() {
    let mut head = b"GET /x-a: 0 HTTP/1.1\r\nx-a: 1\r\nx-ab: 2\r\nb: x-a: 3\r\n\r\n".to_vec();
    for (name, value) in [("x-a", "longer"), ("x-ab", ""), ("x-none", "4")] {
        let name = HeaderName::from_static(name);
        replace(&mut head, &name, &HeaderValue::from_static(value));
    }
    let expected = "GET /x-a: 0 HTTP/1.1\r\nx-a: longer\r\nx-ab: \r\nb: x-a: 3\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), expected);
}

#[test]
fn requests_are_encoded_unchanged() {
    let length = ("content-length", "5");
    for (method, target, headers, empty, expected) in [
        ("GET", "/", &[][..], true, "GET / HTTP/1.1\r\n\r\n"),
        (
            "GET",
            "/a?b=%20c",
            &[],
            true,
            "GET /a?b=%20c HTTP/1.1\r\n\r\n",
        ),
        ("OPTIONS", "*", &[], true, "OPTIONS * HTTP/1.1\r\n\r\n"),
        ("PURGE", "/x", &[], true, "PURGE /x HTTP/1.1\r\n\r\n"),
        ("GET", "http://a.test", &[], true, "GET / HTTP/1.1\r\n\r\n"),
        (
            "GET",
            "/",
            &[("host", "a"), ("x", "1"), ("y", ""), ("x", "2")],
            true,
            "GET / HTTP/1.1\r\nhost: a\r\nx: 1\r\nx: 2\r\ny: \r\n\r\n",
        ),
        // a declared length without a body would swallow the next request
        ("POST", "/", &[length], true, "POST / HTTP/1.1\r\n\r\n"),
        (
            "POST",
            "/",
            &[("content-length", "0")],
            true,
            "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
        ),
        (
            "POST",
            "/",
            &[length],
            false,
            "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n",
        ),
        (
            "POST",
            "/",
            &[],
            false,
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        (
            "POST",
            "/",
            &[length, ("content-length", "6"), ("x", "1")],
            false,
            "POST / HTTP/1.1\r\nx: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        (
            "POST",
            "/",
            &[("content-length", "+5")],
            false,
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
    ] {
        let parts = parts(method, target, headers);
        let mut out = Vec::new();
        encode(&mut out, &parts, Framing::of(&parts.headers, empty), |_| ());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn method_and_upgrade_determine_the_expected_response() {
    assert_eq!(ExpectedResponse::by(&parts("GET", "/", &[])), PLAIN);
    assert_eq!(ExpectedResponse::by(&parts("HEAD", "/", &[])), HEAD);
    let upgrade = parts("GET", "/", &[("upgrade", "websocket")]);
    assert_eq!(ExpectedResponse::by(&upgrade), upgrading("websocket"));
}

fn read(bytes: &[u8], asked: &ExpectedResponse) -> Result<Option<(Head, Vec<u8>)>, Malformed> {
    let mut input = BytesMut::from(bytes);
    let head = parse(&mut input, &mut HeaderMap::new(), asked)?;
    Ok(head.map(|head| (head, input.to_vec())))
}

/// Returns the framing of a response with these lines, and whether its connection can be reused.
fn framed(text: &str, asked: &ExpectedResponse) -> Result<(Decoder, bool), Malformed> {
    let bytes = format!("{text}\r\n\r\nnext");
    let (head, rest) = read(bytes.as_bytes(), asked)?.expect("a whole head");
    assert_eq!(rest, b"next", "{text:?}");
    Ok((head.decoder, head.persistent))
}

#[test]
fn responses_are_delimited_by_the_rfc() {
    let none = Decoder::End;
    let five = Decoder::Length(5);
    let chunks = Decoder::chunked();
    let close = Decoder::UntilClose;
    for (text, asked, decoder, persistent) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5", PLAIN, five, true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0", PLAIN, none, true),
        ("HTTP/1.1 200 OK", PLAIN, close, false),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked",
            PLAIN,
            chunks,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: ,Chunked ,",
            PLAIN,
            chunks,
            true,
        ),
        // keep-alive
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close",
            PLAIN,
            five,
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: x, CLOSE",
            PLAIN,
            five,
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nconnection: x\r\nconnection: close\r\ncontent-length: 5",
            PLAIN,
            five,
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close, keep-alive\r\nconnection: x",
            PLAIN,
            five,
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: closed",
            PLAIN,
            five,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nconnection: keep-alive",
            PLAIN,
            close,
            false,
        ),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5", PLAIN, five, false),
        (
            "HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: Keep-Alive",
            PLAIN,
            five,
            true,
        ),
        (
            "HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive, x\r\nconnection: y",
            PLAIN,
            five,
            true,
        ),
        (
            "HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive, close",
            PLAIN,
            five,
            false,
        ),
        (
            "HTTP/1.0 200 OK\r\nconnection: keep-alive",
            PLAIN,
            close,
            false,
        ),
        // no body, whatever the headers say
        ("HTTP/1.1 200 OK\r\ncontent-length: 5", HEAD, none, true),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked",
            HEAD,
            none,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5",
            HEAD,
            none,
            false,
        ),
        ("HTTP/1.1 200 OK", HEAD, none, true),
        ("HTTP/1.1 204 No Content", PLAIN, none, true),
        (
            "HTTP/1.1 204 No Content\r\ncontent-length: 5",
            PLAIN,
            none,
            true,
        ),
        (
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 5",
            PLAIN,
            none,
            true,
        ),
        ("HTTP/1.1 103 Early Hints\r\nlink: </a>", PLAIN, none, true),
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: a",
            upgrading("a"),
            none,
            false,
        ),
        // lengths
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5",
            PLAIN,
            five,
            true,
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5, 5", PLAIN, five, true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 005", PLAIN, five, true),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615",
            PLAIN,
            Decoder::Length(u64::MAX),
            true,
        ),
        // both: the coding wins, and the connection ends
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked",
            PLAIN,
            chunks,
            false,
        ),
    ] {
        let got = framed(text, &asked).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        assert_eq!(got, (decoder, persistent), "{text:?}");
    }
}

#[test]
fn ambiguous_responses_are_rejected() {
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6",
        "HTTP/1.1 200 OK\r\ncontent-length: 5, 6",
        "HTTP/1.1 200 OK\r\ncontent-length: 5,",
        "HTTP/1.1 200 OK\r\ncontent-length:",
        "HTTP/1.1 200 OK\r\ncontent-length: -1",
        "HTTP/1.1 200 OK\r\ncontent-length: +5",
        "HTTP/1.1 200 OK\r\ncontent-length: 0x5",
        "HTTP/1.1 200 OK\r\ncontent-length: 5 5",
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999",
        "HTTP/1.1 200 OK\r\ncontent-length: x\r\ntransfer-encoding: chunked",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, gzip",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked",
        "HTTP/1.1 200 OK\r\ntransfer-encoding:",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: a",
        // not a response, or malformed
        "HTTP/1.1 200 OK\r\na: b\r\n folded",
        "HTTP/1.1 200 OK\r\n a: b",
        "HTTP/1.1 200 OK\r\na : b",
        "HTTP/1.1 200 OK\r\n: b",
        "HTTP/1.1 200 OK\r\nno colon",
        "HTTP/1.1 200 OK\r\na: b\0c",
        "HTTP/1.1 200 OK\r\na\0: b",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 200 OK\r\na: b\rc",
        "HTTP/1.1 099 Low",
        "HTTP/1.1 20 Short",
        "HTTP/1.1 2000 Long",
        "HTTP/1.1 -20 Negative",
        "HTTP/1.2 200 OK",
        "HTTP/2.0 200 OK",
        "http/1.1 200 OK",
        "ICY 200 OK",
        "GET / HTTP/1.1",
        "\x16\x03\x01\x02",
    ] {
        assert!(framed(text, &PLAIN).is_err(), "{text:?} was taken");
    }
}

#[test]
fn repeated_content_length_is_merged() {
    for lines in [
        "content-length: 5\r\ncontent-length: 5",
        "content-length: 5 , 05",
    ] {
        for asked in [&PLAIN, &HEAD] {
            let bytes = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
            let (head, _) = read(bytes.as_bytes(), asked).unwrap().unwrap();
            let lengths: Vec<_> = head.headers.get_all(CONTENT_LENGTH).iter().collect();
            assert_eq!(lengths, ["5"], "{lines:?}");
        }
    }
    let both = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n";
    let (head, _) = read(both, &PLAIN).unwrap().unwrap();
    assert!(!head.headers.contains_key(CONTENT_LENGTH));
}

#[test]
fn unusual_reason_phrase_is_kept() {
    for (line, reason) in [
        ("200 OK", None),
        ("200 Fine", Some("Fine")),
        ("200 ", Some("")),
        ("200", Some("")),
        ("299 ", Some("")),
        ("503 Service Unavailable", None),
        ("503 a b\tc", Some("a b\tc")),
    ] {
        let bytes = format!("HTTP/1.1 {line}\r\n\r\n");
        let (head, _) = read(bytes.as_bytes(), &PLAIN).unwrap().unwrap();
        let got = head.reason.as_ref().map(ReasonPhrase::as_bytes);
        assert_eq!(got, reason.map(str::as_bytes), "{line:?}");
    }
}

#[test]
fn header_lines_keep_order_and_unusual_bytes() {
    let bytes = b"HTTP/1.1 200 OK\r\nB: 1\r\na:  x y \t\r\nb: 2\r\nlatin: t\xe9\r\nempty:\r\n\r\n";
    let (head, rest) = read(bytes, &PLAIN).unwrap().unwrap();
    let twice: Vec<_> = head.headers.get_all("b").iter().collect();
    assert_eq!(twice, ["1", "2"]);
    assert_eq!(head.headers["a"], "x y");
    assert_eq!(head.headers["latin"].as_bytes(), b"t\xe9");
    assert_eq!(head.headers["empty"], "");
    assert_eq!(head.headers.len(), 5);
    assert!(rest.is_empty());
}

#[test]
fn reused_buffer_has_no_headers_of_the_previous_message() {
    let mut memory = parts("GET", "/", &[("secret", "1"), ("host", "a")]).headers;
    let mut input = BytesMut::from(&b"HTTP/1.1 200 OK\r\na: b\r\n\r\n"[..]);
    let head = parse(&mut input, &mut memory, &PLAIN).unwrap().unwrap();
    assert_eq!(head.headers.len(), 1);
    assert_eq!(head.headers["a"], "b");
}

/// Returns a response head of this many bytes.
fn head_of(bytes: usize) -> Vec<u8> {
    let (start, end) = ("HTTP/1.1 200 OK\r\na: ", "\r\n\r\n");
    let value = "b".repeat(bytes - start.len() - end.len());
    format!("{start}{value}{end}").into_bytes()
}

#[test]
fn head_size_is_limited() {
    for (bytes, fits) in [
        (RESPONSE_HEAD_BYTES_MAX - 1, true),
        (RESPONSE_HEAD_BYTES_MAX, true),
        (RESPONSE_HEAD_BYTES_MAX + 1, false),
    ] {
        let head = head_of(bytes);
        assert_eq!(head.len(), bytes);
        assert_eq!(read(&head, &PLAIN).is_ok(), fits, "{bytes} at once");
        let mut input = BytesMut::new();
        let mut headers = HeaderMap::new();
        let pieces = head.chunks(4000).chain([&b"body"[..]]);
        let mut parsed = pieces.map(|piece| {
            input.extend_from_slice(piece);
            parse(&mut input, &mut headers, &PLAIN).map(|head| head.is_some())
        });
        let first = parsed.find(|parsed| !matches!(parsed, Ok(false)));
        assert_eq!(first.unwrap().is_ok(), fits, "{bytes} in pieces");
    }
    // an endless head fails as soon as it exceeds the limit
    let endless = &head_of(RESPONSE_HEAD_BYTES_MAX + 10)[..RESPONSE_HEAD_BYTES_MAX];
    assert!(read(endless, &PLAIN).is_err());
    let unfinished = read(&endless[..RESPONSE_HEAD_BYTES_MAX - 1], &PLAIN);
    assert!(unfinished.unwrap().is_none());
}

#[test]
fn number_of_header_lines_is_limited() {
    for (lines, fits) in [
        (RESPONSE_HEADERS_MAX, true),
        (RESPONSE_HEADERS_MAX + 1, false),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(lines));
        assert_eq!(read(head.as_bytes(), &PLAIN).is_ok(), fits);
    }
}

#[test]
fn split_input_parses_like_whole_input() {
    let told = |(head, rest): (Head, Vec<u8>)| {
        let reason = head.reason.map(|reason| reason.as_bytes().to_vec());
        (
            (head.status, reason, head.headers),
            (head.decoder, head.persistent, rest),
        )
    };
    for (text, asked) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx: y\r\n\r\nabc",
            PLAIN,
        ),
        (
            "HTTP/1.0 404 Gone Fishing\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
            PLAIN,
        ),
        (
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            PLAIN,
        ),
        ("HTTP/1.1 200 OK\nx: y\n\nabc", PLAIN),
        (
            "\r\n\r\nHTTP/1.1 200\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            HEAD,
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\nraw",
            upgrading("x"),
        ),
    ] {
        let bytes = text.as_bytes();
        let whole = told(read(bytes, &asked).unwrap().unwrap());
        for split in 0..=bytes.len() {
            let mut input = BytesMut::from(&bytes[..split]);
            let mut headers = HeaderMap::new();
            let first = parse(&mut input, &mut headers, &asked).unwrap();
            input.extend_from_slice(&bytes[split..]);
            let head = match first {
                Some(head) => head,
                None => parse(&mut input, &mut headers, &asked).unwrap().unwrap(),
            };
            assert_eq!(told((head, input.to_vec())), whole, "{text:?} at {split}");
        }
    }
}

#[test]
fn switch_is_only_to_protocols_that_were_asked_for() {
    for (asked, head, fits) in [
        ("websocket", "HTTP/1.1 101 S\r\nupgrade: websocket", true),
        ("websocket", "HTTP/1.1 101 S\r\nUpgrade: WebSocket", true),
        ("a/1, b", "HTTP/1.1 101 S\r\nupgrade: b, a/1", true),
        ("a, b", "HTTP/1.1 101 S\r\nupgrade: a\r\nupgrade: b", true),
        ("websocket", "HTTP/1.1 101 S", false),
        ("websocket", "HTTP/1.1 101 S\r\nupgrade:", false),
        ("websocket", "HTTP/1.1 101 S\r\nupgrade: ,", false),
        ("websocket", "HTTP/1.1 101 S\r\nupgrade: h2c", false),
        (
            "websocket",
            "HTTP/1.1 101 S\r\nupgrade: websocket, h2c",
            false,
        ),
        (
            "websocket",
            "HTTP/1.1 101 S\r\nupgrade: websocket\r\nupgrade: h2c",
            false,
        ),
        ("websocket", "HTTP/1.0 101 S\r\nupgrade: websocket", false),
        ("a/1", "HTTP/1.1 101 S\r\nupgrade: a", false),
    ] {
        let bytes = format!("{head}\r\n\r\n");
        let found = read(bytes.as_bytes(), &upgrading(asked));
        assert_eq!(found.is_ok(), fits, "{asked}: {head}");
    }
}
