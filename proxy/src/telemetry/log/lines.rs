//! Buffer of process log lines for standard error, written by a thread of its own.
//!
//! If the reader of standard error stalls, the thread waits and lines are dropped, but no other thread waits.
//! Invariant: no caller of [`Lines`] waits for a write except [`Lines::flush`], which waits only while lines are
//! written.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of bytes that wait to be written; beyond it, lines are dropped and counted.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Number of bytes to write at once.
const WRITE_BYTES: usize = 16 << 10;

/// Handle of the buffer, used as the log's writer.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    /// Number of dropped lines that were not reported yet.
    untold: u64,
    /// Whether the thread is writing now.
    writing: bool,
    /// Number of writes so far.
    writes: u64,
}

impl Waiting {
    fn is_done(&self) -> bool {
        self.text.is_empty() && !self.writing
    }

    /// Takes the text to write, with a last line about dropped lines.
    fn take(&mut self) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.text);
        let untold = std::mem::take(&mut self.untold);
        if untold > 0 {
            let line = format!(
                "strait: {untold} log lines were dropped: the reader of standard error stalled\n"
            );
            text.extend_from_slice(line.as_bytes());
        }
        self.writing = true;
        text
    }
}

impl Lines {
    /// Starts the thread that writes to `sink`.
    pub(super) fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let lines = Self::default();
        let shared = Arc::clone(&lines.0);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || shared.write_lines(sink))?;
        Ok(lines)
    }

    /// Number of lines dropped because the buffer was full.
    pub(super) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, or until no write happened for `pause_max`.
    pub(super) fn flush(&self, pause_max: Duration) {
        let mut waiting = self.0.lock();
        while !waiting.is_done() {
            let before = waiting.writes;
            let stays = |waiting: &mut Waiting| !waiting.is_done() && waiting.writes == before;
            let waited = self.0.changed.wait_timeout_while(waiting, pause_max, stays);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                return;
            }
            waiting = next;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes queued lines to `sink` until the process ends. Ignores errors: there is no place to report them.
    fn write_lines(&self, mut sink: impl Write) {
        let mut waiting = self.lock();
        loop {
            let empty = |waiting: &mut Waiting| waiting.text.is_empty() && waiting.untold == 0;
            let woken = self.changed.wait_while(waiting, empty);
            let text = woken.unwrap_or_else(PoisonError::into_inner).take();
            for piece in text.chunks(WRITE_BYTES) {
                drop(sink.write_all(piece));
                self.lock().writes += 1;
                self.changed.notify_all();
            }
            drop(sink.flush());
            waiting = self.lock();
            waiting.writing = false;
            self.changed.notify_all();
        }
    }
}

impl Write for Lines {
    /// Takes one whole line, or drops it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.lock();
        if waiting.text.len() + line.len() > WAITING_BYTES_MAX {
            waiting.untold += 1;
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            waiting.text.extend_from_slice(line);
        }
        drop(waiting);
        self.0.changed.notify_all();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const LINE: &[u8] = &{
        let mut line = [b'x'; 1_000];
        line[999] = b'\n';
        line
    };

    #[test]
    fn lines_are_whole_and_in_order() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut lines = Lines::start(writer).expect("a thread");
        let mut expected = String::new();
        for number in 0..1_000 {
            let line = format!("line {number}\n");
            lines.write_all(line.as_bytes()).expect("taken");
            expected += &line;
        }
        let mut text = vec![0; expected.len()];
        reader.read_exact(&mut text).expect("written");
        assert_eq!(String::from_utf8(text).as_deref(), Ok(&*expected));
        lines.flush(Duration::from_secs(10));
        assert!(lines.0.lock().is_done());
        assert_eq!(lines.dropped(), 0);
    }

    #[test]
    fn slow_reader_does_not_block_and_gets_the_count_of_dropped_lines() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut lines = Lines::start(writer).expect("a thread");
        for _ in 0..5_000 {
            lines.write_all(LINE).expect("taken");
        }
        lines.flush(Duration::from_millis(1));
        let dropped = lines.dropped();
        assert!(dropped > 0, "5,000 lines have room");
        let (mut text, mut piece) = (Vec::new(), [0; 64 << 10]);
        // written lines and reported losses add up to all lines
        while seen(&text) < 5_000 {
            let read = reader.read(&mut piece).expect("written");
            text.extend_from_slice(&piece[..read]);
        }
        assert_eq!(seen(&text), 5_000);
        let kept = text.split(|byte| *byte == b'\n');
        let kept = kept.filter(|line| line.len() == LINE.len() - 1).count();
        assert_eq!(kept as u64 + dropped, 5_000);
    }

    /// Number of lines that arrived, plus those reported as dropped.
    fn seen(text: &[u8]) -> u64 {
        let text = String::from_utf8_lossy(text);
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let count = |line: &str| {
            let told = line.strip_prefix("strait: ");
            let told = told.and_then(|told| told.split(' ').next());
            told.map_or(1, |count| count.parse().expect("a number"))
        };
        whole.lines().map(count).sum()
    }
}
