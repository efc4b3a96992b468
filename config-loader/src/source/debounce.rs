//! Debouncing of file events: decides when changed files are read.
//!
//! A single change is read after a short quiet period, or a shorter one if the file was replaced by a rename. A burst
//! of changes waits for a longer quiet period, with an upper limit, so that it becomes one update. A file that is being
//! written is read once its writer closes it, with an upper limit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of changed files from which changes count as a burst.
const BURST_FILES: usize = 4;

/// Divisor of the quiet period for a file that was moved into place, and is therefore complete.
const WHOLE_PART: u32 = 5;

/// Quiet period that ends a burst.
const BURST_QUIET: Duration = Duration::from_millis(60);

/// Longest time that a burst delays an update.
const DELAY_MAX: Duration = Duration::from_millis(750);

/// Time after its last write during which a file that is still open counts as being written.
const WRITER_GRACE: Duration = Duration::from_millis(500);

/// Longest time that a continuing write delays an update. Some writers copy from a network.
const WRITER_MAX: Duration = Duration::from_secs(5);

/// Time during which a removed file may reappear before it counts as removed. Some writers remove and rewrite a file.
const REMOVAL_GRACE: Duration = Duration::from_millis(100);

/// Events that were not handled yet.
#[derive(Debug)]
pub(super) struct Debounce {
    quiet: Duration,
    first: Option<Instant>,
    last: Option<Instant>,
    /// Known files that have events.
    paths: BTreeSet<PathBuf>,
    /// Number of events that require a full scan.
    others: usize,
    writing: BTreeSet<PathBuf>,
    removed: BTreeSet<PathBuf>,
    /// Whether more events are likely to follow.
    may_go_on: bool,
    /// Time of a full scan that no event asked for.
    again: Option<Instant>,
    /// Files to read without an event, and the time to read them.
    unsettled: Option<(Instant, BTreeSet<PathBuf>)>,
}

/// Kind of file event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// The writer closed the file.
    Closed,
    /// Any other event; it does not tell whether more follow.
    Other,
    /// The file was removed or moved away.
    Removed,
    /// Another file was moved to this path.
    Replaced,
    /// The file was written to.
    Written,
}

/// Scan that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    All,
    Files(BTreeSet<PathBuf>),
    /// Files that were read immediately after a change, and are read again.
    Again(BTreeSet<PathBuf>),
    /// A full scan without a file event.
    Unprompted,
}

impl Debounce {
    pub(super) fn new(quiet: Duration) -> Debounce {
        let paths = BTreeSet::new();
        Debounce {
            quiet,
            first: None,
            last: None,
            paths,
            others: 0,
            writing: BTreeSet::new(),
            removed: BTreeSet::new(),
            may_go_on: false,
            again: None,
            unsettled: None,
        }
    }

    /// Records an event of a known file.
    pub(super) fn file(&mut self, path: &Path, what: Happened, now: Instant) {
        self.writer(path, what);
        match what {
            Happened::Removed => _ = self.removed.insert(path.to_owned()),
            _ => _ = self.removed.remove(path),
        }
        self.may_go_on |= what != Happened::Replaced;
        self.paths.insert(path.to_owned());
        self.touch(now);
    }

    /// Records an event of a new file.
    pub(super) fn new_file(&mut self, path: &Path, what: Happened, now: Instant) {
        self.writer(path, what);
        self.other(now);
    }

    /// Removes a new file that is gone again. Returns whether it appeared since the last scan.
    pub(super) fn forget(&mut self, path: &Path) -> bool {
        self.writing.remove(path);
        self.paths.remove(path)
    }

    /// Records whether a file is being written.
    fn writer(&mut self, path: &Path, what: Happened) {
        match what {
            Happened::Written => _ = self.writing.insert(path.to_owned()),
            Happened::Closed | Happened::Removed => _ = self.writing.remove(path),
            Happened::Replaced | Happened::Other => {}
        }
    }

    /// Records an event that may have added or removed files.
    pub(super) fn other(&mut self, now: Instant) {
        self.others += 1;
        self.may_go_on = true;
        self.touch(now);
    }

    /// Schedules a full scan at `when`.
    pub(super) fn again(&mut self, when: Instant) {
        self.again = Some(self.again.map_or(when, |known| known.min(when)));
    }

    /// Schedules a read of `paths` at `when`, or slightly later if other files are already scheduled.
    pub(super) fn files_again(&mut self, paths: BTreeSet<PathBuf>, when: Instant) {
        let (known, mut all) = self.unsettled.take().unwrap_or((when, BTreeSet::new()));
        all.extend(paths);
        self.unsettled = Some((known.max(when), all));
    }

