//! Settings of the access log: format, target and buffer sizes.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use traffic::filter::{LogFormat, Template};

use super::sample::LogSample;

/// Format of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// A format of the user.
    Custom(Arc<LogFormat>),
    /// One JSON object per line.
    Json,
    /// A log record over OTLP.
    Record(Arc<RecordFormat>),
    /// Istio's default text format.
    #[default]
    Text,
}

/// Format of log records: a text, and attributes whose values are texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFormat {
    /// The text: a format of the user, or Istio's text format.
    pub body: AccessLogFormat,
    /// Attributes, in this order.
    pub attributes: Vec<(Arc<str>, Arc<Template>)>,
}

/// Destination of the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessLogTarget {
    /// A file to append to. It is reopened when the path refers to another file (rotation by renaming).
    File(PathBuf),
    /// A collector of OpenTelemetry.
    Otlp(OtlpLog),
    /// Standard error.
    Stderr,
    /// Standard output.
    #[default]
    Stdout,
}

/// Log at a collector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtlpLog {
    /// Provider of the mesh configuration; `None` for the collector of variables.
    pub provider: Option<Arc<str>>,
    /// Attribute `log_name` of the resource.
    pub name: Arc<str>,
}

impl AccessLogTarget {
    /// Target at a path, as Envoy reads it.
    pub fn at(path: &str) -> Self {
        match path {
            "/dev/stderr" => Self::Stderr,
            "" | "/dev/stdout" => Self::Stdout,
            path => Self::File(path.into()),
        }
    }
}

impl fmt::Display for AccessLogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Otlp(OtlpLog { provider, .. }) => match provider {
                Some(provider) => write!(f, "otlp:{provider}"),
                None => f.write_str("otlp"),
            },
            Self::Stderr => f.write_str("/dev/stderr"),
            Self::Stdout => f.write_str("/dev/stdout"),
        }
    }
}

/// Settings of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// Format of a line where no resource says otherwise.
    pub format: AccessLogFormat,
    /// Share of requests with such a line.
    pub sample: LogSample,
    /// Destination of these lines.
    pub target: AccessLogTarget,
    /// Maximum size of a buffer; each worker has two. Further lines are dropped and counted.
    ///
    /// Unit: bytes. Default: 1 MiB. Memory is allocated as lines arrive, not in advance.
    pub buffer_bytes_max: usize,
    /// Maximum time that lines wait while others arrive, unless a buffer is half full. Default: 50 ms.
    ///
    /// Without lines the writer sleeps until the next one, whatever this is.
    pub flush_interval: Duration,
    /// Interval at which the file's path is checked for rotation, while there are lines. Default: 1 s.
    pub rotation_interval: Duration,
    /// Number of workers that log.
    pub workers: usize,
}

impl AccessLogSettings {
    /// Creates settings for text to standard output with the default limits.
    pub fn new(workers: usize) -> Self {
        Self {
            format: AccessLogFormat::default(),
            sample: LogSample::ALL,
            target: AccessLogTarget::default(),
            buffer_bytes_max: 1 << 20,
            flush_interval: Duration::from_millis(50),
            rotation_interval: Duration::from_secs(1),
            workers,
        }
    }
}
