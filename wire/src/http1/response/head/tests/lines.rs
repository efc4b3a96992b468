//! Lines of response heads: valid ones, invalid ones and how early they fail, and agreement with `httparse`.

use std::error::Error as _;

use httparse::{ParserConfig, Status};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::http1::response::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};

/// Parsed head: status, reason and fields; framing, reusability, and the bytes after it.
type Known = (
    (StatusCode, Option<Vec<u8>>, HeaderMap),
    (Decoder, bool, Vec<u8>),
);

/// Parses with our parser: a head, `None` if it is incomplete, or the text of the error.
fn ours(bytes: &[u8], asked: &ExpectedResponse) -> Result<Option<Known>, String> {
    match read(bytes, asked) {
        Ok(None) => Ok(None),
        Ok(Some((head, rest))) => {
            let reason = head.reason.map(|reason| reason.as_bytes().to_vec());
            let line = (head.status, reason, head.headers);
            Ok(Some((line, (head.decoder, head.persistent, rest))))
        }
        Err(error) => Err(error.0.to_string()),
    }
}

/// Parses with `httparse`, under our limits and framing.
fn theirs(bytes: &[u8], asked: &ExpectedResponse) -> Result<Option<Known>, String> {
    let mut lines = [httparse::EMPTY_HEADER; RESPONSE_HEADERS_MAX];
    let mut response = httparse::Response::new(&mut lines);
    let parsed = ParserConfig::default().parse_response(&mut response, bytes);
    let length = match parsed.map_err(|error| error.to_string())? {
        Status::Complete(length) if length <= RESPONSE_HEAD_BYTES_MAX => length,
        Status::Partial if bytes.len() < RESPONSE_HEAD_BYTES_MAX => return Ok(None),
        _ => return Err("response head too long".to_owned()),
    };
    let status = StatusCode::from_u16(response.code.unwrap()).map_err(|error| error.to_string())?;
    let reason = response.reason.unwrap();
    let unusual = status.canonical_reason() != Some(reason);
    let reason = unusual.then(|| reason.as_bytes().to_vec());
    let mut headers = HeaderMap::new();
    let mut delimiters = Delimiters::default();
    for line in response.headers {
        let name = HeaderName::from_bytes(line.name.as_bytes()).unwrap();
        let value = HeaderValue::from_bytes(line.value).unwrap();
        delimiters.note(&name, &value);
        headers.append(name, value);
    }
    let is_http11 = response.version == Some(1);
    let framing = framing(status, is_http11, &mut headers, delimiters, asked);
    let (decoder, delimited) = framing.map_err(|error| error.source().unwrap().to_string())?;
    let persistent = delimited && delimiters.stays_open(is_http11);
    let rest = bytes[length..].to_vec();
    Ok(Some((
        (status, reason, headers),
        (decoder, persistent, rest),
    )))
}

