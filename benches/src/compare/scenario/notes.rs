//! What is left out of a measurement, and why.

use crate::compare::bench::Bench;
use crate::compare::configure::{Proxy, Work};
use crate::compare::failure::Failure;
use crate::compare::report::Report;
use crate::compare::{say, tool};

/// The proxies that are installed, with what they need to pass this on.
pub(super) fn installed(bench: &Bench, work: Work) -> impl Iterator<Item = Proxy> {
    Proxy::ALL
        .into_iter()
        .filter(move |proxy| bench.tools.get(proxy.tool_for(work)).is_some())
}

/// Takes note of a failure in one proxy; passes on that the run shall stop.
pub(super) fn note<T>(
    report: &mut Report,
    what: &str,
    result: Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Cancelled) => Err(Failure::Cancelled),
        Err(Failure::Other(message)) => {
            let message = format!("{what}: {message}");
            say(&message);
            report.notes.push(message);
            Ok(None)
        }
    }
}

/// Takes note of a scenario that cannot be run without a program.
pub(super) fn skip(report: &mut Report, title: &str, missing: tool::Tool) {
    let message = format!("{title}: skipped, {}", tool::missing_hint(missing));
    say(&message);
    report.notes.push(message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_becomes_a_note_and_a_stop_does_not() {
        let mut report = Report::default();
        let failed = note::<()>(&mut report, "nginx", Err(Failure::new("no")));
        assert!(matches!(failed, Ok(None)));
        assert_eq!(report.notes, ["nginx: no"]);
        let stopped = note::<()>(&mut report, "nginx", Err(Failure::Cancelled));
        assert!(matches!(stopped, Err(Failure::Cancelled)));
    }
}
