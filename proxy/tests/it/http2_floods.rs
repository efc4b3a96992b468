//! Rows of `tests/corpus/http2_floods.txt`, while another client's requests on the same worker continue.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::support::frames::{
    DATA, END_STREAM, Frame, Frames, GOAWAY, HEADERS, PING, PREFACE, SETTINGS,
};
use crate::support::mesh::everything_to_address;
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::Proxy;
use crate::support::raw::{GET, Raw};
use crate::support::script::{self, Step};
use crate::support::table::{assert_none, rows};
use crate::support::{DEADLINE, eventually};
use wire::http2::Reason;

const FLOODS: &str = include_str!("../corpus/http2_floods.txt");

/// Minimum number of rows, so that none is lost by accident.
const ROWS_MIN: usize = 45;

/// Maximum 99th percentile of the other client's latency. It is loose, since other tests run on the same machine; a
/// worker that is busy with one flood exceeds it by far.
const P99_MAX: Duration = Duration::from_millis(500);

/// Payload of the last PING of every row.
const BARRIER: &[u8] = b"barrier!";

/// Client that repeats requests on one connection until it is stopped.
struct Neighbour {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Neighbour {
    fn start(edge: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut client = Raw::connect(edge);
            let mut latencies = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let start = Instant::now();
                assert_eq!(client.send(GET).reply().status, 200);
                latencies.push(start.elapsed());
            }
            latencies
        });
        Self { is_over, thread }
    }

    fn p99(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        let mut latencies = self.thread.join().expect("every request is answered");
        latencies.sort_unstable();
        latencies[latencies.len() * 99 / 100]
    }
}

/// Reads until the stream has ended.
fn await_end(frames: &mut Frames, stream: u32) {
    let ends = |frame: &Frame| {
        let may_end = matches!(frame.kind, DATA | HEADERS);
        frame.stream == stream && may_end && frame.flags & END_STREAM != 0
    };
    while !ends(&frames.next().expect("a response")) {}
}

/// Reads until the connection ends or the last PING is answered, and returns which, in the notation of the table.
fn ending(mut frames: Frames) -> String {
    let mut code = None;
    loop {
        match frames.try_next() {
            Ok(Some(frame)) if frame.kind == PING && frame.payload == BARRIER => {
                return "held".to_owned();
            }
            Ok(Some(frame)) if frame.kind == GOAWAY => code = Some(Reason(frame.number(4))),
            Ok(Some(_)) => {}
            Ok(None) => return code.map_or("ended".to_owned(), |code| format!("goaway {code}")),
            Err(error) => return error.to_string(),
        }
    }
}

/// Sends a flood, and returns how the connection ended.
fn flood(edge: SocketAddr, text: &str, reads: bool) -> String {
    let mut stream = TcpStream::connect(edge).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    let mut frames = Frames::over(stream.try_clone().unwrap());
    // a proxy that has closed is what most floods are about
    let mut send = |bytes: &[u8]| drop(stream.write_all(bytes));
    send(&[&PREFACE[..], &Frame::bytes(SETTINGS, 0, 0, &[])].concat());
    let mut steps = script::parse(text, "http");
    let Some(Step::Send(last)) = steps.pop() else {
        panic!("a flood ends with frames: {text}");
    };
    for step in steps {
        match step {
            Step::Send(bytes) => send(&bytes),
            Step::AwaitEnd { stream } => await_end(&mut frames, stream),
            other => panic!("no step of a flood: {other:?}"),
        }
    }
    let last = [last, Frame::bytes(PING, 0, 0, BARRIER)].concat();
    if reads {
        let reader = std::thread::spawn(move || ending(frames));
        send(&last);
        reader.join().unwrap()
    } else {
        send(&last);
        ending(frames)
    }
}

#[test]
fn floods_are_bounded_and_other_clients_are_served() {
    let origin = Origin::start(Back::H1, |request: hyper::Request<Incoming>| async {
        drop(request.into_body().collect().await);
        hyper::Response::new(full("hello"))
    });
    let proxy = Proxy::with_args(&["--concurrency", "1"], |edge| {
        everything_to_address(edge, Back::H1, origin.address)
    });
    let neighbour = Neighbour::start(proxy.edge);
    let (mut count, mut complaints) = (0, Vec::new());
    for [name, wanted, text] in rows(FLOODS) {
        count += 1;
        let found = flood(proxy.edge, text, !name.starts_with("unread"));
        let is_right = match wanted {
            "ended" => found.starts_with("goaway") || found == "ended",
            wanted => found == wanted,
        };
        println!("{name}: {found}");
        if !is_right {
            complaints.push(format!("{name}: {found}, wanted {wanted}"));
        }
    }
    let p99 = neighbour.p99();
    assert_none(&complaints);
    assert!(count >= ROWS_MIN, "{count}");
    assert!(p99 <= P99_MAX, "{p99:?}");
    eventually("every connection of a flood is closed", || {
        proxy.metric("strait_downstream_connections_active", &[]) == 0.0
    });
}
