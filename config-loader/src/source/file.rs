//! Files and directories: changes since the last scan.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use super::look::{FileEvent, Look};
use super::scan::{FILES_MAX, NO_FILE, Name, Stamp, describe, name_of, scan};
use crate::diagnostic::codes::common::SRC002;
use crate::diagnostic::{Diagnostic, Severity};

/// Age below which a file's time stamp is not trusted. File system clocks tick every few milliseconds, so a second
/// change may leave the time stamp as it was.
const TICK: Duration = Duration::from_millis(50);

/// Time during which a file that became empty counts as being rewritten: a shell empties the file that a command then
/// writes.
const EMPTY_GRACE: Duration = Duration::from_secs(1);

/// Files below a set of root paths.
#[derive(Debug)]
pub(crate) struct FileSource {
    roots: Vec<PathBuf>,
    bytes_max: u64,
    known: BTreeMap<PathBuf, KnownFile>,
    names: HashMap<PathBuf, Name>,
    /// Name prefix of new files in a directory, by the directory's path without symbolic links.
    walked: HashMap<PathBuf, PathBuf>,
    directories: BTreeMap<PathBuf, (u64, u64)>,
    /// Symbolic links to directories, by their own paths.
    directory_links: HashSet<PathBuf>,
    problems: Vec<Diagnostic>,
    /// Whether files that changed a moment ago are left for a later scan.
    patient: bool,
}

#[derive(Debug)]
struct KnownFile {
    /// `None` if the last read of the file failed.
    stamp: Option<Stamp>,
    /// Whether the stamp is not trusted: the file was read too soon after its last change, or must be read again.
    is_uncertain: bool,
    /// Whether other paths may lead to the same file.
    is_linked: bool,
}

/// State of one path, found without walking directories.
enum Seen {
    /// A file that may have changed. Without a stamp, its metadata cannot be read.
    File(Option<Stamp>),
    /// No file at this path, now or before.
    Nothing,
    /// A state that only a full walk can determine.
    Unclear,
}

impl FileSource {
    /// Creates a source for the files below `roots`. Files larger than `bytes_max` bytes are not read.
    pub(crate) fn new(roots: &[PathBuf], bytes_max: u64) -> FileSource {
        FileSource {
            roots: roots.to_vec(),
            bytes_max,
            known: BTreeMap::new(),
            names: HashMap::new(),
            walked: HashMap::new(),
            directories: BTreeMap::new(),
            directory_links: HashSet::new(),
            problems: Vec::new(),
            patient: false,
        }
    }

    /// Returns the directories to watch, by device and inode. Their paths are absolute and without symbolic links.
    pub(crate) fn directories(&self) -> &BTreeMap<PathBuf, (u64, u64)> {
        &self.directories
    }

    /// Returns the known file that an event at the path `event` is about.
    pub(super) fn named(&self, event: &Path) -> Option<&Name> {
        self.names.get(event)
    }

    /// Whether the path `event` is a directory now, or was one that was walked or linked to.
    pub(super) fn is_directory(&self, event: &Path) -> bool {
        self.directories.contains_key(event)
            || self.directory_links.contains(event)
            || event.is_dir()
    }

    /// Makes the next walk read every file, whatever its stamp.
    pub(super) fn distrust_stamps(&mut self) {
        for known in self.known.values_mut() {
            known.is_uncertain = true;
        }
    }

    /// Returns the name of a new file from the path of an event in a walked directory.
    pub(super) fn new_name(&self, event: &Path) -> Option<PathBuf> {
        let directory = self.walked.get(event.parent()?)?;
        Some(directory.join(event.file_name()?))
    }

    /// Walks all roots without an event, but leaves recently changed files for a later scan: events that tell whether
    /// they are still being written may be on their way.
    pub(crate) fn look_unprompted(&mut self) -> Look {
        self.patient = true;
        let look = self.look();
        self.patient = false;
        look
    }

