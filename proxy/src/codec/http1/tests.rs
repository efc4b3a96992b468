//! Simulated connections over an in-memory socket, at random: requests and reads of the client, their timing, and the
//! answers of the handler. The result is checked against the plan.

mod client;
mod handler;
mod plan;
mod responses;

use std::cell::RefCell;
use std::future::Future as _;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::Request;
use tokio::runtime;
use tokio::task::LocalSet;

use self::client::{Step, Stream, Wire};
use self::handler::{Answer, Ending, Keeps, Part, Reads, Script, Seen};
use self::plan::{Kind, Plan};
use self::responses::Response as Read;
use super::*;
use crate::codec::transport::Transport;
use crate::codec::{self, AcceptedConnection, Downstream, Handler, Timeouts as ConnectionTimeouts};
use crate::exchange::DownstreamBody;
use crate::runtime::admission::Admission;
use crate::runtime::latest::slot;
use crate::snapshot::{ListenerKey, UNIX_PEER};
use crate::telemetry::{BuildInfo, Telemetry, WorkerId};

/// Seeds of a normal run. `STRAIT_SEED=N` runs one, `STRAIT_SEED=N..M` a range.
const SEEDS: std::ops::Range<u64> = 0..3000;

/// Maximum polls of one connection.
const POLLS_MAX: u32 = 200_000;

static TELEMETRY: LazyLock<Arc<Telemetry>> = LazyLock::new(|| {
    let (version, revision) = (String::new(), String::new());
    Telemetry::new(1, BuildInfo { version, revision })
});

fn settings(plan: &Plan) -> codec::Settings {
    codec::Settings {
        http1: Settings {
            head_bytes_max: 4096,
            headers_max: 20,
            // longer than any calm client takes
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(5),
            park_after: plan.park_after,
            ..Settings::default()
        },
        timeouts: ConnectionTimeouts {
            idle: Duration::from_secs(50),
            drain: Duration::from_secs(10),
            ..ConnectionTimeouts::default()
        },
        ..codec::Settings::default()
    }
}

fn server(plan: &Plan, script: &Rc<Script>) -> Rc<codec::Server<impl Handler>> {
    let script = Rc::clone(script);
    let handler = move |connection: Rc<Connection>, request: Request<DownstreamBody>| {
        handler::answer(Rc::clone(&script), connection, request)
    };
    let telemetry = Arc::clone(&TELEMETRY);
    let server = codec::Server::new(handler, slot(settings(plan)), telemetry, WorkerId(0));
    Rc::new(server)
}

/// Accepts the proxy's end of a connection.
fn accept<A: Handler>(
    server: &Rc<codec::Server<A>>,
    wire: &Rc<RefCell<Wire>>,
) -> Box<AcceptedConnection<A>> {
    let downstream = Downstream {
        listener: Arc::new(ListenerKey::from(UNIX_PEER)),
        remote: UNIX_PEER,
        local: UNIX_PEER,
    };
    let slot = Admission::new(1, 1).admit(0).unwrap();
    let transport = Transport::InMemory(Box::new(Stream(Rc::clone(wire))));
    codec::Server::enter(server, transport, slot, downstream)
}

fn paused() -> runtime::Runtime {
    let mut runtime = runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap()
}

/// Serves one connection until it ends.
async fn serve(plan: &Plan, wire: &Rc<RefCell<Wire>>, script: &Rc<Script>) {
    let server = server(plan, script);
    for steps in [&plan.takes, &plan.sends] {
        tokio::task::spawn_local(client::run(Rc::clone(wire), steps.clone()));
    }
    if let Some(pause) = plan.drains_after {
        let server = Rc::clone(&server);
        tokio::task::spawn_local(async move {
            tokio::time::sleep(pause).await;
            server.drain_listener(&ListenerKey::from(UNIX_PEER));
        });
    }
    tokio::task::yield_now().await;
    let mut serving = Box::pin(accept(&server, wire).http1());
    let mut polls = 0;
    let serving = poll_fn(move |cx| {
        polls += 1;
        assert!(polls < POLLS_MAX, "the connection spins");
        serving.as_mut().poll(cx)
    });
    // a separate task, polled only when it is woken
    let serving = tokio::task::spawn_local(serving);
    let served = tokio::time::timeout(Duration::from_secs(2000), serving).await;
    let served = served.unwrap_or_else(|_| panic!("the connection ends: {plan:#?}"));
    if let Err(error) = served {
        std::panic::resume_unwind(error.into_panic());
    }
    // time for a tunnel to end
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(wire.borrow().closed_at.is_some(), "the socket is closed");
}