#[test]
fn lenient_forms_of_lines_are_accepted() {
    for (text, status, reason, fields) in [
        ("HTTP/1.1 200 OK\r\n\r\n", 200, None, &[][..]),
        ("HTTP/1.0 404 Gone\r\n\r\n", 404, Some("Gone"), &[]),
        ("\r\n\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200, None, &[]),
        (
            "HTTP/1.1 200 OK\na: b\nc:d\n\n",
            200,
            None,
            &[("a", "b"), ("c", "d")],
        ),
        (
            "HTTP/1.1 200\na: b\r\nc: d\n\r\n",
            200,
            Some(""),
            &[("a", "b"), ("c", "d")],
        ),
        ("HTTP/1.1 200\r\n\n", 200, Some(""), &[]),
        ("HTTP/1.1 200 \n\n", 200, Some(""), &[]),
        ("HTTP/1.1 200  OK \r\n\r\n", 200, Some(" OK "), &[]),
        ("HTTP/1.1 999 t\u{e9}\t\r\n\r\n", 999, Some(""), &[]),
        (
            "HTTP/1.1 200 OK\r\na:\r\nb: \t \r\nc:\t\"d\"\t e \t\r\nd:::\r\n\r\n",
            200,
            None,
            &[("a", ""), ("b", ""), ("c", "\"d\"\t e"), ("d", "::")],
        ),
        (
            "HTTP/1.1 200 OK\r\n!#$%&'*+-.^_`|~09aZ: 1\r\nx: \u{e9}\r\n\r\n",
            200,
            None,
            &[("!#$%&'*+-.^_`|~09az", "1"), ("x", "\u{e9}")],
        ),
    ] {
        let (line, (_, _, rest)) = ours(text.as_bytes(), &HEAD).unwrap().expect("a head");
        let expected = reason.map(|reason| reason.as_bytes().to_vec());
        assert_eq!((line.0.as_u16(), line.1), (status, expected), "{text:?}");
        let got = line.2.iter();
        let got: Vec<_> = got
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let fields = fields.iter();
        let fields: Vec<_> = fields
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect();
        assert_eq!(got, fields, "{text:?}");
        assert_eq!(rest, b"", "{text:?}");
    }
}

#[test]
fn head_is_refused_at_the_first_wrong_byte() {
    for (text, error) in [
        ("\rH", "invalid new line"),
        ("\r\r", "invalid new line"),
        (" ", "invalid HTTP version"),
        ("h", "invalid HTTP version"),
        ("\x16", "invalid HTTP version"),
        ("HTTP/2", "invalid HTTP version"),
        ("HTTP/1.2", "invalid HTTP version"),
        ("HTTP/1.1\t", "invalid HTTP version"),
        ("HTTP/1.1\r", "invalid HTTP version"),
        ("HTTP/1.1  ", "invalid response status"),
        ("HTTP/1.1 2x", "invalid response status"),
        ("HTTP/1.1 20\r", "invalid response status"),
        ("HTTP/1.1 2000", "invalid response status"),
        ("HTTP/1.1 200\t", "invalid response status"),
        ("HTTP/1.1 200\r\r", "invalid response status"),
        ("HTTP/1.1 200 O\0", "invalid response status"),
        ("HTTP/1.1 200 O\x7f", "invalid response status"),
        ("HTTP/1.1 200 OK\rX", "invalid response status"),
        ("HTTP/1.1 200 OK\r\n\rX", "invalid new line"),
        ("HTTP/1.1 200 OK\r\n:", "invalid header name"),
        ("HTTP/1.1 200 OK\r\n ", "invalid header name"),
        ("HTTP/1.1 200 OK\r\n\t", "invalid header name"),
        ("HTTP/1.1 200 OK\r\na ", "invalid header name"),
        ("HTTP/1.1 200 OK\r\na\r", "invalid header name"),
        ("HTTP/1.1 200 OK\r\na\n", "invalid header name"),
        ("HTTP/1.1 200 OK\r\na\"", "invalid header name"),
        ("HTTP/1.1 200 OK\r\na\0", "invalid header name"),
        ("HTTP/1.1 200 OK\r\na: b\r\n ", "invalid header name"),
        ("HTTP/1.1 200 OK\r\na: b\n\t", "invalid header name"),
        ("HTTP/1.1 200 OK\r\na:\0", "invalid header value"),
        ("HTTP/1.1 200 OK\r\na: b\x7f", "invalid header value"),
        ("HTTP/1.1 200 OK\r\na: b\rc", "invalid header value"),
        ("HTTP/1.1 200 OK\r\na: b\r\r", "invalid header value"),
        ("HTTP/1.1 200 OK\r\na:\rb", "invalid header value"),
        ("HTTP/1.1 099 Low\r\n\r\n", "invalid status code"),
    ] {
        let bytes = text.as_bytes();
        for end in 0..bytes.len() {
            assert_eq!(ours(&bytes[..end], &PLAIN), Ok(None), "{text:?} to {end}");
        }
        for rest in ["", "\n", "\r\n\r\n", ": x\r\n\r\n", "x\nb: c\r\n\r\nrest"] {
            let bytes = format!("{text}{rest}");
            let got = ours(bytes.as_bytes(), &PLAIN);
            assert_eq!(got, Err(error.to_owned()), "{bytes:?}");
        }
    }
}

#[test]
fn first_of_several_flaws_is_told() {
    for (lines, error) in [
        ("a: \0\r\n b: c\r\n\r\n", "invalid header value"),
        ("a b: c\r\nd: \0\r\n\r\n", "invalid header name"),
        ("a: b\r\n\rc: \0\r\n: e\r\n", "invalid new line"),
        ("a: \0", "invalid header value"),
        ("a: \0\r\n b", "invalid header value"),
    ] {
        let bytes = format!("HTTP/1.1 099 Low\r\n{lines}");
        let got = ours(bytes.as_bytes(), &PLAIN);
        assert_eq!(got, Err(error.to_owned()), "{lines:?}");
    }
}

#[test]
fn lines_past_a_limit_are_refused_before_the_head_ends() {
    let lines = |count| format!("HTTP/1.1 200 OK\r\n{}", "a: b\n".repeat(count));
    let most = lines(RESPONSE_HEADERS_MAX);
    for (text, error) in [
        (format!("{most}a: b\r"), None),
        (format!("{most}a: b\r\n"), Some("too many headers")),
        (format!("{most}a b"), Some("invalid header name")),
        (format!("{most}a: \0\n"), Some("invalid header value")),
        (lines(10 * RESPONSE_HEADERS_MAX), Some("too many headers")),
    ] {
        let got = ours(text.as_bytes(), &PLAIN);
        assert_eq!(got, error.map_or(Ok(None), |error| Err(error.to_owned())));
        assert_eq!(got, theirs(text.as_bytes(), &PLAIN));
    }
    for (size, rest) in [
        (-1, ""),
        (0, ""),
        (1, ""),
        (-1, ":\r\n\r\n"),
        (9, ":\r\n\r\n"),
    ] {
        let size = RESPONSE_HEAD_BYTES_MAX.saturating_add_signed(size);
        for start in [
            "HTTP/1.1 200 ",
            "HTTP/1.1 200 OK\na:",
            "HTTP/1.1 200 OK\r\n",
        ] {
            let text = format!("{start}{}{rest}", "x".repeat(size - start.len()));
            let got = ours(text.as_bytes(), &PLAIN);
            assert_eq!(
                got,
                theirs(text.as_bytes(), &PLAIN),
                "{start:?} {size} {rest:?}"
            );
            assert_eq!(got.is_ok(), text.len() < RESPONSE_HEAD_BYTES_MAX);
        }
    }
    // bytes beyond the limit are not read
    let long = format!(
        "{}\0",
        String::from_utf8(head_of(RESPONSE_HEAD_BYTES_MAX + 4)).unwrap()
    );
    let got = ours(long.as_bytes(), &PLAIN);
    assert_eq!(got, Err("response head too long".to_owned()));
}

/// Picks one of these values, mostly one of the usual ones.
fn mostly<T: Clone + std::fmt::Debug + 'static>(
    usual: &[T],
    odd: &[T],
) -> impl Strategy<Value = T> {
    prop_oneof![16 => select(usual.to_vec()), 1 => select(odd.to_vec())]
}

