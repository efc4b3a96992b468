use http::Response;

use super::*;

const DATE_VALUE: &[u8] = b"Wed, 25 Nov 2026 10:00:00 GMT";

fn write_date(out: &mut Vec<u8>) {
    out.extend_from_slice(DATE_VALUE);
}

const GET: RequestTraits = RequestTraits {
    method: MethodKind::Other,
    is_http11: true,
    persistent: true,
    takes_trailers: false,
};

const OLD: RequestTraits = RequestTraits {
    is_http11: false,
    ..GET
};

const ONCE: RequestTraits = RequestTraits {
    persistent: false,
    ..GET
};

fn of(method: MethodKind) -> RequestTraits {
    RequestTraits { method, ..GET }
}

/// Returns the lines of a head without the date, joined by `|`, and the framing and persistence of the response.
fn written(
    status: u16,
    fields: &[(&str, &str)],
    asked: RequestTraits,
    exact: Option<u64>,
) -> (String, ResponseFraming) {
    let mut response = Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    let (parts, ()) = response.body(()).unwrap().into_parts();
    let size = exact.map_or_else(SizeHint::default, SizeHint::with_exact);
    let mut out = Vec::new();
    let begun = head(&mut out, &parts, asked, &size, write_date);
    let text = String::from_utf8(out).unwrap();
    let lines = text.strip_suffix("\r\n\r\n").unwrap();
    let date = format!("date: {}", str::from_utf8(DATE_VALUE).unwrap());
    assert_eq!(lines.matches("date: ").count(), 1, "{lines}");
    let lines: Vec<_> = lines.split("\r\n").filter(|line| **line != date).collect();
    (lines.join("|"), begun)
}

fn length(bytes: u64) -> Encoding {
    Encoding::Length(bytes)
}

fn chunked() -> Encoding {
    Encoding::Chunked(Vec::new())
}

#[test]
fn body_is_delimited_by_what_is_known_of_it() {
    use Encoding::UntilClose;
    let claims = &[("content-length", "5")][..];
    for (status, fields, asked, exact, lines, encoding) in [
        (
            200,
            &[][..],
            GET,
            Some(0),
            "HTTP/1.1 200 OK|content-length: 0",
            length(0),
        ),
        (
            200,
            &[],
            GET,
            Some(7),
            "HTTP/1.1 200 OK|content-length: 7",
            length(7),
        ),
        (
            200,
            claims,
            GET,
            Some(5),
            "HTTP/1.1 200 OK|content-length: 5",
            length(5),
        ),
        // the length of the body wins over a declared one
        (
            200,
            claims,
            GET,
            Some(7),
            "HTTP/1.1 200 OK|content-length: 7",
            length(7),
        ),
        (
            200,
            claims,
            GET,
            None,
            "HTTP/1.1 200 OK|content-length: 5",
            length(5),
        ),
        (
            200,
            &[("content-length", "5"), ("content-length", "5")],
            GET,
            None,
            "HTTP/1.1 200 OK|content-length: 5",
            length(5),
        ),
        (
            200,
            &[("content-length", "x")],
            GET,
            None,
            "HTTP/1.1 200 OK|transfer-encoding: chunked",
            chunked(),
        ),
        (
            200,
            &[],
            GET,
            None,
            "HTTP/1.1 200 OK|transfer-encoding: chunked",
            chunked(),
        ),
        (
            200,
            &[("transfer-encoding", "gzip")],
            GET,
            None,
            "HTTP/1.1 200 OK|transfer-encoding: chunked",
            chunked(),
        ),
        (200, &[], OLD, None, "HTTP/1.0 200 OK", UntilClose),
        (
            200,
            claims,
            of(MethodKind::Head),
            Some(0),
            "HTTP/1.1 200 OK|content-length: 5",
            length(0),
        ),
        (
            200,
            &[],
            of(MethodKind::Head),
            Some(0),
            "HTTP/1.1 200 OK",
            length(0),
        ),
        (
            200,
            &[],
            of(MethodKind::Head),
            Some(9),
            "HTTP/1.1 200 OK|content-length: 9",
            length(0),
        ),
        (
            200,
            &[],
            of(MethodKind::Head),
            None,
            "HTTP/1.1 200 OK",
            length(0),
        ),
        (
            304,
            claims,
            GET,
            Some(0),
            "HTTP/1.1 304 Not Modified|content-length: 5",
            length(0),
        ),
        (
            304,
            &[],
            GET,
            Some(9),
            "HTTP/1.1 304 Not Modified",
            length(0),
        ),
        (
            204,
            claims,
            GET,
            Some(5),
            "HTTP/1.1 204 No Content",
            length(0),
        ),
        (204, &[], GET, None, "HTTP/1.1 204 No Content", length(0)),
        (
            204,
            claims,
            of(MethodKind::Head),
            Some(9),
            "HTTP/1.1 204 No Content",
            length(0),
        ),
        (
            101,
            claims,
            of(MethodKind::Head),
            Some(9),
            "HTTP/1.1 101 Switching Protocols",
            length(0),
        ),
        (
            200,
            claims,
            of(MethodKind::Connect),
            Some(5),
            "HTTP/1.1 200 OK",
            length(0),
        ),
        (
            403,
            &[],
            of(MethodKind::Connect),
            Some(5),
            "HTTP/1.1 403 Forbidden|content-length: 5",
            length(5),
        ),
        (
            101,
            &[("connection", "upgrade"), ("upgrade", "a")],
            GET,
            Some(0),
            "HTTP/1.1 101 Switching Protocols|connection: upgrade|upgrade: a",
            length(0),
        ),
        (
            299,
            &[],
            GET,
            Some(0),
            "HTTP/1.1 299 |content-length: 0",
            length(0),
        ),
    ] {
        let (found, begun) = written(status, fields, asked, exact);
        assert_eq!(found, lines, "{status} {fields:?} {asked:?} {exact:?}");
        assert_eq!(
            begun.encoding, encoding,
            "{status} {fields:?} {asked:?} {exact:?}"
        );
    }
}

