//! Random plan of a simulated connection.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRAILER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::client::Step;
use super::handler::{Answer, Keeps, Part, Reads};

/// A request as the client intends it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub bytes: Vec<u8>,
    /// Bytes before the body.
    head_bytes: usize,
    pub is_head: bool,
    pub is_connect: bool,
    pub upgrades: bool,
    pub is_http11: bool,
    pub persistent: bool,
    pub expects: bool,
    pub takes_trailers: bool,
    pub has_body: bool,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
    pub kind: Kind,
}

/// Validity of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Sound,
    /// Malformed body.
    BadBody,
    /// Rejected with this status.
    Refused(u16),
}

/// Plan of one run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Whether the client sends everything, reads everything and stays to the end.
    pub is_calm: bool,
    /// Whether socket calls do as much as they can.
    pub is_smooth: bool,
    pub requests: Vec<Request>,
    pub answers: Vec<Answer>,
    pub sends: Vec<Step>,
    pub takes: Vec<Step>,
    pub drains_after: Option<Duration>,
    pub park_after: Duration,
}

pub(crate) const SUM: HeaderName = HeaderName::from_static("x-sum");

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let is_calm = one_in(rng, 2);
        let count = rng.random_range(1..=6);
        let requests: Vec<_> = (0..count).map(|index| request(rng, index)).collect();
        let answers = requests
            .iter()
            .map(|request| answer(rng, request))
            .collect();
        let mut sends = sends(rng, &requests);
        let mut takes = takes(rng);
        if !is_calm {
            disturb(rng, &mut sends, &mut takes);
        }
        sends.extend([
            Step::Pause(Duration::from_secs(70)),
            Step::End,
            Step::Pause(Duration::from_secs(70)),
            Step::Reset,
        ]);
        Self {
            is_calm,
            is_smooth: one_in(rng, 3) && takes.len() == 1,
            requests,
            answers,
            sends,
            takes,
            drains_after: (!is_calm && one_in(rng, 4))
                .then(|| Duration::from_millis(rng.random_range(0..3000))),
            park_after: Duration::from_millis(*[0, 150, 1000].choose(rng).unwrap()),
        }
    }
}

pub(crate) fn one_in(rng: &mut SmallRng, count: u32) -> bool {
    rng.random_range(0..count) == 0
}

fn some_bytes(rng: &mut SmallRng) -> Vec<u8> {
    let most = *[1, 10, 10, 100, 1000, 20_000, 70_000].choose(rng).unwrap();
    let length = rng.random_range(0..most);
    let first = rng.random_range(0..100);
    (first..first + length)
        .map(|byte| (byte % 251) as u8)
        .collect()
}

fn request(rng: &mut SmallRng, index: usize) -> Request {
    if one_in(rng, 12) {
        return refused(rng);
    }
    let methods = [
        "GET", "POST", "PUT", "HEAD", "OPTIONS", "M-SEARCH", "CONNECT",
    ];
    let method = *methods.choose(rng).unwrap();
    let mut request = Request {
        is_head: method == "HEAD",
        is_connect: method == "CONNECT" && one_in(rng, 4),
        is_http11: !one_in(rng, 8),
        takes_trailers: one_in(rng, 3),
        ..Request::default()
    };
    let (method, target, host) = match request.is_connect {
        true => (method, "h:80".to_owned(), "h:80"),
        false if method == "CONNECT" => ("GET", format!("http://h/{index}"), "h"),
        false => (method, format!("/{index}"), "h"),
    };
    let version = u8::from(request.is_http11);
    let before = if one_in(rng, 8) { "\r\n" } else { "" };
    let mut head = format!("{before}{method} {target} HTTP/1.{version}\r\nHost: {host}\r\n");
    head += &format!("X-Index: {index}\r\n");
    request.upgrades = request.is_http11 && !request.is_connect && one_in(rng, 12);
    if request.upgrades {
        head += "Upgrade: echo\r\nConnection: upgrade\r\n";
    }
    let option = *["", "", "", "", "te", "close", "keep-alive", "te, close"]
        .choose(rng)
        .unwrap();
    if !option.is_empty() {
        head += &format!("Connection: {option}\r\n");
    }
    let closes = option.ends_with("close");
    request.persistent = !closes && (request.is_http11 || option == "keep-alive");
    if request.takes_trailers {
        head += "TE: trailers\r\n";
    }
    request.bytes = head.into_bytes();
    if !request.is_connect && one_in(rng, 2) {
        body(rng, &mut request);
    } else {
        request.bytes.extend_from_slice(b"\r\n");
        request.head_bytes = request.bytes.len();
    }
    request
}

