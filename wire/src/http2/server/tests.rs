use bytes::Bytes;
use http::StatusCode;

use super::super::flow::WINDOW_DEFAULT;
use super::super::frame::{self, Kind, flag};
use super::super::tests::{frame, said};
use super::*;

mod hostile;
mod simulation;

const SETTINGS: Settings = Settings {
    concurrent_streams_max: 4,
    header_list_bytes_max: 1024,
    stream_window_bytes: 100_000,
    connection_window_bytes: 200_000,
    error_resets_max: 10,
    pending_resets_max: 5,
};

/// `GET http://a/`
const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];

const END: u8 = flag::END_STREAM;
const BOTH: u8 = flag::END_STREAM | flag::END_HEADERS;

fn take(server: &mut Server, input: &[u8]) -> Result<Vec<Event>, Reason> {
    let mut events = Vec::new();
    let mut at = 0;
    loop {
        let received = server.receive(&input[at..])?;
        events.extend(received.event);
        if received.used == 0 {
            assert_eq!(at, input.len(), "whole frames");
            return Ok(events);
        }
        at += received.used;
    }
}

/// Returns a server after the exchange of SETTINGS.
fn greeted(settings: Settings) -> Server {
    let mut server = Server::new(settings, 64 * 1024);
    take(&mut server, PREFACE).unwrap();
    take(&mut server, &frame(Kind::Settings, 0, 0, &[])).unwrap();
    take(&mut server, &frame(Kind::Settings, flag::ACK, 0, &[])).unwrap();
    said(&mut server);
    server
}

fn post(stream: u32) -> Vec<u8> {
    let block = [&[0x83], &GET[1..]].concat();
    frame(Kind::Headers, flag::END_HEADERS, stream, &block)
}

fn get(stream: u32) -> Vec<u8> {
    frame(Kind::Headers, BOTH, stream, GET)
}

fn resets(server: &mut Server) -> Vec<(u32, u32)> {
    let resets = said(server).into_iter();
    let resets = resets.filter(|(kind, ..)| *kind == Kind::RstStream);
    resets
        .map(|(_, _, stream, payload)| (stream, frame::number(&payload).unwrap()))
        .collect()
}

#[test]
fn server_preface_has_our_settings() {
    let mut server = Server::new(SETTINGS, 1000);
    let greeting = said(&mut server);
    assert_eq!(greeting.len(), 2);
    assert_eq!((greeting[0].0, greeting[0].1), (Kind::Settings, 0));
    let more = (200_000_u32 - WINDOW_DEFAULT).to_be_bytes().to_vec();
    assert_eq!(greeting[1], (Kind::WindowUpdate, 0, 0, more));
    assert_eq!(
        server.receive(b"GET / HTTP/1.1\r\n").unwrap_err(),
        Reason::PROTOCOL_ERROR
    );
    let mut server = Server::new(SETTINGS, 1000);
    // SETTINGS come first
    assert_eq!(server.receive(&PREFACE[..10]).unwrap().used, 0);
    take(&mut server, PREFACE).unwrap();
    assert!(take(&mut server, &get(1)).is_err());
}

#[test]
fn stream_slot_is_reused_after_the_response() {
    let mut server = greeted(SETTINGS);
    for stream in [1, 3, 5] {
        let events = take(&mut server, &get(stream)).unwrap();
        let Event::Request { place, head, end } = &events[0] else {
            panic!("{events:?}");
        };
        assert_eq!(
            (*place, *end, head.uri.to_string()),
            (0, true, "http://a/".into())
        );
        server.respond(0, StatusCode::OK, &HeaderMap::new(), false);
        server.data(0, Bytes::from("hello"), false);
        assert!(server.is_open(0) && server.wants(0));
        server.finish(0, None);
        assert!(!server.is_open(0));
        let said = said(&mut server);
        assert_eq!(
            said[0],
            (Kind::Headers, flag::END_HEADERS, stream, vec![0x88])
        );
        assert_eq!(said[1], (Kind::Data, 0, stream, b"hello".to_vec()));
        assert_eq!(said[2], (Kind::Data, END, stream, Vec::new()));
    }
}