fn line_end() -> impl Strategy<Value = &'static str> {
    mostly(
        &["\r\n", "\r\n", "\r\n", "\n"],
        &["\r", "\r\r\n", "", " \r\n", "\r\n ", "\r\n\r\n"],
    )
}

fn status_line() -> impl Strategy<Value = Vec<u8>> {
    let first = mostly(&["", "", "", "\r\n", "\n"], &["\r", " ", "\n\r\n"]);
    let version = mostly(
        &["HTTP/1.1 ", "HTTP/1.0 "],
        &["HTTP/1.2 ", "HTTP/1.1", "http/1.1 "],
    );
    let status = mostly(
        &["200", "404", "101", "204", "304", "103"],
        &["099", "20", "2000", "6x0"],
    );
    let reason = mostly(
        &[
            " OK",
            " ",
            "",
            " No Content",
            " Not Found at all",
            " a\tb",
            " t\u{e9}",
        ],
        &[" a\0", "\t", " \x7f", "x"],
    );
    let all = (first, version, status, reason);
    all.prop_map(|(first, version, status, reason)| {
        [first, version, status, reason].concat().into_bytes()
    })
}

fn field_line() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        mostly(
            &[
                "Content-Length",
                "content-length",
                "Transfer-Encoding",
                "Connection",
                "date"
            ],
            &["", " a", "a ", "a\tb", "a\"", "\r", "a(b"],
        )
        .prop_map(str::to_owned),
        "[a-zA-Z0-9_!|~-]{1,20}",
    ];
    let colon = mostly(&[":", ": ", ":  ", ":\t "], &["", " :", "\n:", "::"]);
    let value = prop_oneof![
        select(
            &[
                "5",
                "5, 5",
                "005",
                "chunked",
                ",chunked",
                "gzip",
                "close",
                "x, keep-alive",
                ""
            ][..]
        )
        .prop_map(|value| value.as_bytes().to_vec()),
        "[ -~\t]{0,40}".prop_map(String::into_bytes),
        "[ -~\u{e9}\t]{0,9}".prop_map(String::into_bytes),
    ];
    (name, colon, value)
        .prop_map(|(name, colon, value)| [name.as_bytes(), colon.as_bytes(), &value].concat())
}