/// Adds a body, and the fields that declare it.
fn body(rng: &mut SmallRng, request: &mut Request) {
    request.body = some_bytes(rng);
    let chunked = request.is_http11 && one_in(rng, 2);
    request.has_body = chunked || !request.body.is_empty();
    let bytes = &mut request.bytes;
    if one_in(rng, 4) {
        bytes.extend_from_slice(b"Expect: 100-continue\r\n");
        request.expects = request.is_http11 && request.has_body;
    }
    if !chunked {
        bytes.extend_from_slice(
            format!("Content-Length: {}\r\n\r\n", request.body.len()).as_bytes(),
        );
        request.head_bytes = bytes.len();
        bytes.extend_from_slice(&request.body);
        return;
    }
    bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    request.head_bytes = bytes.len();
    let breaks = one_in(rng, 8).then(|| rng.random_range(0..=request.body.len()));
    let mut rest = &request.body[..breaks.unwrap_or(request.body.len())];
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rng.random_range(1..=rest.len()));
        let extension = if one_in(rng, 4) { ";a=\"b\"" } else { "" };
        bytes.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
        rest = after;
    }
    if let Some(at) = breaks {
        let bad = [
            "x\r\n",
            "5 \r\n",
            "-1\r\n",
            "1\r\nab\r\n",
            "0\r\nA\r\n\r\n",
            "1\n",
            "\r\n",
        ];
        let bad = *bad.choose(rng).unwrap();
        bytes.extend_from_slice(bad.as_bytes());
        request.kind = Kind::BadBody;
        request.body.truncate(at);
        if bad.starts_with("1\r") {
            request.body.push(b'a');
        }
        return;
    }
    bytes.extend_from_slice(b"0\r\n");
    if one_in(rng, 3) {
        bytes.extend_from_slice(b"X-Sum: 7\r\n");
        request.trailers = Some(HeaderMap::from_iter([(SUM, HeaderValue::from_static("7"))]));
    }
    bytes.extend_from_slice(b"\r\n");
}

