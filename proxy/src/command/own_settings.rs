//! Settings of this proxy alone: annotations of its pod, and `--proxy-config`.

use std::sync::Arc;

use config_loader::diagnostic::render;
use config_loader::resource::istio::ProxySettings;
use config_loader::{Diagnostic, SettingsFile};

use super::annotations::Annotations;

/// Annotation of pods with settings of proxies.
pub(super) const ANNOTATION: &str = "proxy.istio.io/config";

/// Settings of this proxy alone.
#[derive(Clone, Debug, Default)]
pub struct OwnSettings {
    /// The settings.
    pub settings: ProxySettings,
    /// Warnings about them.
    pub warnings: Vec<Diagnostic>,
    /// Settings by other annotations.
    pub(super) annotations: Annotations,
}

/// Parses `--proxy-config`. Empty text has no settings, as manifests leave variables empty.
///
/// # Errors
///
/// The text has an error.
pub(super) fn of_text(text: &str) -> Result<OwnSettings, String> {
    parse("--proxy-config", text)
}

/// Parses the file of `--pod-annotations`.
///
/// # Errors
///
/// The file cannot be read, or the annotation has an error.
pub(super) fn of_annotations(path: &str) -> Result<OwnSettings, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let mut own = OwnSettings::default();
    let mut annotations = Annotations::default();
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let is_read = |name: &str| name == ANNOTATION || Annotations::are_about(name);
    for (name, quoted) in lines.filter(|(name, _)| is_read(name)) {
        let unquoted: String = serde_json::from_str(quoted).map_err(|_| {
            format!("{path}: the value of {name} is not quoted as in a volume of the downward API")
        })?;
        if name == ANNOTATION {
            own = parse(ANNOTATION, &unquoted)?;
        } else {
            annotations.add(name, &unquoted)?;
        }
    }
    own.warnings.append(&mut annotations.warnings);
    Ok(OwnSettings { annotations, ..own })
}

fn parse(name: &str, text: &str) -> Result<OwnSettings, String> {
    if text.trim().is_empty() {
        return Ok(OwnSettings::default());
    }
    let parsed = ProxySettings::parse(&Arc::from(name), text);
    let (settings, warnings) = parsed.map_err(|found| {
        let text = render::text(&found, render::Style::Plain);
        format!("the settings are not used\n{text}")
    })?;
    Ok(OwnSettings {
        settings,
        warnings,
        annotations: Annotations::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_is_read_from_a_file_of_the_downward_api() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            of_annotations(file.path().to_str().unwrap())
        };
        let text = "a=\"b\"\nproxy.istio.io/config=\"concurrency: 3\\nimage: {}\\n\"\nz=\"\"\n";
        let own = read(text).unwrap();
        let flags: Vec<_> = own.settings.flag_values(true).cloned().collect();
        assert_eq!(flags, [("concurrency", "3".to_owned())]);
        assert_eq!(own.warnings.len(), 1);
        assert_eq!(
            read("a=\"b\"\n").unwrap().settings,
            ProxySettings::default()
        );
        let misspelt = read("proxy.istio.io/config=\"concurency: 3\"\n").unwrap();
        assert_eq!(misspelt.warnings[0].field, "concurency");
        let error = read("proxy.istio.io/config=\"concurrency: -3\"\n").unwrap_err();
        assert!(error.contains("concurrency"), "{error}");
        assert!(read("proxy.istio.io/config=concurrency\n").is_err());
        assert_eq!(of_text(" ").unwrap().settings, ProxySettings::default());
    }
}