fn simulate(seed: u64) {
    let plan = Plan::new(seed);
    let wire = Wire::new(seed, plan.is_smooth);
    let script = Rc::new(Script {
        answers: plan.answers.clone(),
        seen: RefCell::default(),
    });
    LocalSet::new().block_on(&paused(), serve(&plan, &wire, &script));
    let wire = wire.borrow();
    if std::env::var("STRAIT_SEED").is_ok_and(|text| !text.contains("..")) {
        eprintln!(
            "{plan:#?}\n{}\n{:#?}",
            wire.written.escape_ascii(),
            script.seen
        );
    }
    let responses = responses::read(&wire.written, &plan.requests, wire.is_shut);
    Outcome {
        plan: &plan,
        wire: &wire,
        seen: &script.seen.borrow(),
        responses: &responses,
    }
    .check();
}

/// Expected response.
#[derive(Debug)]
struct Expected {
    body: Vec<u8>,
    /// Whether the body is complete; `None` if that depends on timing.
    whole: Option<bool>,
    has_trailers: bool,
    until_close: bool,
    /// Whether the body is longer than its declared length.
    exceeds: bool,
}

impl Expected {
    fn of(request: &plan::Request, answer: &Answer) -> Self {
        let mut body = Vec::new();
        let (mut fails, mut has_trailers) = (false, false);
        for part in &answer.parts {
            match part {
                Part::Data(data) => body.extend_from_slice(data),
                Part::Trailers(_) => {
                    has_trailers = true;
                    break;
                }
                Part::Fail => fails = true,
                Part::Pause(_) | Part::Yield => {}
            }
        }
        let status = answer.status.as_u16();
        let bodiless = request.is_head || answer.switches || matches!(status, 204 | 304);
        let claimed = answer.headers.get("content-length");
        let claimed = claimed.map(|length| length.to_str().unwrap().parse().unwrap());
        let is_empty = answer.parts.is_empty() && answer.says_end && answer.keeps != Keeps::Reading;
        let length = match (bodiless || is_empty, answer.exact.or(claimed)) {
            (true, _) => Some(0),
            (false, length) => length.map(|length| usize::try_from(length).unwrap()),
        };
        let announces = answer.headers.contains_key("trailer") && request.takes_trailers;
        let mut expected = Self {
            whole: Some(!fails),
            has_trailers: has_trailers && announces && length.is_none() && request.is_http11,
            until_close: length.is_none() && !request.is_http11,
            exceeds: false,
            body,
        };
        if let Some(length) = length {
            let has = expected.body.len();
            expected.exceeds = length > 0 && has > length;
            expected.whole = match () {
                () if length == 0 || has > length => Some(true),
                () if has < length => Some(false),
                () if fails => None,
                () => Some(true),
            };
            expected.body.truncate(length);
        }
        expected
    }
}

/// Result of a plan.
struct Outcome<'a> {
    plan: &'a Plan,
    wire: &'a Wire,
    seen: &'a [Seen],
    responses: &'a [Read],
}

/// Expected state of the connection after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Serves the next request.
    Next,
    /// Serves no further request.
    End,
    /// Depends on timing.
    Either,
}

