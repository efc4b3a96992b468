//! Saved state of a server, in a file (`--state`). A proxy that starts while the server is unreachable uses it.
//!
//! A file has one line of JSON for its format, one for each object, and one with the hash of all of these. A new file
//! is written next to the old one, flushed to disk, and renamed. A crash leaves one of the two intact, and two
//! processes during a takeover do not write to the same file. A truncated or modified file is not used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

/// Version of the file format.
const FORMAT: &str = "strait-state/1";

/// Largest file that is read or written.
const STATE_BYTES_MAX: u64 = 1 << 30;

/// Extension of a file that is being written.
const PART: &str = "part";

/// Age from which a partial file counts as left behind by a process that ended. Writing takes seconds.
const PART_AGE_MAX: Duration = Duration::from_secs(600);

/// Newest text of each object, by name; `None` if it was deleted.
pub(super) type Changes = BTreeMap<Arc<str>, Option<String>>;

/// State file of one server.
#[derive(Clone, Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    /// Identity of the server and its settings. A file with another origin is not used.
    origin: String,
}

/// Content of a state file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Saved {
    /// Time when the file was written.
    pub(super) at: SystemTime,
    /// Objects, as name and text.
    pub(super) objects: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    origin: String,
    /// Time when the file was written, in seconds since 1970.
    saved: u64,
}

#[derive(Serialize, Deserialize)]
struct Object {
    name: String,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct End {
    hash: String,
}

/// Creates the directory with permissions for its user only, if it does not exist.
///
/// # Errors
/// If it cannot be created.
pub(super) fn prepare(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| {
            let path = directory.display();
            io::Error::new(
                error.kind(),
                format!("--state {path}: {error}; name a directory that the proxy can write to"),
            )
        })
}

impl StateFile {
    /// Returns the file of `server` in `directory`.
    pub(super) fn new(directory: &Path, server: &str, origin: String) -> StateFile {
        StateFile {
            path: directory.join(file_name(server)),
            origin,
        }
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file; `None` if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or is corrupt.
    pub(super) fn read(&self) -> io::Result<Option<Saved>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if file.metadata()?.len() > STATE_BYTES_MAX {
            return Err(invalid("it is longer than 1 GiB"));
        }
        let mut lines = Lines::new(BufReader::new(file));
        let head: Head = parse(&lines.next()?)?;
        if head.format != FORMAT || head.origin != self.origin {
            return Err(invalid(
                "it is of another version, or other servers, clusters or selectors",
            ));
        }
        let mut objects = Vec::new();
        loop {
            let hash = lines.hash();
            let line = lines.next()?;
            if let Ok(Object { name, text }) = serde_json::from_slice(&line) {
                objects.push((name, text));
                continue;
            }
            let end: End = parse(&line)?;
            if end.hash != hash {
                return Err(invalid("its hash does not fit"));
            }
            let at = UNIX_EPOCH + Duration::from_secs(head.saved.min(u64::from(u32::MAX)));
            return Ok(Some(Saved { at, objects }));
        }
    }

    /// Writes all objects of a server, none of which is rejected.
    ///
    /// # Errors
    /// If the file cannot be written. The old file is kept.
    #[cfg(test)]
    pub(super) fn write(&self, all: &Changes, now: SystemTime) -> io::Result<()> {
        self.write_objects(present(all), now)
    }

    /// Writes all objects of a server. A rejected object keeps the last good text that an earlier process wrote.
    ///
    /// # Errors
    /// If the file cannot be written. The old file is kept.
    pub(super) fn begin(
        &self,
        all: &Changes,
        rejected: &BTreeSet<Arc<str>>,
        now: SystemTime,
    ) -> io::Result<()> {
        let old = match rejected.is_empty() {
            true => Vec::new(),
            // A file that cannot be used is replaced.
            false => match self.read() {
                Ok(Some(saved)) => saved.objects,
                Ok(None) | Err(_) => Vec::new(),
            },
        };
        let kept = old.iter().map(|(name, text)| (&**name, &**text));
        let kept = kept.filter(|(name, _)| rejected.contains(*name) && !all.contains_key(*name));
        self.write_objects(kept.chain(present(all)), now)
    }

