//! Saves the state of servers (`--state`): immediately, at most once per second, and on threads that may block.

use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

use super::report::Change;
use crate::source::state::{Changes, StateFile};

/// Shortest time between two writes. Changes in between are saved together.
const INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a write, as a multiple of its duration. It limits the share of time spent writing.
const REST: u32 = 20;

/// Pause after a failed write.
const FAILED_PAUSE: Duration = Duration::from_secs(10);

/// State to be saved.
#[derive(Debug)]
pub(in crate::source) struct Saving {
    servers: Mutex<Vec<Unsaved>>,
    is_due: Notify,
    /// Lock held while files are written. Concurrent writers would corrupt a file.
    writing: Mutex<()>,
}

/// Unsaved state of one server.
#[derive(Debug)]
struct Unsaved {
    file: StateFile,
    /// Changes that were reported, but not handed on yet. They may still be rejected.
    told: Changes,
    changes: Changes,
    /// Documents whose newest text is rejected. The file keeps their last good text.
    rejected: BTreeSet<Arc<str>>,
    /// Whether all of the server's objects have been reported.
    is_told: bool,
    /// Whether all of the server's objects have been handed on.
    is_complete: bool,
    /// Whether this process has written the state before `changes` to the file. A file of an earlier process does not
    /// count.
    is_begun: bool,
}

impl Saving {
    /// Creates the state to be saved, with one file per server.
    pub(in crate::source) fn new(files: Vec<StateFile>) -> Saving {
        let servers = files.into_iter().map(|file| Unsaved {
            file,
            told: Changes::new(),
            changes: Changes::new(),
            rejected: BTreeSet::new(),
            is_told: false,
            is_complete: false,
            is_begun: false,
        });
        Saving {
            servers: Mutex::new(servers.collect()),
            is_due: Notify::new(),
            writing: Mutex::default(),
        }
    }

