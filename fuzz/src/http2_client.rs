//! Fuzz target: arbitrary bytes from an HTTP/2 server in response to our requests. The result does not depend on how
//! the bytes are split, memory is bounded, and the connection only ends with a GOAWAY.

use std::fmt::Write;
use std::io::IoSlice;

use bytes::Bytes;
use hyper::{HeaderMap, Method, Uri};
use wire::http2::client::{Client, Event};
use wire::http2::frame::{HEAD_BYTES, PAYLOAD_BYTES_MAX};
use wire::http2::output::SLICES;
use wire::http2::settings::Settings;

const SETTINGS: Settings = Settings {
    concurrent_streams_max: 0,
    header_list_bytes_max: 4096,
    stream_window_bytes: 65_535,
    connection_window_bytes: 100_000,
    error_resets_max: 20,
    pending_resets_max: 0,
};

/// Greeting that precedes the bytes, so that the fuzzer need not find it.
const GREETING: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// Maximum number of concurrent streams.
const STREAMS: usize = 4;

/// Total number of requests.
const REQUESTS: usize = 64;

/// Reads the bytes whole and in pieces.
pub fn run(bytes: &[u8]) {
    let input = [GREETING, bytes].concat();
    let whole = read(&input, input.len());
    for piece in [1, 9, 100, 4096] {
        assert_eq!(read(&input, piece), whole, "in pieces of {piece}");
    }
}

/// Client, with its input and output as text and bytes.
struct World {
    client: Client,
    log: String,
    said: Vec<u8>,
    asked: usize,
}

fn read(bytes: &[u8], piece: usize) -> (String, Vec<u8>) {
    let mut world = World {
        client: Client::new(SETTINGS, 1 << 20),
        log: String::new(),
        said: Vec::new(),
        asked: 0,
    };
    world.ask();
    let mut input = Vec::new();
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        let mut at = 0;
        loop {
            match world.client.receive(&input[at..]) {
                Ok(received) => {
                    if let Some(event) = received.event {
                        world.take(event, &input[at..]);
                    }
                    world.write_out();
                    if received.used == 0 {
                        break;
                    }
                    at += received.used;
                }
                Err(reason) => {
                    world.client.fail(reason);
                    world.client.end();
                    world.write_out();
                    let _ = write!(world.log, "{reason}");
                    return (world.log, world.said);
                }
            }
        }
        input.drain(..at);
        assert!(input.len() < HEAD_BYTES + PAYLOAD_BYTES_MAX);
        assert!(world.client.places() <= STREAMS);
    }
    (world.log, world.said)
}

impl World {
    /// Keeps as many requests in flight as allowed; every second one has a body.
    fn ask(&mut self) {
        let uri = Uri::from_static("http://a.test/b");
        while self.client.open() < STREAMS && self.asked < REQUESTS {
            let methods = [Method::GET, Method::POST, Method::HEAD, Method::POST];
            let method = &methods[self.asked % methods.len()];
            let bodiless = *method != Method::POST;
            let headers = HeaderMap::new();
            let Some(place) = self.client.request(method, &uri, &headers, bodiless) else {
                return;
            };
            self.asked += 1;
            self.client
                .data(place, Bytes::from_static(&[b'x'; 30_000]), true);
        }
    }

    fn take(&mut self, event: Event, input: &[u8]) {
        let _ = match &event {
            Event::Data { place, range, end } => {
                writeln!(self.log, "{place} {:?} {end}", &input[range.clone()])
            }
            event => writeln!(self.log, "{event:?}"),
        };
        match event {
            Event::Data { place, range, end } => {
                self.client.release(place, range.len() as u32);
                self.finish_response(place, end);
            }
            Event::Response { place, end, .. } => self.finish_response(place, end),
            Event::Trailers { place, .. } | Event::Reset { place, .. } => {
                self.finish_response(place, true)
            }
            Event::Leaving { .. } => {
                for place in 0..self.client.places() {
                    assert!(!self.client.can_request());
                    let _ = writeln!(self.log, "{}", self.client.is_open(place));
                }
            }
            Event::Interim { .. } | Event::Limit => {}
        }
        self.client.pump(|_| {});
    }

    /// Handles a complete response, whose slot becomes free for the next request.
    fn finish_response(&mut self, place: usize, over: bool) {
        if over {
            self.client.vacate(place);
            self.ask();
        }
    }

    fn write_out(&mut self) {
        self.client.pump(|_| {});
        let output = self.client.output();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = output.slices(&mut slices);
            let before = self.said.len();
            for slice in &slices[..count] {
                self.said.extend_from_slice(slice);
            }
            let added = self.said.len() - before;
            output.advance(added);
        }
    }
}
