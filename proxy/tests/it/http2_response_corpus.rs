//! Rows of `tests/corpus/http2_responses.txt`, sent by an HTTP/2 upstream. Checks the response to the client, the
//! resets that the upstream receives, and that the connection is not reused after a connection error.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use super::http1_response_corpus::read_response;
use crate::support::DEADLINE;
use crate::support::frames::{END_HEADERS, END_STREAM, Frame, Frames, GOAWAY, HEADERS, RST_STREAM};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, RawOrigin};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;
use crate::support::script::{self, Step};
use crate::support::table::{assert_none, rows};
use wire::http2::Reason;

const RESPONSES: &str = include_str!("../corpus/http2_responses.txt");

/// Minimum number of rows, so that none is lost by accident.
const ROWS_MIN: usize = 100;

/// Header block with only `:status: 200`.
const OK: &[u8] = &[0x88];

/// GOAWAY payload without an error: streams up to this one are served.
fn goaway_after(stream: u32) -> Vec<u8> {
    [stream.to_be_bytes(), [0; 4]].concat()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nab";

/// Event at the upstream, with the number of the connection.
#[derive(Debug)]
enum Event {
    /// Request that arrived while no script was set; the connection then ends.
    Served(usize),
    /// Request that arrived and was answered by the script.
    Played(usize),
    /// Reset of a stream or of the connection by the proxy.
    Told(usize, String),
    Closed(usize),
}

/// Script for the next request.
type Next = Arc<Mutex<Option<Vec<Step>>>>;

/// Serves a connection until it ends.
fn serve((number, stream): (usize, TcpStream), next: &Next, events: &Sender<Event>) {
    let mut peer = Frames::accept(stream, &[]);
    while let Ok(Some(frame)) = peer.try_next() {
        let event = match frame.kind {
            RST_STREAM => Event::Told(number, format!("reset {}", Reason(frame.number(0)))),
            GOAWAY => Event::Told(number, format!("goaway {}", Reason(frame.number(4)))),
            HEADERS => {
                let Some(steps) = next.lock().unwrap().take() else {
                    // scripts are written for stream 1, so the next one gets a connection of its own: the proxy is told
                    // so before the response, since it may not yet have seen the end when the next request arrives
                    let goaway = Frame::bytes(GOAWAY, 0, 0, &goaway_after(frame.stream));
                    let head = Frame::bytes(HEADERS, END_HEADERS | END_STREAM, frame.stream, OK);
                    // in one segment, which the reset by the end cannot overtake
                    drop(peer.stream().write_all(&[goaway, head].concat()));
                    let _ = events.send(Event::Served(number));
                    break;
                };
                let is_open = play(&mut peer, steps);
                let _ = events.send(Event::Played(number));
                if !is_open {
                    break;
                }
                continue;
            }
            _ => continue,
        };
        let _ = events.send(event);
    }
    let _ = events.send(Event::Closed(number));
}

/// Plays a script; returns `false` if the script ends the connection.
fn play(peer: &mut Frames, steps: Vec<Step>) -> bool {
    for step in steps {
        match step {
            // the proxy may have closed before all of it is written
            Step::Send(bytes) => drop(peer.stream().write_all(&bytes)),
            Step::Close => return false,
            other => panic!("no step of an upstream: {other:?}"),
        }
    }
    true
}

/// Events of the connection on which a script was played.
#[derive(Default)]
struct Outcome {
    played_on: Option<usize>,
    served_on: Option<usize>,
    told: Vec<String>,
    is_closed: bool,
}

impl Outcome {
    fn take(&mut self, event: Event) {
        match event {
            Event::Played(number) => self.played_on = Some(number),
            Event::Served(number) => self.served_on = Some(number),
            // this only says that an unused connection is closed
            Event::Told(_, what) if what == "goaway NO_ERROR" => {}
            Event::Told(number, what) if Some(number) == self.played_on => self.told.push(what),
            Event::Closed(number) if Some(number) == self.played_on => self.is_closed = true,
            Event::Told(..) | Event::Closed(_) => {}
        }
    }

    fn is_reused(&self) -> bool {
        self.played_on == self.served_on
    }

    /// Whether all expected events have been received.
    fn is_known(&self) -> bool {
        self.served_on.is_some() && (self.is_reused() || self.is_closed)
    }
}

struct Bench {
    proxy: Proxy,
    next: Next,
    events: Receiver<Event>,
}

impl Bench {
    fn start() -> Self {
        let next = Next::default();
        let (tell, events) = mpsc::channel();
        let (of_origin, tell) = (Arc::clone(&next), Mutex::new(tell));
        let origin = RawOrigin::start(move |number, stream| {
            let tell = tell.lock().unwrap().clone();
            serve((number, stream), &of_origin, &tell);
        });
        let rule = "- {retries: {attempts: 0}, route: [{destination: {host: web.test}}]}";
        let proxy = Proxy::with_args(&["--concurrency", "1"], |edge| {
            documents([
                gateway(&[edge]),
                service("web", Back::H2, &[(origin.address, "v1")]),
                routes("all", "[\"*\"]", rule),
            ])
        });
        Self {
            proxy,
            next,
            events,
        }
    }

    /// Sends a request on a new client connection, and returns status and body of the response.
    fn ask(&self, request: &str) -> Result<String, String> {
        let mut client = Raw::connect(self.proxy.edge).stream();
        client.write_all(request.as_bytes()).unwrap();
        read_response(&mut BufReader::new(client)).map_err(|error| error.to_string())
    }

    /// Plays a row, and describes the difference from the expected result, if any.
    fn complaint(&self, [name, response, told, text]: [&str; 4]) -> Option<String> {
        while self.events.try_recv().is_ok() {}
        *self.next.lock().unwrap() = Some(script::parse(text, "http"));
        let found = self.ask(if name.starts_with("POST") { POST } else { GET });
        let after = self.ask(GET);
        if found.as_deref() != Ok(response) {
            return Some(format!("{found:?}, wanted {response:?}"));
        }
        let mut outcome = Outcome::default();
        while !outcome.is_known() {
            match self.events.recv_timeout(DEADLINE) {
                Ok(event) => outcome.take(event),
                Err(_) => return Some("the connection stays open, unused".to_owned()),
            }
        }
        let is_reused = told == "-" || told.starts_with("reset");
        let wanted: &[&str] = match told {
            "-" | "gone" | "closed" => &[],
            told => &[told],
        };
        let is_told = match told {
            "closed" => true,
            _ => outcome.told == wanted,
        };
        let is_fine = after.as_deref() == Ok("200") && outcome.is_reused() == is_reused && is_told;
        let kept = if outcome.is_reused() {
            "reused"
        } else {
            "fresh"
        };
        (!is_fine).then(|| {
            format!(
                "after: {after:?}, {kept}, {:?}, wanted {told}",
                outcome.told
            )
        })
    }
}

#[test]
fn malformed_http2_responses_are_not_forwarded_and_other_streams_work() {
    let bench = Bench::start();
    let (mut count, mut complaints) = (0, Vec::new());
    for row in rows(RESPONSES) {
        count += 1;
        if let Some(what) = bench.complaint(row) {
            complaints.push(format!("{}: {what}", row[0]));
        }
    }
    assert_none(&complaints);
    assert!(count >= ROWS_MIN, "{count}");
}
