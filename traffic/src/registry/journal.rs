//! Journal of endpoint health events, with the numbers that led to them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::Moment;

/// Number of events that are kept for the admin page.
pub const EVENTS_MAX: usize = 1_024;

/// Kind of consecutive errors that caused an ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// 5xx responses.
    ServerErrors,
    /// 502, 503 and 504 responses.
    GatewayErrors,
    /// Failures to get a response.
    LocalErrors,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 3] = [Self::ServerErrors, Self::GatewayErrors, Self::LocalErrors];

    /// Description for log lines and pages.
    pub fn in_words(self) -> &'static str {
        match self {
            Cause::ServerErrors => "5xx responses",
            Cause::GatewayErrors => "responses 502 to 504",
            Cause::LocalErrors => "failures to get a response",
        }
    }

    /// The name in Envoy's ejection log.
    pub fn name(self) -> &'static str {
        match self {
            Cause::ServerErrors => "5xx",
            Cause::GatewayErrors => "GatewayFailure",
            Cause::LocalErrors => "LocalOriginFailure",
        }
    }
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An endpoint was ejected.
    Ejected {
        /// Kind of the errors.
        cause: Cause,
        /// Number of consecutive errors.
        errors: u32,
        /// Whether the last error was a failed connection or a timeout rather than a response.
        unanswered: bool,
        /// Minimum time of the ejection.
        time: Duration,
        /// Number of ejected endpoints in the cluster, and of all its endpoints.
        out: (u32, u32),
    },
    /// An endpoint was not ejected because of `maxEjectionPercent`.
    EjectionOverflow {
        /// Kind of the errors.
        cause: Cause,
        /// Number of ejected endpoints in the cluster, and of all its endpoints.
        out: (u32, u32),
    },
    /// An endpoint was unejected.
    Unejected {
        /// Duration of the ejection.
        out_for: Duration,
    },
    /// An endpoint fails its health checks.
    Unhealthy {
        /// Error of the last check.
        error: Box<str>,
    },
    /// An endpoint passes its health checks again.
    Healthy,
    /// The health checks of an unhealthy endpoint were removed.
    HealthCheckRemoved,
    /// A priority entered panic mode: it has too few healthy endpoints, so all of them are used.
    PanicModeEntered {
        /// The priority, 0 first.
        priority: u8,
        /// Numbers of healthy endpoints and of all endpoints.
        healthy: (u32, u32),
    },
    /// A priority left panic mode: it has enough healthy endpoints again.
    PanicModeLeft {
        /// The priority, 0 first.
        priority: u8,
        /// Numbers of healthy endpoints and of all endpoints.
        healthy: (u32, u32),
    },
    /// The load distribution between priorities changed.
    PriorityLoadChanged {
        /// Percent by priority, before and after.
        loads: (Box<[u8]>, Box<[u8]>),
    },
    /// Another tier of clusters is in use.
    TierShifted {
        /// The tier that was in use, 0 first.
        from: u8,
        /// The tier in use now.
        to: u8,
        /// The reason, as in the metric of tier shifts.
        reason: &'static str,
    },
}

