//! Configurations that are compared, and the proxies that they are for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use config_loader::{LoadOptions, Loaded, NamedText, WrittenProxies, WrittenProxy};

use crate::app::unreadable;
use crate::command::check::paths;

/// Prefix of a revision of git.
const GIT: &str = "git:";

/// Name of a configuration that is one file.
const ONE_FILE: &str = "configuration";

/// Configuration whose files have names below a root, so that a file that both configurations have has the same name in both: what
/// is compiled from the same places is shared, and not compared again.
pub(super) struct Configuration {
    pub loaded: Loaded,
    root: String,
}

impl Configuration {
    fn new(texts: Vec<NamedText>, root: &str, options: LoadOptions) -> Self {
        let mut loaded = config_loader::load_texts(texts, options);
        for found in &mut loaded.diagnostics {
            found.location.file = shown(root, &found.location.file).into();
        }
        Self {
            loaded,
            root: root.to_owned(),
        }
    }

    /// Returns the name of a file as the user knows it.
    pub(super) fn shown(&self, file: &str) -> String {
        shown(&self.root, file)
    }
}

fn shown(root: &str, file: &str) -> String {
    match file {
        ONE_FILE => root.to_owned(),
        file if root.is_empty() => file.to_owned(),
        file => format!("{}/{file}", root.trim_end_matches('/')),
    }
}

/// Returns the name of a file below a root.
fn below(root: &str, file: &str) -> String {
    let root = root.trim_end_matches('/');
    match file.strip_prefix(root) {
        Some("") => ONE_FILE.to_owned(),
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
        _ => file.to_owned(),
    }
}

/// Loads a configuration: paths, a revision of git, or standard input.
///
/// # Errors
///
/// Says what cannot be read; the text is for users.
pub(super) fn load(written: &str, options: LoadOptions) -> Result<Configuration, String> {
    if let Some(revision) = written.strip_prefix(GIT) {
        return of_revision(written, revision, options);
    }
    if written == "-" {
        let text =
            paths::stdin().map_err(|error| format!("cannot read standard input: {error}"))?;
        let text = (ONE_FILE.into(), text.1);
        return Ok(Configuration::new(vec![text], paths::STDIN_NAME, options));
    }
    let paths: Vec<PathBuf> = written.split(',').map(PathBuf::from).collect();
    let (texts, problems) = config_loader::read_texts(&paths);
    if let Some(missing) = unreadable(&problems) {
        let (file, message) = (&missing.location.file, &missing.message);
        return Err(format!("{file}: {message}"));
    }
    // several roots have no common one
    let root = if paths.len() == 1 { written } else { "" };
    let texts = texts.into_iter();
    let texts = texts.map(|(name, text)| (below(root, &name).into(), text.into_bytes().into()));
    Ok(Configuration::new(texts.collect(), root, options))
}

/// Loads the files of a revision of git below a path, `REVISION` or `REVISION:PATH`; nothing is checked out.
fn of_revision(
    written: &str,
    revision: &str,
    options: LoadOptions,
) -> Result<Configuration, String> {
    let (revision, path) = revision.split_once(':').unwrap_or((revision, "."));
    if revision.is_empty() || revision.starts_with('-') {
        return Err(format!(
            "{written}: write git:REVISION or git:REVISION:PATH"
        ));
    }
    let wrong = |error: String| format!("{written}: {error}");
    let listed = git(&["ls-tree", "-r", "-z", "--name-only", revision, "--", path]);
    let listed = listed.map_err(wrong)?;
    let mut texts: Vec<NamedText> = Vec::new();
    for name in listed.split(|byte| *byte == 0) {
        let name = String::from_utf8_lossy(name);
        if config_loader::is_resource_file(Path::new(&*name)) {
            let text = git(&["show", &format!("{revision}:./{name}")]).map_err(wrong)?;
            texts.push((below(path, &name).into(), text.into()));
        }
    }
    let root = match path {
        "." => format!("{GIT}{revision}:."),
        path => format!("{GIT}{revision}:{path}"),
    };
    match texts.is_empty() {
        true => Err(wrong(format!("{path} has no file of resources"))),
        false => Ok(Configuration::new(texts, &root, options)),
    }
}

fn git(args: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("git").args(args).output();
    let output = output.map_err(|error| format!("git cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Reads the file of `--for`: proxies by name.
///
/// # Errors
///
/// Renders the mistakes of the file.
pub(super) fn proxies(path: &Path) -> Result<BTreeMap<String, WrittenProxy>, String> {
    match config_loader::read_settings::<WrittenProxies>(path) {
        Ok((proxies, _)) => Ok(proxies.0),
        Err(found) => Err(crate::command::test::rendered(&found)),
    }
}
