//! The process log: text to standard error, with a level that can be changed while running.
//!
//! Independent of the metrics. The path of a request logs nothing above `debug`.

mod lines;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing::Subscriber;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::{EnvFilter, Registry};

use self::lines::Lines;

/// Maximum time without progress when the process ends and waits for standard error to take the remaining lines.
const FLUSH_PAUSE_MAX: Duration = Duration::from_millis(100);

/// Reads and changes the log filter.
#[derive(Clone, Debug)]
pub struct LogControl {
    handle: reload::Handle<EnvFilter, Registry>,
    current: Arc<Mutex<String>>,
    /// Lines that wait for standard error, if that is the target.
    lines: Option<Lines>,
}

impl LogControl {
    /// Starts logging to standard error, on a thread of its own. `filter` is a level, or directives such as
    /// `info,proxy::pool=trace`. Panics are logged from then on, too.
    ///
    /// # Errors
    ///
    /// If the filter is invalid, the process logs already, or the thread cannot be started.
    pub fn install(filter: &str) -> Result<Self, LogError> {
        parse(filter)?;
        let lines = Lines::start(io::stderr()).map_err(LogError::Thread)?;
        let writer = lines.clone();
        let mut control = Self::install_to(filter, move || writer.clone())?;
        control.lines = Some(lines);
        // the default hook writes to standard error itself, and would block on its reader
        std::panic::set_hook(Box::new(|panic| {
            let trace = std::backtrace::Backtrace::capture();
            tracing::error!(%panic, %trace, "a task ended by a fault of this program");
        }));
        Ok(control)
    }

    /// Number of lines dropped because the reader of standard error stalled.
    pub fn dropped(&self) -> u64 {
        self.lines.as_ref().map_or(0, Lines::dropped)
    }

    /// Waits until the logged lines are written, as long as standard error takes them.
    pub fn flush(&self) {
        if let Some(lines) = &self.lines {
            lines.flush(FLUSH_PAUSE_MAX);
        }
    }

    /// Installs the log with another target.
    ///
    /// # Errors
    ///
    /// If the filter is invalid, or the process logs already.
    pub fn install_to<W>(filter: &str, writer: W) -> Result<Self, LogError>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let (subscriber, control) = Self::subscriber(filter, writer)?;
        tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Installed)?;
        Ok(control)
    }

    /// Creates the subscriber that [`LogControl::install`] installs, with another target.
    ///
    /// # Errors
    ///
    /// If the filter is invalid.
    pub fn subscriber<W>(
        filter: &str,
        writer: W,
    ) -> Result<(impl Subscriber + Send + Sync + use<W>, Self), LogFilterError>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let (layer, handle) = reload::Layer::new(parse(filter)?);
        let lines = tracing_subscriber::fmt::layer().with_writer(writer);
        let subscriber = tracing_subscriber::registry().with(layer).with(lines);
        let current = Arc::new(Mutex::new(filter.to_owned()));
        let control = Self {
            handle,
            current,
            lines: None,
        };
        Ok((subscriber, control))
    }

    /// Checks a filter.
    ///
    /// # Errors
    ///
    /// If the filter is invalid.
    pub fn check(filter: &str) -> Result<(), LogFilterError> {
        parse(filter).map(drop)
    }

    /// The current filter as text.
    pub fn filter(&self) -> String {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes the filter.
    ///
    /// # Errors
    ///
    /// If the filter is invalid; the old one stays in effect.
    pub fn set_filter(&self, filter: &str) -> Result<(), LogFilterError> {
        let parsed = parse(filter)?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // fails only if the subscriber is gone, and then nothing is logged
        drop(self.handle.reload(parsed));
        filter.clone_into(&mut current);
        Ok(())
    }
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Libraries whose errors Strait reports itself, with their meaning for the proxy. A directive in the filter enables
/// them.
const QUIET: [&str; 2] = ["kube_client", "kube_runtime"];

/// Parses a filter. The library would take a misspelled level for the name of a module, which would silence everything.
fn parse(filter: &str) -> Result<EnvFilter, LogFilterError> {
    let refused = |reason: Option<ParseError>| LogFilterError {
        filter: filter.to_owned(),
        reason,
    };
    for directive in filter.split(',') {
        let level = directive
            .rsplit_once('=')
            .map_or(directive, |(_, level)| level)
            .trim();
        if !LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known)) {
            return Err(refused(None));
        }
    }
    let quiet = QUIET.map(|module| format!("{module}=off")).join(",");
    EnvFilter::builder()
        .parse(format!("{quiet},{filter}"))
        .map_err(|error| refused(Some(error)))
}

/// Error: the log filter is invalid.
#[derive(Debug)]
pub struct LogFilterError {
    filter: String,
    reason: Option<ParseError>,
}

impl fmt::Display for LogFilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = LEVELS.join(", ");
        let Self { filter, .. } = self;
        write!(
            f,
            "expected a level ({levels}) or directives such as `info,proxy::pool=debug`, found `{filter}`"
        )
    }
}

impl std::error::Error for LogFilterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.reason.as_ref().map(|reason| reason as _)
    }
}

/// Reasons why the process log could not be started.
#[derive(Debug)]
pub enum LogError {
    /// The filter is invalid.
    Filter(LogFilterError),
    /// Another subscriber was installed before.
    Installed,
    /// The writer thread could not be started.
    Thread(io::Error),
}

impl From<LogFilterError> for LogError {
    fn from(error: LogFilterError) -> Self {
        Self::Filter(error)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(error) => error.fmt(f),
            Self::Installed => f.write_str("the process log is already set up"),
            Self::Thread(_) => f.write_str("the thread that writes the log cannot be started"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Filter(error) => std::error::Error::source(error),
            Self::Installed => None,
            Self::Thread(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests;