#[test]
fn violations_that_are_connection_errors() {
    let close = |frames: &[Vec<u8>]| {
        let mut server = greeted(SETTINGS);
        take(&mut server, &get(1)).unwrap();
        take(&mut server, &post(3)).unwrap();
        take(&mut server, &frames.concat()).map(|_| ())
    };
    let protocol = Err(Reason::PROTOCOL_ERROR);
    let size = Err(Reason::FRAME_SIZE_ERROR);
    let flow = Err(Reason::FLOW_CONTROL_ERROR);
    let half = frame(Kind::Headers, END, 5, GET);
    let priority = |stream: u32| [&stream.to_be_bytes()[..], &[0]].concat();
    for (frames, expected) in [
        // invalid stream numbers
        (vec![get(0)], protocol),
        (vec![get(2)], protocol),
        (vec![get(7), post(3), get(5)], Err(Reason::STREAM_CLOSED)),
        (vec![frame(Kind::Data, 0, 0, b"x")], protocol),
        (vec![frame(Kind::Data, 0, 2, b"x")], protocol),
        (vec![frame(Kind::Data, 0, 5, b"x")], protocol),
        (vec![frame(Kind::RstStream, 0, 0, &[0; 4])], protocol),
        (vec![frame(Kind::RstStream, 0, 5, &[0; 4])], protocol),
        (
            vec![frame(Kind::WindowUpdate, 0, 5, &[0, 0, 0, 1])],
            protocol,
        ),
        (vec![frame(Kind::Priority, 0, 0, &[0; 5])], protocol),
        (vec![frame(Kind::Priority, 0, 5, &priority(5))], protocol),
        (vec![frame(Kind::Settings, 0, 1, &[])], protocol),
        (vec![frame(Kind::Ping, 0, 1, &[0; 8])], protocol),
        (vec![frame(Kind::GoAway, 0, 1, &[0; 8])], protocol),
        (vec![frame(Kind::PushPromise, 4, 3, &[0; 4])], protocol),
        // invalid lengths
        (vec![frame(Kind::Data, 0, 3, &[0; 16_385])], size),
        (vec![frame(Kind::RstStream, 0, 3, &[0; 3])], size),
        (vec![frame(Kind::RstStream, 0, 3, &[0; 5])], size),
        (vec![frame(Kind::WindowUpdate, 0, 3, &[0; 5])], size),
        (vec![frame(Kind::Ping, 0, 0, &[0; 7])], size),
        (vec![frame(Kind::GoAway, 0, 0, &[0; 7])], size),
        (vec![frame(Kind::Settings, 0, 0, &[0; 5])], size),
        (vec![frame(Kind::Settings, flag::ACK, 0, &[0; 6])], size),
        (vec![frame(Kind::Priority, 0, 5, &[0; 4])], size),
        (
            vec![frame(Kind::Headers, flag::PRIORITY | BOTH, 5, &[0; 4])],
            size,
        ),
        // padding that is longer than the frame
        (vec![frame(Kind::Data, flag::PADDED, 3, &[2, 0])], protocol),
        (
            vec![frame(Kind::Headers, flag::PADDED | BOTH, 5, &[9, 0x82])],
            protocol,
        ),
        // windows
        (vec![frame(Kind::WindowUpdate, 0, 0, &[0; 4])], protocol),
        (
            vec![frame(Kind::WindowUpdate, 0, 0, &[0x7f, 0xff, 0xff, 0xff])],
            flow,
        ),
        (
            vec![frame(Kind::Settings, 0, 0, &[0, 4, 0x80, 0, 0, 0])],
            flow,
        ),
        // header blocks
        (vec![half.clone(), get(7)], protocol),
        (
            vec![half.clone(), frame(Kind::Unknown, 0, 5, &[])],
            protocol,
        ),
        (
            vec![half.clone(), frame(Kind::Continuation, 4, 7, &[])],
            protocol,
        ),
        (vec![frame(Kind::Continuation, 4, 3, &[])], protocol),
        (
            vec![frame(Kind::Headers, BOTH, 5, &[0x80])],
            Err(Reason::COMPRESSION_ERROR),
        ),
        (
            vec![frame(Kind::Headers, BOTH, 5, &[0x40, 3])],
            Err(Reason::COMPRESSION_ERROR),
        ),
        // valid frames
        (vec![frame(Kind::Unknown, 0xff, 99, &[0; 100])], Ok(())),
        (vec![frame(Kind::GoAway, 0, 0, &[0; 20])], Ok(())),
        (vec![frame(Kind::Priority, 0, 5, &priority(3))], Ok(())),
        (vec![half, frame(Kind::Continuation, 4, 5, &[])], Ok(())),
    ] {
        let shown: Vec<_> = frames.iter().map(|f| &f[..f.len().min(20)]).collect();
        assert_eq!(close(&frames), expected, "{shown:x?}");
    }
}

