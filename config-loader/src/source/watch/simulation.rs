//! Random changes of a real directory at random speed: files written, copied with their times, moved and removed, hard
//! and symbolic links, directories that are created, moved and removed, and ConfigMaps that are swapped.
//!
//! After every burst, the last update equals a fresh read of the directory. A failure names its seed: `SEED=n cargo
//! test -p config-loader --lib watch::simulation`. It may take a few attempts, because file system timing is random;
//! `SEEDS=n` runs more seeds.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::time::SystemTime;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::source::look::FileEvent;

const SEEDS: u64 = 32;
/// Number of bursts, and the largest number of changes in each.
const BURSTS: usize = 12;
const BURST_MAX: usize = 8;

/// Number of seeds that run concurrently. They mostly wait.
const PLAYED_AT_ONCE: u64 = 8;

/// Longest time until a burst is found.
const FOUND_MAX: Duration = Duration::from_secs(30);

/// Directories; the first ones are the roots. Some are named like files.
const DIRECTORIES: [&str; 7] = [
    "mesh",
    "mesh/sub",
    "mesh/v1.2",
    "mesh/d.yaml",
    "mesh/sub/deep",
    "aside",
    "aside/v1.2",
];

const FILES: [&str; 5] = ["a.yaml", "b.yaml", "c.json", "d.yaml", ".tmp"];

/// Contents of files by name.
type State = BTreeMap<Arc<str>, String>;

struct World {
    rng: SmallRng,
    root: tempfile::TempDir,
    written: u32,
    /// Whether only files of two directories change, so that no event causes a full scan.
    is_plain: bool,
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            rng: SmallRng::seed_from_u64(seed),
            root: tempfile::tempdir().expect("a directory"),
            written: 0,
            is_plain: false,
        };
        for directory in ["mesh/sub", "aside"] {
            fs::create_dir_all(world.root.path().join(directory)).expect("a directory");
        }
        for _ in 0..4 {
            // a file in a directory that is not there fails, as some of the steps do
            let _ = world.write();
        }
        world
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.rng.random_range(0..of.len())]
    }

    fn directory(&mut self) -> PathBuf {
        let directory = match self.is_plain {
            true => self.one(&DIRECTORIES[..2]),
            false => self.one(&DIRECTORIES),
        };
        self.root.path().join(directory)
    }

    fn file(&mut self) -> PathBuf {
        let file = match self.is_plain {
            true => self.one(&FILES[..3]),
            false => self.one(&FILES),
        };
        self.directory().join(file)
    }

    fn path(&mut self) -> PathBuf {
        match !self.is_plain && self.rng.random_ratio(1, 4) {
            // the paths that are watched stay, and what is read stays below them
            true => self
                .root
                .path()
                .join(DIRECTORIES[self.rng.random_range(1..5)]),
            false => self.file(),
        }
    }

    /// Returns a text that no file had before, of the same length as all others.
    fn text(&mut self) -> String {
        self.written += 1;
        format!("{:06}", self.written)
    }

    fn write(&mut self) -> io::Result<()> {
        let (path, text) = (self.file(), self.text());
        fs::write(path, text)
    }

    /// Writes a file with an old modification time, as `cp -p`, `rsync -t` and `tar` do.
    fn write_with_an_old_time(&mut self) -> io::Result<()> {
        let (path, text) = (self.file(), self.text());
        fs::write(&path, text)?;
        let file = fs::File::options().append(true).open(&path)?;
        file.set_modified(SystemTime::UNIX_EPOCH)
    }

    fn replace(&mut self) -> io::Result<()> {
        let (path, text) = (self.file(), self.text());
        let beside = self.file();
        fs::write(&beside, text)?;
        fs::rename(beside, path)
    }

    fn link(&mut self) -> io::Result<()> {
        let (target, path, between) = (self.path(), self.path(), self.file());
        match self.rng.random_range(0..3) {
            0 => fs::hard_link(target, path),
            1 => symlink(target, path),
            _ => {
                symlink(target, &between)?;
                fs::rename(between, path)
            }
        }
    }

    fn remove(&mut self) -> io::Result<()> {
        let path = self.path();
        match path.is_dir() && !path.is_symlink() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        }
    }

    /// Swaps the version of a ConfigMap, as the kubelet does.
    fn swap(&mut self) -> io::Result<()> {
        let (directory, text) = (self.directory(), self.text());
        let version = format!("..v{text}");
        fs::create_dir(directory.join(&version))?;
        for file in ["a.yaml", "b.yaml"] {
            if self.rng.random_ratio(3, 4) {
                fs::write(directory.join(&version).join(file), &text)?;
            }
        }
        let before = fs::read_link(directory.join("..data"));
        symlink(&version, directory.join("..data_tmp"))?;
        fs::rename(directory.join("..data_tmp"), directory.join("..data"))?;
        for file in ["a.yaml", "b.yaml"] {
            let _ = symlink(Path::new("..data").join(file), directory.join(file));
        }
        fs::remove_dir_all(directory.join(before?))
    }

    /// Removes everything and writes another release.
    fn release(&mut self) -> io::Result<()> {
        let mesh = self.root.path().join("mesh");
        for entry in fs::read_dir(&mesh)? {
            let path = entry?.path();
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        for _ in 0..3 {
            let text = self.text();
            let file = mesh.join(self.one(&FILES));
            fs::write(file, text)?;
        }
        fs::create_dir(mesh.join("sub"))
    }

    /// Makes one random change. An impossible one, such as in a missing directory, changes nothing.
    fn step(&mut self) {
        let all = if self.is_plain { 14 } else { 20 };
        let _ = match self.rng.random_range(0..all) {
            0..5 => self.write(),
            5..7 => self.write_with_an_old_time(),
            7..9 => self.replace(),
            9..11 => fs::rename(self.path(), self.path()),
            11..14 => self.remove(),
            14..16 => self.link(),
            16 => fs::create_dir_all(self.path()),
            17..19 => self.swap(),
            _ => self.release(),
        };
    }

    /// Returns the pause until the next change. It is mostly short, which makes a burst.
    fn pause(&mut self) -> Duration {
        let longest = [0, 0, 3, 30, 200][self.rng.random_range(0..5)];
        Duration::from_millis(self.rng.random_range(0..=longest))
    }
}

