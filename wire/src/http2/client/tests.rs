use bytes::Bytes;

use super::super::flow::WINDOW_DEFAULT;
use super::super::frame::{Head, Kind};
use super::super::tests::{bytes_said, frame, said};
use super::*;

mod simulation;

const SETTINGS: Settings = Settings {
    concurrent_streams_max: 0,
    header_list_bytes_max: 1024,
    stream_window_bytes: 100_000,
    connection_window_bytes: 200_000,
    error_resets_max: 10,
    pending_resets_max: 0,
};

/// `:status: 200`
const OK: &[u8] = &[0x88];

const END: u8 = flag::END_STREAM;
const HEAD: u8 = flag::END_HEADERS;
const BOTH: u8 = flag::END_STREAM | flag::END_HEADERS;

fn take(client: &mut Client, input: &[u8]) -> Result<Vec<Event>, Reason> {
    let mut events = Vec::new();
    let mut at = 0;
    loop {
        let received = client.receive(&input[at..])?;
        events.extend(received.event);
        if received.used == 0 {
            assert_eq!(at, input.len(), "whole frames");
            return Ok(events);
        }
        at += received.used;
    }
}

/// Returns a client after the exchange of SETTINGS.
fn greeted(settings: Settings) -> Client {
    let mut client = Client::new(settings, 64 * 1024);
    take(&mut client, &frame(Kind::Settings, 0, 0, &[])).unwrap();
    take(&mut client, &frame(Kind::Settings, flag::ACK, 0, &[])).unwrap();
    said(&mut client);
    client
}

fn ask(client: &mut Client, method: Method, end: bool) -> usize {
    let uri = Uri::from_static("http://a/b");
    let place = client.request(&method, &uri, &HeaderMap::new(), end);
    place.expect("it takes requests")
}

fn get(client: &mut Client) -> usize {
    ask(client, Method::GET, true)
}

fn post(client: &mut Client) -> usize {
    ask(client, Method::POST, false)
}

/// Encodes literal fields as a header block.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.extend([0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

fn resets(client: &mut Client) -> Vec<(u32, Reason)> {
    let resets = said(client).into_iter();
    let resets = resets.filter(|(kind, ..)| *kind == Kind::RstStream);
    resets
        .map(|(_, _, stream, payload)| (stream, Reason(frame::number(&payload).unwrap())))
        .collect()
}

#[test]
fn client_preface_has_our_settings_and_disables_push() {
    let mut client = Client::new(SETTINGS, 1000);
    let greeting = bytes_said(&mut client);
    let rest = greeting.strip_prefix(PREFACE).expect("the preface");
    let head = Head::parse(rest).unwrap();
    assert_eq!((head.kind, head.len), (Kind::Settings, 18));
    assert_eq!(rest[9..15], [0, 2, 0, 0, 0, 0]);
    let mut client = Client::new(SETTINGS, 1000);
    let said = said(&mut client);
    let more = (200_000_u32 - WINDOW_DEFAULT).to_be_bytes().to_vec();
    assert_eq!(said[1..], [(Kind::WindowUpdate, 0, 0, more)]);
    // requests may be sent before the peer sends any frame; its first one is SETTINGS
    assert_eq!(client.streams_max(), None);
    get(&mut client);
    let early = frame(Kind::Headers, BOTH, 1, OK);
    assert_eq!(client.receive(&early).unwrap_err(), Reason::PROTOCOL_ERROR);
}

#[test]
fn stream_limit_follows_the_latest_settings_of_the_peer() {
    let mut client = Client::new(SETTINGS, 1000);
    for (payload, expected) in [
        (&[][..], STREAM_MAX as usize),
        (&[0, 3, 0, 0, 0, 7], 7),
        (&[0, 4, 0, 0, 0, 7], 7),
        (&[0, 3, 0, 0, 0, 0], 0),
    ] {
        let events = take(&mut client, &frame(Kind::Settings, 0, 0, payload)).unwrap();
        assert!(matches!(events[..], [Event::Limit]));
        assert_eq!(client.streams_max(), Some(expected));
    }
}