#[test]
fn violations_that_are_stream_errors_keep_other_streams() {
    let length = |digit: u8| [&[0x83], &GET[1..], &[0x0f, 0x0d, 1, digit]].concat();
    let with_length =
        |stream, digit| frame(Kind::Headers, flag::END_HEADERS, stream, &length(digit));
    let upper = [GET, &[0x00, 1, b'X', 1, b'y']].concat();
    let trailers = frame(Kind::Headers, BOTH, 3, &[0x00, 1, b'x', 1, b'y']);
    let own = [&5_u32.to_be_bytes()[..], &[0], GET].concat();
    for (frames, stream, reason) in [
        (
            vec![post(3), frame(Kind::WindowUpdate, 0, 3, &[0; 4])],
            3,
            Reason::PROTOCOL_ERROR,
        ),
        (
            vec![
                post(3),
                frame(Kind::WindowUpdate, 0, 3, &[0x7f, 0xff, 0xff, 0xff]),
            ],
            3,
            Reason::FLOW_CONTROL_ERROR,
        ),
        (
            vec![get(3), frame(Kind::Data, 0, 3, b"x")],
            3,
            Reason::STREAM_CLOSED,
        ),
        (vec![get(3), trailers.clone()], 3, Reason::STREAM_CLOSED),
        (
            vec![post(3), frame(Kind::Headers, flag::END_HEADERS, 3, &[])],
            3,
            Reason::PROTOCOL_ERROR,
        ),
        (vec![post(3), get(3)], 3, Reason::PROTOCOL_ERROR),
        (
            vec![post(3), frame(Kind::Priority, 0, 3, &[0; 4])],
            3,
            Reason::FRAME_SIZE_ERROR,
        ),
        (
            vec![post(3), frame(Kind::Priority, 0, 3, &[0, 0, 0, 3, 0])],
            3,
            Reason::PROTOCOL_ERROR,
        ),
        (
            vec![frame(Kind::Headers, BOTH | flag::PRIORITY, 5, &own)],
            5,
            Reason::PROTOCOL_ERROR,
        ),
        (
            vec![frame(Kind::Headers, BOTH, 5, &upper)],
            5,
            Reason::PROTOCOL_ERROR,
        ),
        (
            vec![frame(Kind::Headers, BOTH, 5, &[0x82])],
            5,
            Reason::PROTOCOL_ERROR,
        ),
        (
            vec![frame(Kind::Headers, BOTH, 5, &length(b'1'))],
            5,
            Reason::PROTOCOL_ERROR,
        ),
        (
            vec![with_length(3, b'2'), frame(Kind::Data, END, 3, b"x")],
            3,
            Reason::PROTOCOL_ERROR,
        ),
        (
            vec![with_length(3, b'2'), frame(Kind::Data, 0, 3, b"xyz")],
            3,
            Reason::PROTOCOL_ERROR,
        ),
        (
            vec![with_length(3, b'2'), trailers],
            3,
            Reason::PROTOCOL_ERROR,
        ),
    ] {
        let mut server = greeted(SETTINGS);
        take(&mut server, &get(1)).unwrap();
        take(&mut server, &frames.concat()).unwrap();
        assert_eq!(resets(&mut server), [(stream, reason.0)], "{frames:x?}");
        // frames in flight for the stream are no violation
        take(&mut server, &frame(Kind::Data, 0, stream, b"late")).unwrap();
        take(&mut server, &frame(Kind::Headers, BOTH, stream, &[])).unwrap();
        assert_eq!(resets(&mut server), []);
        server.respond(0, StatusCode::OK, &HeaderMap::new(), true);
        assert_eq!(said(&mut server).len(), 1);
    }
}

