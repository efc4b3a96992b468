//! Rows of `tests/corpus/downgrade.txt`, sent over HTTP/2 to a proxy with an HTTP/1 upstream. Checks that the upstream
//! receives exactly one valid HTTP/1 request with the intended contents.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::frames::{DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, RST_STREAM};
use crate::support::mesh::everything_to_address;
use crate::support::origin::{Back, RawOrigin};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;
use crate::support::script;
use crate::support::table::{assert_none, rows, unescape};

const REQUESTS: &str = include_str!("../corpus/downgrade.txt");

/// Minimum number of rows, so that none is lost by accident.
const ROWS_MIN: usize = 150;

const AFTER: &str = "GET /after HTTP/1.1\r\nHost: a.test\r\n\r\n";

/// Fields that the proxy adds.
const ADDED: [&str; 3] = ["x-forwarded-", "x-envoy-", "x-request-id"];

type Log = Arc<Mutex<Vec<String>>>;

fn is_added(line: &str) -> bool {
    ADDED.iter().any(|prefix| line.starts_with(prefix))
}

/// Logs every complete request of a connection in the notation of the table, and answers it.
fn serve(stream: TcpStream, log: &Log) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        log.lock().unwrap().push(request);
        let reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a line without its line ending; returns nothing if the connection ends first.
fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\r\n")?;
    Some(
        line.escape_ascii()
            .to_string()
            .replace("\\'", "'")
            .replace("\\\"", "\""),
    )
}

fn read_request(reader: &mut impl BufRead) -> Option<String> {
    let first = read_line(reader)?;
    let mut parts = vec![first.strip_suffix(" HTTP/1.1")?.to_owned()];
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        }
        is_chunked |= line == "transfer-encoding: chunked";
        if !is_added(&line) {
            parts.push(line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let trailers = match is_chunked {
        true => read_chunks(reader, &mut body)?,
        false => Vec::new(),
    };
    if !body.is_empty() {
        parts.push(body.escape_ascii().to_string());
    }
    parts.extend(trailers);
    Some(parts.join(" ; "))
}

/// Reads a chunked body; returns the trailers after it.
fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> Option<Vec<String>> {
    loop {
        let size = usize::from_str_radix(&read_line(reader)?, 16).ok()?;
        if size == 0 {
            break;
        }
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..]).ok()?;
        read_line(reader)?;
    }
    let mut trailers = Vec::new();
    loop {
        match read_line(reader)? {
            line if line.is_empty() => return Some(trailers),
            line => trailers.push(line),
        }
    }
}

/// Encodes literal fields without indexing, with literal names.
fn block(fields: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for field in fields.split(" ; ") {
        let at = field.char_indices().skip(1).find(|(_, char)| *char == '=');
        let at = at.map_or(0, |(at, _)| at);
        // a name may hold the sign, too: then the last one counts
        let at = field
            .rfind('=')
            .filter(|_| field.starts_with("x="))
            .unwrap_or(at);
        let (name, value) = (unescape(&field[..at]), unescape(&field[at + 1..]));
        script::literal(&mut block, &name, &value);
    }
    block
}

/// Whether the proxy serves a request on a new connection.
fn is_served(edge: SocketAddr, fields: &str, body: &str, trailers: &str) -> bool {
    let mut client = Frames::connect(edge);
    let flag = |ends: bool| if ends { END_STREAM } else { 0 };
    let (has_body, has_trailers) = (body != "-", trailers != "-");
    client.send(HEADERS, END_HEADERS | flag(!has_body), 1, &block(fields));
    if has_body {
        client.send(DATA, flag(!has_trailers), 1, &unescape(body));
    }
    if has_trailers {
        client.send(HEADERS, END_HEADERS | END_STREAM, 1, &block(trailers));
    }
    loop {
        let frame = client.next().expect("an answer, not the end");
        match frame.kind {
            RST_STREAM => return false,
            GOAWAY => panic!("the whole connection is given up for {fields}"),
            // 200 and 400 of the static table
            HEADERS if frame.payload.contains(&0x8c) => return false,
            HEADERS => assert!(frame.payload.contains(&0x88), "{frame:?}"),
            DATA if frame.flags & END_STREAM != 0 => return true,
            _ => {}
        }
    }
}

#[test]
fn http2_requests_reach_http1_endpoints_as_exactly_one_request() {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let origin = RawOrigin::start(move |_, stream| serve(stream, &seen));
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let (mut count, mut complaints) = (0, Vec::new());
    for [name, wanted, body, trailers, fields] in rows(REQUESTS) {
        count += 1;
        let is_served = is_served(proxy.edge, fields, body, trailers);
        // whatever the proxy still sends upstream comes before this
        Raw::connect(proxy.edge).send(AFTER).reply();
        let mut seen = std::mem::take(&mut *log.lock().unwrap());
        let last = seen.pop();
        let is_after = last.is_some_and(|last| last.starts_with("GET /after"));
        let wanted: &[&str] = match wanted {
            "refused" => &[],
            wanted => &[wanted],
        };
        if !is_after || seen != wanted || is_served == wanted.is_empty() {
            complaints.push(format!("{name}: served {is_served}, upstream: {seen:?}"));
        }
    }
    assert_none(&complaints);
    assert!(count >= ROWS_MIN, "{count}");
}
