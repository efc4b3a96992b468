//! Metrics of the process from `/proc/self`, under the names that all Prometheus clients use.
//!
//! Metrics that cannot be read are left out; on other systems than Linux, all of them.

use std::fs;
use std::time::Duration;

use prometheus::proto::MetricFamily;

use super::families::{decimal_counter_family, gauge_family};
use traffic::telemetry::names::{self, Family};

/// Ticks per second of times in `/proc/self/stat`; fixed by the kernel's interface on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Current CPU time, memory, file descriptors and threads.
pub(super) fn families() -> impl Iterator<Item = MetricFamily> {
    let read = |file: &str| fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let (stat, status, limits) = (read("stat"), read("status"), read("limits"));
    let boot = fs::read_to_string("/proc/stat")
        .ok()
        .and_then(|stat| boot_time(&stat));
    let start = boot
        .zip(start_after_boot(&stat))
        .map(|(boot, after)| boot + after.as_secs_f64());
    let gauge = |family: Family, value: Option<f64>| {
        gauge_family(family, value.map(|value| (Vec::new(), value)))
    };
    [
        decimal_counter_family(names::PROCESS_CPU, cpu_seconds(&stat)),
        gauge(names::PROCESS_MEMORY, kibibytes(&status, "VmRSS:")),
        gauge(names::PROCESS_VIRTUAL, kibibytes(&status, "VmSize:")),
        gauge(names::PROCESS_FDS, open_files()),
        gauge(names::PROCESS_FDS_MAX, open_files_max(&limits)),
        gauge(names::PROCESS_THREADS, status_field(&status, "Threads:")),
        gauge(names::PROCESS_START, start),
    ]
    .into_iter()
}

/// A field of `/proc/self/stat` by its number in proc(5). The second field, the name, may contain spaces and
/// parentheses.
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name
        .split_ascii_whitespace()
        .nth(number - 3)?
        .parse()
        .ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((stat_field(stat, 14)? + stat_field(stat, 15)?) / TICKS_PER_SECOND)
}

fn start_after_boot(stat: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(stat_field(stat, 22)? / TICKS_PER_SECOND).ok()
}

/// Unix time of the boot, from `/proc/stat`.
fn boot_time(stat: &str) -> Option<f64> {
    status_field(stat, "btime ")
}

/// The number after a key at the beginning of a line.
fn status_field(status: &str, key: &str) -> Option<f64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// The size after a key, in bytes.
fn kibibytes(status: &str, key: &str) -> Option<f64> {
    status_field(status, key).map(|kibibytes| kibibytes * 1_024.0)
}

/// The soft limit of open files, the first of two values; `None` for `unlimited`.
fn open_files_max(limits: &str) -> Option<f64> {
    status_field(limits, "Max open files")
}

/// Number of open files, without the one that reads the folder.
fn open_files() -> Option<f64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(open.saturating_sub(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "4242 (a (b) c) S 1 4242 4242 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 5 0 123456 99 7";

    #[test]
    fn fields_are_parsed_after_a_name_with_parentheses() {
        assert_eq!(cpu_seconds(STAT), Some(3.0));
        assert_eq!(
            start_after_boot(STAT),
            Some(Duration::from_millis(1_234_560))
        );
        assert_eq!(cpu_seconds(""), None);
    }

    #[test]
    fn keys_are_matched_at_line_starts() {
        let status = "Name:\tVmRSS: 1\nVmRSS:\t    2048 kB\nThreads:\t5\n";
        assert_eq!(kibibytes(status, "VmRSS:"), Some(2_097_152.0));
        assert_eq!(status_field(status, "Threads:"), Some(5.0));
        assert_eq!(status_field(status, "Missing:"), None);
        let limits = "Limit Soft Hard Units\nMax open files            1024                 524288               files\n";
        assert_eq!(open_files_max(limits), Some(1_024.0));
        assert_eq!(
            open_files_max("Max open files  unlimited  unlimited  files"),
            None
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn metrics_of_this_process_are_read() {
        let families: Vec<MetricFamily> = families().collect();
        assert_eq!(families.len(), 7);
        let memory = &families[1].get_metric()[0];
        assert!(memory.get_gauge().get_value() > 100_000.0);
        let start = families[6].get_metric()[0].get_gauge().get_value();
        assert!(start > 1_500_000_000.0, "{start}");
    }
}
