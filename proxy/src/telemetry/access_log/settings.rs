//! What is logged, where, and how much may wait.

use std::path::PathBuf;
use std::time::Duration;

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// One JSON object per line.
    Json,
    /// Istio's default text format.
    #[default]
    Text,
}

/// Where lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLogTarget {
    /// Appended to a file, which is reopened when its path names another file (rotation by renaming).
    File(PathBuf),
    /// Standard output.
    #[default]
    Stdout,
}

/// What to log, where, and how much may wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// How a line looks.
    pub format: AccessLogFormat,
    /// Where lines go.
    pub target: AccessLogTarget,
    /// Bytes that may wait for the writer, per worker and buffer; lines beyond are dropped and counted.
    ///
    /// Unit: bytes. Default: 1 MiB. Memory is taken as lines wait, not before.
    pub buffer_bytes_max: usize,
    /// How long lines wait at most while others come, unless a buffer is half full. Default: 50 ms.
    ///
    /// With nothing to write the writer sleeps until the next line, whatever this is.
    pub flush_interval: Duration,
    /// How often a file's path is looked at, while there are lines, to see whether it was renamed. Default: 1 s.
    pub rotation_interval: Duration,
    /// How many workers log.
    pub workers: usize,
}

impl AccessLogSettings {
    /// Text to standard output with the default limit.
    pub fn new(workers: usize) -> Self {
        Self {
            format: AccessLogFormat::default(),
            target: AccessLogTarget::default(),
            buffer_bytes_max: 1 << 20,
            flush_interval: Duration::from_millis(50),
            rotation_interval: Duration::from_secs(1),
            workers,
        }
    }
}
