//! CPU time and resident memory of a process and its descendants, from `/proc`.
//!
//! nginx works in a child of the process that we start, so every figure covers the whole process tree.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// Clock ticks per second in `/proc/PID/stat`; the same on every Linux that Rust supports.
const TICKS_PER_SECOND: u64 = 100;

/// Fields of `/proc/PID/stat` that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Parent process.
    pub parent: u32,
    /// User plus system time of all threads, including ended ones, in clock ticks.
    pub ticks: u64,
}

/// Reads one line of `/proc/PID/stat`.
///
/// The program name is in parentheses and may contain any character, so fields are counted from the last parenthesis.
pub fn parse_stat(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let user: u64 = fields.nth(9)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Stat {
        parent,
        ticks: user + system,
    })
}

/// Reads the figure in KiB of one line such as `Rss:  1234 kB`.
pub fn parse_kib(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Returns a process and its descendants; empty after the process has ended.
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut seen = false;
    for entry in entries.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // A process may end between the listing and this read.
        let Some(stat) = stat(pid) else { continue };
        seen |= pid == root;
        children.entry(stat.parent).or_default().push(pid);
    }
    let mut found = if seen { vec![root] } else { Vec::new() };
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        if let Some(more) = children.remove(pid) {
            found.extend(more);
        }
        next += 1;
    }
    found
}

/// CPU time that a process and its living descendants have used so far.
pub fn cpu_time(root: u32) -> Duration {
    let ticks: u64 = tree(root)
        .into_iter()
        .filter_map(stat)
        .map(|stat| stat.ticks)
        .sum();
    Duration::from_micros(ticks * (1_000_000 / TICKS_PER_SECOND))
}

/// Resident memory of a process and its descendants, in KiB. Shared pages count once per process.
pub fn resident_kib(root: u32) -> u64 {
    tree(root).into_iter().filter_map(resident_one_kib).sum()
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `smaps_rollup`, which is exact, or else `status`, which may lag by some pages but is readable for a worker
/// that changed its user.
fn resident_one_kib(pid: u32) -> Option<u64> {
    let exact = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
    exact.and_then(|text| parse_kib(&text, "Rss:")).or_else(|| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        parse_kib(&status, "VmRSS:")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "123 (a) b (c)) S 77 123 123 0 -1 4194560 1000 0 0 0 41 9 0 0 20 0 3 0 555 1 2 3";

    #[test]
    fn stat_is_read_behind_a_name_with_parentheses() {
        assert_eq!(
            parse_stat(LINE),
            Some(Stat {
                parent: 77,
                ticks: 50
            })
        );
    }

    #[test]
    fn cut_off_stat_is_refused() {
        assert_eq!(parse_stat("123 (name) S 77 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn memory_lines_are_found_by_label() {
        let text = "559a-7ffc ---p 00000000 00:00 0 [rollup]\nRss:    5432 kB\nPss:  100 kB\n";
        assert_eq!(parse_kib(text, "Rss:"), Some(5432));
        assert_eq!(parse_kib(text, "Swap:"), None);
    }

    #[test]
    fn own_process_is_accounted_for() {
        let own = std::process::id();
        assert!(tree(own).contains(&own));
        assert!(resident_kib(own) > 0);
    }

    #[test]
    fn process_that_does_not_exist_uses_nothing() {
        assert_eq!(tree(u32::MAX), Vec::<u32>::new());
        assert_eq!(cpu_time(u32::MAX), Duration::ZERO);
        assert_eq!(resident_kib(u32::MAX), 0);
    }
}