#[test]
fn floods_end_the_connection() {
    let ping = frame(Kind::Ping, 0, 0, &[0; 8]);
    for (name, first, flood) in [
        ("ping", Vec::new(), ping),
        ("settings", Vec::new(), frame(Kind::Settings, 0, 0, &[])),
        ("acks", Vec::new(), frame(Kind::Settings, flag::ACK, 0, &[])),
        ("unknown", Vec::new(), frame(Kind::Unknown, 0, 0, &[])),
        ("priority", Vec::new(), frame(Kind::Priority, 0, 9, &[0; 5])),
        (
            "windows",
            post(1),
            frame(Kind::WindowUpdate, 0, 1, &[0, 0, 0, 1]),
        ),
        ("empty data", post(1), frame(Kind::Data, 0, 1, &[])),
        (
            "padding",
            post(1),
            frame(Kind::Data, flag::PADDED, 1, &[3, 0, 0, 0]),
        ),
        (
            "continuation",
            frame(Kind::Headers, 0, 1, GET),
            frame(Kind::Continuation, 0, 1, &[]),
        ),
        (
            "resets",
            [get(1), frame(Kind::RstStream, 0, 1, &[0; 4])].concat(),
            frame(Kind::RstStream, 0, 1, &[0; 4]),
        ),
    ] {
        let mut server = greeted(SETTINGS);
        take(&mut server, &first).unwrap();
        let ended = (0..5000).find_map(|_| take(&mut server, &flood).err());
        assert_eq!(ended, Some(Reason::ENHANCE_YOUR_CALM), "{name}");
    }
}

#[test]
fn header_block_is_bounded_and_too_large_lists_are_reported() {
    let field = [&[0x00, 1, b'x', 100][..], &[b'y'; 100]].concat();
    // eleven fields of 133 bytes
    let block = [GET, &field.repeat(11)].concat();
    let mut server = greeted(SETTINGS);
    let events = take(&mut server, &frame(Kind::Headers, BOTH, 1, &block)).unwrap();
    assert!(matches!(events[..], [Event::TooLarge { place: 0 }]));
    server.respond(
        0,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        &HeaderMap::new(),
        true,
    );
    // the table is still in step
    assert!(matches!(
        take(&mut server, &get(3)).unwrap()[..],
        [Event::Request { .. }]
    ));
    take(&mut server, &frame(Kind::Headers, 0, 5, GET)).unwrap();
    let ended = (0..100).find_map(|_| {
        let more = frame(Kind::Continuation, 0, 5, &field);
        take(&mut server, &more).err()
    });
    assert_eq!(ended, Some(Reason::ENHANCE_YOUR_CALM));
}

#[test]
fn streams_over_the_limit_get_refused_stream() {
    let mut server = greeted(SETTINGS);
    for stream in [1, 3, 5, 7] {
        take(&mut server, &get(stream)).unwrap();
    }
    assert!(take(&mut server, &get(9)).unwrap().is_empty());
    assert_eq!(resets(&mut server), [(9, Reason::REFUSED_STREAM.0)]);
    assert_eq!(server.open(), 4);
    // its header block was decoded for the table all the same, and repeated ones are limited
    let ended = (0..100).find_map(|n| take(&mut server, &get(11 + 2 * n)).err());
    assert_eq!(ended, Some(Reason::ENHANCE_YOUR_CALM));
}

#[test]
fn invalid_priority_of_a_closed_stream_resets_it() {
    let own = [0, 0, 0, 1, 0];
    for (payload, reason) in [
        (&[0; 4][..], Reason::FRAME_SIZE_ERROR),
        (&own, Reason::PROTOCOL_ERROR),
    ] {
        let mut server = greeted(SETTINGS);
        take(&mut server, &get(1)).unwrap();
        server.respond(0, StatusCode::OK, &HeaderMap::new(), true);
        said(&mut server);
        take(&mut server, &frame(Kind::Priority, 0, 1, payload)).unwrap();
        assert_eq!(resets(&mut server), [(1, reason.0)]);
    }
}

#[test]
fn resets_provoked_by_the_peer_are_counted() {
    let mut server = greeted(SETTINGS);
    let mut ended = None;
    for number in 0..20 {
        let stream = 2 * number + 1;
        let update = frame(Kind::WindowUpdate, 0, stream, &[0; 4]);
        ended = ended.or(take(&mut server, &[post(stream), update].concat()).err());
    }
    assert_eq!(ended, Some(Reason::ENHANCE_YOUR_CALM));
}

