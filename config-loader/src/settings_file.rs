//! Settings in a file of their own, which a flag names. One error rejects the whole file, and its last good version
//! stays in effect.

mod watch;

use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::diagnostic::codes::common::{CM021, CM022, SRC002};
use crate::diagnostic::{Diagnostic, Locator, Severity};
use crate::kind::{Kind, ObjectRef};
use crate::load::text_of;
use crate::parse::{self, Node, Reader, Value};
use crate::span::Lines;
use crate::validate::Check;

pub use watch::{SettingsUpdate, watch_changes, watch_settings};

/// Valid settings with their warnings, or all diagnostics if one of them is an error.
pub type Parsed<T> = Result<(T, Vec<Diagnostic>), Vec<Diagnostic>>;

/// Settings in a file.
pub trait SettingsFile: Clone + PartialEq + Send + 'static {
    /// Flag that names the file.
    const FLAG: &'static str;

    /// Advice for those who want no settings.
    const EMPTY: &'static str;

    /// Whether an unknown field is a warning, as in a file for a newer version of its API, and not an error.
    fn passes(_field: &str) -> bool {
        false
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    ///
    /// Returns all diagnostics if any of them is an error.
    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self>;
}

/// Reads a settings file.
///
/// # Errors
///
/// Returns all diagnostics if any of them is an error.
pub fn read_settings<T: SettingsFile>(path: &Path) -> Parsed<T> {
    let file: Arc<str> = path.display().to_string().into();
    let bytes = std::fs::read(path).map_err(|error| {
        let message = format!("the file cannot be read: {error}");
        let mut found = Diagnostic::about_file(Severity::Error, SRC002, Arc::clone(&file), message);
        found.help(format!("{} names a file; {}", T::FLAG, T::EMPTY));
        vec![found]
    })?;
    parse_bytes(&file, &bytes)
}

fn parse_bytes<T: SettingsFile>(file: &Arc<str>, bytes: &[u8]) -> Parsed<T> {
    let text = text_of(file, bytes).map_err(|found| vec![*found])?;
    T::parse(file, text)
}

/// Parses the text of `locator` by its raw type `R`, whose fields `check` checks. `ignored` fields of the root have no
/// raw type.
pub(crate) fn parse_text<R: Default + DeserializeOwned, T: Default + SettingsFile>(
    locator: Locator<'_>,
    ignored: &[&str],
    check: impl FnOnce(&R, &Node, &mut Check<'_>) -> T,
) -> Parsed<T> {
    let mut found = Vec::new();
    let root = parse::tree(&locator, &mut found);
    let mut settings = T::default();
    match &root {
        Some(root) if matches!(root.value, Value::List(_)) => {
            let message = "expected a mapping, found a list".to_owned();
            let mut list = Diagnostic::at(Severity::Error, CM022, root.span, message);
            list.help("write the name of the list and a colon on a line before it");
            found.push(list);
        }
        Some(root) => {
            let reader = Reader::new(locator);
            let raw = reader.read::<R>(root, ignored);
            found.append(&mut reader.into_found());
            let unnamed = ObjectRef::new(Kind::Cluster, "", "");
            let mut checked = Check::new(&unnamed, locator, root.span);
            settings = check(&raw, root, &mut checked);
            found.append(&mut checked.into_found());
        }
        // as while it is written
        None if found.is_empty() => {
            let file = Arc::clone(locator.file);
            let message = "the file is empty";
            let mut empty = Diagnostic::about_file(Severity::Error, CM022, file, message);
            empty.help(T::EMPTY);
            found.push(empty);
        }
        None => {}
    }
    parse::place_all(&mut found, root.as_ref(), &locator);
    let unknown = found.iter_mut().filter(|one| one.code == CM021);
    for one in unknown.filter(|one| T::passes(&one.field)) {
        one.severity = Severity::Warning;
    }
    match found.iter().any(|one| one.severity == Severity::Error) {
        true => Err(found),
        false => Ok((settings, found)),
    }
}

/// Returns the locator of a whole file.
pub(crate) fn whole<'a>(file: &'a Arc<str>, text: &'a str, lines: &'a Lines) -> Locator<'a> {
    Locator {
        file,
        text,
        lines,
        first_line: 1,
        secret: false,
        bool_keys: false,
    }
}
