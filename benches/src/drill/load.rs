//! Steady load: each request is sent when its time has come, whether others were answered or not.

use std::cell::RefCell;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// No proxy lets a request wait as long.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// What became of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// When it was sent, from the begin of the load.
    pub(super) sent: Duration,
    /// 0 where no response came.
    pub(super) status: u16,
    /// The zone that answered, if one did.
    pub(super) zone: Option<u8>,
    /// How often the proxy had sent it by then.
    pub(super) attempt: u32,
}

impl Answer {
    /// Whether the client saw a failure.
    pub(super) fn failed(&self) -> bool {
        self.status != 200
    }
}

/// Connections to the proxy that no request uses.
type Idle = Rc<RefCell<Vec<TcpStream>>>;

/// Sends requests for as long as said, `rate` per second, and returns all answers in the order of sending.
pub(super) async fn run(port: u16, (rate, length): (f64, Duration), seed: u64) -> Vec<Answer> {
    let mut random = SmallRng::seed_from_u64(seed);
    let idle = Idle::default();
    let mut running = JoinSet::new();
    let begin = Instant::now();
    let mut due = Duration::ZERO;
    loop {
        // The times between arrivals of many clients that do not know of each other.
        let chance: f64 = random.random();
        due += Duration::from_secs_f64(-(1.0 - chance).ln() / rate);
        if due >= length {
            break;
        }
        sleep_until(begin + due).await;
        let idle = Rc::clone(&idle);
        let sent = begin.elapsed();
        running.spawn_local(async move {
            let answer = ask(port, &idle).await;
            Answer { sent, ..answer }
        });
    }
    let mut answers = Vec::new();
    while let Some(answer) = running.join_next().await {
        answers.push(answer.unwrap_or_default());
    }
    answers.sort_by_key(|answer| answer.sent);
    answers
}

/// One request on a connection of its own.
pub(super) async fn once(port: u16) -> Answer {
    ask(port, &Idle::default()).await
}

async fn ask(port: u16, idle: &Idle) -> Answer {
    let asked = timeout(ANSWER_LIMIT, exchange(port, idle)).await;
    asked.ok().and_then(Result::ok).unwrap_or_default()
}

async fn exchange(port: u16, idle: &Idle) -> io::Result<Answer> {
    let waiting = idle.borrow_mut().pop();
    let mut stream = match waiting {
        Some(stream) => stream,
        None => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?,
    };
    stream.set_nodelay(true)?;
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: drill.example\r\n\r\n")
        .await?;
    let mut response = Vec::with_capacity(1024);
    let head = loop {
        if let Some(head) = response.windows(4).position(|end| end == b"\r\n\r\n") {
            break head + 4;
        }
        read(&mut stream, &mut response).await?;
    };
    let number = |name| header(&response[..head], name).and_then(|value| value.parse().ok());
    let answer = Answer {
        sent: Duration::ZERO,
        status: status(&response).unwrap_or_default(),
        zone: number("x-zone").and_then(|zone: usize| u8::try_from(zone).ok()),
        attempt: number("x-attempt").map_or(1, |attempt| attempt as u32),
    };
    let whole = head + number("content-length").unwrap_or_default();
    while response.len() < whole {
        read(&mut stream, &mut response).await?;
    }
    idle.borrow_mut().push(stream);
    Ok(answer)
}

async fn read(stream: &mut TcpStream, into: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(into).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn status(response: &[u8]) -> Option<u16> {
    let status = response.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    std::str::from_utf8(status).ok()?.parse().ok()
}

/// The value of a header in a head.
pub(super) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(head).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head = b"HTTP/1.1 503 Service Unavailable\r\nX-Zone: 1\r\n\r\n";
        assert_eq!(status(head), Some(503));
        assert_eq!(header(head, "x-zone"), Some("1"));
        assert_eq!(header(head, "x-attempt"), None);
        assert_eq!(status(b"HTTP/1.1 "), None);
    }
}