/// Generates valid and almost valid heads, and bytes that may follow one.
fn near_valid() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::collection::vec((field_line(), line_end()), 0..7);
    let end = mostly(&["\r\n", "\n"], &["", "\r", "\rx"]);
    let odd = select(&b"\r\n: \t\0\x7f\x80a,H1\"\x1f"[..]);
    let changes = prop::collection::vec((any::<Index>(), 0..3_u8, odd), 0..3);
    let all = (
        status_line(),
        line_end(),
        lines,
        end,
        prop::bool::ANY,
        changes,
    );
    all.prop_map(|(status_line, line_end, lines, end, whole, changes)| {
        let mut bytes = [&status_line[..], line_end.as_bytes()].concat();
        for (line, line_end) in lines {
            bytes.extend_from_slice(&line);
            bytes.extend_from_slice(line_end.as_bytes());
        }
        bytes.extend_from_slice(end.as_bytes());
        bytes.extend_from_slice(b"body\r\n\r\n");
        for (index, change, byte) in changes {
            let at = index.index(bytes.len());
            match change {
                _ if whole => {}
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        bytes
    })
}

/// Generates a request, bytes, and positions to cut them.
fn cases() -> impl Strategy<Value = (ExpectedResponse, Vec<u8>, Vec<usize>)> {
    let asked = select(vec![PLAIN, HEAD, upgrading("websocket")]);
    let cuts = prop::collection::vec(any::<Index>(), 16);
    (asked, near_valid(), cuts).prop_map(|(asked, bytes, cuts)| {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.push(bytes.len());
        (asked, bytes, cuts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Compares the result, when it is known, and the text of the error: for the whole input and its prefixes.
    #[test]
    fn httparse_agrees((asked, bytes, cuts) in cases()) {
        for cut in cuts {
            let bytes = &bytes[..cut];
            prop_assert_eq!(ours(bytes, &asked), theirs(bytes, &asked), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn result_does_not_depend_on_segmentation((asked, bytes, cuts) in cases()) {
        let whole = ours(&bytes, &asked);
        for cut in cuts {
            let (begin, rest) = bytes.split_at(cut);
            match ours(begin, &asked) {
                Ok(None) => {}
                Ok(Some((line, (decoder, persistent, mut left)))) => {
                    left.extend_from_slice(rest);
                    prop_assert_eq!(&Ok(Some((line, (decoder, persistent, left)))), &whole);
                }
                Err(text) => prop_assert_eq!(&Err(text), &whole),
            }
        }
    }
}