#[test]
fn stream_slot_is_kept_until_it_is_vacated() {
    let mut client = greeted(SETTINGS);
    for stream in [1, 3, 5] {
        let place = post(&mut client);
        assert_eq!(place, 0);
        client.data(place, Bytes::from_static(b"hello"), true);
        let told = said(&mut client);
        assert_eq!(
            (told[0].0, told[0].1, told[0].2),
            (Kind::Headers, HEAD, stream)
        );
        assert_eq!(told[1], (Kind::Data, END, stream, b"hello".to_vec()));
        let response = [
            frame(Kind::Headers, HEAD, stream, OK),
            frame(Kind::Data, 0, stream, b"abc"),
            frame(Kind::Headers, BOTH, stream, &block(&[("x", "y")])),
        ];
        let events = take(&mut client, &response.concat()).unwrap();
        let [
            Event::Response {
                head, end: false, ..
            },
            Event::Data {
                range, end: false, ..
            },
            Event::Trailers { trailers, .. },
        ] = &events[..]
        else {
            panic!("{events:?}");
        };
        assert_eq!((head.status, range.len()), (StatusCode::OK, 3));
        assert_eq!(trailers["x"], "y");
        assert!(!client.is_open(place));
        assert_eq!((client.open(), client.places()), (0, 1));
        client.vacate(place);
        assert!(said(&mut client).is_empty(), "nothing is left to say");
    }
}

#[test]
fn repeated_headers_are_indexed() {
    let mut client = greeted(SETTINGS);
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/grpc".parse().unwrap());
    headers.insert("te", "trailers".parse().unwrap());
    headers.insert("connection", "x".parse().unwrap());
    let uri = Uri::from_static("http://a.test:80/a.B/C");
    let mut sizes = Vec::new();
    for _ in 0..4 {
        client.request(&Method::POST, &uri, &headers, true).unwrap();
        sizes.push(said(&mut client)[0].3.len());
    }
    assert_eq!(sizes[3], 6, "{sizes:?}");
    // a query may contain a secret
    let uri = Uri::from_static("http://a.test:80/a?token=1");
    for _ in 0..4 {
        client.request(&Method::GET, &uri, &headers, true).unwrap();
        let told = &said(&mut client)[0].3;
        assert!(told.windows(10).any(|window| window == b"/a?token=1"));
    }
}