impl Outcome<'_> {
    fn check(&self) {
        assert!(self.responses.len() <= self.seen.len() + 1);
        self.check_end();
        let mut then = match self.plan.is_calm {
            true => Then::Next,
            false => Then::Either,
        };
        for (index, request) in self.plan.requests.iter().enumerate() {
            let (seen, response) = (self.seen.get(index), self.responses.get(index));
            if then == Then::End {
                assert!(seen.is_none() && response.is_none(), "{index} is served");
                return;
            }
            if let Kind::Refused(status) = request.kind {
                self.check_refused(status, then, index);
                then = Then::End;
                continue;
            }
            if let Some(seen) = seen {
                self.check_request(request, seen, index);
            } else {
                assert_ne!(then, Then::Next, "{index} is not seen");
            }
            let answer = &self.plan.answers[index];
            let expected = Expected::of(request, answer);
            if let Some(response) = response {
                self.check_response(index, response, &expected);
            }
            if then == Then::Next && !answer.is_late {
                match response {
                    Some(response) => self.check_calm(index, response, &expected),
                    // a response that breaks off may lose its head
                    None => assert_ne!(expected.whole, Some(true), "no response to {index}"),
                }
            }
            let known = self.then(index, &expected);
            let is_over = known == Then::End || seen.is_none() || response.is_none();
            then = match (is_over, then) {
                (true, _) => Then::End,
                (false, Then::Next) => known,
                (false, _) => Then::Either,
            };
        }
    }

    /// Checks that a client that left is served no longer than one that reads nothing.
    fn check_end(&self) {
        if self.plan.answers.iter().any(|answer| answer.switches) {
            return;
        }
        if let (Some(left), Some(closed)) = (self.wire.left_at, self.wire.closed_at) {
            let after = closed.saturating_duration_since(left);
            assert!(after <= Duration::from_secs(7), "served {after:?} longer");
        }
    }

    fn check_refused(&self, status: u16, then: Then, index: usize) {
        assert_eq!(self.seen.len(), index, "it is not seen");
        match self.responses.get(index) {
            Some(response) => {
                let by_time = !self.plan.is_calm && response.status == 408;
                assert!(response.status == status || by_time, "{response:?}");
                let name = http::StatusCode::from_u16(response.status).unwrap();
                let name = name.canonical_reason().unwrap().as_bytes();
                // cut short, or a request without a host
                assert!(name.starts_with(&response.body), "{response:?}");
                assert!(!response.headers.contains_key("x-index"));
                assert!(response.closes(&self.plan.requests[index]));
            }
            // the refusal is written once, without waiting for the client
            None => assert!(
                then != Then::Next || !self.wire.smooth,
                "no refusal of {index}"
            ),
        }
    }

    /// Checks the handler's view of a request.
    fn check_request(&self, request: &plan::Request, seen: &Seen, index: usize) {
        assert_eq!(seen.index, index, "requests come in order");
        assert!(request.body.starts_with(&seen.body), "body of {index}");
        let is_sound = request.kind == Kind::Sound;
        match seen.ending {
            Ending::Whole => {
                assert!(is_sound && request.body == seen.body, "body of {index}");
                assert_eq!(request.trailers, seen.trailers, "trailers of {index}");
            }
            Ending::Broken => assert!(!is_sound || !self.plan.is_calm, "{index} breaks off"),
            Ending::Unread => assert!(seen.trailers.is_none() || is_sound),
        }
    }

    /// Checks the invariants of every response.
    fn check_response(&self, index: usize, response: &Read, expected: &Expected) {
        let answer = &self.plan.answers[index];
        let Some(number) = response.headers.get("x-index") else {
            assert!(response.status == 408 && !self.plan.is_calm, "{response:?}");
            return;
        };
        assert_eq!(number, &index.to_string(), "responses come in order");
        assert_eq!(response.status, answer.status.as_u16());
        assert!(expected.body.starts_with(&response.body), "reply {index}");
        assert_eq!(response.until_close, expected.until_close);
        if response.is_whole && !response.until_close {
            assert_ne!(expected.whole, Some(false), "{index} is no whole response");
            assert_eq!(response.body, expected.body, "reply {index}");
            assert_eq!(response.trailers.is_some(), expected.has_trailers);
        }
        let continues = response.interims.iter().filter(|status| **status == 100);
        let expects = self.plan.requests[index].expects;
        let continues = continues.count();
        assert!(continues <= usize::from(expects), "100 for {index}");
        assert!(response.interims.len() - continues <= answer.interims);
    }

    /// Checks a response to a client that stays and reads everything.
    fn check_calm(&self, index: usize, response: &Read, expected: &Expected) {
        let (request, answer) = (&self.plan.requests[index], &self.plan.answers[index]);
        if response.until_close {
            let whole = expected.whole == Some(true);
            assert_eq!(self.wire.resets_on_close, !whole, "{index} ends in a reset");
            assert!(!whole || (self.wire.is_shut && response.body == expected.body));
        } else if let Some(whole) = expected.whole {
            assert_eq!(response.is_whole, whole, "reply {index}");
        }
        if request.is_http11 {
            let hints = response.interims.iter().filter(|status| **status == 103);
            assert_eq!(hints.count(), answer.interims, "interims of {index}");
        }
        // whether the fault of the request is known before the response
        let is_read = request.kind == Kind::Sound || answer.reads == Reads::All;
        match self.then(index, expected) {
            Then::Next => assert!(!response.closes(request), "{index} closes"),
            Then::End if is_read && response.is_whole && !expected.exceeds => {
                let closes = answer.switches || response.closes(request);
                assert!(closes, "{index} does not say that it closes");
            }
            Then::End | Then::Either => {}
        }
        if answer.switches && request.kind == Kind::Sound {
            let rest = self.plan.requests[index + 1..].iter();
            let rest: Vec<u8> = rest.flat_map(|request| request.bytes.clone()).collect();
            assert_eq!(response.tunnel.as_ref(), Some(&rest), "tunnel of {index}");
        }
    }

    /// Returns the expected state of the connection after a request.
    fn then(&self, index: usize, expected: &Expected) -> Then {
        let (request, answer) = (&self.plan.requests[index], &self.plan.answers[index]);
        let closes = answer.headers.contains_key("connection");
        if request.kind != Kind::Sound
            || !request.persistent
            || closes
            || answer.is_late
            || answer.switches
            || request.is_connect
            || expected.until_close
            || expected.exceeds
            || expected.whole == Some(false)
        {
            return Then::End;
        }
        let is_read = !request.has_body || answer.reads == Reads::All;
        match is_read && expected.whole == Some(true) {
            true => Then::Next,
            false => Then::Either,
        }
    }
}