impl EventKind {
    /// The name of the event.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::Ejected { .. } => "ejected",
            EventKind::EjectionOverflow { .. } => "ejection_overflow",
            EventKind::Unejected { .. } => "unejected",
            EventKind::Unhealthy { .. } => "unhealthy",
            EventKind::Healthy => "healthy",
            EventKind::HealthCheckRemoved => "health_check_removed",
            EventKind::PanicModeEntered { .. } => "panic_mode_entered",
            EventKind::PanicModeLeft { .. } => "panic_mode_left",
            EventKind::PriorityLoadChanged { .. } => "priority_load_changed",
            EventKind::TierShifted { .. } => "tier_shifted",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::Ejected {
                cause,
                errors,
                unanswered,
                time,
                out: (out, all),
            } => {
                let cause = match unanswered {
                    true => "failures",
                    false => cause.name(),
                };
                let last = match unanswered {
                    true => " (the last got no response)",
                    false => "",
                };
                write!(
                    f,
                    "ejected for {time:?} after {errors} consecutive {cause}{last}; {out} of {all} endpoints are ejected"
                )
            }
            EventKind::EjectionOverflow {
                cause,
                out: (out, all),
            } => {
                let cause = cause.name();
                write!(
                    f,
                    "not ejected after consecutive {cause}: {out} of {all} endpoints are ejected, maxEjectionPercent allows no more"
                )
            }
            EventKind::Unejected { out_for } => write!(f, "unejected after {out_for:?}"),
            EventKind::Unhealthy { error } => write!(f, "fails its health checks: {error}"),
            EventKind::Healthy => f.write_str("passes its health checks"),
            EventKind::HealthCheckRemoved => f.write_str("no longer health-checked"),
            EventKind::PanicModeEntered {
                priority,
                healthy: (healthy, all),
            } => write!(
                f,
                "priority {priority} enters panic mode: {healthy} of {all} endpoints are healthy"
            ),
            EventKind::PanicModeLeft {
                priority,
                healthy: (healthy, all),
            } => write!(
                f,
                "priority {priority} leaves panic mode: {healthy} of {all} endpoints are healthy"
            ),
            EventKind::PriorityLoadChanged {
                loads: (before, now),
            } => write!(
                f,
                "priority loads changed from {before:?} to {now:?} percent"
            ),
            EventKind::TierShifted { from, to, reason } => {
                write!(f, "tier {to} is in use after tier {from}: {reason}")
            }
        }
    }
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the entry, starting at 0.
    pub number: u64,
    /// Time of the event.
    pub at: Moment,
    /// Name of the cluster.
    pub cluster: Arc<str>,
    /// Address of the endpoint; `None` for events of the whole cluster.
    pub endpoint: Option<Box<str>>,
    /// The event.
    pub what: EventKind,
}

/// The latest events, and a signal for tasks that act on them. The journal reads no clock: its users pass instants.
#[derive(Debug, Default)]
pub struct Journal {
    /// First instant that [`Journal::at`] converted.
    start: OnceLock<Instant>,
    entries: Mutex<Entries>,
    /// Whether an event has made the tables of a cluster out of date.
    rung: AtomicBool,
    wake_signal: Notify,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    last: VecDeque<Event>,
}

impl Journal {
    /// Converts an instant.
    pub fn at(&self, instant: Instant) -> Moment {
        let start = *self.start.get_or_init(|| instant);
        let gone = instant.saturating_duration_since(start).as_millis();
        Moment(u64::try_from(gone).unwrap_or(u64::MAX).saturating_add(1))
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. Takes a lock, since endpoint failures are rare compared with requests.
    pub fn record(&self, at: Moment, cluster: &Arc<str>, endpoint: Option<&str>, what: EventKind) {
        let mut entries = self.entries();
        let number = entries.next;
        entries.next += 1;
        if entries.last.len() == EVENTS_MAX {
            entries.last.pop_front();
        }
        entries.last.push_back(Event {
            number,
            at,
            cluster: Arc::clone(cluster),
            endpoint: endpoint.map(Box::from),
            what,
        });
    }

    /// The kept events from this number on, oldest first.
    pub fn since(&self, number: u64) -> Vec<Event> {
        let entries = self.entries();
        let first = entries.last.iter().filter(|event| event.number >= number);
        first.cloned().collect()
    }

    /// Wakes the task that waits in [`Journal::called`], and all receivers of [`Journal::changes`].
    pub fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.wake_signal.notify_one();
        self.changed();
    }

    /// Wakes all receivers of [`Journal::changes`].
    pub fn changed(&self) {
        self.changes.send_replace(());
    }

    /// Subscribes to changes of the endpoints and of their availability.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Whether [`Journal::ring`] was called since the last call of this.
    pub fn has_rung(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }

    /// Waits until [`Journal::ring`] is called.
    pub async fn called(&self) {
        while !self.has_rung() {
            self.wake_signal.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn journal_keeps_the_latest_events_and_notifies() {
        let journal = Journal::default();
        let cluster: Arc<str> = "a".into();
        for at in 0..EVENTS_MAX as u64 + 2 {
            journal.record(Moment(at), &cluster, None, EventKind::Healthy);
        }
        let events = journal.since(0);
        assert_eq!(events.len(), EVENTS_MAX);
        assert_eq!(events[0].number, 2);
        assert_eq!(journal.since(EVENTS_MAX as u64 + 1).len(), 1);
        journal.ring();
        journal.called().await;
    }
}
