//! Notes in the report on skipped measurements and their reasons.

use crate::compare::bench::Bench;
use crate::compare::configure::{Proxy, Work};
use crate::compare::failure::Failure;
use crate::compare::report::Report;
use crate::compare::{say, tool};

/// Returns the proxies that are installed, with the modules that this protocol needs.
pub(super) fn installed(bench: &Bench, work: Work) -> impl Iterator<Item = Proxy> {
    Proxy::ALL
        .into_iter()
        .filter(move |proxy| bench.tools.get(proxy.tool_for(work)).is_some())
}

/// Adds a note on the failure of one proxy. Passes on [`Failure::Cancelled`].
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

/// Adds a note on a scenario that is skipped because a program is missing.
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