    /// Walks all roots.
    pub(crate) fn look(&mut self) -> Look {
        let scan = scan(&self.roots);
        let mut look = Look::default();
        let lost: Vec<PathBuf> = self
            .known
            .keys()
            .filter(|path| !scan.files.contains_key(*path))
            .cloned()
            .collect();
        for path in lost {
            // Files below a path that cannot be walked may still be there.
            let failure = |above| scan.failed.get(above).or_else(|| scan.odd.get(above));
            match path.ancestors().find_map(failure) {
                Some(failure) => self.fail(&path, failure.clone(), &mut look),
                None => self.note(&path, None, FileEvent::Gone, &mut look),
            }
        }
        for (path, stamp) in &scan.files {
            self.check(path, Some(*stamp), &mut look);
        }
        // A file that is gone for now, or cannot be read, may be written again.
        self.names.retain(|_, name| {
            self.known.contains_key(&name.path) && !scan.files.contains_key(&name.path)
        });
        self.names.extend(scan.names);
        self.walked = scan.walked;
        self.directories = scan.directories;
        self.directory_links = scan.directory_links;
        self.problems = scan.failed.into_values().chain(scan.empty).collect();
        look.problems.clone_from(&self.problems);
        look
    }

    /// Reads some files. Files that changed a moment ago are left for a later scan.
    pub(crate) fn look_again_at(&mut self, paths: &BTreeSet<PathBuf>) -> Look {
        self.patient = true;
        let look = self.look_at(paths);
        self.patient = false;
        look
    }

    /// Reads some files: known ones, and new ones in walked directories. Falls back to a full walk if that cannot
    /// determine the changes.
    pub(crate) fn look_at(&mut self, paths: &BTreeSet<PathBuf>) -> Look {
        // A walk replaces this look: no stamp may be noted before it is clear that none is needed.
        let mut stamps = Vec::with_capacity(paths.len());
        for path in paths {
            match self.see(path) {
                Seen::File(stamp) => stamps.push((path, stamp)),
                Seen::Nothing => {}
                Seen::Unclear => return self.look(),
            }
        }
        let mut look = Look {
            problems: self.problems.clone(),
            ..Look::default()
        };
        for (path, stamp) in stamps {
            self.check(path, stamp, &mut look);
        }
        look
    }