    /// Records changes of a server.
    pub(in crate::source) fn note(&self, number: usize, changes: &[Change]) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get_mut(number) {
            let changes = changes.iter();
            server.told.extend(changes.map(|(name, object)| {
                let text = object.as_ref().map(|object| object.text.clone());
                (Arc::clone(name), text)
            }));
        }
    }

    /// Records that all objects of a server have been reported.
    pub(in crate::source) fn complete(&self, number: usize) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get_mut(number) {
            server.is_told = true;
        }
    }

    /// Confirms that the recorded changes were handed on, and that the documents `rejected` were rejected.
    pub(super) fn confirm(&self, rejected: &BTreeSet<Arc<str>>) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        for server in &mut *servers {
            let told = mem::take(&mut server.told);
            let is_new = server.is_told && !mem::replace(&mut server.is_complete, server.is_told);
            let good = told
                .into_iter()
                .filter(|(name, _)| !rejected.contains(name));
            let before = server.changes.len();
            server.changes.extend(good);
            // A text that was accepted before stays in `changes`: the rejection is about a later one.
            server.rejected.clone_from(rejected);
            if is_new || (server.is_complete && server.changes.len() > before) {
                self.is_due.notify_one();
            }
        }
    }

    /// Saves recorded changes until this future is dropped.
    pub(in crate::source) async fn run(self: Arc<Self>) {
        let mut has_failed = false;
        loop {
            self.is_due.notified().await;
            let started = Instant::now();
            let saving = Arc::clone(&self);
            let saved = tokio::task::spawn_blocking(move || saving.save(SystemTime::now())).await;
            let Err(problem) = saved.unwrap_or_else(|panic| Err(panic.to_string())) else {
                has_failed = false;
                let rest = started.elapsed().saturating_mul(REST);
                tokio::time::sleep(rest.max(INTERVAL)).await;
                continue;
            };
            if !mem::replace(&mut has_failed, true) {
                tracing::warn!(
                    problem,
                    "--state: what the API server says is not saved; tried again every 10 s"
                );
            }
            self.is_due.notify_one();
            tokio::time::sleep(FAILED_PAUSE).await;
        }
    }

    /// Saves pending changes before the process ends.
    pub(in crate::source) fn finish(&self) {
        if let Err(problem) = self.save(SystemTime::now()) {
            tracing::warn!(problem, "--state: the last changes are not saved");
        }
    }

    /// Writes the files of servers with changes.
    ///
    /// # Errors
    /// The last file that cannot be written, and the reason. The next call retries it.
    fn save(&self, now: SystemTime) -> Result<(), String> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = Ok(());
        for number in 0.. {
            let (file, changes, rejected) = {
                let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(server) = servers.get_mut(number) else {
                    break;
                };
                if !server.is_complete || (server.is_begun && server.changes.is_empty()) {
                    continue;
                }
                let changes = mem::take(&mut server.changes);
                let rejected = server.rejected.clone();
                let rejected = (!server.is_begun).then_some(rejected);
                (server.file.clone(), changes, rejected)
            };
            let written = match rejected {
                None => file.update(&changes, now),
                Some(rejected) => file.begin(&changes, &rejected, now),
            };
            if let Err(error) = &written {
                result = Err(format!("{}: {error}", file.path().display()));
            }
            self.written(number, changes, &written);
        }
        result
    }

    /// Puts back changes that could not be written, unless newer ones replaced them.
    fn written(&self, number: usize, changes: Changes, written: &io::Result<()>) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = &mut servers[number];
        if written.is_ok() {
            server.is_begun = true;
            return;
        }
        for (name, text) in changes {
            server.changes.entry(name).or_insert(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn set(name: &str, text: &str) -> Change {
        (name.into(), Some(text.to_owned().into()))
    }

    fn saved(file: &StateFile) -> Vec<String> {
        let saved = file.read().unwrap();
        let objects = saved.into_iter().flat_map(|saved| saved.objects);
        objects
            .map(|(name, text)| format!("{name}={text}"))
            .collect()
    }

    #[test]
    fn file_has_what_a_server_says_and_nothing_of_an_earlier_process() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::new(directory.path(), "kubernetes://", String::new());
        let old = Changes::from([(Arc::from("old"), Some("0".to_owned()))]);
        file.write(&old, UNIX_EPOCH).unwrap();
        let saving = Saving::new(vec![file.clone()]);
        let none = BTreeSet::new();
        saving.note(0, &[set("a", "1")]);
        saving.confirm(&none);
        saving.save(UNIX_EPOCH).unwrap();
        assert_eq!(saved(&file), ["old=0"], "it has not told everything yet");
        saving.note(0, &[set("b", "1")]);
        saving.complete(0);
        saving.save(UNIX_EPOCH).unwrap();
        assert_eq!(saved(&file), ["old=0"], "it is not confirmed yet");
        saving.confirm(&none);
        saving.save(UNIX_EPOCH).unwrap();
        assert_eq!(saved(&file), ["a=1", "b=1"]);
        saving.note(0, &[("a".into(), None), set("b", "2")]);
        saving.confirm(&none);
        saving.save(UNIX_EPOCH).unwrap();
        assert_eq!(saved(&file), ["b=2"]);
    }

    #[test]
    fn changes_that_cannot_be_written_are_kept_unless_newer_ones_come() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("state");
        let file = StateFile::new(&inside, "kubernetes://", String::new());
        let saving = Saving::new(vec![file.clone()]);
        saving.note(0, &[set("a", "1"), set("b", "1")]);
        saving.complete(0);
        saving.confirm(&BTreeSet::new());
        let problem = saving.save(UNIX_EPOCH).unwrap_err();
        assert!(problem.contains("kubernetes%3A"), "{problem}");
        saving.note(0, &[set("b", "2")]);
        saving.confirm(&BTreeSet::new());
        std::fs::create_dir(&inside).unwrap();
        saving.save(UNIX_EPOCH).unwrap();
        assert_eq!(saved(&file), ["a=1", "b=2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn change_is_saved_at_once_and_the_next_one_after_an_interval() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::new(directory.path(), "kubernetes://", String::new());
        let saving = Arc::new(Saving::new(vec![file.clone()]));
        let none = BTreeSet::new();
        tokio::spawn(Arc::clone(&saving).run());
        let until_saved = async |expected: &[&str]| {
            let end = Instant::now() + Duration::from_secs(20);
            while saved(&file) != expected {
                assert!(Instant::now() < end, "{:?}", saved(&file));
                // the clock of the timers stands still meanwhile
                tokio::task::yield_now().await;
            }
        };
        saving.note(0, &[set("a", "1")]);
        saving.complete(0);
        saving.confirm(&none);
        until_saved(&["a=1"]).await;
        saving.note(0, &[set("a", "2")]);
        saving.confirm(&none);
        tokio::time::sleep(INTERVAL / 2).await;
        assert_eq!(saved(&file), ["a=1"], "at most once in an interval");
        // How long it rests depends on how long the first save took.
        while saved(&file) == ["a=1"] {
            tokio::time::sleep(INTERVAL).await;
            std::thread::yield_now();
        }
        until_saved(&["a=2"]).await;

        saving.note(0, &[set("a", "3")]);
        saving.confirm(&none);
        saving.finish();
        assert_eq!(saved(&file), ["a=3"], "at the end it does not wait");
    }

    #[test]
    fn last_good_text_of_a_rejected_object_is_saved() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::new(directory.path(), "kubernetes://", String::new());
        let saving = Saving::new(vec![file.clone()]);
        let (none, a) = (BTreeSet::new(), BTreeSet::from([Arc::from("a")]));
        saving.note(0, &[set("a", "good"), set("b", "1")]);
        saving.complete(0);
        saving.confirm(&none);
        saving.save(UNIX_EPOCH).unwrap();
        saving.note(0, &[set("a", "bad"), set("b", "2")]);
        saving.confirm(&a);
        saving.save(UNIX_EPOCH).unwrap();
        assert_eq!(saved(&file), ["a=good", "b=2"]);

        // The next process is told the rejected text only, and has no other.
        let saving = Saving::new(vec![file.clone()]);
        saving.note(0, &[set("a", "bad"), set("b", "3")]);
        saving.complete(0);
        saving.confirm(&a);
        saving.save(UNIX_EPOCH).unwrap();
        assert_eq!(saved(&file), ["a=good", "b=3"]);
        saving.note(0, &[("a".into(), None)]);
        saving.confirm(&none);
        saving.save(UNIX_EPOCH).unwrap();
        assert_eq!(saved(&file), ["b=3"], "it was deleted");
    }
}