/// Prints the seed of a failed run.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("STRAIT_SEED={}", self.0);
        }
    }
}

#[test]
fn connections_keep_requests_and_responses_apart() {
    let seeds = std::env::var("STRAIT_SEED").map_or(SEEDS, |text| {
        let (first, last) = text.split_once("..").unwrap_or((&text, ""));
        let first = first.parse().unwrap();
        first..last.parse().unwrap_or(first + 1)
    });
    for seed in seeds {
        let named = Named(seed);
        simulate(named.0);
    }
}

/// A suspended machine or a stopped process: the clock jumps over whole turns of the timer wheel.
#[test]
fn unfinished_head_gets_408_when_the_clock_jumps() {
    let wire = Wire::new(0, true);
    let script = Rc::new(Script {
        answers: Vec::new(),
        seen: RefCell::default(),
    });
    let test = async {
        let server = server(&Plan::new(0), &script);
        let steps = vec![Step::Take(1 << 16), Step::Send(b"GET / HT".to_vec())];
        client::run(Rc::clone(&wire), steps).await;
        tokio::task::spawn_local(accept(&server, &wire).http1());
        for expected in [0, 0, 0, 1] {
            tokio::time::sleep(Duration::from_millis(500)).await;
            tokio::time::advance(Duration::from_secs(9)).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            let replies = wire.borrow().written.starts_with(b"HTTP/1.1 408 ");
            assert_eq!(usize::from(replies), expected);
        }
    };
    LocalSet::new().block_on(&paused(), test);
}