fn absorb(state: &mut State, look: Look) {
    for (file, event) in look.events {
        match event {
            FileEvent::Bytes(bytes) => {
                state.insert(file, String::from_utf8_lossy(&bytes).into_owned());
            }
            // A file that became unreadable keeps its last good version, which a fresh start does not have.
            FileEvent::Unreadable(_) => {
                state.insert(file, String::new());
            }
            FileEvent::Gone | FileEvent::Object(_) | FileEvent::TooLarge(_) => {
                _ = state.remove(&file)
            }
        }
    }
}

fn readable(state: &State) -> BTreeMap<&str, &str> {
    let texts = state.iter().map(|(file, text)| (&**file, &**text));
    texts.filter(|(_, text)| !text.is_empty()).collect()
}

fn play(seed: u64) {
    let mut world = World::new(seed);
    let roots = [world.root.path().join("mesh")];
    let mut source = FileSource::new(&roots, 1_000);
    let mut state = State::new();
    absorb(&mut state, source.look());
    let (sender, looks) = mpsc::channel();
    let settings = WatchSettings {
        // A link to nothing is followed by this only, once its target comes.
        poll: Duration::from_millis(300),
        ..WatchSettings::default()
    };
    let watch = spawn(source, settings, move |look| {
        let _ = sender.send(look);
    });
    for _ in 0..BURSTS {
        world.is_plain = world.rng.random();
        for _ in 0..world.rng.random_range(1..=BURST_MAX) {
            world.step();
            let next = Instant::now() + world.pause();
            let left = || next.saturating_duration_since(Instant::now());
            while let Ok(look) = looks.recv_timeout(left()) {
                absorb(&mut state, look);
            }
        }
        let mut fresh = State::new();
        absorb(&mut fresh, FileSource::new(&roots, 1_000).look());
        let end = Instant::now() + FOUND_MAX;
        while readable(&state) != readable(&fresh) {
            match looks.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(look) => absorb(&mut state, look),
                Err(_) => assert_eq!(readable(&state), readable(&fresh), "SEED={seed}"),
            }
        }
    }
    drop(watch);
}

#[test]
fn followed_files_end_as_a_fresh_start_reads_them() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse().unwrap());
    if let Some(seed) = number("SEED") {
        return play(seed);
    }
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    thread::scope(|scope| {
        for first in 0..PLAYED_AT_ONCE {
            scope.spawn(move || {
                let own = (first..seeds).step_by(PLAYED_AT_ONCE as usize);
                own.for_each(play);
            });
        }
    });
}
