//! Inputs of the check: paths, patterns, and standard input.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use config_loader::NamedText;

/// Argument that means standard input.
const STDIN: &str = "-";

/// Name of standard input in findings.
pub(crate) const STDIN_NAME: &str = "<stdin>";

/// Maximum number of paths that one pattern may match.
const MATCHES_MAX: usize = 10_000;

/// Inputs of the check.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Files and directories.
    pub files: Vec<PathBuf>,
    /// Whether to check standard input.
    pub stdin: bool,
}

impl Paths {
    /// Expands patterns. A pattern without matches is kept, so that it is reported as a path that does not exist.
    ///
    /// # Errors
    ///
    /// Fails when a pattern matches too many paths.
    pub(crate) fn of(written: impl IntoIterator<Item = PathBuf>) -> Result<Self, String> {
        let mut paths = Self::default();
        for path in written {
            if path == Path::new(STDIN) {
                paths.stdin = true;
                continue;
            }
            match expand(&path)? {
                matches if matches.is_empty() => paths.files.push(path),
                matches => paths.files.extend(matches),
            }
        }
        Ok(paths)
    }
}

/// Reads standard input, up to one byte more than the size limit of a file of resources.
///
/// # Errors
///
/// Fails when it cannot be read.
pub(crate) fn stdin() -> io::Result<NamedText> {
    let mut bytes = Vec::new();
    let bytes_max = config_loader::parse::FILE_BYTES_MAX + 1;
    io::stdin().lock().take(bytes_max).read_to_end(&mut bytes)?;
    Ok((STDIN_NAME.into(), bytes.into()))
}

/// Returns the paths that match a pattern, sorted; empty for a path that exists or is no pattern.
fn expand(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let is_pattern = |name: &OsStr| name.to_string_lossy().contains(['*', '?', '[']);
    if !is_pattern(pattern.as_os_str()) || pattern.symlink_metadata().is_ok() {
        return Ok(Vec::new());
    }
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        found = match component {
            Component::Normal(name) if is_pattern(name) => {
                let within = found.iter().flat_map(|base| names_in(base, name));
                within.take(MATCHES_MAX + 1).collect()
            }
            name => found.into_iter().map(|base| base.join(name)).collect(),
        };
        if found.len() > MATCHES_MAX {
            let pattern = pattern.display();
            return Err(format!(
                "{pattern} matches more than {MATCHES_MAX} paths; name a directory, which is read with all below it"
            ));
        }
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    found.sort_unstable();
    Ok(found)
}

/// Returns the entries of a directory that match a pattern. Hidden entries match only if the pattern begins with a dot.
fn names_in(directory: &Path, pattern: &OsStr) -> Vec<PathBuf> {
    let pattern: Vec<char> = pattern.to_string_lossy().chars().collect();
    let listed = match directory.as_os_str().is_empty() {
        true => fs::read_dir("."),
        false => fs::read_dir(directory),
    };
    let entries = listed.into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name()).filter(|name| {
        let name: Vec<char> = name.to_string_lossy().chars().collect();
        (name.first() != Some(&'.') || pattern.first() == Some(&'.')) && matches(&pattern, &name)
    });
    names.map(|name| directory.join(name)).collect()
}

/// Returns whether a name matches a pattern with `*`, `?`, `[a-z]` and `[^a-z]`, as in a shell.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut read) = (0, 0);
    // position to resume at if the part after the last star does not match: the star takes one more character
    let mut star = None;
    loop {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, read));
            at += 1;
            continue;
        }
        match name.get(read) {
            None if at == pattern.len() => return true,
            Some(&letter) => {
                if let Some(next) = one(pattern, at, letter) {
                    (at, read) = (next, read + 1);
                    continue;
                }
            }
            None => {}
        }
        match star {
            Some((last, taken)) if taken < name.len() => {
                star = Some((last, taken + 1));
                (at, read) = (last + 1, taken + 1);
            }
            _ => return false,
        }
    }
}

/// Returns the position in the pattern after the part at `at`, if that part matches this character.
fn one(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => match class(&pattern[at + 1..], letter) {
            Some((true, length)) => Some(at + 1 + length),
            Some((false, _)) => None,
            None => (letter == '[').then_some(at + 1), // nothing closes it
        },
        literal => (literal == letter).then_some(at + 1),
    }
}

/// Returns whether the rest of `[a-z]` contains a character, and its length including the bracket.
fn class(rest: &[char], letter: char) -> Option<(bool, usize)> {
    let negated = matches!(rest.first(), Some('^' | '!'));
    let start = usize::from(negated);
    // a bracket in the first position is a member
    let close = (start + 1..rest.len()).find(|&at| rest[at] == ']')?;
    let mut members = &rest[start..close];
    let mut holds = false;
    while let [first, tail @ ..] = members {
        let (last, tail) = match tail {
            ['-', last, tail @ ..] => (last, tail),
            tail => (first, tail),
        };
        holds |= (*first..=*last).contains(&letter);
        members = tail;
    }
    Some((holds != negated, close + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_patterns_match_as_in_a_shell() {
        let matches = |pattern: &str, name: &str| {
            let [pattern, name] = [pattern, name].map(|text| text.chars().collect::<Vec<_>>());
            super::matches(&pattern, &name)
        };
        for (pattern, name) in [
            ("*", "a"),
            ("*", ""),
            ("*.yaml", "a.yaml"),
            ("a*b*c", "a-b-b-c"),
            ("**", "abc"),
            ("?", "ä"),
            ("[ab]-?.yaml", "b-1.yaml"),
            ("[a-c]x", "bx"),
            ("[^a-c]x", "dx"),
            ("[!a]x", "bx"),
            ("[]]", "]"),
            ("[a", "[a"),
            ("x[-a]", "x-"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("*.yaml", "a.yml"),
            ("a*b", "a-b-c"),
            ("?", ""),
            ("?", "ab"),
            ("[a-c]x", "dx"),
            ("[^a-c]x", "bx"),
            ("[a", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn glob_patterns_expand_to_existing_paths() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["a", "b"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in [
            "a/1.yaml",
            "a/2.yml",
            "b/1.yaml",
            "b/.hidden.yaml",
            "b/[x].yaml",
        ] {
            fs::write(at(name), "").unwrap();
        }
        let paths = |pattern: &str| Paths::of([at(pattern)]).unwrap().files;
        assert_eq!(
            paths("*/*.yaml"),
            ["a/1.yaml", "b/1.yaml", "b/[x].yaml"].map(at)
        );
        assert_eq!(paths("?/2.y*ml"), ["a/2.yml"].map(at));
        assert_eq!(paths("[b-z]"), ["b"].map(at));
        assert_eq!(paths("b/.*"), ["b/.hidden.yaml"].map(at));
        // An existing path is used unchanged, and so is a pattern without matches.
        assert_eq!(paths("b/[x].yaml"), ["b/[x].yaml"].map(at));
        assert_eq!(paths("c/*.yaml"), ["c/*.yaml"].map(at));
        assert_eq!(paths("a/1.yaml/*"), ["a/1.yaml/*"].map(at));
    }

    #[test]
    fn dash_reads_standard_input() {
        let paths = Paths::of(["-", "a.yaml"].map(PathBuf::from)).unwrap();
        assert!(paths.stdin);
        assert_eq!(paths.files, [PathBuf::from("a.yaml")]);
    }
}