    fn touch(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Whether there are unhandled events.
    pub(super) fn is_waiting(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the time of the next scan, if one is scheduled.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let happened = self.first.zip(self.last).map(|(first, last)| {
            let burst = self.paths.len() + self.others >= BURST_FILES;
            let mut quiet = match burst {
                true => self.quiet.max(BURST_QUIET),
                false if self.may_go_on => self.quiet,
                false => self.quiet / WHOLE_PART,
            };
            let mut delay_max = DELAY_MAX.max(self.quiet);
            if !self.writing.is_empty() {
                quiet = quiet.max(WRITER_GRACE);
                delay_max = delay_max.max(WRITER_MAX);
            }
            if !self.removed.is_empty() {
                quiet = quiet.max(REMOVAL_GRACE);
            }
            (last + quiet).min(first + delay_max)
        });
        // A look that was asked for does not cut a burst in two: it is part of the look at its end.
        let unsettled = self.unsettled.as_ref().map(|(when, _)| *when);
        happened.or([self.again, unsettled].into_iter().flatten().min())
    }

    /// Returns the scan that is due at `now`, if any.
    pub(super) fn take(&mut self, now: Instant) -> Option<Due> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        let polls = self.again.is_some_and(|again| again <= now);
        let (happened, all) = (self.is_waiting(), self.others > 0 || polls);
        let mut paths = std::mem::take(&mut self.paths);
        let mut unsettled = self.unsettled.take();
        let settled = unsettled.take_if(|(when, _)| *when <= now);
        *self = Debounce {
            again: self.again.filter(|again| *again > now),
            unsettled,
            ..Debounce::new(self.quiet)
        };
        let settled = settled.map(|(_, paths)| paths).unwrap_or_default();
        Some(match (happened, all) {
            (true, true) => Due::All,
            (true, false) => {
                paths.extend(settled);
                Due::Files(paths)
            }
            (false, _) if polls => Due::Unprompted,
            (false, _) => Due::Again(settled),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_millis(10);

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_single_change_is_reported_after_a_quiet_period() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        assert_eq!(debounce.deadline(), None);
        debounce.file(Path::new("a"), Happened::Other, start);
        debounce.file(Path::new("a"), Happened::Other, start + ms(5));
        assert_eq!(debounce.deadline(), Some(start + ms(15)));
        assert_eq!(debounce.take(start + ms(14)), None);
        assert_eq!(
            debounce.take(start + ms(15)),
            Some(Due::Files(BTreeSet::from([PathBuf::from("a")])))
        );
        assert_eq!(debounce.deadline(), None);
    }

    #[test]
    fn a_renamed_file_is_reported_almost_at_once() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        debounce.file(Path::new("a"), Happened::Replaced, start);
        debounce.file(Path::new("b"), Happened::Replaced, start + ms(1));
        assert_eq!(
            debounce.deadline(),
            Some(start + ms(1) + QUIET / WHOLE_PART)
        );
        debounce.file(Path::new("c"), Happened::Closed, start + ms(2));
        assert_eq!(
            debounce.deadline(),
            Some(start + ms(12)),
            "it may be written again"
        );
        debounce.file(Path::new("d"), Happened::Replaced, start + ms(3));
        assert_eq!(debounce.deadline(), Some(start + ms(63)), "a burst");
        assert!(debounce.take(start + ms(63)).is_some());
        debounce.file(Path::new("a"), Happened::Replaced, start + ms(70));
        assert_eq!(
            debounce.deadline(),
            Some(start + ms(70) + QUIET / WHOLE_PART)
        );
    }

    #[test]
    fn a_burst_causes_one_scan() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        for index in 0..1_000 {
            let now = start + Duration::from_micros(500) * index;
            assert_eq!(debounce.take(now), None);
            debounce.file(Path::new(&format!("{index}")), Happened::Other, now);
        }
        let Some(Due::Files(paths)) = debounce.take(start + ms(600)) else {
            panic!("not due")
        };
        assert_eq!(paths.len(), 1_000);
    }

