//! Annotation `proxy.istio.io/config`: settings of one proxy, as YAML.

use std::sync::Arc;

use config_loader::SettingsFile;
use config_loader::diagnostic::{Locator, render};
use config_loader::parse;
use config_loader::resource::istio::ProxySettings;
use config_loader::span::Lines;

use super::annotations::Annotations;
use crate::report::{Finding, Refusal};

/// Annotation `proxy.istio.io/config`.
#[derive(Default)]
pub(super) struct OwnConfig {
    pub(super) settings: ProxySettings,
    pub(super) hold: Option<bool>,
}

impl OwnConfig {
    /// Returns the value of the first flag that a field sets.
    pub(super) fn flag(&self, field: &str) -> Option<String> {
        let (_, value) = self.settings.flags.get(field)?.first()?;
        Some(value.clone())
    }

    pub(super) fn mode(&self) -> Option<String> {
        let value = self.flag("interceptionMode")?;
        Some(if value == "off" {
            "NONE".to_owned()
        } else {
            value
        })
    }

    pub(super) fn status_port(&self) -> Option<u16> {
        self.flag("statusPort")?.rsplit_once(':')?.1.parse().ok()
    }
}

/// Reads the annotation.
///
/// # Errors
///
/// It has an error.
pub(super) fn own_config(
    read: &Annotations<'_>,
    findings: &mut Vec<Finding>,
) -> Result<OwnConfig, Refusal> {
    let name = "proxy.istio.io/config";
    let Some(text) = read.get(name).filter(|text| !text.trim().is_empty()) else {
        return Ok(OwnConfig::default());
    };
    let file: Arc<str> = name.into();
    let parsed = ProxySettings::parse(&file, text).map_err(|found| {
        let text = render::text(&found, render::Style::Plain);
        let message = format!("annotation `{name}` has an error\n{}", text.trim_end());
        Refusal::new(
            "invalid_annotation",
            message,
            "correct it, or remove the annotation",
        )
    });
    let (settings, warnings) = parsed?;
    for warning in warnings
        .iter()
        .filter(|one| !one.message.contains("holdApplication"))
    {
        let help = warning
            .help
            .clone()
            .unwrap_or_else(|| "remove it".to_owned());
        let message = format!(
            "annotation `{name}`, line {}: {}",
            warning.location.line, warning.message
        );
        findings.push(Finding::new("IN007", message, help));
    }
    let lines = Lines::new(text);
    let locator = Locator {
        file: &file,
        text,
        lines: &lines,
        first_line: 1,
        secret: false,
        bool_keys: false,
    };
    let root = parse::tree(&locator, &mut Vec::new());
    let hold = root
        .as_ref()
        .and_then(|root| root.get("holdApplicationUntilProxyStarts"));
    let hold = hold.and_then(|hold| match hold.value {
        parse::Value::Bool(value) => Some(value),
        _ => None,
    });
    Ok(OwnConfig { settings, hold })
}