#[test]
fn connection_says_whether_it_stays_open() {
    let once_old = RequestTraits {
        is_http11: false,
        ..ONCE
    };
    for (connection, asked, exact, said, persistent) in [
        (&[][..], GET, Some(0), &[][..], true),
        (&["close"], GET, Some(0), &["close"], false),
        (&["x, Close"], GET, Some(0), &["x, Close"], false),
        (&["x"], ONCE, Some(0), &["x", "close"], false),
        (&[], ONCE, Some(0), &["close"], false),
        (&["close"], ONCE, Some(0), &["close"], false),
        (&[], OLD, Some(0), &["keep-alive"], true),
        (&["keep-alive"], OLD, Some(0), &["keep-alive"], true),
        (&["close"], OLD, Some(0), &["close"], false),
        (&[], OLD, None, &[], false),
        (&[], once_old, Some(0), &[], false),
    ] {
        let fields: Vec<_> = connection
            .iter()
            .map(|value| ("connection", *value))
            .collect();
        let (lines, begun) = written(200, &fields, asked, exact);
        let lines = lines
            .split('|')
            .filter_map(|line| line.strip_prefix("connection: "));
        assert_eq!(lines.collect::<Vec<_>>(), said, "{connection:?} {asked:?}");
        assert_eq!(begun.persistent, persistent, "{connection:?} {asked:?}");
    }
}

#[test]
fn reason_and_date_of_the_response_are_kept() {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
        .headers_mut()
        .insert(DATE, HeaderValue::from_static("then"));
    response
        .extensions_mut()
        .insert(ReasonPhrase::from_static(b"Gone Fishing"));
    let (parts, ()) = response.into_parts();
    let mut out = Vec::new();
    head(&mut out, &parts, GET, &SizeHint::with_exact(0), write_date);
    let expected = "HTTP/1.1 404 Gone Fishing\r\ndate: then\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn announced_trailers_follow_the_last_chunk() {
    let takes = RequestTraits {
        takes_trailers: true,
        ..GET
    };
    let fields = [("trailer", "X-Sum, x-other"), ("trailer", "set-cookie")];
    for (asked, expected) in [(takes, "0\r\nx-sum: 1\r\n\r\n"), (GET, "0\r\n\r\n")] {
        let (lines, begun) = written(200, &fields, asked, None);
        assert!(
            lines.contains("|trailer: X-Sum, x-other|trailer: set-cookie"),
            "{lines}"
        );
        let Encoding::Chunked(announced) = begun.encoding else {
            panic!("no chunks: {:?}", begun.encoding);
        };
        let value = || HeaderValue::from_static("1");
        let mut trailers = HeaderMap::new();
        for name in ["x-sum", "x-unannounced", "set-cookie"] {
            trailers.insert(name, value());
        }
        let mut out = Vec::new();
        end(&mut out, &announced, &trailers);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    let (lines, _) = written(200, &fields, takes, Some(3));
    assert!(
        !lines.contains("trailer"),
        "no trailers without chunks: {lines}"
    );
}

#[test]
fn chunk_has_its_size_in_front() {
    let mut out = Vec::new();
    chunk(&mut out, 0x1fe);
    assert_eq!(out, b"1fe\r\n");
}
