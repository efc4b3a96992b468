//! Warning about a rule after one that matches everything.

use crate::diagnostic::Location;
use crate::diagnostic::codes::istio::VS119;
use crate::span::Span;
use crate::validate::Check;

/// Warns of a rule after the rule `all`, which matches everything.
pub(super) fn never_reached(
    rule: usize,
    span: Span,
    all: usize,
    location: Location,
    check: &mut Check<'_>,
) {
    let text = format!("rule {rule} is never reached: rule {all} matches everything");
    check
        .warning(VS119, span, text)
        .help("the first rule that matches is taken: put the rule that matches everything last")
        .related(location, "this matches everything");
}