    #[test]
    fn an_endless_burst_is_scanned_after_the_maximum_delay() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        for index in 0..1_000 {
            debounce.other(start + ms(index * 2));
        }
        assert_eq!(debounce.deadline(), Some(start + DELAY_MAX));
    }

    #[test]
    fn an_open_file_is_not_read_at_once() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        debounce.file(Path::new("a"), Happened::Written, start);
        assert_eq!(debounce.deadline(), Some(start + WRITER_GRACE));
        debounce.file(Path::new("a"), Happened::Closed, start + ms(30));
        assert_eq!(debounce.deadline(), Some(start + ms(40)));
    }

    #[test]
    fn file_open_for_long_is_read_when_closed() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        for index in 0..20 {
            let now = start + ms(100) * index;
            assert_eq!(debounce.take(now), None, "after {index} writes");
            debounce.file(Path::new("a"), Happened::Written, now);
        }
        debounce.file(Path::new("a"), Happened::Closed, start + ms(2_000));
        assert!(debounce.take(start + ms(2_010)).is_some());
    }

    #[test]
    fn file_that_is_never_closed_is_read_after_the_maximum_delay() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        for index in 0..100 {
            debounce.file(Path::new("a"), Happened::Written, start + ms(100) * index);
        }
        assert_eq!(debounce.deadline(), Some(start + WRITER_MAX));
    }

    #[test]
    fn new_open_file_is_not_read_at_once() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        debounce.new_file(Path::new("a"), Happened::Other, start);
        assert_eq!(debounce.deadline(), Some(start + QUIET));
        debounce.new_file(Path::new("a"), Happened::Written, start);
        assert_eq!(debounce.deadline(), Some(start + WRITER_GRACE));
        debounce.new_file(Path::new("a"), Happened::Closed, start + ms(30));
        assert_eq!(debounce.deadline(), Some(start + ms(40)));
        assert_eq!(debounce.take(start + ms(40)), Some(Due::All));
    }

    #[test]
    fn a_removed_file_may_reappear() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        debounce.file(Path::new("a"), Happened::Removed, start);
        assert_eq!(debounce.deadline(), Some(start + REMOVAL_GRACE));
        debounce.file(Path::new("a"), Happened::Other, start + ms(50));
        assert_eq!(debounce.deadline(), Some(start + ms(60)));
        debounce.file(Path::new("a"), Happened::Removed, start + ms(55));
        assert!(debounce.take(start + ms(154)).is_none());
        assert!(debounce.take(start + ms(155)).is_some());
    }

    #[test]
    fn a_requested_scan_does_not_end_a_burst() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        debounce.again(start);
        debounce.file(Path::new("a"), Happened::Other, start);
        assert_eq!(debounce.take(start + ms(5)), None);
        assert_eq!(debounce.take(start + ms(10)), Some(Due::All));
        assert_eq!(debounce.deadline(), None);
    }

    #[test]
    fn a_second_requested_scan_covers_all_files() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        debounce.again(start + ms(60));
        debounce.file(Path::new("a"), Happened::Other, start);
        assert!(matches!(debounce.take(start + ms(10)), Some(Due::Files(_))));
        assert_eq!(debounce.take(start + ms(60)), Some(Due::Unprompted));
        assert_eq!(debounce.deadline(), None);
    }

    #[test]
    fn unsettled_file_is_rescanned_alone() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        let files = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        debounce.files_again(files(&["a"]), start + ms(80));
        debounce.files_again(files(&["b"]), start + ms(90));
        assert_eq!(debounce.take(start + ms(80)), None);
        let due = debounce.take(start + ms(90));
        assert_eq!(due, Some(Due::Again(files(&["a", "b"]))));
        debounce.files_again(files(&["a"]), start + ms(180));
        debounce.file(Path::new("c"), Happened::Closed, start + ms(175));
        let due = debounce.take(start + ms(185));
        assert_eq!(
            due,
            Some(Due::Files(files(&["a", "c"]))),
            "one look for both"
        );
        debounce.files_again(files(&["a"]), start + ms(200));
        debounce.again(start + ms(190));
        assert_eq!(debounce.take(start + ms(200)), Some(Due::Unprompted));
        assert_eq!(debounce.deadline(), None);
    }

    #[test]
    fn new_file_renamed_over_a_known_one_is_read_at_once() {
        let start = Instant::now();
        let mut debounce = Debounce::new(QUIET);
        debounce.file(Path::new("next"), Happened::Written, start);
        debounce.forget(Path::new("next"));
        debounce.file(Path::new("a"), Happened::Replaced, start);
        let due = debounce.take(start + QUIET);
        assert_eq!(due, Some(Due::Files(BTreeSet::from([PathBuf::from("a")]))));
    }
}
