//! Steady load with random send times, and the parsing of responses.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::compare::Failure;
use crate::compare::failure::context;
use crate::load::address::Address;
use crate::load::dial::Dialer;
use crate::load::engine::{Begin, Engine, Plan};
use crate::load::headers_file::Block;
use crate::load::http1::Http1;
use crate::load::outcome::{Expected, Reply, Sample};
use crate::load::pacer::Pacer;
use crate::load::protocol::Protocol;
use crate::load::queue::Order;
use crate::load::request::{Requests, SharedProperties};
use crate::load::schedule::{Arrivals, Part, Schedule};

/// Client timeout; no proxy delays a request as long.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of requests in flight: the rate times [`ANSWER_LIMIT`], and a margin for random peaks.
pub(super) const CONNECTIONS: usize = 2_500;

/// Result of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Time at which the request was due, from the start of the load.
    pub(super) sent: Duration,
    /// Status code; 0 if no response came.
    pub(super) status: u16,
    /// Zone that answered, if any.
    pub(super) zone: Option<u8>,
    /// Number of attempts that the proxy had made, including the answered one.
    pub(super) attempt: u32,
}

impl Answer {
    /// Whether the client saw a failure.
    pub(super) fn failed(&self) -> bool {
        self.status != 200
    }

    fn new(sent: Duration, reply: Option<&Reply>) -> Self {
        let Some(reply) = reply else {
            return Self {
                sent,
                ..Self::default()
            };
        };
        let number = |name| reply.headers.get(name)?.to_str().ok()?.parse::<u32>().ok();
        Self {
            sent,
            status: reply.status.as_u16(),
            zone: number("x-zone").and_then(|zone| u8::try_from(zone).ok()),
            attempt: number("x-attempt").unwrap_or(1),
        }
    }
}

/// Sends `rate` requests per second from `start` on, and returns all results in the order of sending.
pub(super) async fn run(
    port: u16,
    start: Instant,
    rate: u32,
    length: Duration,
    seed: u64,
) -> Result<Vec<Answer>, Failure> {
    let engine = Engine::new(Plan {
        dialer: dialer(port),
        protocol: Protocol::Http1,
        connections: CONNECTIONS,
        streams: 1,
        timeout: ANSWER_LIMIT,
        requests: requests()?,
        expected: Expected::default(),
        order: Order::Recent,
    });
    let schedule = Schedule::new(rate, length, Arrivals::Random(seed), Part::WHOLE);
    let answers = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&answers);
    let sink = Rc::new(move |sample: &Sample| {
        let answer = Answer::new(sample.due, sample.reply.as_ref());
        sink.borrow_mut().push(answer);
    });
    let failed = "the load cannot run";
    let pacer = Pacer::kernel().map_err(context(failed))?;
    let (_stop, stopped) = watch::channel(false);
    let end = engine
        .run(
            Begin {
                pacer: &pacer,
                start,
            },
            schedule,
            stopped,
            sink,
        )
        .await;
    end.map_err(context(failed))?;
    let mut answers = answers.take();
    answers.sort_by_key(|answer| answer.sent);
    Ok(answers)
}

/// Sends one request on a connection of its own.
pub(super) async fn once(port: u16) -> Result<Answer, Failure> {
    let (mut connection, requests) = (Http1::default(), requests()?);
    let dialer = dialer(port);
    let exchange = connection.exchange(&dialer, requests.head(0), requests.body());
    let reply = timeout(ANSWER_LIMIT, exchange).await;
    let reply = reply.ok().and_then(Result::ok);
    Ok(Answer::new(Duration::ZERO, reply.as_ref()))
}

fn dialer(port: u16) -> Dialer {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Dialer::Network { address, tls: None }
}

fn requests() -> Result<Requests, Failure> {
    let common = SharedProperties {
        method: None,
        headers: Block::default(),
        body: Bytes::new(),
    };
    let address = Address::parse("http://drill.example/");
    let requests =
        address.and_then(|address| Requests::new(Protocol::Http1, &address, &common, &[]));
    requests.map_err(context("the load cannot be made"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, StatusCode};

    #[test]
    fn answer_says_which_zone_and_attempt_it_is_from() {
        let mut headers = HeaderMap::new();
        headers.insert("x-zone", "1".parse().unwrap());
        let mut reply = Reply {
            status: StatusCode::SERVICE_UNAVAILABLE,
            headers,
            trailers: None,
            body_bytes: 0,
            prefix: [0; 5],
        };
        let answer = Answer::new(Duration::ZERO, Some(&reply));
        assert_eq!(
            (answer.status, answer.zone, answer.attempt),
            (503, Some(1), 1)
        );
        reply.headers.insert("x-attempt", "3".parse().unwrap());
        assert_eq!(Answer::new(Duration::ZERO, Some(&reply)).attempt, 3);
        assert!(Answer::new(Duration::ZERO, None).failed());
    }

    #[test]
    fn requests_name_the_host_of_the_rules() {
        let head = requests().unwrap().head(0);
        assert_eq!(head.headers()["host"], "drill.example");
        assert_eq!(
            (head.method(), head.uri().path()),
            (&http::Method::GET, "/")
        );
    }
}
