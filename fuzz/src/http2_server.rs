//! Fuzz target: arbitrary bytes from an HTTP/2 client. The result does not depend on how the bytes are split, memory is
//! bounded, and the connection only ends with a GOAWAY.

use std::fmt::Write;
use std::io::IoSlice;

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use wire::http2::frame::{HEAD_BYTES, PAYLOAD_BYTES_MAX, PREFACE};
use wire::http2::output::SLICES;
use wire::http2::server::{Event, Server};
use wire::http2::settings::Settings;

const SETTINGS: Settings = Settings {
    concurrent_streams_max: 8,
    header_list_bytes_max: 4096,
    stream_window_bytes: 65_535,
    connection_window_bytes: 100_000,
    error_resets_max: 20,
    pending_resets_max: 10,
};

/// Greeting that precedes the bytes, so that the fuzzer need not find it.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Reads the bytes whole and in pieces.
pub fn run(bytes: &[u8]) {
    assert!(GREETING.starts_with(PREFACE));
    let input = [GREETING, bytes].concat();
    let whole = read(&input, input.len());
    for piece in [1, 9, 100, 4096] {
        assert_eq!(read(&input, piece), whole, "in pieces of {piece}");
    }
}

/// Input and output, as text and bytes.
fn read(bytes: &[u8], piece: usize) -> (String, Vec<u8>) {
    let mut server = Server::new(SETTINGS, 1 << 20);
    let (mut log, mut said) = (String::new(), Vec::new());
    let mut input = Vec::new();
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        let mut at = 0;
        loop {
            match server.receive(&input[at..]) {
                Ok(received) => {
                    if let Some(event) = received.event {
                        answer(&mut server, event, &input[at..], &mut log);
                    }
                    write_out(&mut server, &mut said);
                    if received.used == 0 {
                        break;
                    }
                    at += received.used;
                }
                Err(reason) => {
                    server.fail(reason);
                    write_out(&mut server, &mut said);
                    let _ = write!(log, "{reason}");
                    return (log, said);
                }
            }
        }
        input.drain(..at);
        assert!(input.len() < HEAD_BYTES + PAYLOAD_BYTES_MAX);
        assert!(server.places() <= SETTINGS.concurrent_streams_max as usize);
    }
    (log, said)
}

/// Answers every other request at once, and the others when their bodies end.
fn answer(server: &mut Server, event: Event, input: &[u8], log: &mut String) {
    let place = match event {
        Event::Request { place, head, end } => {
            let _ = writeln!(log, "{place} {head:?} {end}");
            if !end && place % 2 == 0 {
                return;
            }
            place
        }
        Event::TooLarge { place } => place,
        Event::Data { place, range, end } => {
            let _ = writeln!(log, "{place} {:?} {end}", &input[range.clone()]);
            server.release(place, range.len() as u32);
            if !end {
                return;
            }
            place
        }
        Event::Trailers { place, trailers } => {
            let _ = writeln!(log, "{place} {trailers:?}");
            place
        }
        Event::Reset { place, reason } => {
            let _ = writeln!(log, "{place} {reason}");
            return;
        }
    };
    server.respond(place, StatusCode::OK, &HeaderMap::new(), false);
    server.data(place, Bytes::from_static(&[b'x'; 3000]), true);
    server.pump(|_| {});
}

fn write_out(server: &mut Server, said: &mut Vec<u8>) {
    server.pump(|_| {});
    let output = server.output();
    while !output.is_empty() {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let count = output.slices(&mut slices);
        let before = said.len();
        for slice in &slices[..count] {
            said.extend_from_slice(slice);
        }
        let added = said.len() - before;
        output.advance(added);
    }
}
