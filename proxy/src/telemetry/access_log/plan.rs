//! Access log by resources: targets, each with its format and its filter.

use std::sync::{Arc, OnceLock};

use traffic::filter::{Expression, Needs, TemplateContext};
use traffic::telemetry::cells::{WorkerId, cell_index};

use super::entry::Entry;
use super::lanes::Buffer;
use super::sample::LogSample;
use super::settings::{AccessLogFormat, AccessLogTarget};
use super::timestamp::Timestamp;
use super::writer::Running;
use super::{custom, format};
use crate::telemetry::otlp::Exporter;

/// Access log of the traffic of one side: none, or one line for each target whose filter holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LogPlan {
    sinks: Box<[LogSink]>,
    needs: Needs,
}

/// Target of lines, with the format and the filter.
#[derive(Debug)]
pub struct LogSink {
    /// Destination of the lines.
    pub target: AccessLogTarget,
    /// Format of a line.
    pub format: AccessLogFormat,
    /// Condition for a line.
    pub filter: Option<Arc<Expression>>,
    /// Share of requests with a line.
    pub sample: LogSample,
    /// Open target; empty until the plan is in effect.
    open: OnceLock<OpenTarget>,
}

/// Open target of lines or of log records.
#[derive(Clone, Debug)]
pub(super) enum OpenTarget {
    Lines(Arc<Running>),
    Records(Arc<Exporter>),
    /// A collector where nothing may be exported.
    Nothing,
}

impl PartialEq for LogSink {
    fn eq(&self, other: &Self) -> bool {
        self.target == other.target && self.format == other.format && self.filter == other.filter
    }
}

impl Eq for LogSink {}

impl LogSink {
    /// Creates a target that is not open.
    pub fn new(
        target: AccessLogTarget,
        format: AccessLogFormat,
        filter: Option<Arc<Expression>>,
    ) -> Self {
        Self {
            target,
            format,
            filter,
            sample: LogSample::ALL,
            open: OnceLock::new(),
        }
    }

    pub(super) fn open(&self, open: impl FnOnce() -> OpenTarget) {
        self.open.get_or_init(open);
    }

    /// Appends the line to the buffer of a worker, if the filter holds.
    fn log(&self, worker: WorkerId, entry: &Entry<'_>, context: &TemplateContext<'_>) {
        if !self.sample.takes(entry) {
            return;
        }
        if self
            .filter
            .as_ref()
            .is_some_and(|filter| !filter.holds(context))
        {
            return;
        }
        let running = match (self.open.get(), &self.format) {
            (Some(OpenTarget::Lines(running)), _) => running,
            (Some(OpenTarget::Records(exporter)), AccessLogFormat::Record(format)) => {
                return exporter.add_record(worker, |out| format.append(out, entry, context));
            }
            _ => return,
        };
        let lanes = running.lanes();
        let (index, writers) = cell_index(worker, lanes.lanes.len());
        lanes.log(&lanes.lanes[index], writers, |buffer| {
            self.format.append(buffer, entry, context);
        });
    }
}

impl LogPlan {
    /// Creates a plan; one without targets writes nothing.
    pub fn new(sinks: Vec<LogSink>) -> Self {
        let mut needs = Needs::default();
        for sink in &sinks {
            match &sink.format {
                AccessLogFormat::Custom(format) => format.add_needs(&mut needs),
                AccessLogFormat::Record(format) => format.add_needs(&mut needs),
                AccessLogFormat::Json | AccessLogFormat::Text => {}
            }
            if let Some(filter) = &sink.filter {
                filter.add_needs(&mut needs);
            }
        }
        Self {
            sinks: sinks.into(),
            needs,
        }
    }

    /// Targets of the lines.
    pub fn sinks(&self) -> &[LogSink] {
        &self.sinks
    }

    /// Whether there are no lines.
    pub fn is_off(&self) -> bool {
        self.sinks.is_empty()
    }

    /// Headers that formats and filters read.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Writes the lines of a finished request or connection. Never waits.
    pub fn log(&self, worker: WorkerId, entry: &Entry<'_>, context: &TemplateContext<'_>) {
        for sink in &self.sinks {
            sink.log(worker, entry, context);
        }
    }
}

impl AccessLogFormat {
    /// Appends one line.
    fn append(&self, buffer: &mut Buffer, entry: &Entry<'_>, context: &TemplateContext<'_>) {
        match self {
            Self::Custom(format) => custom::line(&mut buffer.bytes, format, context),
            fixed => {
                let Buffer { bytes, timestamp } = buffer;
                fixed.append_fixed(bytes, timestamp, entry, LogSample::ALL);
            }
        }
    }

    /// Appends one line, in JSON or else in Istio's text format.
    pub(super) fn append_fixed(
        &self,
        bytes: &mut Vec<u8>,
        timestamp: &mut Timestamp,
        entry: &Entry<'_>,
        sample: LogSample,
    ) {
        match self {
            Self::Json => format::json(bytes, timestamp, entry, sample.percent()),
            Self::Custom(_) | Self::Record(_) | Self::Text => {
                format::text(bytes, timestamp, entry);
            }
        }
    }

    /// Whether a line needs no more than an [`Entry`].
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Json | Self::Text)
    }
}
