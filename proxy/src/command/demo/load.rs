//! The requests that the demo sends by itself, and who answered them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::screen::Screen;

/// Most names that are counted apart.
const NAMES_MAX: usize = 32;

/// Most requests that wait for their answers; those beyond it are not sent.
const WAITING_MAX: usize = 512;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How often the table is rebuilt on a terminal, and how often there is a line elsewhere.
const TABLE_INTERVAL: Duration = Duration::from_secs(1);
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// What requests without an answer of a backend are counted as.
const FAILED: &str = "failed";

/// Requests so far, by who answered; a clone counts the same ones.
#[derive(Clone, Default)]
pub(super) struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Counts {
    fn count(&self, name: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = counts.contains_key(name) || counts.len() < NAMES_MAX;
        let name = if known { name } else { "others" };
        *counts.entry(name.to_owned()).or_default() += 1;
    }

    fn all(&self) -> BTreeMap<String, u64> {
        let mut all = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        all.entry(FAILED.to_owned()).or_default();
        all
    }

    /// A line for each.
    pub(super) fn text(&self) -> String {
        let lines = self.all().into_iter();
        lines
            .map(|(name, count)| format!("{name} {count}\n"))
            .collect()
    }
}

/// Sends requests from a thread of its own, until the process ends.
///
/// # Errors
///
/// When the thread cannot be started.
pub(super) fn spawn(
    edge: SocketAddr,
    rate: u16,
    counts: Counts,
    screen: Screen,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot send the demo's requests: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    std::thread::Builder::new()
        .name("demo-load".to_owned())
        .spawn(move || {
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                until_open(edge).await;
                tokio::join!(send(edge, rate, &counts), tell(&counts, &screen));
            });
        })
        .map_err(failed)?;
    Ok(())
}

/// Waits until the edge listens; nothing is counted before.
async fn until_open(edge: SocketAddr) {
    let mut ticks = interval(Duration::from_millis(20));
    while TcpStream::connect(edge).await.is_err() {
        ticks.tick().await;
    }
}

type IdleConnections = Rc<RefCell<Vec<SendRequest<Empty<Bytes>>>>>;

async fn send(edge: SocketAddr, rate: u16, counts: &Counts) {
    let idle = IdleConnections::default();
    let waiting = Rc::new(());
    let mut ticks = interval(Duration::from_secs(1) / u32::from(rate.max(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        if Rc::strong_count(&waiting) > WAITING_MAX {
            continue;
        }
        let (idle, counts, waits) = (Rc::clone(&idle), counts.clone(), Rc::clone(&waiting));
        tokio::task::spawn_local(async move {
            let asked = timeout(ANSWER_MAX, ask(edge, &idle)).await;
            counts.count(asked.ok().flatten().as_deref().unwrap_or(FAILED));
            drop(waits);
        });
    }
}

/// One request, on a connection that is open already if there is one. `None` if no backend answered.
async fn ask(edge: SocketAddr, idle: &IdleConnections) -> Option<String> {
    let open = idle
        .borrow_mut()
        .pop()
        .filter(|connection| !connection.is_closed());
    let mut connection = match open {
        Some(connection) => connection,
        None => {
            let stream = TcpStream::connect(edge).await.ok()?;
            let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.ok()?;
            tokio::task::spawn_local(async move { drop(driver.await) });
            sender
        }
    };
    connection.ready().await.ok()?;
    let request = Request::get("/")
        .header(HOST, "web.demo")
        .body(Empty::new());
    let response = connection.send_request(request.ok()?).await.ok()?;
    let backend = response.headers().get("x-backend");
    let name = backend.and_then(|name| Some(name.to_str().ok()?.to_owned()));
    let is_ok = response.status().is_success();
    response.into_body().collect().await.ok()?;
    idle.borrow_mut().push(connection);
    name.filter(|_| is_ok)
}

/// Shows the counts, again and again.
async fn tell(counts: &Counts, screen: &Screen) {
    let every = match screen.is_terminal() {
        true => TABLE_INTERVAL,
        false => LINE_INTERVAL,
    };
    let mut ticks = interval(every);
    let mut before = BTreeMap::new();
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let now = counts.all();
        let rows = rows(&now, &before);
        match screen.is_terminal() {
            true => screen.replace(table(&rows)),
            false => screen.say(line(&rows).as_bytes()),
        }
        before = now;
    }
}

/// Who answered, how many recently, and how many in all.
type Row<'a> = (&'a str, u64, u64);

fn rows<'a>(now: &'a BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> Vec<Row<'a>> {
    let row = |(name, count): (&'a String, &u64)| {
        let before = before.get(name).copied().unwrap_or_default();
        (name.as_str(), count - before, *count)
    };
    now.iter().map(row).collect()
}

/// Wide enough for a bar of all requests.
const BAR: usize = 40;

fn table(rows: &[Row<'_>]) -> String {
    let sum: u64 = rows.iter().map(|(_, late, _)| late).sum();
    let mut text = "answered by    last second    share       total\n".to_owned();
    for (name, late, total) in rows {
        let part = *late as f64 / sum.max(1) as f64;
        let bar = "#".repeat((part * BAR as f64).round() as usize);
        let percent = part * 100.0;
        let _ = writeln!(
            text,
            "{name:<11} {late:>14} {percent:>6.0} % {total:>11}  {bar}"
        );
    }
    text
}

fn line(rows: &[Row<'_>]) -> String {
    let mut text = "answered in 5 s:".to_owned();
    for (name, late, _) in rows {
        let _ = write!(text, "  {name} {late}");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_name_up_to_a_limit() {
        let counts = Counts::default();
        for number in 0..NAMES_MAX + 5 {
            counts.count(&format!("c{number:02}"));
        }
        counts.count("c00");
        let all = counts.all();
        assert_eq!((all["c00"], all["others"], all[FAILED]), (2, 5, 0));
    }

    #[test]
    fn tables_and_lines_show_recent_answers() {
        let map = |rows: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let rows = rows.iter();
            rows.map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let (now, before) = (map(&[("c1 v1", 90), ("failed", 0)]), map(&[("c1 v1", 60)]));
        let rows = rows(&now, &before);
        assert_eq!(line(&rows), "answered in 5 s:  c1 v1 30  failed 0\n");
        let table = table(&rows);
        let row = table.lines().nth(1).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..6], ["c1", "v1", "30", "100", "%", "90"]);
        assert_eq!(words[6].len(), BAR);
    }
}
