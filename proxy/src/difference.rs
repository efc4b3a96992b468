//! Requests that a change of the configuration treats differently.
//!
//! The rules of both configurations cut the requests for a host into classes: those for which the same rule is found before, and
//! the same rule after. Each class that a rule takes part in whose conditions or place differ gets a witness, a request that is in it;
//! [`crate::explain`] says what becomes of the witness in both configurations. A class of a rule that is found before and after gets
//! one as well, for its effect. Everything is decided by the code that traffic runs through.

pub mod effect;

pub mod report;

mod connections;

mod listeners;

mod names;

mod points;

mod policies;

mod requests;

mod rules;

mod search;

mod side;

use report::Report;
pub use requests::Sample;
pub use side::Side;

use crate::snapshot::Snapshot;

/// Returns a request for each rule of a configuration, and for each host one that no rule gets.
pub fn samples(snapshot: &Snapshot) -> Vec<Sample> {
    let listeners = snapshot.listeners.values();
    listeners.flat_map(requests::of_rules).collect()
}

/// Compares two configurations of a proxy.
pub fn compare(old: &Side<'_>, new: &Side<'_>) -> Report {
    let mut report = Report::default();
    for [before, after] in listeners::common(&old.snapshot, &new.snapshot, &mut report) {
        requests::compare([old, new], [before, after], &mut report);
        connections::compare([old, new], [before, after], &mut report);
    }
    listeners::settings(&old.snapshot, &new.snapshot, &mut report);
    listeners::endpoints(&old.snapshot, &new.snapshot, &mut report);
    report.sort();
    report
}

#[cfg(test)]
mod tests;