#[test]
fn connection_window_is_released_for_every_stream_outcome() {
    let mut server = greeted(SETTINGS);
    let data = |stream| frame(Kind::Data, 0, stream, &[0; 10_000]);
    let mut stream = 1;
    let mut given_back = 0;
    // ten times the connection's window, never consumed
    for turn in 0..200 {
        take(&mut server, &post(stream)).unwrap();
        let place = server.place_of(stream).unwrap();
        take(&mut server, &data(stream)).unwrap();
        match turn % 4 {
            0 => server.reset(place, Reason::CANCEL),
            1 => {
                take(&mut server, &frame(Kind::RstStream, 0, stream, &[0; 4])).unwrap();
            }
            2 => {
                server.discard(place, 10_000);
                server.reset(place, Reason::CANCEL);
            }
            _ => {
                server.reset(place, Reason::CANCEL);
                take(&mut server, &data(stream)).unwrap();
                given_back -= 10_000;
            }
        }
        server.advance(turn * 100);
        given_back -= 10_000;
        let updates = said(&mut server).into_iter();
        let updates = updates.filter(|said| said.0 == Kind::WindowUpdate && said.2 == 0);
        given_back += updates
            .map(|said| i64::from(frame::number(&said.3).unwrap()))
            .sum::<i64>();
        assert!((-100_000..=0).contains(&given_back), "{given_back}");
        stream += 2;
    }
}

#[test]
fn data_beyond_the_window_is_a_flow_control_error() {
    let mut server = greeted(SETTINGS);
    take(&mut server, &post(1)).unwrap();
    let data = frame(Kind::Data, 0, 1, &[0; 10_000]);
    for _ in 0..10 {
        take(&mut server, &data).unwrap();
    }
    take(&mut server, &data).unwrap();
    assert_eq!(resets(&mut server), [(1, Reason::FLOW_CONTROL_ERROR.0)]);
    // no stream exceeds its window, but together they exceed the connection's
    let mut server = greeted(SETTINGS);
    let ended = [1, 3, 5].into_iter().find_map(|stream| {
        take(&mut server, &post(stream)).unwrap();
        let data = frame(Kind::Data, 0, stream, &[0; 10_000]);
        (0..10).find_map(|_| take(&mut server, &data).err())
    });
    assert_eq!(ended, Some(Reason::FLOW_CONTROL_ERROR));
}

#[test]
fn body_waits_for_windows_and_resumes() {
    let mut server = greeted(SETTINGS);
    take(&mut server, &get(1)).unwrap();
    server.respond(0, StatusCode::OK, &HeaderMap::new(), false);
    let body: Vec<u8> = (0..150_000_u32).map(|n| (n % 251) as u8).collect();
    server.data(0, Bytes::from(body.clone()), true);
    assert!(!server.wants(0) && server.is_blocked());
    let mut got = Vec::new();
    let mut ended = false;
    for turn in 0..100 {
        for (kind, flags, _, payload) in said(&mut server) {
            if kind == Kind::Data {
                got.extend(payload);
                ended |= flags & END != 0;
            }
        }
        if ended {
            break;
        }
        assert!(server.is_open(0));
        let stream = [1, 0, 0, 1][turn % 4];
        take(
            &mut server,
            &frame(Kind::WindowUpdate, 0, stream, &9000_u32.to_be_bytes()),
        )
        .unwrap();
        server.pump(|_| {});
        server.advance(turn as u64 * 100);
    }
    assert!(ended && got == body);
    assert!(!server.is_open(0));
}

