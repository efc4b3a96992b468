//! The two text formats of a scrape, and their differences.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/> and
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>. OpenMetrics names a counter's family without `_total`, and
//! ends with a line that shows whether a scrape is complete. Samples are the same in both, so that a series has the
//! same name in both formats.

use std::io::Write;

use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{Encoder, TEXT_FORMAT, TextEncoder};

use traffic::telemetry::names::Family;

/// A text format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextFormat {
    /// Prometheus' own.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl TextFormat {
    /// Content type of the format.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => TEXT_FORMAT,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// End of the page, after the last family.
    pub(super) const fn end(self) -> &'static [u8] {
        match self {
            Self::Prometheus => b"",
            Self::OpenMetrics => b"# EOF\n",
        }
    }

    /// Appends help and type of a family.
    pub(super) fn append_header(
        self,
        out: &mut Vec<u8>,
        Family { name, help }: &Family,
        kind: &str,
    ) {
        let name = match self {
            Self::OpenMetrics if kind == "counter" => name.strip_suffix("_total").unwrap_or(name),
            _ => name,
        };
        // writing to a vector cannot fail
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Appends a family with its samples.
    pub(super) fn append_family(
        self,
        out: &mut Vec<u8>,
        mut family: MetricFamily,
    ) -> Result<(), prometheus::Error> {
        let is_counter = family.get_field_type() == MetricType::COUNTER;
        let stem = family.name().strip_suffix("_total");
        let (Self::OpenMetrics, true, Some(stem)) = (self, is_counter, stem) else {
            return TextEncoder::new().encode(&[family], out);
        };
        let _ = writeln!(
            out,
            "# HELP {stem} {}\n# TYPE {stem} counter",
            family.help()
        );
        // the encoder writes the same two lines with the name of the samples
        family.set_help(String::new());
        let mut text = Vec::new();
        TextEncoder::new().encode(&[family], &mut text)?;
        let header = text.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        out.extend_from_slice(&text[header + 1..]);
        Ok(())
    }
}
