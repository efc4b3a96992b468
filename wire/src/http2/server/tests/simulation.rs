//! Server engine against the client of another implementation, with random bodies, windows, pieces and resets.

use std::collections::BTreeMap;

use bytes::Bytes;
use h2::client;
use http::{Request, StatusCode};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::super::*;
use crate::http2::output::SLICES;

/// Data that an echo still has to send.
#[derive(Default)]
struct Echo {
    data: Vec<u8>,
    ended: bool,
    trailers: Option<HeaderMap>,
}

/// Sends every body back, with its trailers.
struct EchoServer {
    machine: Server,
    echoes: BTreeMap<usize, Echo>,
    rng: SmallRng,
}

impl EchoServer {
    fn on(&mut self, event: Event, input: &[u8]) {
        match event {
            Event::Request { place, end, .. } => {
                let echo = Echo {
                    ended: end,
                    ..Echo::default()
                };
                assert!(
                    self.echoes.insert(place, echo).is_none(),
                    "the place was free"
                );
                let headers = HeaderMap::new();
                self.machine.respond(place, StatusCode::OK, &headers, false);
            }
            Event::Data { place, range, end } => {
                let echo = self.echoes.get_mut(&place).expect("it is open");
                echo.data.extend_from_slice(&input[range]);
                echo.ended = end;
            }
            Event::Trailers { place, trailers } => {
                let echo = self.echoes.get_mut(&place).expect("it is open");
                echo.ended = true;
                echo.trailers = Some(trailers);
            }
            Event::Reset { place, .. } => {
                self.echoes.remove(&place);
            }
            Event::TooLarge { .. } => panic!("no list is large"),
        }
    }

    fn send(&mut self) {
        for _ in 0..3 {
            self.machine.pump(|_| {});
            let places: Vec<usize> = self.echoes.keys().copied().collect();
            for place in places {
                let machine = &mut self.machine;
                let echo = self.echoes.get_mut(&place).expect("listed");
                if machine.wants(place) && !echo.data.is_empty() {
                    let len = self.rng.random_range(1..=echo.data.len());
                    let bytes: Bytes = echo.data.drain(..len).collect();
                    machine.data(place, bytes, false);
                    machine.release(place, len as u32);
                }
                if machine.wants(place) && echo.data.is_empty() && echo.ended {
                    machine.finish(place, echo.trailers.take());
                }
                if !machine.is_open(place) {
                    self.echoes.remove(&place);
                }
            }
        }
    }

    async fn run(mut self, mut io: DuplexStream) -> Result<(), Reason> {
        let mut input = Vec::new();
        let mut space = vec![0; 40_000];
        for tick in 0.. {
            self.machine.advance(tick);
            self.send();
            while !self.machine.output().is_empty() {
                let mut slices = [std::io::IoSlice::new(&[]); SLICES];
                let count = self.machine.output().slices(&mut slices);
                let front: Vec<u8> = slices[..count].iter().flat_map(|s| s.to_vec()).collect();
                let len = self.rng.random_range(1..=front.len());
                if io.write_all(&front[..len]).await.is_err() {
                    return Ok(());
                }
                self.machine.output().advance(len);
                self.send();
            }
            let most = self.rng.random_range(1..=space.len());
            let read = io.read(&mut space[..most]).await.unwrap_or(0);
            if read == 0 {
                return Ok(());
            }
            input.extend_from_slice(&space[..read]);
            let mut at = 0;
            loop {
                let received = self.machine.receive(&input[at..])?;
                if let Some(event) = received.event {
                    self.on(event, &input[at..]);
                }
                if received.used == 0 {
                    break;
                }
                at += received.used;
            }
            input.drain(..at);
        }
        Ok(())
    }
}

/// Sends a body in random chunks, sometimes cancels half-way, and compares the echo.
async fn exchange(send: client::SendRequest<Bytes>, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let len = rng.random_range(0..200_000_usize) * rng.random_range(0..2_usize);
    let body: Vec<u8> = (0..len).map(|n| (n as u64 * seed) as u8).collect();
    let gives_up = rng.random_range(0..5) == 0;
    let request = Request::post(format!("http://a.test/{seed}"))
        .header("x-seed", seed)
        .body(())
        .unwrap();
    let mut send = send.ready().await.unwrap();
    let (response, mut stream) = send.send_request(request, false).unwrap();
    let cut = if gives_up { len / 2 } else { len };
    let writing = async {
        let mut rest = &body[..cut];
        while !rest.is_empty() {
            let piece = rng.random_range(1..=rest.len().min(30_000));
            stream.reserve_capacity(piece);
            let Some(Ok(granted)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await
            else {
                return;
            };
            let piece = piece.min(granted);
            stream
                .send_data(Bytes::copy_from_slice(&rest[..piece]), false)
                .unwrap();
            rest = &rest[piece..];
        }
        if gives_up {
            stream.send_reset(h2::Reason::CANCEL);
            return;
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", seed.into());
        stream.send_trailers(trailers).unwrap();
    };
    let reading = async {
        let Ok(response) = response.await else {
            return None;
        };
        let mut incoming = response.into_body();
        let mut got = Vec::new();
        while let Some(Ok(data)) = incoming.data().await {
            incoming.flow_control().release_capacity(data.len()).ok()?;
            got.extend_from_slice(&data);
        }
        let trailers = incoming.trailers().await.ok()??;
        Some((got, trailers))
    };
    let ((), read) = tokio::join!(writing, reading);
    if !gives_up {
        let (got, trailers) = read.expect("it was not given up");
        assert!(got == body, "{} of {len} bytes", got.len());
        assert_eq!(trailers["x-sum"], seed.to_string());
    }
}

async fn simulate(seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let settings = Settings {
        concurrent_streams_max: 10,
        header_list_bytes_max: 4096,
        stream_window_bytes: rng.random_range(1000..100_000),
        connection_window_bytes: rng.random_range(1000..200_000),
        error_resets_max: 10,
        pending_resets_max: 50,
    };
    let server = EchoServer {
        machine: Server::new(settings, rng.random_range(1000..100_000)),
        echoes: BTreeMap::new(),
        rng: SmallRng::seed_from_u64(seed + 1),
    };
    let (near, far) = tokio::io::duplex(rng.random_range(100..50_000));
    let (send, connection) = client::Builder::new()
        .initial_window_size(rng.random_range(500..100_000))
        .initial_connection_window_size(rng.random_range(65_535..200_000))
        .header_table_size([0, 100, 4096][rng.random_range(0..3_usize)])
        .handshake::<_, Bytes>(near)
        .await
        .unwrap();
    let serving = tokio::spawn(server.run(far));
    let connection = tokio::spawn(connection);
    let exchanges: Vec<_> = (0..25)
        .map(|number| tokio::spawn(exchange(send.clone(), seed * 1000 + number)))
        .collect();
    drop(send);
    for exchange in exchanges {
        exchange.await.unwrap();
    }
    connection.await.unwrap().unwrap();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn random_windows_keep_bodies_intact() {
    for seed in 1..=12 {
        let simulated = tokio::time::timeout(std::time::Duration::from_secs(60), simulate(seed));
        assert!(simulated.await.is_ok(), "seed {seed} hangs");
    }
}
