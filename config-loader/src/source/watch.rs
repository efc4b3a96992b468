//! Watches the files of a [`FileSource`] from a separate thread.
//!
//! Directories are watched instead of files, because editors and Kubernetes replace files. A kernel event only tells
//! which files to read; the changes are found by reading them. Periodic polling finds changes where the kernel reports
//! none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::debounce::{Debounce, Due, Happened};
use super::file::FileSource;
use super::look::Look;
use super::revision::{FILES, Received, SourceRevision};
use super::scan::{is_resource_file, name_of};
use crate::ReadOptions;
use crate::diagnostic::codes::common::SRC004;
use crate::diagnostic::{Diagnostic, Severity};

/// Delay until a file that was read right after a change is read again.
const SETTLE: Duration = Duration::from_millis(80);

/// Longest time that found changes are held back while more events arrive.
const HELD_MAX: Duration = Duration::from_millis(500);

/// Settings of file watching.
#[derive(Clone, Copy, Debug)]
pub struct WatchSettings {
    /// Quiet period after the last event of a file before it is read. Default: 10 ms. A fifth of it applies to a file
    /// that was moved into place, and is therefore complete.
    ///
    /// Changes of several files that follow each other within 60 ms become one update, after 750 ms at most. A file
    /// whose writer has not closed it is read 500 ms after the last write, and 5 s after the first at the latest.
    pub debounce: Duration,
    /// Polling interval: time between scans of all files without an event. Default: 5 s. After a slow scan, the next
    /// one waits for 100 times its duration, unless a directory cannot be watched.
    pub poll: Duration,
    /// Strictness of validation.
    pub read: ReadOptions,
    /// Whether security policies stay in effect for 60 s after their source has deleted all of them. Default: no.
    pub keeps_policies: bool,
}

impl Default for WatchSettings {
    fn default() -> WatchSettings {
        WatchSettings {
            debounce: Duration::from_millis(10),
            poll: Duration::from_secs(5),
            read: ReadOptions::default(),
            keeps_policies: false,
        }
    }
}

/// Shortest pause before the next poll, as a multiple of the duration of the last one. Polling takes at most 1 % of the
/// time.
const POLL_PARTS: u32 = 100;

/// Longest time that events delay deferred work.
const CATCH_UP_DELAY_MAX: Duration = Duration::from_secs(1);

enum Message {
    Event(notify::Result<Event>),
    Look,
    Stop,
}