    /// Applies `changes` to the content of the file.
    ///
    /// # Errors
    /// As `begin`, and if the old file cannot be read.
    pub(super) fn update(&self, changes: &Changes, now: SystemTime) -> io::Result<()> {
        let old = self.read()?.map(|saved| saved.objects).unwrap_or_default();
        let kept = old.iter().map(|(name, text)| (&**name, &**text));
        let kept = kept.filter(|(name, _)| !changes.contains_key(*name));
        self.write_objects(kept.chain(present(changes)), now)
    }

    fn write_objects<'a>(
        &self,
        objects: impl Iterator<Item = (&'a str, &'a str)>,
        now: SystemTime,
    ) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        remove_stale_parts(directory, now)?;
        let part = Part::next_to(&self.path);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part.0)?;
        let mut out = Writer::new(BufWriter::new(file));
        let saved = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        out.line(&Head {
            format: FORMAT.to_owned(),
            origin: self.origin.clone(),
            saved,
        })?;
        for (name, text) in objects {
            out.line(&Object {
                name: name.to_owned(),
                text: text.to_owned(),
            })?;
        }
        let hash = out.hash();
        out.line(&End { hash })?;
        let file = out
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&part.0, &self.path)?;
        File::open(directory)?.sync_all()
    }
}

/// Path of a file that is being written. The file is removed on drop, unless it was renamed.
struct Part(PathBuf);

impl Part {
    /// Returns a unique path next to `path`. Process IDs are not unique across containers.
    fn next_to(path: &Path) -> Self {
        let random = RandomState::new().build_hasher().finish();
        Part(path.with_extension(format!("{random:016x}.{PART}")))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // renamed, most of the time
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes partial files of processes that ended while writing.
fn remove_stale_parts(directory: &Path, now: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != PART) {
            continue;
        }
        // another process may have renamed or removed it meanwhile
        let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else {
            continue;
        };
        if now
            .duration_since(modified)
            .is_ok_and(|age| age > PART_AGE_MAX)
        {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Returns the objects of `changes` that were not deleted.
fn present(changes: &Changes) -> impl Iterator<Item = (&str, &str)> {
    let all = changes.iter();
    all.filter_map(|(name, text)| Some((&**name, text.as_deref()?)))
}

/// Returns the file name of a server. Characters that are not allowed in file names become `%XX`.
fn file_name(server: &str) -> String {
    let mut name = String::new();
    for byte in server.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                name.push(char::from(byte))
            }
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name.push_str(".state");
    name
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|_| invalid("it is cut or changed"))
}

/// Reader of lines that also hashes them.
struct Lines<R> {
    input: R,
    hasher: XxHash64,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Self {
        Lines {
            input,
            hasher: XxHash64::default(),
        }
    }

    fn next(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line)?;
        self.hasher.write(&line);
        Ok(line)
    }

    /// Returns the hash of all lines read so far.
    fn hash(&self) -> String {
        format!("{:016x}", self.hasher.finish())
    }
}

/// Writer of lines that also hashes them.
struct Writer {
    out: BufWriter<File>,
    hasher: XxHash64,
    length: u64,
}

impl Writer {
    fn new(out: BufWriter<File>) -> Self {
        Writer {
            out,
            hasher: XxHash64::default(),
            length: 0,
        }
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.length += line.len() as u64;
        if self.length > STATE_BYTES_MAX {
            return Err(invalid("it would be longer than 1 GiB"));
        }
        self.hasher.write(&line);
        self.out.write_all(&line)
    }

