//! Rows of `tests/corpus/http1_responses.txt`, sent by an upstream. Checks the response to the client, and that an
//! upstream connection with an incomplete response is not reused.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, RawOrigin, read_head};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;
use crate::support::table::{assert_none, rows, unescape};

const RESPONSES: &str = include_str!("../corpus/http1_responses.txt");

/// Minimum number of rows, so that none is lost by accident.
const ROWS_MIN: usize = 130;

struct Row {
    name: &'static str,
    /// Status and body that the client receives.
    response: &'static str,
    /// Whether the upstream connection serves the next request.
    is_reused: bool,
    bytes: Vec<u8>,
    closes: bool,
}

impl Row {
    fn parse([name, response, after, bytes]: [&'static str; 4]) -> Self {
        let closing = bytes.strip_suffix("\\c");
        Self {
            name,
            response,
            is_reused: match after {
                "reused" => true,
                "fresh" => false,
                other => panic!("{name}: {other}"),
            },
            bytes: unescape(closing.unwrap_or(bytes)),
            closes: closing.is_some(),
        }
    }
}

/// Result of a response that the client detects as incomplete.
const CUT: &str = "cut";

/// Number of the upstream connection that served the last request.
type Served = Arc<Mutex<usize>>;

/// Answers `/row/N` with the response of that row, and other requests with a valid response.
fn serve(rows: &[Row], (number, mut stream): (usize, TcpStream), served: &Served) {
    loop {
        let head = read_head(&mut stream);
        let Some(path) = head.split(' ').nth(1) else {
            return;
        };
        *served.lock().unwrap() = number;
        let row = path.strip_prefix("/row/");
        let row = row.map(|row| &rows[row.parse::<usize>().unwrap()]);
        let written = match row {
            Some(row) => stream.write_all(&row.bytes),
            None => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        };
        if written.is_err() || row.is_some_and(|row| row.closes) {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// Reads status and body of a response; returns `cut` for a body that ends early.
pub fn read_response(reader: &mut impl BufRead) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head)? == 0 {
            return Ok(CUT.to_owned());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
    if status.starts_with('1') {
        return read_response(reader);
    }
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let mut body = Vec::new();
    if let Some(length) = value("content-length: ") {
        let has_none = ["204", "304"].contains(&&*status);
        body.resize(if has_none { 0 } else { length.parse().unwrap() }, 0);
        if reader.read_exact(&mut body).is_err() {
            return Ok(CUT.to_owned());
        }
    } else if value("transfer-encoding: ").is_some() {
        loop {
            let mut line = String::new();
            let read = reader.read_line(&mut line).unwrap_or(0);
            let size = usize::from_str_radix(line.trim_end(), 16);
            let (1.., Ok(size)) = (read, size) else {
                return Ok(CUT.to_owned());
            };
            let mut chunk = vec![0; size + 2];
            if size == 0 {
                let mut trailer = String::new();
                while reader.read_line(&mut trailer)? > 2 {
                    trailer.clear();
                }
                break;
            }
            if reader.read_exact(&mut chunk).is_err() {
                return Ok(CUT.to_owned());
            }
            body.extend(&chunk[..size]);
        }
    }
    if status
        .parse::<u16>()
        .is_ok_and(|status| status == 502 || status == 503)
    {
        body.clear(); // a text of the proxy
    }
    Ok(format!("{status} {}", String::from_utf8_lossy(&body))
        .trim_end()
        .to_owned())
}

/// Plays a row, and describes the difference from the expected result, if any.
fn complaint((number, row): (usize, &Row), edge: SocketAddr, served: &Served) -> Option<String> {
    let client = Raw::connect(edge).stream();
    let mut reader = BufReader::new(client);
    let mut get = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        reader.get_mut().write_all(request.as_bytes())?;
        read_response(&mut reader)
    };
    let response = get(&format!("/row/{number}"));
    let of_row = *served.lock().unwrap();
    if response.as_ref().ok().map(|found| &**found) != Some(row.response) {
        return Some(format!("{response:?}, wanted {:?}", row.response));
    }
    // the client's connection is in step, unless it was closed with the response
    let next = match row.response == CUT {
        true => Ok("200 ok".to_owned()),
        false => get("/after"),
    };
    let fresh_client = Raw::connect(edge)
        .send("GET /after HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .reply();
    if !next.as_ref().is_ok_and(|found| found == "200 ok") || fresh_client.body != b"ok" {
        return Some(format!("the next response is {next:?}"));
    }
    let is_reused = *served.lock().unwrap() == of_row;
    (is_reused != row.is_reused).then(|| format!("the upstream connection was reused: {is_reused}"))
}

#[test]
fn malformed_responses_are_not_forwarded_and_close_their_connection() {
    let rows: Arc<Vec<Row>> = Arc::new(rows(RESPONSES).map(Row::parse).collect());
    assert!(rows.len() >= ROWS_MIN, "{}", rows.len());
    let served = Served::default();
    let (seen, of_origin) = (Arc::clone(&served), Arc::clone(&rows));
    let origin = RawOrigin::start(move |number, stream| serve(&of_origin, (number, stream), &seen));
    let rule = "- {retries: {attempts: 0}, route: [{destination: {host: web.test}}]}";
    let proxy = Proxy::with_args(&["--concurrency", "1"], |edge| {
        documents([
            gateway(&[edge]),
            service("web", Back::H1, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", rule),
        ])
    });
    let complaints = rows.iter().enumerate().filter_map(|(number, row)| {
        let what = complaint((number, row), proxy.edge, &served)?;
        Some(format!("{}: {what}", row.name))
    });
    let complaints: Vec<String> = complaints.collect();
    assert_none(&complaints);
}
