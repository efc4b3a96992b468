//! Client and server engine back to back, with random splits, windows, resets and GOAWAYs: bodies return complete or
//! not at all, and finally no window has lost a byte.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::http2::server::{Event as RequestTraits, Server};
use crate::http2::settings::Settings;

/// Data that the server still has to send back.
#[derive(Default)]
struct Echo {
    data: Vec<u8>,
    ended: bool,
    trailers: Option<HeaderMap>,
}

/// A request, and its outcome.
struct Call {
    number: usize,
    body: Vec<u8>,
    sent: usize,
    got: Vec<u8>,
    /// Bytes that the reader consumed.
    consumed: usize,
    ended: bool,
    trailers: bool,
    over: bool,
}

struct World {
    rng: SmallRng,
    client: Client,
    server: Server,
    /// Bytes in transit.
    up: Vec<u8>,
    down: Vec<u8>,
    calls: BTreeMap<usize, Call>,
    echoes: BTreeMap<usize, Echo>,
    begun: usize,
    whole: usize,
    leaves: bool,
    /// Whether all bytes in transit arrive at once.
    hurries: bool,
}

const CALLS: usize = 40;

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut settings = || Settings {
            concurrent_streams_max: 10,
            header_list_bytes_max: 4096,
            stream_window_bytes: rng.random_range(1000..100_000),
            connection_window_bytes: rng.random_range(1000..200_000),
            error_resets_max: 0,
            pending_resets_max: 100,
        };
        let (ours, theirs) = (settings(), settings());
        Self {
            client: Client::new(ours, rng.random_range(1000..100_000)),
            server: Server::new(theirs, rng.random_range(1000..100_000)),
            up: Vec::new(),
            down: Vec::new(),
            calls: BTreeMap::new(),
            echoes: BTreeMap::new(),
            begun: 0,
            whole: 0,
            leaves: seed.is_multiple_of(4),
            hurries: false,
            rng,
        }
    }

    fn chance(&mut self, of: u32) -> bool {
        self.rng.random_range(0..of) == 0
    }

    fn is_over(&self) -> bool {
        (self.begun == CALLS || !self.client.can_request()) && self.calls.is_empty()
    }

    fn begin(&mut self) {
        // windows of the server are smaller than the defaults that a client assumes before its SETTINGS
        let Some(room) = self.client.streams_max() else {
            return;
        };
        let active = self.client.open().max(self.calls.len());
        if self.begun == CALLS || active >= room || !self.client.can_request() {
            return;
        }
        let number = self.begun;
        self.begun += 1;
        let len = self.rng.random_range(0..60_000) * self.rng.random_range(0..2);
        let body: Vec<u8> = (0..len).map(|at| (at * (number + 3)) as u8).collect();
        let mut headers = HeaderMap::new();
        headers.insert("x-number", number.into());
        let uri = Uri::from_static("http://a.test/echo");
        let place = self
            .client
            .request(&Method::POST, &uri, &headers, body.is_empty())
            .expect("it takes requests");
        let call = Call {
            number,
            body,
            sent: 0,
            got: Vec::new(),
            consumed: 0,
            ended: false,
            trailers: false,
            over: false,
        };
        assert!(
            self.calls.insert(place, call).is_none(),
            "the place was free"
        );
    }

    fn send_requests(&mut self) {
        self.client.pump(|_| {});
        for (&place, call) in &mut self.calls {
            let left = call.body.len() - call.sent;
            if left > 0 && self.client.wants(place) && !self.client.is_full() {
                let len = self.rng.random_range(1..=left);
                let piece = &call.body[call.sent..call.sent + len];
                self.client
                    .data(place, Bytes::copy_from_slice(piece), false);
                call.sent += len;
                if call.sent == call.body.len() && self.client.wants(place) {
                    let trailers = HeaderMap::from_iter([(http::header::ETAG, call.number.into())]);
                    self.client.finish(place, Some(trailers));
                }
            } else if left == 0 && self.client.wants(place) {
                self.client.finish(place, None);
            }
        }
    }

    fn send_responses(&mut self) {
        self.server.pump(|_| {});
        let places: Vec<usize> = self.echoes.keys().copied().collect();
        for place in places {
            let echo = self.echoes.get_mut(&place).expect("listed");
            if self.server.wants(place) && !echo.data.is_empty() {
                let len = self.rng.random_range(1..=echo.data.len());
                let bytes: Bytes = echo.data.drain(..len).collect();
                self.server.data(place, bytes, false);
                self.server.release(place, len as u32);
            }
            if self.server.wants(place) && echo.data.is_empty() && echo.ended {
                self.server.finish(place, echo.trailers.take());
            }
            if !self.server.is_open(place) {
                self.echoes.remove(&place);
            }
        }
    }

    fn cut(&mut self, len: usize) -> usize {
        match self.hurries {
            true => len,
            false => self.rng.random_range(0..=len),
        }
    }

    /// Moves bytes in random pieces.
    fn carry(&mut self) {
        self.up
            .extend(take_some(&mut self.rng, |max| bytes(&mut self.client, max)));
        self.down
            .extend(take_some(&mut self.rng, |max| bytes(&mut self.server, max)));
        let cut = self.cut(self.up.len());
        let mut at = 0;
        loop {
            let received = self.server.receive(&self.up[at..cut]);
            let received = received.unwrap_or_else(|reason| {
                let frame = Head::parse(&self.up[at..]);
                panic!("our client is honest: {reason}, {frame:?}");
            });
            if let Some(event) = received.event {
                self.on_asked(event, at);
            }
            if received.used == 0 {
                break;
            }
            at += received.used;
        }
        self.up.drain(..at);
        let cut = self.cut(self.down.len());
        let mut at = 0;
        loop {
            let received = self.client.receive(&self.down[at..cut]);
            let received = received.unwrap_or_else(|reason| {
                let frame = Head::parse(&self.down[at..]);
                panic!("our server is honest: {reason}, {frame:?}");
            });
            if let Some(event) = received.event {
                self.on_answered(event, at);
            }
            if received.used == 0 {
                break;
            }
            at += received.used;
        }
        self.down.drain(..at);
    }

    fn on_asked(&mut self, event: RequestTraits, at: usize) {
        match event {
            RequestTraits::Request { place, end, head } => {
                let echo = Echo {
                    ended: end,
                    ..Echo::default()
                };
                assert!(self.echoes.insert(place, echo).is_none());
                if head.headers["x-number"].as_bytes().ends_with(b"7") {
                    self.server
                        .interim(place, StatusCode::EARLY_HINTS, &HeaderMap::new());
                }
                self.server
                    .respond(place, StatusCode::OK, &head.headers, false);
            }
            RequestTraits::Data { place, range, end } => {
                let echo = self.echoes.get_mut(&place).expect("it is open");
                echo.data.extend_from_slice(&self.up[at..][range]);
                echo.ended = end;
                if self.chance(200) {
                    self.server.reset(place, Reason::INTERNAL_ERROR);
                    self.echoes.remove(&place);
                }
            }
            RequestTraits::Trailers { place, trailers } => {
                let echo = self.echoes.get_mut(&place).expect("it is open");
                echo.ended = true;
                echo.trailers = Some(trailers);
            }
            RequestTraits::Reset { place, .. } => drop(self.echoes.remove(&place)),
            RequestTraits::TooLarge { .. } => panic!("no list is large"),
        }
    }

    fn on_answered(&mut self, event: Event, at: usize) {
        match event {
            Event::Response { place, head, end } => {
                let call = self.calls.get_mut(&place).expect("it was asked");
                assert_eq!(head.headers["x-number"], call.number.to_string());
                call.ended = end;
            }
            Event::Interim { place, .. } => assert_eq!(self.calls[&place].number % 10, 7),
            Event::Data { place, range, end } => {
                let call = self.calls.get_mut(&place).expect("it was asked");
                call.got.extend_from_slice(&self.down[at..][range]);
                call.ended = end;
            }
            Event::Trailers { place, trailers } => {
                let call = self.calls.get_mut(&place).expect("it was asked");
                call.ended = true;
                call.trailers = true;
                assert_eq!(trailers[http::header::ETAG], call.number.to_string());
            }
            Event::Reset { place, by_peer, .. } => {
                assert!(by_peer, "our server is honest");
                self.calls.get_mut(&place).expect("it was asked").over = true;
            }
            Event::Leaving { .. } => {
                for (&place, call) in &mut self.calls {
                    call.over |= !self.client.is_open(place) && !call.ended;
                }
            }
            Event::Limit => {}
        }
    }

    /// Reads received data, sometimes cancels, and checks complete responses.
    fn read(&mut self) {
        let places: Vec<usize> = self.calls.keys().copied().collect();
        for place in places {
            let gives_up = self.chance(300);
            let lingers = self.chance(3);
            let call = self.calls.get_mut(&place).expect("listed");
            let waiting = call.got.len() - call.consumed;
            if waiting > 0 && !lingers {
                let len = self.rng.random_range(1..=waiting);
                call.consumed += len;
                self.client.release(place, len as u32);
            }
            let complete = call.ended && call.consumed == call.got.len();
            if complete {
                assert!(call.got == call.body, "{} came back wrong", call.number);
                self.whole += 1;
            }
            if complete || call.over || gives_up {
                self.client.vacate(place);
                self.calls.remove(&place);
            }
        }
    }
}

