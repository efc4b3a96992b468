//! Rows of `tests/corpus/paths.txt`, over HTTP/1 and HTTP/2: the matched rule, and the path that the upstream receives.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use crate::support::frames::{DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, RST_STREAM};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, RawOrigin, read_head};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;
use crate::support::table::{rows, unescape};

const PATHS: &str = include_str!("../corpus/paths.txt");

/// Minimum number of rows, so that none is lost by accident.
const ROWS_MIN: usize = 320;

/// Result in the table for a path that is rejected.
pub(crate) const REFUSED: &str = "refused";

/// Answers each request with the matched rule and the received target.
pub(crate) fn echo(mut stream: TcpStream) {
    loop {
        let head = read_head(&mut stream);
        let mut lines = head.lines();
        let Some(target) = lines.next().and_then(|line| line.split(' ').nth(1)) else {
            return;
        };
        let rule = lines.find_map(|line| line.strip_prefix("x-rule: "));
        let body = format!("{} {target}", rule.unwrap_or("none"));
        let reply = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// Returns the result of a path over HTTP/1.
fn by_http1(edge: SocketAddr, path: &[u8]) -> String {
    let request = [b"GET ", path, b" HTTP/1.1\r\nHost: a.test\r\n\r\n"].concat();
    let reply = Raw::connect(edge).send(request).reply();
    match reply.status {
        200 => String::from_utf8(reply.body).unwrap(),
        400 => REFUSED.to_owned(),
        other => other.to_string(),
    }
}

/// Returns a literal header field without indexing, whose name is in the static table.
fn literal(name: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len();
    let mut field = vec![name];
    match length < 127 {
        true => field.push(u8::try_from(length).unwrap()),
        false => {
            let rest = length - 127;
            assert!(rest < 128 * 128, "two more bytes are enough");
            let [low, high] = [rest % 128 + 128, rest / 128];
            field.extend([127, u8::try_from(low).unwrap(), u8::try_from(high).unwrap()]);
        }
    }
    field.extend(value);
    field
}

/// Returns the result of a path over HTTP/2.
pub(crate) fn by_http2(edge: SocketAddr, path: &[u8]) -> String {
    const PATH: u8 = 4;
    const AUTHORITY: u8 = 1;
    let fields = [
        vec![0x82, 0x86],
        literal(PATH, path),
        literal(AUTHORITY, b"a.test"),
    ];
    let mut client = Frames::connect(edge);
    client.send(HEADERS, END_STREAM | END_HEADERS, 1, &fields.concat());
    let mut body = Vec::new();
    loop {
        let frame = client.next().expect("an answer, not the end");
        match frame.kind {
            DATA => body.extend(&frame.payload),
            RST_STREAM => {
                assert_eq!(frame.number(0), 1, "PROTOCOL_ERROR");
                return REFUSED.to_owned();
            }
            GOAWAY => panic!("the whole connection is given up for {path:?}"),
            HEADERS if frame.flags & END_STREAM != 0 => return REFUSED.to_owned(),
            _ => continue,
        }
        if frame.flags & END_STREAM != 0 {
            return String::from_utf8(body).unwrap();
        }
    }
}

#[test]
fn paths_match_rules_and_reach_the_endpoint_as_listed() {
    let origin = RawOrigin::start(|_, stream| echo(stream));
    let rule = |name: &str, matches: &str| {
        format!(
            "- {{name: {name}, {matches}headers: {{request: {{set: {{x-rule: {name}}}}}}}, \
             route: [{{destination: {{host: web.test}}}}]}}\n"
        )
    };
    let rules = rule("admin", "match: [{uri: {prefix: /admin}}], ") + &rule("all", "");
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            service("web", Back::H1, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", &rules),
        ])
    });
    let mut count = 0;
    let mut complaints = Vec::new();
    for [http1, http2, path] in rows(PATHS) {
        let wanted = (http1, http2);
        let path = unescape(path);
        let found = (by_http1(proxy.edge, &path), by_http2(proxy.edge, &path));
        if (&*found.0, &*found.1) != wanted {
            complaints.push(format!("{wanted:?} {path:?}: {found:?}"));
        }
        count += 1;
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(count >= ROWS_MIN, "{count}");
}
