//! Requests that the demo sends by itself, and the display of their counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::interval;

use super::screen::Screen;
use crate::command::load::{Counts, Row, Target, line, rows, send};

/// Intervals at which a terminal gets a new table and any other output a new line.
const TABLE_INTERVAL: Duration = Duration::from_secs(1);
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Sends requests from a thread of its own, until the process ends.
///
/// # Errors
///
/// Fails when the thread cannot be started.
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
                let (target, running) = (Target::at(edge, "web.demo"), Rc::new(()));
                tokio::join!(
                    send(target, rate, None, &counts, &running),
                    report(&counts, &screen)
                );
            });
        })
        .map_err(failed)?;
    Ok(())
}

/// Waits until the edge listens; requests are counted only from then on.
async fn until_open(edge: SocketAddr) {
    let mut ticks = interval(Duration::from_millis(20));
    while TcpStream::connect(edge).await.is_err() {
        ticks.tick().await;
    }
}

/// Prints the counts at each interval.
async fn report(counts: &Counts, screen: &Screen) {
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
            false => screen.say(line("answered in 5 s:", &rows).as_bytes()),
        }
        before = now;
    }
}

/// Width of the bar for a share of 100 %.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_lines_show_recent_answers() {
        let map = |rows: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let rows = rows.iter();
            rows.map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let (now, before) = (map(&[("c1 v1", 90), ("failed", 0)]), map(&[("c1 v1", 60)]));
        let rows = rows(&now, &before);
        assert_eq!(
            line("answered in 5 s:", &rows),
            "answered in 5 s:  c1 v1 30  failed 0\n"
        );
        let table = table(&rows);
        let row = table.lines().nth(1).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..6], ["c1", "v1", "30", "100", "%", "90"]);
        assert_eq!(words[6].len(), BAR);
    }
}