#[test]
fn settings_change_the_windows_of_open_streams() {
    let mut server = greeted(SETTINGS);
    let window = |bytes: u32| {
        let pair = [&[0, 4][..], &bytes.to_be_bytes()].concat();
        frame(Kind::Settings, 0, 0, &pair)
    };
    take(&mut server, &[window(10), get(1)].concat()).unwrap();
    server.respond(0, StatusCode::OK, &HeaderMap::new(), false);
    server.data(0, Bytes::from(vec![0; 30]), true);
    let sent = |server: &mut Server| {
        server.pump(|_| {});
        let data = said(server).into_iter().filter(|said| said.0 == Kind::Data);
        data.map(|said| said.3.len()).sum::<usize>()
    };
    assert_eq!(sent(&mut server), 10);
    // negative, and back
    take(&mut server, &window(0)).unwrap();
    assert_eq!(sent(&mut server), 0);
    take(&mut server, &window(10)).unwrap();
    assert_eq!(sent(&mut server), 0);
    take(&mut server, &window(15)).unwrap();
    assert_eq!(sent(&mut server), 5);
    take(
        &mut server,
        &frame(Kind::WindowUpdate, 0, 1, &[0, 0, 0x7f, 0]),
    )
    .unwrap();
    assert_eq!(sent(&mut server), 15);
    assert_eq!(server.open(), 0);
}

#[test]
fn output_is_bounded_and_streams_are_served_round_robin() {
    let mut server = greeted(SETTINGS);
    let wide = frame(Kind::Settings, 0, 0, &[0, 4, 0x7f, 0, 0, 0]);
    let wider = frame(Kind::WindowUpdate, 0, 0, &[0x7f, 0, 0, 0]);
    take(&mut server, &[wide, wider, get(1), get(3)].concat()).unwrap();
    said(&mut server);
    for place in 0..2 {
        server.respond(place, StatusCode::OK, &HeaderMap::new(), false);
        server.data(place, Bytes::from(vec![0; 1 << 20]), true);
    }
    let mut sent = [0_usize; 2];
    while server.open() > 0 {
        assert!(server.output().len() < 64 * 1024 + 20_000);
        for (kind, _, stream, payload) in said(&mut server) {
            if kind == Kind::Data {
                sent[stream as usize / 2] += payload.len();
            }
        }
        server.pump(|_| {});
        assert!(sent[0].abs_diff(sent[1]) <= 128 * 1024, "{sent:?}");
    }
}

#[test]
fn graceful_goaway_serves_streams_opened_meanwhile() {
    let mut server = greeted(SETTINGS);
    take(&mut server, &get(1)).unwrap();
    server.leave();
    server.leave();
    let told = said(&mut server);
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].3[..4], STREAM_MAX.to_be_bytes());
    assert_eq!(told[1].0, Kind::Ping);
    assert!(matches!(
        take(&mut server, &get(3)).unwrap()[..],
        [Event::Request { .. }]
    ));
    take(&mut server, &frame(Kind::Ping, flag::ACK, 0, &told[1].3)).unwrap();
    assert_eq!(said(&mut server)[0].3[..4], 3_u32.to_be_bytes());
    // too late, whatever the stream carries
    assert!(
        take(
            &mut server,
            &[post(5), frame(Kind::Data, END, 5, b"x")].concat()
        )
        .unwrap()
        .is_empty()
    );
    assert!(!server.has_left());
    for place in 0..2 {
        server.respond(place, StatusCode::OK, &HeaderMap::new(), true);
    }
    assert!(server.has_left());
}

#[test]
fn interim_responses_are_sent_only_before_the_final_one() {
    let mut server = greeted(SETTINGS);
    take(&mut server, &get(1)).unwrap();
    server.interim(0, StatusCode::EARLY_HINTS, &HeaderMap::new());
    server.respond(0, StatusCode::OK, &HeaderMap::new(), false);
    server.interim(0, StatusCode::EARLY_HINTS, &HeaderMap::new());
    let flags: Vec<u8> = said(&mut server).iter().map(|said| said.1).collect();
    assert_eq!(flags, [flag::END_HEADERS; 2]);
}

#[test]
fn large_head_is_sent_in_continuation_frames() {
    let mut server = greeted(SETTINGS);
    take(&mut server, &get(1)).unwrap();
    let mut headers = HeaderMap::new();
    for number in 0..40 {
        let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
        headers.insert(name, "y".repeat(1000).parse().unwrap());
    }
    server.respond(0, StatusCode::OK, &headers, true);
    let said = said(&mut server);
    let kinds: Vec<_> = said.iter().map(|said| (said.0, said.1)).collect();
    assert_eq!(kinds[0], (Kind::Headers, END));
    assert_eq!(kinds[1], (Kind::Continuation, 0));
    assert_eq!(kinds[2], (Kind::Continuation, flag::END_HEADERS));
    assert_eq!(kinds.len(), 3);
}
