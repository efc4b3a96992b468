//! Labels of the proxy's pod, in a file of the downward API that is followed (`--pod-labels`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config_loader::diagnostic::codes::common::CM022;
use config_loader::{Diagnostic, Parsed, SettingsFile, Severity};

/// Labels of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodLabels(pub BTreeMap<String, String>);

/// File with the labels, as read at the start.
#[derive(Clone, Debug)]
pub struct PodLabelsFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The labels.
    pub labels: PodLabels,
}

impl PodLabelsFile {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Returns all of its diagnostics if it cannot be read, or is not one of the downward API.
    pub fn read(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let (labels, _) = config_loader::read_settings(path)?;
        Ok(Self {
            path: path.to_owned(),
            labels,
        })
    }
}

impl SettingsFile for PodLabels {
    const FLAG: &'static str = "--pod-labels";

    const EMPTY: &'static str = "for no labels, leave the file empty";

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let label = |line: &str| {
            let (name, quoted) = line.split_once('=')?;
            Some((name.to_owned(), serde_json::from_str(quoted).ok()?))
        };
        let labels = text.lines().map(|line| {
            label(line).ok_or_else(|| {
                let message = format!("`{line}` is not a label");
                let file = Arc::clone(file);
                let mut found = Diagnostic::about_file(Severity::Error, CM022, file, message);
                found.help("write NAME=\"VALUE\", as a volume of the downward API has labels");
                vec![found]
            })
        });
        let labels: BTreeMap<String, String> = labels.collect::<Result<_, _>>()?;
        Ok((Self(labels), Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_from_a_file_of_the_downward_api() {
        let read = |text| PodLabels::parse(&"labels".into(), text);
        let (labels, _) = read("app=\"web\"\nempty=\"\"").unwrap();
        assert_eq!(labels.0["app"], "web");
        assert_eq!(labels.0.len(), 2);
        assert_eq!(read("").unwrap().0, PodLabels::default());
        let found = read("app=web").unwrap_err();
        assert!(found[0].message.contains("`app=web`"), "{found:?}");
    }
}
