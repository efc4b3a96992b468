//! Watches a settings file. If the file has an error, its last good version stays in effect.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Parsed, SettingsFile, parse_bytes};
use crate::diagnostic::codes::common::SRC001;
use crate::diagnostic::{Diagnostic, Severity};
use crate::load::too_large;
use crate::loader::Watch;
use crate::parse::FILE_BYTES_MAX;
use crate::source::{self, FileEvent, FileSource, Look, WatchSettings};

/// Report about a settings file after a change.
#[derive(Clone, Debug, Default)]
pub struct SettingsUpdate<T> {
    /// Settings in effect: the last version of the file without an error.
    pub settings: T,
    /// Diagnostics of the current file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Watches the file at `path` and calls `on_update` from a thread of its own whenever the settings in effect or the
/// diagnostics change. `known` holds the settings in effect at the start; the file is read again once at the start. A
/// path that is no regular file, such as a pipe, is not watched.
///
/// # Errors
///
/// Returns the error of the operating system if no thread can be started.
pub fn watch_settings<T: SettingsFile>(
    path: &Path,
    known: T,
    mut on_update: impl FnMut(SettingsUpdate<T>) + Send + 'static,
) -> std::io::Result<Watch> {
    if !path.is_file() {
        return Ok(Watch::of_nothing());
    }
    let mut followed = Followed {
        name: path.display().to_string().into(),
        settings: known,
        diagnostics: Vec::new(),
        of_file: Vec::new(),
    };
    let source = FileSource::new(&[path.to_owned()], FILE_BYTES_MAX);
    let stop = source::spawn(source, WatchSettings::default(), move |look| {
        if let Some(update) = followed.absorb(look) {
            on_update(update);
        }
    })?;
    Ok(Watch::new(stop))
}

/// Watches files and directories of resources, and calls `on_change` from a thread of its own at the start and whenever
/// one of them changes.
///
/// # Errors
///
/// Returns the error of the operating system if no thread can be started.
pub fn watch_changes(
    paths: &[PathBuf],
    mut on_change: impl FnMut() + Send + 'static,
) -> std::io::Result<Watch> {
    let source = FileSource::new(paths, FILE_BYTES_MAX);
    let stop = source::spawn(source, WatchSettings::default(), move |_| on_change())?;
    Ok(Watch::new(stop))
}

/// State of the watched file.
#[derive(Debug)]
struct Followed<T> {
    /// Path as given on the command line.
    name: Arc<str>,
    settings: T,
    /// Diagnostics of the last report.
    diagnostics: Vec<Diagnostic>,
    /// Part of `diagnostics` that is about the text of the file as last read.
    of_file: Vec<Diagnostic>,
}

impl<T: SettingsFile> Followed<T> {
    /// Applies a scan of the file. Returns a report if anything changed.
    fn absorb(&mut self, look: Look) -> Option<SettingsUpdate<T>> {
        let mut changed = false;
        for (_, event) in look.events {
            self.of_file = match self.read(event) {
                Ok((settings, found)) => {
                    changed |= settings != self.settings;
                    self.settings = settings;
                    found
                }
                Err(found) => found,
            };
        }
        let mut diagnostics = self.of_file.clone();
        // that the file is gone is told already, in words of its own
        let problems = look.problems.into_iter();
        diagnostics.extend(problems.filter(|found| found.code != SRC001));
        for found in &mut diagnostics {
            found.location.file = Arc::clone(&self.name);
        }
        if !changed && diagnostics == self.diagnostics {
            return None;
        }
        self.diagnostics.clone_from(&diagnostics);
        Some(SettingsUpdate {
            settings: self.settings.clone(),
            diagnostics,
        })
    }

    fn read(&self, event: FileEvent) -> Parsed<T> {
        match event {
            FileEvent::Bytes(bytes) => parse_bytes(&self.name, &bytes),
            FileEvent::Object(object) => parse_bytes(&self.name, object.text.as_bytes()),
            FileEvent::TooLarge(bytes) => Err(vec![too_large(&self.name, bytes)]),
            FileEvent::Unreadable(failure) if failure.code != SRC001 => Err(vec![*failure]),
            FileEvent::Gone | FileEvent::Unreadable(_) => {
                let file = Arc::clone(&self.name);
                let message = format!(
                    "the file of {} is gone: what it said last stays in effect",
                    T::FLAG
                );
                let mut found = Diagnostic::about_file(Severity::Error, SRC001, file, message);
                found.help(format!("put it back; {}", T::EMPTY));
                Err(vec![found])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clusters::ClusterSettings;

    fn look(event: Option<FileEvent>) -> Look {
        let events = event.map(|event| (Arc::from("/whole/path"), event));
        Look {
            events: events.into_iter().collect(),
            ..Look::default()
        }
    }

    fn text(text: &str) -> Look {
        look(Some(FileEvent::Bytes(text.as_bytes().to_vec())))
    }

    fn keys(update: &SettingsUpdate<Vec<ClusterSettings>>) -> Vec<&str> {
        let clusters = update.settings.iter();
        clusters.map(|cluster| cluster.key.as_str()).collect()
    }

    fn codes(update: &SettingsUpdate<Vec<ClusterSettings>>) -> Vec<String> {
        let found = update.diagnostics.iter();
        found
            .map(|one| format!("{} {}", one.location, one.code))
            .collect()
    }

    #[test]
    fn invalid_file_keeps_its_last_good_version() {
        let known = Vec::parse(&"told".into(), "clusters: [{key: a/b/c/d}]\n");
        let mut followed = Followed {
            name: "told".into(),
            settings: known.unwrap().0,
            diagnostics: Vec::new(),
            of_file: Vec::new(),
        };
        assert!(
            followed
                .absorb(text("clusters: [{key: a/b/c/d}]"))
                .is_none()
        );
        let wrong = followed.absorb(text("clusters:\n- key: d\n")).unwrap();
        assert_eq!(keys(&wrong), ["a/b/c/d"]);
        assert_eq!(codes(&wrong), ["told:2:8 CLS001"]);
        assert!(followed.absorb(look(None)).is_none(), "it was told");
        let gone = followed.absorb(look(Some(FileEvent::Gone))).unwrap();
        assert_eq!(
            (keys(&gone), codes(&gone)),
            (vec!["a/b/c/d"], vec!["told SRC001".to_owned()])
        );
        let fixed = followed.absorb(text("clusters: [{key: a/b/c/e}]")).unwrap();
        assert_eq!(keys(&fixed), ["a/b/c/e"]);
        assert_eq!(codes(&fixed), [""; 0]);
        let huge = followed.absorb(look(Some(FileEvent::TooLarge(u64::MAX))));
        assert_eq!(codes(&huge.unwrap()), ["told YAML010"]);
        let empty = followed.absorb(text("clusters: []\n")).unwrap();
        assert_eq!(keys(&empty), [""; 0]);
    }
}