/// Returns a request that is rejected before the handler.
fn refused(rng: &mut SmallRng) -> Request {
    let many = "A: b\r\n".repeat(30);
    let long = format!("A: {}\r\n", "b".repeat(5000));
    let (status, bytes) = match rng.random_range(0..14) {
        0 => (400, "GET / HTTP/1.1\nHost: h\r\n\r\n"),
        1 => (
            400,
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        2 => (
            400,
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        ),
        3 => (
            501,
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        ),
        4 => (400, "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n"),
        5 => (400, "GET / HTTP/1.1\r\n\r\n"),
        6 => (400, "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n"),
        7 => (400, "GET /#a HTTP/1.1\r\nHost: h\r\n\r\n"),
        8 => (
            400,
            "POST /a b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
        ),
        9 => (400, "\x16\x03\x01"),
        10 => (
            400,
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        11 => (431, &*format!("GET / HTTP/1.1\r\n{many}\r\n")),
        12 => (431, &*format!("GET / HTTP/1.1\r\n{long}\r\n")),
        _ => (
            400,
            "POST * HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
        ),
    };
    Request {
        bytes: bytes.as_bytes().to_vec(),
        head_bytes: bytes.len(),
        is_http11: true,
        kind: Kind::Refused(status),
        ..Request::default()
    }
}

fn pause(rng: &mut SmallRng) -> Option<Step> {
    Some(match rng.random_range(0..12) {
        0..4 => return None,
        4..8 => Step::Yield,
        8..10 => Step::Pause(Duration::from_millis(rng.random_range(0..5))),
        10 => Step::Pause(Duration::from_millis(rng.random_range(0..300))),
        _ => Step::Pause(Duration::from_millis(rng.random_range(0..2000))),
    })
}

/// Returns the steps that send all requests, in pieces.
fn sends(rng: &mut SmallRng, requests: &[Request]) -> Vec<Step> {
    let mut steps = Vec::new();
    let style = rng.random_range(0..4);
    if style == 0 {
        let all = requests.iter().flat_map(|request| request.bytes.clone());
        return vec![Step::Send(all.collect())];
    }
    for request in requests {
        let (mut rest, body) = match style == 1 && !request.expects {
            true => (&*request.bytes, &b""[..]),
            false => request.bytes.split_at(request.head_bytes),
        };
        if let Some(after) = rest.strip_prefix(b"\r\n").filter(|_| one_in(rng, 4)) {
            // longer than the head timeout, but no head has begun
            steps.push(Step::Send(b"\r\n".to_vec()));
            steps.push(Step::Pause(Duration::from_secs(35)));
            rest = after;
        }
        // whether the client waits for a response before it continues
        let waits = one_in(rng, 2);
        for part in [rest, body] {
            let mut part = part;
            while !part.is_empty() {
                let most = match style {
                    1 => part.len(),
                    2 => part.len().min(3000),
                    _ => part.len().min(1 + part.len() / 5),
                };
                let (piece, after) = part.split_at(rng.random_range(most.min(1)..=most));
                steps.push(Step::Send(piece.to_vec()));
                steps.extend(pause(rng));
                part = after;
            }
            if waits {
                steps.push(Step::Pause(Duration::from_millis(
                    rng.random_range(500..3000),
                )));
            }
        }
    }
    steps
}

/// Returns the steps that read everything, eventually.
fn takes(rng: &mut SmallRng) -> Vec<Step> {
    let mut steps = Vec::new();
    if one_in(rng, 2) {
        for _ in 0..rng.random_range(0..12) {
            steps.extend(pause(rng));
            let most = *[3, 100, 5000, 30_000].choose(rng).unwrap();
            steps.push(Step::Take(rng.random_range(1..=most)));
        }
    }
    steps.push(Step::Take(usize::MAX));
    steps
}

/// Lets the client leave, or stop.
fn disturb(rng: &mut SmallRng, sends: &mut Vec<Step>, takes: &mut Vec<Step>) {
    for _ in 0..rng.random_range(1..3) {
        let at = rng.random_range(0..=sends.len());
        match rng.random_range(0..5) {
            0 => {
                sends.truncate(at);
                sends.extend(pause(rng));
                sends.push(Step::End);
            }
            1 => sends.insert(at, Step::Reset),
            2 => sends.insert(
                at,
                Step::Pause(Duration::from_secs(rng.random_range(1..70))),
            ),
            3 => takes.truncate(rng.random_range(0..=takes.len())),
            _ => {
                let at = rng.random_range(0..=takes.len());
                takes.insert(
                    at,
                    Step::Pause(Duration::from_secs(rng.random_range(1..15))),
                );
            }
        }
    }
}

fn answer(rng: &mut SmallRng, request: &Request) -> Answer {
    let switches = (request.is_connect || request.upgrades) && one_in(rng, 2);
    let status = match rng.random_range(0..10) {
        _ if switches && request.is_connect => 200,
        _ if switches => 101,
        _ if request.is_connect => 503,
        0 => 204,
        1 => 304,
        2 => 404,
        3 => 503,
        _ => 200,
    };
    let reads = match rng.random_range(0..6) {
        _ if switches => Reads::All,
        0..3 => Reads::All,
        3 => Reads::AtLeast(rng.random_range(0..20_000)),
        _ => Reads::Nothing,
    };
    let keeps = [
        Keeps::Nothing,
        Keeps::Unread,
        Keeps::Reading,
        Keeps::Reading,
    ];
    let mut answer = Answer {
        before: (0..rng.random_range(0..4)).map(|_| wait(rng)).collect(),
        reads,
        keeps: *keeps.choose(rng).unwrap(),
        interims: rng.random_range(0..12_usize).saturating_sub(9),
        status: StatusCode::from_u16(status).unwrap(),
        headers: HeaderMap::new(),
        exact: None,
        parts: Vec::new(),
        says_end: one_in(rng, 2),
        is_local: one_in(rng, 4),
        is_late: one_in(rng, 40),
        switches,
    };
    if one_in(rng, 12) {
        let close = HeaderValue::from_static("close");
        answer.headers.insert(CONNECTION, close);
    }
    if !one_in(rng, 6) {
        reply_body(rng, &mut answer);
    }
    answer
}

fn wait(rng: &mut SmallRng) -> Part {
    match one_in(rng, 2) {
        true => Part::Yield,
        false => Part::Pause(Duration::from_millis(rng.random_range(0..200))),
    }
}

fn reply_body(rng: &mut SmallRng, answer: &mut Answer) {
    let bytes = Bytes::from(some_bytes(rng));
    let mut rest = bytes.clone();
    while !rest.is_empty() {
        if one_in(rng, 4) {
            answer.parts.push(wait(rng));
        }
        if one_in(rng, 8) {
            answer.parts.push(Part::Data(Bytes::new()));
        }
        let least = rest.len().min(rest.len() / 10 + 1);
        let piece = rest.split_to(rng.random_range(least..=rest.len()));
        answer.parts.push(Part::Data(piece));
    }
    let fails = one_in(rng, 10);
    let length = bytes.len() as u64;
    match rng.random_range(0..8) {
        0..3 => answer.exact = Some(length + u64::from(fails)),
        3 => answer
            .headers
            .extend([(CONTENT_LENGTH, HeaderValue::from(length))]),
        4 => {
            let claim = rng.random_range(0..length + 10);
            answer
                .headers
                .insert(CONTENT_LENGTH, HeaderValue::from(claim));
        }
        _ => {
            if one_in(rng, 2) {
                answer
                    .headers
                    .insert(TRAILER, HeaderValue::from_static("x-sum"));
            }
            if one_in(rng, 2) {
                let sum = HeaderMap::from_iter([(SUM, HeaderValue::from_static("9"))]);
                answer.parts.push(Part::Trailers(sum));
            }
        }
    }
    if fails {
        answer.parts.push(Part::Fail);
    }
}
