//! Tests with paused time and in-memory pipes, so that every run takes no time and is deterministic.

use super::*;
use crate::load::address::Address;
use crate::load::headers_file::Block;
use crate::load::request::SharedProperties;
use crate::load::schedule::{Arrivals, Part};
use std::cell::RefCell;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, sleep_until};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const MILLIS: Duration = Duration::from_millis(1);

/// Behavior of a test server.
#[derive(Clone, Copy)]
enum Mode {
    /// Responds immediately with these bytes.
    Answer(&'static str),
    /// Responds immediately with these bytes, then closes the connection.
    AnswerAndClose(&'static str),
    /// Accepts requests and never responds.
    Hang,
    /// Accepts no connections.
    Refuse,
    /// Responds to nothing in this part of the run; requests wait until it is over.
    Stall(Duration, Duration),
}

struct Server {
    mode: Mode,
    start: Instant,
    connections: Cell<usize>,
    /// Arrival times of requests, from the start.
    arrivals: RefCell<Vec<Duration>>,
}

impl Server {
    fn new(mode: Mode) -> Rc<Self> {
        let (start, connections) = (Instant::now(), Cell::new(0));
        Rc::new(Self {
            mode,
            start,
            connections,
            arrivals: RefCell::default(),
        })
    }

    fn dialer(self: &Rc<Self>) -> Dialer {
        let server = Rc::clone(self);
        Dialer::Memory(Rc::new(move || {
            if matches!(server.mode, Mode::Refuse) {
                return None;
            }
            server.connections.set(server.connections.get() + 1);
            let (near, far) = tokio::io::duplex(64 * 1024);
            spawn_local(Rc::clone(&server).serve(far));
            Some(near)
        }))
    }

    async fn serve(self: Rc<Self>, mut stream: DuplexStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while stream.read_buf(&mut head).await? > 0 {
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            head.clear();
            let arrived = self.start.elapsed();
            self.arrivals.borrow_mut().push(arrived);
            match self.mode {
                Mode::Answer(text) => stream.write_all(text.as_bytes()).await?,
                Mode::AnswerAndClose(text) => return stream.write_all(text.as_bytes()).await,
                Mode::Hang | Mode::Refuse => {}
                Mode::Stall(from, to) => {
                    if (from..to).contains(&arrived) {
                        sleep_until(self.start + to).await;
                    }
                    stream.write_all(OK.as_bytes()).await?;
                }
            }
        }
        Ok(())
    }
}

/// Result of a run: due time, latency and failure class of each request, in the order of completion.
struct Run {
    samples: Vec<(Duration, Duration, Option<FailureClass>)>,
    end: End,
}

impl Run {
    fn classes(&self) -> Vec<FailureClass> {
        self.samples
            .iter()
            .filter_map(|(_, _, class)| *class)
            .collect()
    }
}

struct Load {
    rate: u32,
    length: Duration,
    connections: usize,
    order: Order,
    timeout: Duration,
    stop_after: Option<Duration>,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            rate: 100,
            length: MILLIS * 1000,
            connections: 4,
            order: Order::Fair,
            timeout: MILLIS * 2000,
            stop_after: None,
        }
    }
}

impl Load {
    async fn on(&self, server: &Rc<Server>) -> Run {
        let address = Address::parse("http://test.example/").unwrap();
        let body = bytes::Bytes::new();
        let common = SharedProperties {
            method: None,
            headers: Block::default(),
            body,
        };
        let protocol = Protocol::Http1;
        let engine = Engine::new(Plan {
            dialer: server.dialer(),
            protocol,
            connections: self.connections,
            streams: 1,
            timeout: self.timeout,
            requests: Requests::new(protocol, &address, &common, &[]).unwrap(),
            expected: Expected::default(),
            order: self.order,
        });
        let schedule = Schedule::new(self.rate, self.length, Arrivals::Constant, Part::WHOLE);
        let (stop, stopped) = watch::channel(false);
        if let Some(after) = self.stop_after {
            spawn_local(async move {
                sleep(after).await;
                stop.send_replace(true);
            });
        }
        let samples = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&samples);
        let sink = Rc::new(move |sample: &Sample| {
            let class = sample.fault.as_ref().map(|fault| fault.class);
            sink.borrow_mut().push((sample.due, sample.latency, class));
        });
        let run = engine.run(
            Begin {
                pacer: &Pacer::Runtime,
                start: server.start,
            },
            schedule,
            stopped,
            sink,
        );
        let end = run.await.unwrap();
        Run {
            samples: samples.take(),
            end,
        }
    }
}

/// Runs a load on a server, in paused time.
fn run(load: Load, mode: Mode) -> (Run, Rc<Server>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let server = Server::new(mode);
        let run = load.on(&server).await;
        (run, server)
    })
}

#[test]
fn requests_arrive_at_their_due_times() {
    let load = Load {
        rate: 250,
        ..Load::default()
    };
    let (run, server) = run(load, Mode::Answer(OK));
    let arrivals = server.arrivals.borrow();
    assert_eq!(arrivals.len(), 250);
    for (number, arrived) in (0..).zip(arrivals.iter()) {
        assert!(
            (0..2).contains(&(arrived.as_millis() as i64 - number * 4)),
            "{number}: {arrived:?}"
        );
    }
    assert!(run.classes().is_empty());
    assert_eq!(
        run.end,
        End {
            abandoned: 0,
            stopped: false
        }
    );
}

