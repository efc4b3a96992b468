//! Output of the demo: on a terminal a table that stays below the log, otherwise plain lines.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::telemetry::{LogControl, LogError};

/// Moves the cursor up by this many lines and clears everything from there.
fn erase(lines: usize) -> String {
    match lines {
        0 => String::new(),
        lines => format!("\x1b[{lines}A\x1b[J"),
    }
}

/// Standard output; clones share it.
#[derive(Clone)]
pub(super) struct Screen {
    is_terminal: bool,
    table: Arc<Mutex<String>>,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            is_terminal: io::stdout().is_terminal(),
            table: Arc::default(),
        }
    }

    /// Returns whether a table can be replaced in place.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Installs the process log. On a terminal it is printed above the table, otherwise to standard error.
    pub(super) fn install_log(&self, filter: &str) -> Result<LogControl, LogError> {
        if !self.is_terminal {
            return LogControl::install(filter);
        }
        let screen = self.clone();
        LogControl::install_to(filter, move || Lines(screen.clone()))
    }

    /// Writes permanent text, above the table.
    pub(super) fn say(&self, text: &[u8]) {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::from(erase(table.lines().count()));
        out.extend_from_slice(text);
        out.extend_from_slice(table.as_bytes());
        show(&out);
    }

    /// Replaces the table.
    pub(super) fn replace(&self, next: String) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let out = erase(table.lines().count()) + &next;
        show(out.as_bytes());
        *table = next;
    }
}

/// Errors are ignored: without a terminal, there is no reader.
fn show(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Writer for lines of the log.
struct Lines(Screen);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.say(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