/// Handle of the watch thread. Dropping it stops the thread and waits for it.
#[derive(Debug)]
pub(crate) struct Stop {
    sender: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Stop {
    /// Requests an immediate read of all files.
    pub(crate) fn look_now(&self) {
        // A thread that is gone looks at nothing any more.
        let _ = self.sender.send(Message::Look);
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Message")
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // A thread that is gone already needs no message.
        let _ = self.sender.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            // Called from its own callback, the thread cannot wait for itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

/// Receiver of scan results, called from the watch thread.
pub(crate) trait Follow {
    /// Handles the result of a scan.
    fn look(&mut self, look: Look);

    /// Returns the time of the next deferred work, if any.
    fn deadline(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// Does deferred work at its deadline.
    fn catch_up(&mut self) {}

    /// Returns the files or documents whose newest text is rejected.
    fn rejected(&self) -> BTreeSet<Arc<str>> {
        BTreeSet::new()
    }
}

impl<F: FnMut(Look)> Follow for F {
    fn look(&mut self, look: Look) {
        self(look);
    }
}

/// Watches `source`, which was scanned before. `follower` receives every later scan.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn spawn(
    source: FileSource,
    settings: WatchSettings,
    follower: impl Follow + Send + 'static,
) -> std::io::Result<Stop> {
    let (sender, receiver) = mpsc::channel();
    let events = sender.clone();
    let thread = thread::Builder::new()
        .name("strait-files".to_owned())
        .spawn(move || {
            let watcher = notify::recommended_watcher(move |event| {
                // After the thread has ended there is no receiver.
                let _ = events.send(Message::Event(event));
            });
            Watching::new(source, settings, watcher, follower).run(&receiver);
        })?;
    Ok(Stop {
        sender,
        thread: Some(thread),
    })
}

struct Watching<F> {
    source: FileSource,
    settings: WatchSettings,
    watcher: notify::Result<RecommendedWatcher>,
    watched: BTreeMap<PathBuf, (u64, u64)>,
    /// Diagnostic about a directory that is not watched.
    trouble: Option<Diagnostic>,
    debounce: Debounce,
    /// Time of the next poll; `None` before the first.
    next_poll: Option<Instant>,
    /// Time of the first event whose change no scan has found yet.
    happened: Option<Received>,
    /// Changes found while more events arrived, and the time when they were found.
    held: Option<(Instant, Look)>,
    follower: F,
}

impl<F: Follow> Watching<F> {
    fn new(
        source: FileSource,
        settings: WatchSettings,
        watcher: notify::Result<RecommendedWatcher>,
        follower: F,
    ) -> Watching<F> {
        Watching {
            source,
            settings,
            watcher,
            watched: BTreeMap::new(),
            trouble: None,
            debounce: Debounce::new(settings.debounce),
            next_poll: None,
            happened: None,
            held: None,
            follower,
        }
    }

    fn run(&mut self, messages: &Receiver<Message>) {
        self.begin(Instant::now());
        loop {
            let deadline = self.deadline(Instant::now());
            let wait = deadline.map_or(self.settings.poll, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            match messages.recv_timeout(wait) {
                Ok(Message::Event(event)) => self.note(event, Instant::now()),
                Ok(Message::Look) => self.read_all(Instant::now()),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.look_if_due(Instant::now()) {
                while let Ok(message) = messages.try_recv() {
                    match message {
                        Message::Event(event) => self.note(event, Instant::now()),
                        Message::Look => self.read_all(Instant::now()),
                        Message::Stop => return,
                    }
                }
                self.deliver(Instant::now());
            }
            self.catch_up_if_due(Instant::now());
        }
    }

    /// Does deferred work if it is due and nothing more urgent is pending.
    fn catch_up_if_due(&mut self, now: Instant) {
        let Some(due) = self.follower.deadline(now) else {
            return;
        };
        let patience = match self.debounce.is_waiting() {
            true => CATCH_UP_DELAY_MAX,
            false => Duration::ZERO,
        };
        if now >= due + patience {
            self.follower.catch_up();
        }
    }

    fn begin(&mut self, now: Instant) {
        // What changed between the first look and the first watch is found by another look.
        self.watch_directories();
        self.debounce.again(now);
        self.next_poll = Some(now + self.settings.poll);
    }

    /// Returns the time of the next work that needs no event.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let more = self.follower.deadline(now);
        // while something else waits, its deadline counts
        let more = more.filter(|_| !self.debounce.is_waiting());
        let deadlines = [self.debounce.deadline(), self.next_poll, more];
        deadlines.into_iter().flatten().min()
    }

    /// Reads all files in a scan that is due now, whether they seem changed or not.
    fn read_all(&mut self, now: Instant) {
        self.source.distrust_stamps();
        self.next_poll = Some(now);
    }

    /// Scans files if it is time to. Returns whether it did.
    fn look_if_due(&mut self, now: Instant) -> bool {
        if self.next_poll.is_some_and(|next| now >= next) {
            self.debounce.again(now);
            self.next_poll = Some(now + self.settings.poll);
        }
        let due = self.debounce.take(now);
        if let Some(due) = &due {
            self.look(due, now);
        }
        due.is_some()
    }

    /// Delays the next poll after a scan that lasted `took`. Scans after file events are not delayed.
    fn put_off_poll(&mut self, now: Instant, took: Duration) {
        if self.trouble.is_none() {
            let pause = self.settings.poll.max(took * POLL_PARTS);
            self.next_poll = Some(now + pause);
        }
    }

    fn note(&mut self, event: notify::Result<Event>, now: Instant) {
        let Ok(event) = event else {
            return self.debounce.other(now);
        };
        let what = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => Happened::Closed,
            // Reading, ours included, changes nothing.
            EventKind::Access(_) => return,
            EventKind::Modify(ModifyKind::Data(_)) => Happened::Written,
            EventKind::Modify(ModifyKind::Name(RenameMode::To | RenameMode::Both)) => {
                Happened::Replaced
            }
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => {
                Happened::Removed
            }
            _ => Happened::Other,
        };
        self.happened.get_or_insert_with(|| Received::at(now));
        if event.need_rescan() {
            self.debounce.other(now);
        }
        for path in &event.paths {
            if what == Happened::Removed && self.watched.remove(path).is_some() {
                // Its watch went with it, or went elsewhere. Another directory may come here, even with its inode.
                if let Ok(watcher) = &mut self.watcher {
                    let _ = watcher.unwatch(path);
                }
            }
            let hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b".."));
            match self.source.named(path) {
                // A target that is taken away says nothing of its link, which may lead elsewhere by now.
                Some(name) if !name.is_target || what != Happened::Removed => {
                    self.debounce.file(&name.path, what, now);
                }
                None if !hidden && self.is_file_by_name(path) => self.note_new(path, what, now),
                None if !hidden && self.is_of_unread_file(path, &event.kind) => {}
                _ => self.debounce.other(now),
            }
        }
    }

    /// Whether the path of an event names a resource file, by its extension. Directories may have any name.
    fn is_file_by_name(&self, path: &Path) -> bool {
        is_resource_file(path) && !self.source.is_directory(path)
    }

    /// Whether an event is about a file that is never read, such as an editor's backup file. A directory of any name
    /// can add or remove files when it is created, removed or renamed.
    fn is_of_unread_file(&self, path: &Path, kind: &EventKind) -> bool {
        let comes_or_goes = matches!(
            kind,
            EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
        );
        path.extension().is_some() && !(comes_or_goes && self.source.is_directory(path))
    }

    /// Records an event of a new file.
    fn note_new(&mut self, path: &Path, what: Happened, now: Instant) {
        match self.source.new_name(path) {
            // it was never read: what was written to it and moved over another file is that one's
            Some(name) if what == Happened::Removed => {
                if !self.debounce.forget(&name) {
                    self.debounce.other(now);
                }
            }
            Some(name) => self.debounce.file(&name, what, now),
            None => self.debounce.new_file(path, what, now),
        }
    }

    fn look(&mut self, due: &Due, now: Instant) {
        let mut look = match due {
            Due::All => self.source.look(),
            Due::Unprompted => {
                let start = Instant::now();
                let look = self.source.look_unprompted();
                self.put_off_poll(now, start.elapsed());
                look
            }
            Due::Files(paths) => self.source.look_at(paths),
            Due::Again(paths) => self.source.look_again_at(paths),
        };
        let is_settled = look.unsettled.is_empty();
        if self.watch_directories() {
            // Files may have come before the watch.
            self.debounce.again(now);
        } else if !look.unsettled.is_empty() {
            let unsettled = std::mem::take(&mut look.unsettled);
            self.debounce.files_again(unsettled, now + SETTLE);
        }
        look.problems.extend(self.trouble.clone());
        self.note_received(&mut look, is_settled, now);
        self.held = Some(match self.held.take() {
            None => (now, look),
            Some((since, mut held)) => {
                held.events.append(&mut look.events);
                held.problems = look.problems;
                if held.revisions.is_empty() {
                    held.revisions = look.revisions;
                }
                (since, held)
            }
        });
    }

    /// Records when the changes of a scan were first reported.
    fn note_received(&mut self, look: &mut Look, is_settled: bool, now: Instant) {
        if !look.events.is_empty() {
            let happened = self.happened.take();
            let received = happened.unwrap_or_else(|| Received::at(now));
            look.revisions.push(revision(received));
        } else if is_settled {
            self.happened = None;
        }
    }

    /// Hands on the changes, unless more events arrived during the scan. A burst becomes one update.
    fn deliver(&mut self, now: Instant) {
        let waits = |since: &Instant| {
            self.debounce.is_waiting() && now.saturating_duration_since(*since) < HELD_MAX
        };
        if self.held.as_ref().is_some_and(|(since, _)| waits(since)) {
            return;
        }
        if let Some((_, look)) = self.held.take() {
            self.follower.look(look);
        }
    }

    /// Watches the directories of the current files. Returns whether there are new ones.
    fn watch_directories(&mut self) -> bool {
        let Ok(watcher) = &mut self.watcher else {
            let why = self
                .watcher
                .as_ref()
                .err()
                .map(ToString::to_string)
                .unwrap_or_default();
            self.trouble = Some(self.not_watched(&why));
            return false;
        };
        let wanted = self.source.directories();
        let stale =
            |(path, identity): &(&PathBuf, &(u64, u64))| wanted.get(*path) != Some(*identity);
        let stale: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(stale)
            .map(|(path, _)| path.clone())
            .collect();
        for path in stale {
            self.watched.remove(&path);
            // The watch of a directory that is gone is gone with it.
            let _ = watcher.unwatch(&path);
        }
        let mut added = false;
        let mut failure = None;
        for (path, identity) in wanted {
            if self.watched.contains_key(path) {
                continue;
            }
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path.clone(), *identity);
                    added = true;
                }
                Err(error) => failure = Some(error.to_string()),
            }
        }
        self.trouble = failure.map(|why| self.not_watched(&why));
        added
    }

    fn not_watched(&self, why: &str) -> Diagnostic {
        let file = self
            .source
            .directories()
            .keys()
            .next()
            .map_or_else(|| "".into(), |path| name_of(path));
        let poll = self.settings.poll.as_secs_f64();
        let message = format!(
            "not all directories can be watched: {}",
            why.trim_end_matches('.').to_lowercase()
        );
        let mut found = Diagnostic::about_file(Severity::Warning, SRC004, file, message);
        found.help(format!(
            "changes are seen every {poll} s instead; raise fs.inotify.max_user_watches"
        ));
        found
    }
}

