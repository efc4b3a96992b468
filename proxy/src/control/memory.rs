//! Returns memory to the system after a peak.
//!
//! An allocator keeps what was freed, in one arena for each thread: after 3,000 hung requests glibc kept 193 MiB of 31.
//! Invariant: nothing is returned while load rises or stays, so that no request pays for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::Control;
use crate::runtime::admission::Admission;
use crate::telemetry::{Gauge, Telemetry};

/// How often the load is sampled: a peak may be short.
const TICK: Duration = Duration::from_millis(100);

/// How many samples come before it is decided whether memory is returned.
const SAMPLES: u32 = 10;

/// The smallest peak that is worth the walk through the heap.
const PEAK_MIN: u64 = 256;

/// How many looks after the last change of configuration what it left behind is returned.
const SETTLED: u32 = 5;

/// Watches the load, and returns memory when it has fallen.
pub struct MemoryReturn {
    admission: Arc<Admission>,
    telemetry: Arc<Telemetry>,
    generations: watch::Receiver<u64>,
}

impl MemoryReturn {
    /// Watches the connections that are admitted, and what a control task publishes.
    pub fn of(control: &Control, admission: &Arc<Admission>) -> Self {
        Self {
            admission: Arc::clone(admission),
            telemetry: Arc::clone(&control.telemetry),
            generations: control.publisher.generations(),
        }
    }

    /// Watches until it is dropped.
    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watch = LoadWatch::default();
        for sample in (1..=SAMPLES).cycle() {
            tick.tick().await;
            watch.sample(self.load());
            if sample < SAMPLES {
                continue;
            }
            let configured = self.generations.has_changed().unwrap_or(false);
            self.generations.mark_unchanged();
            if watch.look(self.load(), configured) {
                // a heap of gigabytes takes a while to walk, and the control task has other work
                drop(tokio::task::spawn_blocking(return_freed).await);
            }
        }
    }

    /// Everything that holds memory of its own: connections of both sides, and requests.
    fn load(&self) -> u64 {
        let counters = &self.telemetry.counters;
        let gauges = [Gauge::RequestsActive, Gauge::UpstreamActive];
        let counted = gauges.map(|gauge| u64::try_from(counters.gauge(gauge)).unwrap_or(0));
        let connections = u64::try_from(self.admission.total()).unwrap_or(u64::MAX);
        counted
            .iter()
            .fold(connections, |sum, counted| sum.saturating_add(*counted))
    }
}

/// Decides when to return memory, from looks at regular times.
#[derive(Debug, Default)]
struct LoadWatch {
    /// The most since memory was returned.
    peak: u64,
    /// Looks until what the last configurations left behind is returned.
    settling: u32,
}

impl LoadWatch {
    /// Takes note of the load between two looks.
    fn sample(&mut self, load: u64) {
        self.peak = self.peak.max(load);
    }

    /// Whether memory is to be returned now: the load is half of its peak or less, or the configuration changed and then
    /// stayed for a while.
    fn look(&mut self, load: u64, configured: bool) -> bool {
        self.sample(load);
        let fallen = self.peak >= PEAK_MIN && load <= self.peak / 2;
        let settled = self.settling == 1 && !configured;
        self.settling = if configured {
            SETTLED
        } else {
            self.settling.saturating_sub(1)
        };
        if fallen || settled {
            self.peak = load;
            self.settling = 0;
        }
        fallen || settled
    }
}

/// Gives whole free pages of all arenas back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "no safe wrapper; returns 152 of 162 MiB that glibc kept after 3,000 hung requests"
)]
fn return_freed() {
    // SAFETY: it takes no pointer, and locks each arena as malloc itself does, so that any thread may call it any time.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators return memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn return_freed() {}

#[cfg(test)]
mod tests {
    use super::*;

    /// At which looks memory is returned.
    fn returns(looks: &[(u64, bool)]) -> Vec<usize> {
        let mut watch = LoadWatch::default();
        let all = looks.iter().enumerate();
        all.filter(|(_, (load, configured))| watch.look(*load, *configured))
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn memory_is_returned_when_load_falls_by_half() {
        let quiet = false;
        for (loads, expected) in [
            (&[0, 100, 255, 0, 0][..], &[][..]),
            (&[0, 256, 129, 128, 0], &[3]),
            (
                &[4_000, 2_001, 2_000, 1_001, 1_000, 999, 400, 100, 0],
                &[2, 4, 6, 7],
            ),
            (&[4_000, 0, 0, 4_000, 4_000, 0], &[1, 5]),
            (&[1, 2, 3_000, 4_000, 5_000], &[]),
        ] {
            let looks: Vec<_> = loads.iter().map(|load| (*load, quiet)).collect();
            assert_eq!(returns(&looks), expected, "{loads:?}");
        }
    }

    #[test]
    fn peak_between_two_samples_counts() {
        let mut watch = LoadWatch::default();
        assert!(!watch.look(0, false));
        watch.sample(1_000);
        watch.sample(0);
        assert!(watch.look(0, false));
        assert!(!watch.look(0, false), "once");
    }

    #[test]
    fn memory_is_returned_after_a_configuration_change_settles() {
        let mut looks = [(1_000, false); 20];
        (looks[1].1, looks[3].1) = (true, true);
        assert_eq!(returns(&looks), [8]);
        let ever: Vec<_> = (0..20).map(|at| (1_000, at % 4 == 0)).collect();
        assert_eq!(returns(&ever), [0_usize; 0]);
    }
}
