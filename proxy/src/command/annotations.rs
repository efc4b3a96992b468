//! Annotations of the proxy's own pod that are settings, beside `proxy.istio.io/config`.

use std::collections::BTreeMap;

use config_loader::diagnostic::codes::istio::MC101;
use config_loader::resource::istio::FlagValue;
use config_loader::{Diagnostic, Severity};

/// Prefix of annotations that are attributes of the resource in telemetry.
const RESOURCE: &str = "resource.opentelemetry.io/";

/// Prefix of Istio's annotations of sidecars.
const SIDECAR: &str = "sidecar.istio.io/";

/// Name of the histogram of durations, as Istio's annotation has it.
const DURATION: &str = "istiocustom.istio_request_duration_milliseconds";

/// Levels of Envoy's log, with those of the process log.
const LEVELS: [(&str, &str); 7] = [
    ("critical", "error"),
    ("debug", "debug"),
    ("error", "error"),
    ("info", "info"),
    ("off", "off"),
    ("trace", "trace"),
    ("warning", "warn"),
];

/// Annotations of sidecars about metrics and logs without an effect.
const WITHOUT_EFFECT: [&str; 7] = [
    "componentLogLevel",
    "extraStatTags",
    "statsEvictionInterval",
    "statsFlushInterval",
    "statsInclusionPrefixes",
    "statsInclusionRegexps",
    "statsInclusionSuffixes",
];

/// Settings by annotations.
#[derive(Clone, Debug, Default)]
pub(super) struct Annotations {
    /// Values for flags, each with its annotation.
    pub(super) flags: Vec<(String, FlagValue)>,
    /// Attributes of the resource in telemetry.
    pub(super) resource: BTreeMap<String, String>,
    /// Warnings.
    pub(super) warnings: Vec<Diagnostic>,
}

impl Annotations {
    /// Whether an annotation may be a setting.
    pub(super) fn are_about(name: &str) -> bool {
        name.starts_with(RESOURCE) || name.starts_with(SIDECAR)
    }

    /// Adds an annotation; one that is no setting is ignored.
    ///
    /// # Errors
    ///
    /// The value cannot be used; the text is for users.
    pub(super) fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let Some(attribute) = name.strip_prefix(RESOURCE) {
            self.resource.insert(attribute.to_owned(), value.to_owned());
        }
        let Some(short) = name.strip_prefix(SIDECAR) else {
            return Ok(());
        };
        let flag = match short {
            "logLevel" => {
                let level = LEVELS.iter().find(|(known, _)| *known == value);
                let known = LEVELS.map(|(known, _)| known).join(", ");
                let unknown = || format!("{name}: {value:?} is no level; write one of {known}");
                let (_, level) = level.ok_or_else(unknown)?;
                Some(("log-level", (*level).to_owned()))
            }
            "statsCompression" => match value {
                "true" => Some(("stats-compression", "on".to_owned())),
                "false" => Some(("stats-compression", "off".to_owned())),
                _ => return Err(format!("{name}: {value:?} is neither true nor false")),
            },
            "statsHistogramBuckets" => self.buckets(name, value)?,
            _ => None,
        };
        if WITHOUT_EFFECT.contains(&short) {
            self.warn(
                name,
                "the annotation has no effect",
                "see docs/metrics.md for the metrics",
            );
        }
        self.flags.extend(flag.map(|flag| (name.to_owned(), flag)));
        Ok(())
    }

    /// Returns the flag for bounds by prefixes of metrics, of which the longest one that fits counts.
    fn buckets(&mut self, name: &str, value: &str) -> Result<Option<FlagValue>, String> {
        let bounds: BTreeMap<String, Vec<f64>> = serde_json::from_str(value).map_err(|error| {
            format!("{name}: {error}; write prefixes of metrics with bounds, such as {{\"istiocustom\": [1, 10, 100]}}")
        })?;
        let mut chosen = None;
        for (prefix, bounds) in &bounds {
            match DURATION.starts_with(prefix.as_str()) {
                // shorter prefixes come first
                true => chosen = Some(bounds),
                false => {
                    let message =
                        format!("bounds for metrics with the prefix `{prefix}` have no effect");
                    self.warn(
                        name,
                        &message,
                        "write the prefix `istiocustom`: bounds of the durations of requests",
                    );
                }
            }
        }
        let texts = |bounds: &Vec<f64>| bounds.iter().map(ToString::to_string).collect::<Vec<_>>();
        Ok(chosen.map(|bounds| ("duration-buckets", texts(bounds).join(","))))
    }

    fn warn(&mut self, name: &str, message: &str, help: &'static str) {
        let mut found = Diagnostic::about_file(Severity::Warning, MC101, name.into(), message);
        found.help(help);
        self.warnings.push(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_of_istio_become_flags() {
        let of = |name: &str, value: &str| {
            let mut all = Annotations::default();
            let name = format!("sidecar.istio.io/{name}");
            all.add(&name, value).map(|()| {
                let flags = all
                    .flags
                    .into_iter()
                    .map(|(_, (flag, value))| format!("{flag}={value}"));
                (flags.collect::<Vec<_>>().join(" "), all.warnings.len())
            })
        };
        for (name, value, flags, warnings) in [
            ("logLevel", "warning", "log-level=warn", 0),
            ("statsCompression", "false", "stats-compression=off", 0),
            (
                "statsHistogramBuckets",
                r#"{"istiocustom": [1, 2.5]}"#,
                "duration-buckets=1,2.5",
                0,
            ),
            (
                "statsHistogramBuckets",
                r#"{"": [9], "istio": [1], "cluster": [2]}"#,
                "duration-buckets=1",
                1,
            ),
            ("statsHistogramBuckets", r#"{"cluster": [2]}"#, "", 1),
            ("statsInclusionPrefixes", "cluster", "", 1),
            ("inject", "true", "", 0),
        ] {
            assert_eq!(
                of(name, value),
                Ok((flags.to_owned(), warnings)),
                "{name} {value}"
            );
        }
        for (name, value) in [
            ("logLevel", "loud"),
            ("statsCompression", "yes"),
            ("statsHistogramBuckets", "1,2"),
        ] {
            let error = of(name, value).unwrap_err();
            assert!(error.starts_with("sidecar.istio.io/"), "{error}");
        }
    }
}
