//! Configurations that are compared, and the proxies that they are for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use config_loader::{LoadOptions, Loaded, NamedText, TestProxies, TestProxy};

use crate::app::unreadable;
use crate::command::check::paths;

/// Prefix of a revision of git.
const GIT: &str = "git:";

/// Loads a configuration: paths, a revision of git, or standard input.
///
/// # Errors
///
/// Says what cannot be read; the text is for users.
pub(super) fn load(written: &str, options: LoadOptions) -> Result<Loaded, String> {
    if let Some(revision) = written.strip_prefix(GIT) {
        return of_revision(written, revision, options);
    }
    if written == "-" {
        let text =
            paths::stdin().map_err(|error| format!("cannot read standard input: {error}"))?;
        return Ok(config_loader::load_texts(vec![text], options));
    }
    let paths: Vec<PathBuf> = written.split(',').map(PathBuf::from).collect();
    let loaded = config_loader::load_files(&paths, options);
    match unreadable(&loaded.diagnostics) {
        Some(missing) => Err(format!("{}: {}", missing.location.file, missing.message)),
        None => Ok(loaded),
    }
}

/// Loads the files of a revision of git below a path, `REVISION` or `REVISION:PATH`; nothing is checked out.
fn of_revision(written: &str, revision: &str, options: LoadOptions) -> Result<Loaded, String> {
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
            texts.push((format!("{GIT}{revision}:{name}").into(), text.into()));
        }
    }
    match texts.is_empty() {
        true => Err(wrong(format!("{path} has no file of resources"))),
        false => Ok(config_loader::load_texts(texts, options)),
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
pub(super) fn proxies(path: &Path) -> Result<BTreeMap<String, TestProxy>, String> {
    match config_loader::read_settings::<TestProxies>(path) {
        Ok((proxies, _)) => Ok(proxies.0),
        Err(found) => Err(crate::command::test::rendered(&found)),
    }
}