/// Takes a random amount of the output.
fn take_some(rng: &mut SmallRng, take: impl FnOnce(usize) -> Vec<u8>) -> Vec<u8> {
    let max = rng.random_range(0..50_000);
    take(max)
}

/// Takes the first bytes of the output.
fn bytes<R>(side: &mut Connection<R>, max: usize) -> Vec<u8> {
    let mut slices = [std::io::IoSlice::new(&[]); crate::http2::output::SLICES];
    let count = side.output().slices(&mut slices);
    let mut front: Vec<u8> = slices[..count].iter().flat_map(|s| s.to_vec()).collect();
    front.truncate(max);
    side.output().advance(front.len());
    front
}

fn simulate(seed: u64) -> usize {
    let mut world = World::new(seed);
    let mut tick = 0;
    while !world.is_over() {
        tick += 1;
        assert!(tick < 200_000, "seed {seed} hangs");
        world.client.advance(tick);
        world.server.advance(tick);
        world.begin();
        world.send_requests();
        world.carry();
        world.send_responses();
        world.read();
        if world.leaves && world.begun == CALLS / 2 {
            world.server.leave();
        }
        assert!(world.client.open() <= world.calls.len());
    }
    world.hurries = true;
    for tick in tick..tick + 1000 {
        world.client.advance(tick);
        world.server.advance(tick);
        world.send_requests();
        world.send_responses();
        world.carry();
    }
    assert_eq!(
        (world.client.open(), world.server.open()),
        (0, 0),
        "seed {seed}"
    );
    let (ours, theirs) = (world.client.windows(), world.server.windows());
    assert_eq!(ours.sending, theirs.receiving, "seed {seed}: requests");
    assert_eq!(theirs.sending, ours.receiving, "seed {seed}: responses");
    assert_eq!((ours.withheld, theirs.withheld), (0, 0), "seed {seed}");
    world.whole
}

#[test]
fn random_traffic_keeps_bodies_and_windows_exact() {
    let seeds = std::env::var("STRAIT_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = seeds.map_or(1..=200, |seed: u64| seed..=seed);
    let whole: usize = seeds.map(simulate).sum();
    assert!(whole > 20, "{whole}");
}
