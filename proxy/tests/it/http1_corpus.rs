//! Rows of `tests/corpus/http1_requests.txt`, sent to a running proxy. Checks the responses, the forwarded requests,
//! and that the bytes after a refused request are not parsed as another request.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::mesh::everything_to_address;
use crate::support::origin::{Back, RawOrigin};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;
use crate::support::table::{assert_none, rows, unescape};

const REQUESTS: &str = include_str!("../corpus/http1_requests.txt");

/// Minimum number of rows, so that none is lost by accident.
const ROWS_MIN: usize = 350;

/// Request that is sent after each row.
const AFTER: &str = "GET /after HTTP/1.1\r\nHost: a.test\r\n\r\n";

struct Row {
    name: &'static str,
    statuses: Vec<u16>,
    /// Method, target and body of each request that the upstream receives.
    forwarded: Vec<String>,
    bytes: Vec<u8>,
}

impl Row {
    fn parse([name, statuses, forwarded, bytes]: [&'static str; 4]) -> Self {
        let statuses = statuses.split(' ').filter(|status| *status != "-");
        let statuses = statuses.map(|status| status.parse().unwrap());
        let forwarded = forwarded.split(", ").filter(|one| !one.is_empty());
        Self {
            name,
            statuses: statuses.collect(),
            forwarded: forwarded.map(str::to_owned).collect(),
            bytes: unescape(bytes),
        }
    }

    /// Whether the proxy closes the connection after the last response.
    fn is_closed(&self) -> bool {
        self.statuses.last().is_none_or(|status| *status >= 400)
    }
}

/// Requests that the upstream received since the log was last cleared.
type Log = Arc<Mutex<Vec<String>>>;

/// Reads, logs and answers the requests of a connection. Logs incomplete or unusually framed requests as errors, except
/// one that the proxy abandoned.
fn serve(stream: TcpStream, log: &Log) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let request = match read_request(&mut reader) {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(what) => what,
        };
        log.lock().unwrap().push(request);
        let reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a request in the format of the rows. Returns `None` at the end of the connection, and an error for bytes that
/// the proxy must never send.
fn read_request(reader: &mut BufReader<TcpStream>) -> Result<Option<String>, String> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = reader.read_until(b'\n', &mut line).unwrap_or(0);
        if read == 0 {
            return match lines.is_empty() {
                true => Ok(None),
                false => Err(format!("an unfinished head: {lines:?}")),
            };
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        let Some(line) = line.strip_suffix("\r\n") else {
            return Err(format!("a line without CRLF: {line:?}"));
        };
        if line.is_empty() {
            break;
        }
        lines.push(line.to_owned());
    }
    let mut line = lines[0].split(' ');
    let (method, target) = (line.next().unwrap_or(""), line.next().unwrap_or(""));
    if (line.next(), line.next()) != (Some("HTTP/1.1"), None) {
        return Err(format!("a bad request line: {:?}", lines[0]));
    }
    let body = match read_body(reader, &lines[1..])? {
        Some(body) => body,
        None => return Ok(None),
    };
    Ok(Some(
        format!("{method} {target} {body}").trim_end().to_owned(),
    ))
}

/// Reads the body; returns `None` if the proxy abandoned the request.
fn read_body(reader: &mut impl BufRead, headers: &[String]) -> Result<Option<String>, String> {
    let values = |wanted: &str| {
        let fields = headers.iter().filter_map(|line| line.split_once(": "));
        let fields = fields.filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        fields.map(|(_, value)| value).collect::<Vec<_>>()
    };
    let mut body = Vec::new();
    match (&*values("content-length"), &*values("transfer-encoding")) {
        ([], []) => {}
        ([length], []) => {
            let length: usize = length.parse().map_err(|_| format!("{length:?}"))?;
            body.resize(length, 0);
            if reader.read_exact(&mut body).is_err() {
                return Ok(None);
            }
        }
        ([], ["chunked"]) => loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap_or(0);
            let Ok(size) = usize::from_str_radix(line.trim_end(), 16) else {
                return match line.is_empty() {
                    true => Ok(None),
                    false => Err(format!("a bad chunk: {line:?}")),
                };
            };
            let start = body.len();
            body.resize(start + size, 0);
            let mut end = [0; 2];
            let is_whole = reader.read_exact(&mut body[start..]).is_ok();
            if size == 0 {
                let mut trailer = String::new();
                while trailer != "\r\n" {
                    trailer.clear();
                    if reader.read_line(&mut trailer).unwrap_or(0) == 0 {
                        return Ok(None);
                    }
                }
                break;
            }
            if !is_whole || reader.read_exact(&mut end).is_err() {
                return Ok(None);
            }
        },
        other => return Err(format!("ambiguous framing: {other:?}")),
    }
    Ok(Some(String::from_utf8_lossy(&body).into_owned()))
}

/// Plays a row, and describes the difference from the expected result, if any.
fn complaint(row: &Row, proxy: SocketAddr, log: &Log) -> Option<String> {
    // what a row before it left behind, if that one failed, is not this one's
    Raw::connect(proxy).send(AFTER).reply();
    log.lock().unwrap().clear();
    let mut client = Raw::connect(proxy);
    client.send(&row.bytes);
    let mut statuses = Vec::new();
    for _ in &row.statuses {
        match client.try_reply() {
            Ok(Some(reply)) if reply.status == 100 => match client.try_reply() {
                Ok(Some(reply)) => statuses.push(reply.status),
                other => return Some(format!("after 100: {other:?}")),
            },
            Ok(Some(reply)) => statuses.push(reply.status),
            other => return Some(format!("{statuses:?}, then {other:?}")),
        }
    }
    if statuses != row.statuses {
        return Some(format!("{statuses:?}"));
    }
    client.send(AFTER);
    let after = client.try_reply().ok().flatten().map(|reply| reply.status);
    let wanted = (!row.is_closed()).then_some(200);
    if after != wanted {
        return Some(format!("the request after it: {after:?}"));
    }
    // whatever the proxy still sends upstream comes before this
    let sentinel = Raw::connect(proxy).send(AFTER).reply().status;
    let mut forwarded = std::mem::take(&mut *log.lock().unwrap());
    let sentinels = if row.is_closed() { 1 } else { 2 };
    let rest = forwarded.split_off(forwarded.len().saturating_sub(sentinels));
    let is_sentinel = |one: &String| one == "GET /after";
    if sentinel != 200 || rest.len() != sentinels || !rest.iter().all(is_sentinel) {
        return Some(format!(
            "{sentinel} for the next client; upstream: {forwarded:?} {rest:?}"
        ));
    }
    (forwarded != row.forwarded).then(|| format!("upstream: {forwarded:?}"))
}

#[test]
fn malformed_requests_are_rejected_and_unusual_ones_arrive_intact() {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let origin = RawOrigin::start(move |_, stream| serve(stream, &seen));
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let rows: Vec<Row> = rows(REQUESTS).map(Row::parse).collect();
    assert!(rows.len() >= ROWS_MIN, "{}", rows.len());
    let complaints = rows.iter().filter_map(|row| {
        let what = complaint(row, proxy.edge, &log)?;
        Some(format!("{}: {what}, wanted {:?}", row.name, row.statuses))
    });
    let complaints: Vec<String> = complaints.collect();
    assert_none(&complaints);
}