    fn see(&mut self, path: &Path) -> Seen {
        if !self.known.contains_key(path) {
            match self.is_new_file(path) {
                Some(true) => {}
                Some(false) => return Seen::Nothing,
                None => return Seen::Unclear,
            }
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                let stamp = Stamp::new(&metadata);
                match self.may_move_names(path, &stamp) {
                    true => Seen::Unclear,
                    false => Seen::File(Some(stamp)),
                }
            }
            Ok(_) => Seen::Unclear,
            Err(error) if error.kind() == ErrorKind::NotFound => Seen::Unclear,
            Err(_) => Seen::File(None),
        }
    }

    /// Whether a known path now leads to another file, and either file has or had more than one path. The name of a
    /// file may then change to another of its paths.
    fn may_move_names(&self, path: &Path, stamp: &Stamp) -> bool {
        let Some(known) = self.known.get(path) else {
            return false;
        };
        let is_same = known.stamp.is_some_and(|before| before.is_same_file(stamp));
        !is_same && (known.is_linked || is_linked(path, stamp))
    }

    /// Whether a new path is a regular file, which is then known by its events. Returns `None` if only a walk can tell:
    /// for a link, a directory, a file with several names, a file beyond the limit, or the first file of a directory.
    fn is_new_file(&mut self, path: &Path) -> Option<bool> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(false),
            Err(_) => return None,
        };
        let is_plain = metadata.is_file() && metadata.nlink() == 1;
        if !is_plain || self.known.len() >= FILES_MAX || !self.problems.is_empty() {
            return None;
        }
        let real = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
        let name = Name {
            path: path.to_owned(),
            is_target: false,
        };
        self.names.insert(real, name);
        Some(true)
    }

    /// Reads a file if its stamp changed.
    fn check(&mut self, path: &Path, stamp: Option<Stamp>, look: &mut Look) {
        let now_ns = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i128);
        let known = self.known.get(path);
        let is_known = |known: &KnownFile| stamp.is_some() && known.stamp == stamp;
        if known.is_some_and(|known| is_known(known) && !known.is_uncertain) {
            return;
        }
        // Writers can set the first time back, such as to that of the file they copy.
        let times = stamp.map_or([0; 2], |stamp| [stamp.modified_ns, stamp.changed_ns]);
        let younger = |limit: Duration| {
            let limit = 0..limit.as_nanos() as i128;
            times.iter().any(|time| limit.contains(&(now_ns - time)))
        };
        let recent = younger(TICK);
        if self.patient && recent {
            look.unsettled.insert(path.to_owned());
            return;
        }
        let emptied =
            known.is_some() && stamp.is_some_and(|stamp| stamp.size == 0) && younger(EMPTY_GRACE);
        if emptied {
            look.unsettled.insert(path.to_owned());
            return;
        }
        let known = KnownFile {
            stamp,
            is_uncertain: recent,
            is_linked: stamp.is_some_and(|stamp| is_linked(path, &stamp)),
        };
        let size = stamp.map_or(0, |stamp| stamp.size);
        if size > self.bytes_max {
            self.note(path, Some(known), FileEvent::TooLarge(size), look);
            if recent {
                look.unsettled.insert(path.to_owned());
            }
            return;
        }
        match self.read(path) {
            Ok(bytes) => {
                self.note(path, Some(known), FileEvent::Bytes(bytes), look);
                if recent {
                    look.unsettled.insert(path.to_owned());
                }
            }
            // Gone since we looked: the next look finds it gone.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                look.unsettled.insert(path.to_owned());
            }
            Err(error) => {
                let message = format!("cannot read this: {}", describe(&error));
                let failure =
                    Diagnostic::about_file(Severity::Error, SRC002, name_of(path), message);
                self.fail(path, failure, look);
            }
        }
    }

    fn fail(&mut self, path: &Path, failure: Diagnostic, look: &mut Look) {
        let known = KnownFile {
            stamp: None,
            is_uncertain: false,
            is_linked: false,
        };
        let event = FileEvent::Unreadable(Box::new(failure));
        self.note(path, Some(known), event, look);
    }

    /// Stores the state of a file together with its event. No other function stores a stamp: a stamp without its event
    /// hides the change for good.
    fn note(&mut self, path: &Path, known: Option<KnownFile>, event: FileEvent, look: &mut Look) {
        match known {
            Some(known) => _ = self.known.insert(path.to_owned(), known),
            None => _ = self.known.remove(path),
        }
        look.events.push((name_of(path), event));
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        // A pipe may have come to stand here since the path was looked at; opening one would wait for its writer.
        let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
        let file = fs::File::options()
            .read(true)
            .custom_flags(without_waiting)
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other(NO_FILE));
        }
        let mut bytes = Vec::new();
        file.take(self.bytes_max + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Whether several paths may lead to the file at `path`.
fn is_linked(path: &Path, stamp: &Stamp) -> bool {
    stamp.links > 1 || path.is_symlink()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periodic_scan_skips_files_changed_a_moment_ago() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.yaml");
        let write = |modified: SystemTime| {
            fs::write(&path, "text").expect("a file");
            let file = fs::File::options().append(true).open(&path);
            let set = file.and_then(|file| file.set_modified(modified));
            set.expect("a time can be set");
        };
        // Its time of change cannot be set back, and counts as well.
        for age in [Duration::ZERO, Duration::from_secs(60)] {
            loop {
                let mut source = FileSource::new(&[directory.path().to_owned()], 1_000);
                let now = SystemTime::now();
                write(now - age);
                let unprompted = source.look_unprompted();
                let took = now.elapsed().expect("a clock that goes on");
                // on a busy machine the moment may be over
                if took < TICK {
                    assert!(unprompted.events.is_empty());
                    assert_eq!(unprompted.unsettled, BTreeSet::from([path.clone()]));
                    assert!(!source.look().events.is_empty());
                    break;
                }
            }
        }
        let mut source = FileSource::new(&[directory.path().to_owned()], 1_000);
        while source.look_unprompted().events.is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn file_that_became_empty_counts_as_being_rewritten_for_a_second() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.yaml");
        fs::write(&path, "text").expect("a file");
        let mut source = FileSource::new(&[directory.path().to_owned()], 1_000);
        assert_eq!(changed(&source.look()), ["a.yaml"]);
        let emptied = SystemTime::now();
        fs::write(&path, "").expect("a file");
        let look = source.look();
        // on a busy machine the time may be over
        if emptied.elapsed().is_ok_and(|age| age < EMPTY_GRACE) {
            assert!(look.events.is_empty());
            assert_eq!(look.unsettled, BTreeSet::from([path.clone()]));
        }
        fs::write(&path, "new").expect("a file");
        assert_eq!(changed(&source.look()), ["a.yaml"]);
        let emptied = SystemTime::now();
        fs::write(&path, "").expect("a file");
        // file systems round times down
        while source.look().events.is_empty() {
            std::thread::yield_now();
        }
        let waited = emptied.elapsed().expect("a clock that goes on");
        assert!(waited + TICK > EMPTY_GRACE, "{waited:?}");
        // a new file may be empty
        fs::write(directory.path().join("b.yaml"), "").expect("a file");
        assert_eq!(changed(&source.look()), ["b.yaml"]);
    }

    /// Returns the names of the files that changed in a scan.
    fn changed(look: &Look) -> Vec<String> {
        let names = look.events.iter().map(|(name, _)| name.rsplit('/').next());
        names
            .map(|name| name.unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn change_is_found_although_another_file_vanished() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        // Once the clock has gone on, the stamp of a file alone tells whether it changed.
        let wait = || {
            let now = SystemTime::now();
            while now.elapsed().is_ok_and(|age| age <= TICK) {
                std::thread::yield_now();
            }
        };
        for name in ["a.yaml", "b.yaml", "c.yaml"] {
            fs::write(at(name), name).expect("a file");
        }
        wait();
        let mut source = FileSource::new(&[directory.path().to_owned()], 1_000);
        assert_eq!(changed(&source.look()), ["a.yaml", "b.yaml", "c.yaml"]);
        fs::write(at("a.yaml"), "new").expect("a file");
        fs::rename(at("c.yaml"), at("b.yaml")).expect("a file");
        wait();
        let paths = ["a.yaml", "b.yaml", "c.yaml"].map(at);
        let mut found = changed(&source.look_at(&BTreeSet::from(paths)));
        found.sort_unstable();
        assert_eq!(found, ["a.yaml", "b.yaml", "c.yaml"]);
        assert_eq!(changed(&source.look()), [""; 0]);
        source.distrust_stamps();
        assert_eq!(changed(&source.look()), ["a.yaml", "b.yaml"]);
    }

    #[test]
    fn new_regular_file_is_read_without_a_directory_walk() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("a.yaml"), "one").expect("a file");
        let mut source = FileSource::new(&[directory.path().to_owned()], 1_000);
        source.look();
        let one = |name: &str| BTreeSet::from([at(name)]);
        // a look at everything would find this one changed, too
        fs::write(at("a.yaml"), "another").expect("a file");
        fs::write(at("b.yaml"), "two").expect("a file");
        assert_eq!(changed(&source.look_at(&one("b.yaml"))), ["b.yaml"]);
        let real = directory.path().canonicalize().expect("a path");
        let known = source.named(&real.join("b.yaml"));
        assert_eq!(known.map(|name| &name.path), Some(&at("b.yaml")));
        assert!(changed(&source.look_at(&one("never.yaml"))).is_empty());

        let mut walks = |name: &str| {
            let found = changed(&source.look_at(&one(name)));
            fs::write(at("a.yaml"), format!("{name} was looked at")).expect("a file");
            found.contains(&"a.yaml".to_owned())
        };
        fs::hard_link(at("b.yaml"), at("c.yaml")).expect("a link");
        assert!(walks("c.yaml"), "it may be known by another name");
        std::os::unix::fs::symlink("a.yaml", at("d.yaml")).expect("a link");
        assert!(walks("d.yaml"), "what it leads to may be known");
        fs::remove_file(at("b.yaml")).expect("a file");
        assert!(walks("b.yaml"), "it may be elsewhere");
        fs::remove_file(at("c.yaml")).expect("a file");
        fs::rename(at("d.yaml"), at("c.yaml")).expect("a link");
        assert!(walks("c.yaml"), "the file it leads to is known already");
    }
}
