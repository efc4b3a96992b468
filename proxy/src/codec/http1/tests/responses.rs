//! Strict parser for the output of a simulated connection.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::plan::Request;

/// A final response.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
    /// Whether the response is complete.
    pub is_whole: bool,
    /// Whether the end of the connection ends the body.
    pub until_close: bool,
    /// Status codes of the interim responses before it.
    pub interims: Vec<u16>,
    /// Bytes of the other protocol after it.
    pub tunnel: Option<Vec<u8>>,
}

impl Response {
    /// Whether the connection carries no further request.
    pub(crate) fn closes(&self, request: &Request) -> bool {
        let says = |option: &str| {
            let mut lines = self.headers.get_all("connection").iter();
            lines.any(|line| line.as_bytes().eq_ignore_ascii_case(option.as_bytes()))
        };
        let closes = match request.is_http11 {
            true => says("close"),
            false => says("close") || !says("keep-alive"),
        };
        closes || self.until_close
    }
}

/// Parses all responses; panics on malformed ones. Only the last one may be incomplete.
pub(crate) fn read(mut bytes: &[u8], requests: &[Request], is_shut: bool) -> Vec<Response> {
    let mut responses = Vec::new();
    let mut interims = Vec::new();
    while !bytes.is_empty() {
        assert!(
            responses.last().is_none_or(|last: &Response| last.is_whole),
            "nothing follows what is cut short: {}",
            bytes.escape_ascii()
        );
        let request = requests
            .get(responses.len())
            .expect("one response for each request");
        let Some((mut response, length)) = head(bytes, request) else {
            // incomplete head
            break;
        };
        bytes = &bytes[length..];
        if response.status < 200 && response.status != 101 {
            assert!(request.is_http11, "HTTP/1.0 has no interim responses");
            interims.push(response.status);
            continue;
        }
        response.interims = std::mem::take(&mut interims);
        bytes = body(bytes, request, &mut response, is_shut);
        responses.push(response);
    }
    responses
}

/// Parses a head; also returns its length.
fn head(bytes: &[u8], request: &Request) -> Option<(Response, usize)> {
    let mut lines = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut lines);
    let parsed = head.parse(bytes).unwrap_or_else(|error| {
        panic!("{error}: {}", bytes.escape_ascii());
    });
    let length = match parsed {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return None,
    };
    let text = &bytes[..length];
    let is_bare = |(at, byte): (usize, &u8)| *byte == b'\n' && text[at - 1] != b'\r';
    assert!(!text.iter().enumerate().any(is_bare), "lines end in CRLF");
    let fields = head.headers.iter().map(|field| {
        let name = HeaderName::from_bytes(field.name.as_bytes()).unwrap();
        (name, HeaderValue::from_bytes(field.value).unwrap())
    });
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, value);
    }
    let status = head.code.unwrap();
    // a rejected head has no known version
    let version = u8::from(request.is_http11 || status < 200 || !headers.contains_key("x-index"));
    assert_eq!(head.version.unwrap(), version, "the version of the request");
    let response = Response {
        status,
        headers,
        ..Response::default()
    };
    Some((response, length))
}

/// Reads a body; returns the bytes after it.
fn body<'a>(
    bytes: &'a [u8],
    request: &Request,
    response: &mut Response,
    is_shut: bool,
) -> &'a [u8] {
    let headers = &response.headers;
    assert_eq!(headers.get_all("date").iter().count(), 1);
    let lengths: Vec<_> = headers.get_all("content-length").iter().collect();
    let codings: Vec<_> = headers.get_all("transfer-encoding").iter().collect();
    assert!(
        lengths.len() + codings.len() <= 1,
        "one delimiter: {headers:?}"
    );
    let is_switch = response.status == 101 || (request.is_connect && response.status / 100 == 2);
    let has_none = request.is_head || matches!(response.status, 204 | 304) || is_switch;
    if is_switch || response.status == 204 {
        assert!(lengths.is_empty() && codings.is_empty(), "{headers:?}");
    }
    if has_none {
        response.is_whole = true;
        if !is_switch {
            return bytes;
        }
        response.tunnel = Some(bytes.to_vec());
        return b"";
    }
    if let [coding] = codings[..] {
        assert!(request.is_http11 && coding == "chunked");
        return chunks(bytes, response);
    }
    let Some(length) = lengths.first() else {
        response.until_close = true;
        response.is_whole = is_shut;
        response.body = bytes.to_vec();
        return b"";
    };
    let length: usize = length.to_str().unwrap().parse().unwrap();
    response.is_whole = length <= bytes.len();
    let (body, rest) = bytes.split_at(length.min(bytes.len()));
    response.body = body.to_vec();
    rest
}

/// Reads a chunked body; returns the bytes after it.
fn chunks<'a>(mut bytes: &'a [u8], response: &mut Response) -> &'a [u8] {
    loop {
        let Some(line) = take_line(&mut bytes) else {
            return b"";
        };
        let digits = str::from_utf8(line).unwrap();
        assert!(!digits.starts_with('+'));
        let size = usize::from_str_radix(digits, 16).expect("a size");
        if size == 0 {
            break;
        }
        let (chunk, rest) = bytes.split_at(size.min(bytes.len()));
        response.body.extend_from_slice(chunk);
        bytes = rest;
        match take_line(&mut bytes) {
            Some(line) => assert!(line.is_empty(), "a chunk ends in CRLF"),
            None => return b"",
        }
    }
    let mut trailers = HeaderMap::new();
    while let Some(line) = take_line(&mut bytes) {
        if line.is_empty() {
            response.is_whole = true;
            response.trailers = (!trailers.is_empty()).then_some(trailers);
            return bytes;
        }
        let text = str::from_utf8(line).unwrap();
        let (name, value) = text.split_once(": ").expect("a field");
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        trailers.append(name, HeaderValue::from_str(value).unwrap());
    }
    b""
}

/// Takes a line without its end; `None` if it is incomplete.
fn take_line<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let Some(end) = end else {
        *bytes = b"";
        return None;
    };
    let (line, rest) = bytes.split_at(end);
    *bytes = &rest[1..];
    Some(line.strip_suffix(b"\r").expect("lines end in CRLF"))
}
