//! Watches in addition to the proxy's; each only records when it has seen a change.

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::progress::PATIENCE;
use super::server::{ROUTES, Server};
use crate::compare::failure::{Failure, context};

/// Number of watches that share a connection.
const PER_CONNECTION: u32 = 10;

/// Label of the changed object that holds the number of the change.
const LABEL: &[u8] = b"\"bench\":\"";

/// Watches of all VirtualServices.
pub(super) struct Watchers {
    count: u32,
    seen: mpsc::UnboundedReceiver<(u32, Instant)>,
    _tasks: JoinSet<()>,
}

impl Watchers {
    /// Starts the watches at the server's current revision.
    pub(super) async fn start(server: &Server, count: u32) -> Result<Watchers, Failure> {
        let since = server.connect().await?.revision().await?;
        let (sender, seen) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for first in (0..count).step_by(PER_CONNECTION as usize) {
            let api = server.connect().await?;
            for _ in first..count.min(first + PER_CONNECTION) {
                let path = format!("{ROUTES}?watch=1&resourceVersion={since}");
                tasks.spawn(watch(api.read(&path).await?, sender.clone()));
            }
        }
        Ok(Watchers {
            count,
            seen,
            _tasks: tasks,
        })
    }

    /// Returns the number of watches.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the time at which the last watch had seen a change.
    pub(super) async fn all_have(&mut self, change: u32) -> Result<Instant, Failure> {
        let mut last = Instant::now();
        let mut missing = self.count;
        let mut first = true;
        while missing > 0 {
            let next = timeout(PATIENCE, self.seen.recv()).await;
            let next = next.map_err(context("a watch has not seen a change"))?;
            let (number, at) = next.ok_or_else(|| Failure::new("the watches ended"))?;
            if number == change {
                last = if first { at } else { last.max(at) };
                first = false;
                missing -= 1;
            }
        }
        Ok(last)
    }
}

async fn watch(mut body: Incoming, seen: mpsc::UnboundedSender<(u32, Instant)>) {
    let mut rest: Vec<u8> = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let now = Instant::now();
            let line: Vec<u8> = rest.drain(..=end).collect();
            if let Some(number) = number_of(&line)
                && seen.send((number, now)).is_err()
            {
                return;
            }
        }
    }
}

/// Returns the number of the change in a line of a watch.
fn number_of(line: &[u8]) -> Option<u32> {
    let at = line.windows(LABEL.len()).position(|part| part == LABEL)?;
    let digits = line[at + LABEL.len()..].split(|byte| *byte == b'"').next();
    std::str::from_utf8(digits?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_a_change_is_read_from_its_label() {
        let line = br#"{"type":"MODIFIED","object":{"metadata":{"labels":{"bench":"17"}}}}"#;
        assert_eq!(number_of(line), Some(17));
        assert_eq!(number_of(br#"{"type":"BOOKMARK"}"#), None);
    }
}