    fn hash(&self) -> String {
        format!("{:016x}", self.hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(all: &[(&str, Option<&str>)]) -> Changes {
        let all = all.iter();
        all.map(|(name, text)| (Arc::from(*name), text.map(str::to_owned)))
            .collect()
    }

    fn objects(file: &StateFile) -> Vec<(String, String)> {
        file.read().unwrap().unwrap().objects
    }

    #[test]
    fn changes_are_added_to_what_is_saved() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::new(
            directory.path(),
            "kubernetes://a/b",
            "kubernetes://a/b".to_owned(),
        );
        assert_eq!(
            file.path().file_name().unwrap(),
            "kubernetes%3A%2F%2Fa%2Fb.state"
        );
        assert_eq!(file.read().unwrap(), None);
        let at = UNIX_EPOCH + Duration::from_secs(7);
        file.write(&changes(&[("a", Some("1\n")), ("b", Some("2"))]), at)
            .unwrap();
        assert_eq!(file.read().unwrap().unwrap().at, at);
        file.update(&changes(&[("a", None), ("c", Some("3"))]), at)
            .unwrap();
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(objects(&file), [pair("b", "2"), pair("c", "3")]);
        file.write(&changes(&[("d", Some("4"))]), at).unwrap();
        assert_eq!(objects(&file), [pair("d", "4")]);
    }

    #[test]
    fn torn_or_changed_file_is_refused_and_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::new(
            directory.path(),
            "kubernetes://",
            "kubernetes://".to_owned(),
        );
        let one = changes(&[("a", Some("text of a")), ("b", Some("text of b"))]);
        file.write(&one, UNIX_EPOCH).unwrap();
        let good = fs::read(file.path()).unwrap();
        for length in 0..good.len() - 1 {
            fs::write(file.path(), &good[..length]).unwrap();
            assert!(file.read().is_err(), "cut after {length} bytes");
        }
        let position = good
            .windows(9)
            .position(|part| part == b"text of b")
            .unwrap();
        let mut changed = good.clone();
        changed[position] = b'T';
        fs::write(file.path(), &changed).unwrap();
        assert!(file.read().is_err());
        assert!(file.update(&one, UNIX_EPOCH).is_err(), "the rest is lost");
        file.write(&one, UNIX_EPOCH).unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), good);
    }

    #[test]
    fn file_of_another_server_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::new(
            directory.path(),
            "kubernetes://a",
            "kubernetes://a".to_owned(),
        );
        file.write(&changes(&[("a", Some("1"))]), UNIX_EPOCH)
            .unwrap();
        let other = StateFile::new(
            directory.path(),
            "kubernetes://b",
            "kubernetes://b".to_owned(),
        );
        fs::copy(file.path(), other.path()).unwrap();
        assert!(other.read().is_err());
    }

    #[test]
    fn file_that_another_process_writes_is_kept_until_it_is_stale() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateFile::new(directory.path(), "a", "a".to_owned());
        let path = |name: &str| directory.path().join(name);
        let now = SystemTime::now();
        for (name, age) in [
            ("a.part", 0),
            ("a.0123456789abcdef.part", 599),
            ("b.part", 601),
        ] {
            fs::write(path(name), "of another process").unwrap();
            let file = OpenOptions::new().write(true).open(path(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
        }
        state.write(&changes(&[("a", Some("1"))]), now).unwrap();
        let listed = fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<_> = listed.map(|entry| entry.unwrap().file_name()).collect();
        names.sort_unstable();
        assert_eq!(names, ["a.0123456789abcdef.part", "a.part", "a.state"]);
        let text = fs::read_to_string(path("a.part")).unwrap();
        assert_eq!(text, "of another process");
        assert_eq!(objects(&state), [("a".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn failed_write_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateFile::new(directory.path(), "a", "a".to_owned());
        // a directory of that name cannot be replaced by a file
        fs::create_dir(state.path()).unwrap();
        assert!(state.write(&Changes::new(), SystemTime::now()).is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_its_user_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("a/state");
        prepare(&state).unwrap();
        let file = StateFile::new(&state, "kubernetes://", "kubernetes://".to_owned());
        file.write(&Changes::new(), UNIX_EPOCH).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(file.path())), (0o700, 0o600));
    }
}
