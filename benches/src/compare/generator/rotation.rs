//! Load over many keep-alive connections in turn, with far fewer requests in flight than open connections.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tally::{FAILURES_MAX, PATIENCE, Span, Tally, at_once};
use crate::compare::accounting;
use crate::compare::arguments::Generate;
use crate::compare::client::{parse_response, request};
use crate::compare::upstream::http;

/// State that all tasks of the load share.
struct Rotation {
    port: u16,
    request: Vec<u8>,
    body_bytes: usize,
    /// Number of connections still to be opened.
    unopened: Cell<u32>,
    /// Idle connections; the one that was idle longest carries the next request.
    idle: RefCell<VecDeque<TcpStream>>,
}

/// Opens the connections with one request each, then sends requests until the time is over.
///
/// The span of the tally begins when all connections are open and ends before they are closed.
pub(super) async fn run(wanted: &Generate) -> Tally {
    run_for(wanted, Duration::from_secs(wanted.seconds)).await
}

async fn run_for(wanted: &Generate, length: Duration) -> Tally {
    let rotation = Rc::new(Rotation {
        port: wanted.port,
        request: request(&wanted.path),
        body_bytes: http::body_bytes(&wanted.path),
        unopened: Cell::new(wanted.connections),
        idle: RefCell::default(),
    });
    let lanes = || (0..wanted.in_flight).map(|_| Rc::clone(&rotation));
    let opened = at_once(lanes().map(|rotation| async move { rotation.open().await })).await;
    if opened.failures > 0 {
        return opened;
    }
    let cpu = || wanted.pid.map(accounting::cpu_time).unwrap_or_default();
    let (cpu_before, begin) = (cpu(), Instant::now());
    let deadline = begin + length;
    let sending = lanes().map(|rotation| async move { rotation.send(deadline).await });
    let mut tally = at_once(sending).await;
    tally.span = Some(Span {
        cpu: cpu().saturating_sub(cpu_before),
        elapsed: begin.elapsed(),
    });
    tally
}

impl Rotation {
    /// Opens connections until all are open. Its requests are not counted as done.
    async fn open(&self) -> Tally {
        let mut tally = Tally::default();
        let mut response = Vec::new();
        while tally.failures == 0 && self.unopened.get() > 0 {
            self.unopened.set(self.unopened.get() - 1);
            let open = async {
                let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
                stream.set_nodelay(true)?;
                self.ask(&mut stream, &mut response).await?;
                Ok(stream)
            };
            match with_timeout(open).await {
                Ok(stream) => self.idle.borrow_mut().push_back(stream),
                Err(reason) => tally.fail(reason),
            }
        }
        tally
    }

    /// Sends requests one after the other, each over another connection. A connection that fails is not reused.
    async fn send(&self, deadline: Instant) -> Tally {
        let mut tally = Tally::default();
        let mut response = Vec::new();
        while Instant::now() < deadline && tally.failures < FAILURES_MAX {
            let Some(mut stream) = self.idle.borrow_mut().pop_front() else {
                break;
            };
            match with_timeout(self.ask(&mut stream, &mut response)).await {
                Ok(()) => {
                    tally.done += 1;
                    self.idle.borrow_mut().push_back(stream);
                }
                Err(reason) => tally.fail(reason),
            }
        }
        tally
    }

    /// Sends a request and reads the whole response into a buffer.
    async fn ask(&self, stream: &mut TcpStream, response: &mut Vec<u8>) -> io::Result<()> {
        response.clear();
        response.reserve(4096);
        stream.write_all(&self.request).await?;
        let answer = loop {
            if stream.read_buf(response).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(answer) = parse_response(response)? {
                break answer;
            }
        };
        if (answer.status, answer.body_bytes) == (200, self.body_bytes) {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "status {} with a body of {} bytes",
            answer.status, answer.body_bytes
        )))
    }
}

async fn with_timeout<T>(work: impl Future<Output = io::Result<T>>) -> Result<T, String> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("took too long".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::arguments::GeneratedWork;
    use tokio::net::TcpListener;
    use tokio::task::LocalSet;

    const LENGTH: Duration = Duration::from_millis(200);

    fn wanted(port: u16, path: &str) -> Generate {
        Generate {
            work: GeneratedWork::Rotation,
            port,
            connections: 10,
            in_flight: 2,
            seconds: 1,
            path: path.to_owned(),
            pid: Some(std::process::id()),
            certificate: None,
        }
    }

    /// Runs the load on an upstream. Returns the tally and the number of connections at the upstream.
    async fn on_upstream(path: &str) -> (Tally, u32) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Rc::new(Cell::new(0));
        let count = Rc::clone(&accepted);
        let upstream = async move {
            let responses = http::Responses::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.set(count.get() + 1);
                let responses = responses.clone();
                tokio::task::spawn_local(async move {
                    let _ = http::answer(stream, &responses).await;
                });
            }
        };
        let load = async {
            tokio::task::spawn_local(upstream);
            run_for(&wanted(port, path), LENGTH).await
        };
        let tally = LocalSet::new().run_until(load).await;
        (tally, accepted.get())
    }

    #[tokio::test]
    async fn every_connection_is_opened_once_and_requests_follow() {
        let (tally, accepted) = on_upstream("/").await;
        assert_eq!(accepted, 10);
        assert_eq!((tally.failures, &tally.reason), (0, &None));
        assert!(tally.done > 0);
        assert!(tally.span.unwrap().elapsed >= LENGTH);
    }

    #[tokio::test]
    async fn port_without_a_listener_ends_the_load_at_once() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let wanted = wanted(port, "/");
        let load = run_for(&wanted, LENGTH);
        let tally = LocalSet::new().run_until(load).await;
        assert!(tally.done == 0 && tally.failures > 0 && tally.span.is_none());
        assert!(tally.reason.unwrap().contains("refused"));
    }
}
