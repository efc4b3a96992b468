//! Rows of `tests/corpus/http2_conformance.txt`, over cleartext and over TLS.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};

use rustls::StreamOwned;

use crate::support::DEADLINE;
use crate::support::frames::{
    DATA, END_STREAM, Frame, Frames, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS,
};
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin, full};
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::script::{self, Step};
use crate::support::table::{assert_none, rows};
use crate::support::tls;
use wire::http2::Reason;

const CASES: &str = include_str!("../corpus/http2_conformance.txt");

/// Minimum number of rows, so that none is lost by accident.
const ROWS_MIN: usize = 200;

/// Payload of the last PING of every row.
const BARRIER: &[u8] = b"barrier!";

const ACK: u8 = 1;

/// Events that a client has observed.
#[derive(Default)]
struct Seen {
    events: Vec<String>,
    /// Body bytes received so far, by stream.
    bodies: BTreeMap<u32, usize>,
    settings_acks: usize,
    is_barrier_back: bool,
    is_closed: bool,
}

impl Seen {
    fn frame(&mut self, frame: &Frame) {
        match frame.kind {
            SETTINGS if frame.flags & ACK != 0 => {
                self.settings_acks += 1;
                if self.settings_acks > 1 {
                    self.events.push("settings ack".to_owned());
                }
            }
            PING if frame.flags & ACK != 0 => match frame.payload == BARRIER {
                true => self.is_barrier_back = true,
                false => self.events.push("pong".to_owned()),
            },
            RST_STREAM => {
                let code = Reason(frame.number(0));
                self.events.push(format!("reset {} {code}", frame.stream));
            }
            GOAWAY => {
                let code = Reason(frame.number(4));
                self.events.push(format!("goaway {code}"));
            }
            DATA => *self.bodies.entry(frame.stream).or_default() += frame.payload.len(),
            _ => {}
        }
        if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
            self.events.push(format!("served {}", frame.stream));
        }
    }

    /// Whether all expected events have been observed, or the connection is closed.
    fn is_done(&self, wanted: &[&str]) -> bool {
        let has_all = wanted.iter().all(|wanted| self.has(wanted));
        self.is_closed || self.is_barrier_back && has_all
    }

    fn has(&self, wanted: &str) -> bool {
        self.events.iter().any(|event| event == wanted)
    }
}

/// Reads until a frame matches; returns `false` if the connection ends first, and an error at the deadline.
fn read_until(
    client: &mut Frames,
    seen: &mut Seen,
    mut fits: impl FnMut(&Frame, &Seen) -> bool,
) -> Result<(), String> {
    loop {
        let Some(frame) = client
            .try_next()
            .map_err(|error| format!("{error}, seen {:?}", seen.events))?
        else {
            seen.is_closed = true;
            return Ok(());
        };
        seen.frame(&frame);
        if fits(&frame, seen) {
            return Ok(());
        }
    }
}

/// Plays a script on a fresh connection, and returns the events that the client observed.
fn play(client: &mut Frames, steps: &[Step], wanted: &[&str]) -> Result<Vec<String>, String> {
    let mut seen = Seen::default();
    for step in steps {
        match step {
            Step::Send(bytes) => {
                // the proxy may have closed before all of it is written
                let _ = client.stream().write_all(bytes);
                let _ = client.stream().flush();
            }
            Step::AwaitFrame { kind, stream } => {
                read_until(client, &mut seen, |frame, _| {
                    (frame.kind, frame.stream) == (*kind, *stream)
                })?;
                if let (DATA, Some(bytes)) = (*kind, seen.bodies.get(stream)) {
                    seen.events.push(format!("data {bytes}"));
                }
            }
            Step::AwaitEnd { stream } => read_until(client, &mut seen, |frame, _| {
                frame.stream == *stream
                    && matches!(frame.kind, DATA | HEADERS)
                    && frame.flags & END_STREAM != 0
            })?,
            Step::Close => return Ok(seen.events),
        }
    }
    client.send(PING, 0, 0, BARRIER);
    if !seen.is_done(wanted) {
        read_until(client, &mut seen, |_, seen| seen.is_done(wanted))?;
    }
    Ok(seen.events)
}

/// Plays a row, and describes the difference from the expected result, if any.
fn complaint([name, wanted, text]: [&str; 3], scheme: &str, mut client: Frames) -> Option<String> {
    let mut steps = script::parse(text, scheme);
    if !text.starts_with("bytes PRI") {
        let first = [PREFACE.to_vec(), Frame::bytes(SETTINGS, 0, 0, &[])].concat();
        steps.insert(0, Step::Send(first));
    }
    let mut wanted: Vec<&str> = wanted.split(", ").filter(|wanted| *wanted != "-").collect();
    let seen = play(&mut client, &steps, &wanted);
    let mut found = match &seen {
        Ok(events) => events.iter().map(|event| &**event).collect(),
        Err(error) => vec![&**error],
    };
    found.sort_unstable();
    wanted.sort_unstable();
    (found != wanted).then(|| format!("{scheme}: {name}: {found:?}, wanted {wanted:?}"))
}

struct Edge {
    proxy: Proxy,
    tls: tls::Visitor,
    _origin: Origin,
}

impl Edge {
    /// Starts a worker with a cleartext and a TLS listener, in front of one origin.
    fn start() -> Self {
        let origin = Origin::start(Back::H1, |request| async {
            let body = http_body_util::BodyExt::collect(request.into_body()).await;
            drop(body);
            hyper::Response::new(full("hello"))
        });
        let ca = Authority::new("ca");
        let secret = tls::credential("cred", &ca.server(&["a.test"]));
        let start = Start::new().args(["--concurrency", "1"]);
        let (edge, secure) = (start.edge(), free_address());
        let server = tls::server(
            secure,
            "https",
            "['*']",
            "{mode: SIMPLE, credentialName: cred}",
        );
        let (ip, port) = (edge.ip(), edge.port());
        let cleartext = format!(
            "  - {{port: {{number: {port}, name: http, protocol: HTTP}}, bind: {ip}, hosts: ['*']}}\n"
        );
        let gateway = tls::gateway(&[cleartext, server]);
        let text = documents([gateway.as_str(), &tls::to(&origin), &secret]);
        let proxy = start.file("mesh.yaml", text).start();
        let mut visitor = tls::Visitor::new(secure, &ca);
        visitor.alpn = vec![b"h2".to_vec()];
        Self {
            proxy,
            tls: visitor,
            _origin: origin,
        }
    }

    fn cleartext(&self) -> Frames {
        Frames::over(connect(self.proxy.edge))
    }

    fn tls(&self) -> Frames {
        let stream = connect(self.tls.address);
        Frames::over(StreamOwned::new(self.tls.session("a.test"), stream))
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

#[test]
fn http2_and_hpack_rules_hold_over_cleartext_and_tls() {
    let edge = Edge::start();
    let mut complaints = Vec::new();
    let mut count = 0;
    for row in rows(CASES) {
        count += 1;
        complaints.extend(complaint(row, "http", edge.cleartext()));
        complaints.extend(complaint(row, "https", edge.tls()));
    }
    assert_none(&complaints);
    assert!(count >= ROWS_MIN, "{count}");
}