/// Returns the revision of the files, which has only a time.
pub(crate) fn revision(received: Received) -> SourceRevision {
    SourceRevision {
        source: FILES.into(),
        revision: None,
        received,
        restored: None,
    }
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::source::look::FileEvent;

    /// Returns the changed files of a scan, and its diagnostics.
    fn describe(look: &Look) -> String {
        let events = look.events.iter().map(|(_, event)| match event {
            FileEvent::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            FileEvent::Gone => "gone".to_owned(),
            other => format!("{other:?}"),
        });
        let problems = look.problems.iter().map(|found| found.code.to_string());
        events.chain(problems).collect::<Vec<_>>().join(" ")
    }

    /// Writes a file, and waits until its time stamps are old enough to be trusted by a single scan.
    fn write(path: &Path, text: &str) {
        fs::write(path, text).expect("a file");
        let changed = std::time::SystemTime::now();
        while changed.elapsed().is_ok_and(|age| age < SETTLE) {
            thread::yield_now();
        }
    }

    #[test]
    fn without_watches_changes_are_found_by_polling() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.yaml");
        write(&path, "one");
        let mut source = FileSource::new(&[directory.path().to_owned()], 1_000);
        source.look();
        let settings = WatchSettings::default();
        let failed = Err(notify::Error::generic("No Watches Left."));
        let mut looks = Vec::new();
        let mut watching = Watching::new(source, settings, failed, |look: Look| {
            looks.push(describe(&look))
        });
        let start = Instant::now();
        watching.begin(start);
        let mut look_at = |now: Instant| {
            let looked = watching.look_if_due(now);
            if looked {
                watching.deliver(now);
            }
            (looked, watching.deadline(now))
        };
        let poll = |count: u32| start + settings.poll * count;
        assert_eq!(look_at(start), (true, Some(poll(1))));
        write(&path, "and two");
        let early = poll(1) - Duration::from_millis(1);
        assert_eq!(look_at(early), (false, Some(poll(1))));
        assert_eq!(look_at(poll(1)), (true, Some(poll(2))));
        assert_eq!(look_at(poll(2)), (true, Some(poll(3))));
        fs::remove_file(&path).expect("a file");
        assert_eq!(look_at(poll(3)), (true, Some(poll(4))));
        assert_eq!(
            looks,
            ["SRC004", "and two SRC004", "SRC004", "gone SRC006 SRC004"]
        );
    }

    #[test]
    fn slow_look_at_all_files_puts_off_the_next_one_where_directories_are_watched() {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = WatchSettings::default();
        let ms = Duration::from_millis;
        let now = Instant::now();
        for (is_watched, took, pause) in [
            (true, ms(1), settings.poll),
            (true, ms(50), settings.poll),
            (true, ms(250), ms(25_000)),
            (false, ms(250), settings.poll),
        ] {
            let source = FileSource::new(&[directory.path().to_owned()], 1_000);
            let watcher = match is_watched {
                true => notify::recommended_watcher(|_| {}),
                false => Err(notify::Error::generic("No Watches Left.")),
            };
            let mut watching = Watching::new(source, settings, watcher, |_: Look| {});
            watching.begin(now);
            watching.put_off_poll(now, took);
            assert_eq!(
                watching.next_poll,
                Some(now + pause),
                "{is_watched} {took:?}"
            );
        }
    }

    /// Returns the relative path from the working directory to the absolute `path`.
    fn relative(path: &Path) -> PathBuf {
        let here = std::env::current_dir().expect("a directory");
        let up = here.components().skip(1).map(|_| "..");
        let down = path.strip_prefix("/").expect("an absolute path");
        up.collect::<PathBuf>().join(down)
    }

    /// Returns the delay until a file below `root` is read after an event at `path`.
    fn wait_after(kind: EventKind, root: PathBuf, path: &Path) -> Option<Duration> {
        let mut source = FileSource::new(&[root], 1_000);
        source.look();
        let failed = Err(notify::Error::generic("No Watches Left."));
        let mut watching = Watching::new(source, WatchSettings::default(), failed, |_: Look| {});
        let now = Instant::now();
        watching.note(Ok(Event::new(kind).add_path(path.to_owned())), now);
        watching.deadline(now).map(|deadline| deadline - now)
    }

    #[test]
    fn open_file_is_tracked_under_all_of_its_paths() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = directory.path().canonicalize().expect("a path");
        let folder = real.join("folder");
        fs::create_dir_all(folder.join("more")).expect("a folder");
        let file = folder.join("more/a.yaml");
        fs::write(&file, "one").expect("written");
        let at = |name: &str| real.join(name);
        std::os::unix::fs::symlink("folder", at("link")).expect("a link");
        fs::create_dir(at("links")).expect("a folder");
        std::os::unix::fs::symlink("../folder/more/a.yaml", at("links/b.yaml")).expect("a link");
        let write = EventKind::Modify(ModifyKind::Data(notify::event::DataChange::Any));
        let known = Some(Duration::from_millis(500));
        for root in [
            folder.clone(),
            at("folder/../folder/."),
            at("link"),
            at("links"),
            at("links/b.yaml"),
            file.clone(),
            at("link/more/a.yaml"),
        ] {
            assert_eq!(wait_after(write, root.clone(), &file), known, "{root:?}");
            let relative = relative(&root);
            let wait = wait_after(write, relative.clone(), &file);
            assert_eq!(wait, known, "{relative:?}");
        }
        // A new file may be written slowly, too.
        let new = folder.join("new.yaml");
        assert_eq!(wait_after(write, relative(&folder), &new), known);
        // The link may lead elsewhere by now.
        let removed = EventKind::Remove(notify::event::RemoveKind::File);
        let settings = WatchSettings::default();
        let wait = wait_after(removed, at("links"), &file);
        assert_eq!(wait, Some(settings.debounce));
        let wait = wait_after(removed, relative(&folder), &file);
        assert_eq!(wait, Some(Duration::from_millis(100)), "it may come back");
    }
}