#[test]
fn violations_that_are_connection_errors() {
    let protocol = Reason::PROTOCOL_ERROR;
    let size = Reason::FRAME_SIZE_ERROR;
    let rows: &[(&str, Vec<u8>, Reason)] = &[
        (
            "a push",
            frame(Kind::PushPromise, HEAD, 1, &[0, 0, 0, 2, 0x82]),
            protocol,
        ),
        (
            "a stream of its own",
            frame(Kind::Headers, BOTH, 2, OK),
            protocol,
        ),
        (
            "a stream that was not opened",
            frame(Kind::Headers, BOTH, 9, OK),
            protocol,
        ),
        ("data of such", frame(Kind::Data, 0, 9, b"x"), protocol),
        (
            "reset of such",
            frame(Kind::RstStream, 0, 9, &[0; 4]),
            protocol,
        ),
        (
            "window of such",
            frame(Kind::WindowUpdate, 0, 9, &[0, 0, 0, 1]),
            protocol,
        ),
        ("short GOAWAY", frame(Kind::GoAway, 0, 0, &[0; 7]), size),
        (
            "GOAWAY of a stream",
            frame(Kind::GoAway, 0, 1, &[0; 8]),
            protocol,
        ),
        (
            "a frame in a block",
            [
                frame(Kind::Headers, 0, 1, OK),
                frame(Kind::Data, 0, 1, b"x"),
            ]
            .concat(),
            protocol,
        ),
        (
            "bad compression",
            frame(Kind::Headers, BOTH, 1, &[0xff, 0xff]),
            Reason::COMPRESSION_ERROR,
        ),
        (
            "more than the window",
            {
                let data = frame(Kind::Data, 0, 1, &[0; 16_384]);
                [frame(Kind::Headers, HEAD, 1, OK), data.repeat(13)].concat()
            },
            Reason::FLOW_CONTROL_ERROR,
        ),
        (
            "window too large",
            frame(Kind::WindowUpdate, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            Reason::FLOW_CONTROL_ERROR,
        ),
    ];
    for (what, input, reason) in rows {
        let mut client = greeted(SETTINGS);
        post(&mut client);
        assert_eq!(take(&mut client, input).unwrap_err(), *reason, "{what}");
        client.fail(*reason);
        let last = said(&mut client).pop().unwrap();
        assert_eq!(last.0, Kind::GoAway, "{what}");
    }
}

#[test]
fn violations_that_are_stream_errors() {
    let length = |value| block(&[(":status", "200"), ("content-length", value)]);
    let head = |payload: &[u8]| frame(Kind::Headers, HEAD, 1, payload);
    let ends = |payload: &[u8]| frame(Kind::Headers, BOTH, 1, payload);
    let data = |flags, payload: &[u8]| frame(Kind::Data, flags, 1, payload);
    let early = block(&[(":status", "103")]);
    let rows: &[(&str, Vec<Vec<u8>>)] = &[
        ("data before a head", vec![data(0, b"x")]),
        ("no status", vec![ends(&block(&[("x", "y")]))]),
        ("two", vec![ends(&[0x88, 0x88])]),
        ("a field of requests", vec![ends(&[0x88, 0x82])]),
        (
            "a status after a header",
            vec![ends(&[&block(&[("x", "y")])[..], OK].concat())],
        ),
        (
            "a header of connections",
            vec![ends(&block(&[(":status", "200"), ("connection", "x")]))],
        ),
        (
            "a list that is too large",
            vec![ends(&[OK, &block(&[("x", "y")]).repeat(40)].concat())],
        ),
        ("an end of an interim response", vec![ends(&early)]),
        (
            "a switch of protocols",
            vec![head(&block(&[(":status", "101")]))],
        ),
        ("too many interim responses", vec![head(&early).repeat(33)]),
        (
            "trailers that end nothing",
            vec![head(OK), head(&block(&[("x", "y")]))],
        ),
        ("trailers with a status", vec![head(OK), ends(OK)]),
        (
            "a body that is too long",
            vec![head(&length("3")), data(0, b"abcd")],
        ),
        ("too short", vec![head(&length("3")), data(END, b"ab")]),
        (
            "too short, before trailers",
            vec![
                head(&length("3")),
                data(0, b"ab"),
                ends(&block(&[("x", "y")])),
            ],
        ),
        ("none where one is promised", vec![ends(&length("3"))]),
        ("data after the end", vec![ends(OK), data(0, b"x")]),
        (
            "a window of nothing",
            vec![frame(Kind::WindowUpdate, 0, 1, &[0; 4])],
        ),
    ];
    for (what, frames) in rows {
        let mut client = greeted(SETTINGS);
        let place = post(&mut client);
        let events = take(&mut client, &frames.concat()).unwrap();
        assert!(
            matches!(
                events.last(),
                Some(Event::Reset {
                    place: 0,
                    by_peer: false,
                    ..
                })
            ),
            "{what}: {events:?}"
        );
        assert_eq!(resets(&mut client).len(), 1, "{what}");
        assert!(!client.is_open(place), "{what}");
        // other streams continue
        let other = get(&mut client);
        assert!(client.is_open(other), "{what}");
    }
}

#[test]
fn bodies_that_do_not_match_content_length_are_stream_errors() {
    for (method, status, ends, fits) in [
        (Method::HEAD, "200", true, true),
        (Method::HEAD, "200", false, false),
        (Method::GET, "304", true, true),
        (Method::GET, "204", true, true),
        (Method::GET, "204", false, false),
        (Method::GET, "200", true, false),
    ] {
        let mut client = greeted(SETTINGS);
        ask(&mut client, method.clone(), true);
        let fields = block(&[(":status", status), ("content-length", "3")]);
        let mut input = frame(Kind::Headers, if ends { BOTH } else { HEAD }, 1, &fields);
        if !ends {
            input.extend(frame(Kind::Data, END, 1, b"abc"));
        }
        let events = take(&mut client, &input).unwrap();
        let whole = !matches!(events.last(), Some(Event::Reset { .. }));
        assert_eq!(whole, fits, "{method} {status} {ends}");
    }
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let mut client = greeted(SETTINGS);
    get(&mut client);
    let early = block(&[(":status", "103"), ("link", "a")]);
    let input = [
        frame(Kind::Headers, HEAD, 1, &early),
        frame(Kind::Headers, BOTH, 1, OK),
    ];
    let events = take(&mut client, &input.concat()).unwrap();
    let [
        Event::Interim {
            status, headers, ..
        },
        Event::Response { end: true, .. },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (status.as_u16(), &headers["link"]),
        (103, &"a".parse().unwrap())
    );
}

#[test]
fn goaway_ends_unprocessed_streams_and_keeps_the_others() {
    let mut client = greeted(SETTINGS);
    let places: Vec<usize> = (0..3).map(|_| post(&mut client)).collect();
    let leave = |last: u32| {
        let payload = [last.to_be_bytes(), [0; 4]].concat();
        frame(Kind::GoAway, 0, 0, &payload)
    };
    let open = |client: &Client| {
        places
            .iter()
            .map(|&place| client.is_open(place))
            .collect::<Vec<_>>()
    };
    take(&mut client, &leave(STREAM_MAX)).unwrap();
    assert!(!client.can_request());
    assert_eq!(open(&client), [true; 3]);
    let events = take(&mut client, &leave(3)).unwrap();
    assert!(matches!(events[..], [Event::Leaving { .. }]));
    assert_eq!(open(&client), [true, true, false]);
    // a later GOAWAY cannot raise the number
    take(&mut client, &leave(5)).unwrap();
    take(&mut client, &leave(1)).unwrap();
    assert_eq!(open(&client), [true, false, false]);
    let events = take(&mut client, &frame(Kind::Headers, BOTH, 1, OK)).unwrap();
    assert!(matches!(events[..], [Event::Response { end: true, .. }]));
    assert!(
        client
            .request(
                &Method::GET,
                &Uri::from_static("http://a/"),
                &HeaderMap::new(),
                true
            )
            .is_none()
    );
}

#[test]
fn reset_has_its_origin_and_error_code() {
    let mut client = greeted(SETTINGS);
    let place = post(&mut client);
    let refused = Reason::REFUSED_STREAM.0.to_be_bytes();
    let events = take(&mut client, &frame(Kind::RstStream, 0, 1, &refused)).unwrap();
    let [
        Event::Reset {
            place: reset,
            reason,
            by_peer: true,
        },
    ] = events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((reset, reason), (place, Reason::REFUSED_STREAM));
    client.vacate(place);
    assert!(said(&mut client)[1..].is_empty(), "it is not reset twice");
}

#[test]
fn request_counts_as_sent_from_its_first_written_byte() {
    let mut client = greeted(SETTINGS);
    let first = get(&mut client);
    let len = client.output().len();
    let second = get(&mut client);
    assert!(!client.is_sent(first) && !client.is_sent(second));
    client.output().advance(1);
    assert!(client.is_sent(first) && !client.is_sent(second));
    client.output().advance(len - 1);
    assert!(!client.is_sent(second));
    client.output().advance(1);
    assert!(client.is_sent(second));
}

#[test]
fn unread_data_counts_against_the_window_after_end_of_stream() {
    let mut client = greeted(SETTINGS);
    let mut places = Vec::new();
    for stream in [1, 3] {
        places.push(get(&mut client));
        let mut input = frame(Kind::Headers, HEAD, stream, OK);
        input.extend(frame(Kind::Data, 0, stream, &[0; 16_000]).repeat(5));
        input.extend(frame(Kind::Data, END, stream, &[0; 10_000]));
        take(&mut client, &input).unwrap();
    }
    said(&mut client);
    assert_eq!(client.open(), 0);
    client.release(places[0], 90_000);
    assert!(said(&mut client).is_empty(), "less than half is held back");
    client.release(places[1], 20_000);
    let back = 110_000_u32.to_be_bytes().to_vec();
    assert_eq!(said(&mut client), [(Kind::WindowUpdate, 0, 0, back)]);
    // releasing a place releases its unread data
    client.vacate(places[1]);
    client.vacate(places[0]);
    let place = get(&mut client);
    let mut input = frame(Kind::Headers, HEAD, 5, OK);
    input.extend(frame(Kind::Data, END, 5, &[0; 10_000]));
    take(&mut client, &input).unwrap();
    said(&mut client);
    client.release(place, 10_000);
    client.release(place, 10_000);
    assert!(said(&mut client).is_empty(), "nothing is given back twice");
}

#[test]
fn bodies_wait_for_windows_that_may_shrink() {
    let mut client = greeted(SETTINGS);
    let place = post(&mut client);
    client.data(place, Bytes::from(vec![0; 20_000]), false);
    let shrink = frame(Kind::Settings, 0, 0, &[0, 4, 0, 0, 0x40, 0]);
    take(&mut client, &shrink).unwrap();
    client.data(place, Bytes::from(vec![0; 1000]), false);
    let sent = |client: &mut Client| {
        client.pump(|_| {});
        let said = said(client).into_iter();
        said.filter(|said| said.0 == Kind::Data)
            .map(|said| said.3.len())
            .sum::<usize>()
    };
    // the window is 16,384 and 20,000 bytes are sent: it is negative
    assert_eq!(sent(&mut client), 20_000);
    assert!(!client.wants(place));
    let widen = |by: u32| frame(Kind::WindowUpdate, 0, 1, &by.to_be_bytes());
    take(&mut client, &widen(3_616)).unwrap();
    assert_eq!(sent(&mut client), 0);
    take(&mut client, &widen(600)).unwrap();
    assert_eq!(sent(&mut client), 600);
    take(&mut client, &widen(600)).unwrap();
    assert_eq!(sent(&mut client), 400);
    assert!(client.wants(place));
}

#[test]
fn body_ends_once_despite_later_window_updates() {
    let mut client = greeted(SETTINGS);
    let place = post(&mut client);
    client.data(place, Bytes::from_static(b"body"), true);
    let wider = frame(Kind::WindowUpdate, 0, 1, &[0, 0, 1, 0]);
    let resized = frame(Kind::Settings, 0, 0, &[0, 4, 0, 0, 0x40, 0]);
    take(&mut client, &[wider, resized].concat()).unwrap();
    client.pump(|_| {});
    let ends = said(&mut client).into_iter();
    let ends = ends.filter(|(kind, flags, ..)| *kind == Kind::Data && flags & END != 0);
    assert_eq!(ends.count(), 1);
}

#[test]
fn late_frames_on_a_cancelled_stream_are_no_error() {
    let mut client = greeted(SETTINGS);
    for number in 0..500_u32 {
        let stream = 2 * number + 1;
        let place = get(&mut client);
        take(&mut client, &frame(Kind::Headers, HEAD, stream, OK)).unwrap();
        client.vacate(place);
        let mut late = frame(Kind::Data, 0, stream, &[0; 1000]).repeat(50);
        late.extend(frame(Kind::Headers, BOTH, stream, &block(&[("x", "y")])));
        assert!(take(&mut client, &late).unwrap().is_empty());
        assert!(matches!(resets(&mut client)[..], [(_, Reason::CANCEL)]));
    }
    // more than could be in flight is an error
    let flood = frame(Kind::Data, END, 999, &[0; 10_000]);
    let end = (0..1_000_000).find_map(|_| client.receive(&flood).err());
    assert_eq!(end, Some(Reason::FLOW_CONTROL_ERROR));
    let mut client = greeted(SETTINGS);
    let place = get(&mut client);
    client.vacate(place);
    let flood = frame(Kind::Data, 0, 1, b"");
    let end = (0..2000).find_map(|_| client.receive(&flood).err());
    assert_eq!(end, Some(Reason::ENHANCE_YOUR_CALM));
}

#[test]
fn floods_end_the_connection() {
    for flood in [
        frame(Kind::Ping, 0, 0, &[0; 8]),
        frame(Kind::Settings, 0, 0, &[]),
        frame(Kind::WindowUpdate, 0, 0, &[0, 0, 0, 1]),
        frame(Kind::GoAway, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        frame(Kind::Priority, 0, 1, &[0; 5]),
        frame(Kind::Data, 0, 1, b""),
        frame(Kind::RstStream, 0, 3, &[0; 4]),
    ] {
        let mut client = greeted(SETTINGS);
        post(&mut client);
        post(&mut client);
        take(&mut client, &frame(Kind::Headers, HEAD, 1, OK)).unwrap();
        let end = (0..2000).find_map(|_| client.receive(&flood).err());
        assert_eq!(end, Some(Reason::ENHANCE_YOUR_CALM), "{flood:?}");
    }
    let mut client = greeted(SETTINGS);
    let bad = |stream| frame(Kind::Data, 0, stream, b"x");
    let end = (0..20).find_map(|number| {
        post(&mut client);
        client.receive(&bad(2 * number + 1)).err()
    });
    assert_eq!(end, Some(Reason::ENHANCE_YOUR_CALM), "errors of streams");
}

#[test]
fn end_of_the_connection_ends_all_streams() {
    let mut client = greeted(SETTINGS);
    let places = [get(&mut client), post(&mut client)];
    client.end();
    assert_eq!(client.open(), 0);
    assert!(!client.can_request());
    for place in places {
        client.vacate(place);
    }
    client.rest();
    assert_eq!(client.places(), 0);
}