/// The 200 ms stall affects all requests that are due during it, not only the four that are in flight on four
/// connections.
#[test]
fn stalled_server_is_charged_for_every_request_that_came_due() {
    for rate in [500, 2_000] {
        let load = Load {
            rate,
            ..Load::default()
        };
        let (run, _) = run(load, Mode::Stall(MILLIS * 500, MILLIS * 700));
        assert_eq!(run.samples.len(), rate as usize);
        let late = |limit| {
            run.samples
                .iter()
                .filter(|(_, latency, _)| *latency > limit)
                .count()
        };
        // requests due in the first 180, and in the first 100 of the 200 ms
        let (most, half) = (rate as usize * 180 / 1000, rate as usize / 10);
        assert!(
            late(MILLIS * 20).abs_diff(most) <= most / 20,
            "{} of {rate}",
            late(MILLIS * 20)
        );
        assert!(
            late(MILLIS * 100).abs_diff(half) <= half / 20,
            "{} of {rate}",
            late(MILLIS * 100)
        );
        for (due, latency, _) in &run.samples {
            let wait = (MILLIS * 700).saturating_sub(*due);
            let stalled = *due >= MILLIS * 500 && !wait.is_zero();
            assert!(!stalled || *latency >= wait, "due at {due:?}: {latency:?}");
        }
    }
}

#[test]
fn hanging_server_makes_every_request_fail_in_time() {
    let load = Load {
        timeout: MILLIS * 100,
        ..Load::default()
    };
    let (run, _) = run(load, Mode::Hang);
    assert_eq!(run.samples.len(), 100);
    assert_eq!(run.classes(), [FailureClass::Timeout; 100]);
    for (due, latency, class) in run.samples {
        assert!(
            (MILLIS * 100..MILLIS * 110).contains(&latency),
            "{due:?}: {latency:?} {class:?}"
        );
    }
}

/// Two requests are due per timer tick: the second one is late when the first one releases its connection.
#[test]
fn request_whose_time_is_up_is_not_sent_any_more() {
    let load = Load {
        rate: 2_000,
        connections: 1,
        timeout: MILLIS * 100,
        ..Load::default()
    };
    let (run, server) = run(load, Mode::Hang);
    let classes = run.classes();
    assert_eq!(classes.len(), 2_000);
    let not_sent = classes
        .iter()
        .filter(|class| **class == FailureClass::NotSent);
    let sent = 2_000 - not_sent.count();
    assert!(sent < 2_000);
    assert_eq!(server.arrivals.borrow().len(), sent);
}

#[test]
fn failures_are_told_apart() {
    for (mode, class) in [
        (Mode::Refuse, FailureClass::Connect),
        (Mode::AnswerAndClose(""), FailureClass::Reset),
        (
            Mode::AnswerAndClose("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok"),
            FailureClass::Body,
        ),
        (Mode::Answer("nonsense\r\n\r\n"), FailureClass::Protocol),
        (
            Mode::Answer("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"),
            FailureClass::Status5xx,
        ),
        (
            Mode::Answer("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"),
            FailureClass::Status4xx,
        ),
    ] {
        let (run, _) = run(
            Load {
                rate: 10,
                ..Load::default()
            },
            mode,
        );
        assert_eq!(run.classes(), [class; 10]);
    }
}

#[test]
fn closed_connection_is_opened_again_before_it_is_needed() {
    let announced = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for text in [OK, announced] {
        let load = Load {
            connections: 1,
            ..Load::default()
        };
        let (run, server) = run(load, Mode::AnswerAndClose(text));
        assert_eq!(run.classes(), [], "{text}");
        // one for each request, and one that is open already when no more requests come
        assert_eq!(server.connections.get(), 101);
    }
}

#[test]
fn connections_take_turns_or_as_few_as_possible_are_used() {
    for (order, connections) in [(Order::Fair, 4), (Order::Recent, 1)] {
        let (_, server) = run(
            Load {
                order,
                ..Load::default()
            },
            Mode::Answer(OK),
        );
        assert_eq!(server.connections.get(), connections);
    }
}

#[test]
fn stopped_run_tells_what_it_has_and_what_it_left() {
    let stop_after = Some(MILLIS * 505);
    let (stopped, _) = run(
        Load {
            stop_after,
            ..Load::default()
        },
        Mode::Answer(OK),
    );
    assert_eq!(stopped.samples.len(), 51);
    assert_eq!(
        stopped.end,
        End {
            abandoned: 0,
            stopped: true
        }
    );
    let (hung, _) = run(
        Load {
            stop_after,
            ..Load::default()
        },
        Mode::Hang,
    );
    assert_eq!(hung.samples.len(), 0);
    assert_eq!(
        hung.end,
        End {
            abandoned: 51,
            stopped: true
        }
    );
}
