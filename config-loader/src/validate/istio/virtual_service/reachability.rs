//! Unreachable rules and match blocks: an earlier one matches all of their requests.
//!
//! These are conservative warnings. A rule that delegates may leave requests to later rules, and a block that depends
//! on the proxy (port, gateways, labels) may not apply at all.

mod conditions;
mod earlier;
mod http;
mod l4;
mod never_reached;

use std::sync::Arc;

use crate::diagnostic::codes::istio::{VS119, VS120, VS121, VS122};
use crate::raw::{self, Field};
use crate::resource::istio::HttpRule;
use crate::span::Span;
use crate::validate::Check;
pub(crate) use earlier::{Earlier, Hidden};
use http::{Finding, Spot, Why};
pub(super) use l4::{tcp, tls};
use never_reached::never_reached;

/// Whether every `http` rule and block is reachable, as far as that is decidable.
pub(crate) fn all_reached(rules: &[Arc<HttpRule>]) -> bool {
    http::find(rules).is_empty()
}

/// Warns of unreachable `http` rules and blocks.
pub(super) fn http(
    field: &Field<Vec<Field<raw::istio::HttpRoute>>>,
    rules: &[Arc<HttpRule>],
    check: &mut Check<'_>,
) {
    for finding in http::find(rules) {
        report(&finding, field, check);
    }
}

/// Returns the span of a rule, or of a block of it.
fn span_of(field: &Field<Vec<Field<raw::istio::HttpRoute>>>, spot: Spot) -> Span {
    let rule = field.get().and_then(|rules| rules.get(spot.rule));
    let block = spot.block.and_then(|block| {
        let blocks = rule?.get()?.r#match.get()?;
        blocks.get(block).map(Field::span)
    });
    block.or(rule.map(Field::span)).unwrap_or(Span::NONE)
}

fn report(
    finding: &Finding<'_>,
    field: &Field<Vec<Field<raw::istio::HttpRoute>>>,
    check: &mut Check<'_>,
) {
    let (at, by) = (finding.at, finding.by);
    let span = span_of(field, at);
    let location = check.location(span_of(field, by));
    let block = |spot: Spot| spot.block.unwrap_or(0);
    match &finding.why {
        Why::RuleTaken => never_reached(at.rule, span, by.rule, location, check),
        Why::RuleRepeated => {
            let text = format!(
                "rule {} is never reached: its matches repeat earlier ones",
                at.rule
            );
            check
                .warning(VS121, span, text)
                .help(format!(
                    "rule {} matches these requests first; remove one of them",
                    by.rule
                ))
                .related(location, "first matched here");
        }
        Why::BlockTaken => {
            let text = format!(
                "match {} is never reached: match {} matches everything",
                block(at),
                block(by)
            );
            check
                .warning(VS119, span, text)
                .help("remove it, or the block that matches everything")
                .related(location, "this matches everything");
        }
        Why::BlockRepeated => {
            let text = format!(
                "match {} repeats match {} of rule {}",
                block(at),
                block(by),
                by.rule
            );
            check
                .warning(VS120, span, text)
                .help("remove it")
                .related(location, "first matched here");
        }
        Why::PathHidden { what, path, prefix } => {
            let text = format!(
                "{what} `{path}` is hidden by prefix `{prefix}` in rule {}",
                by.rule
            );
            check
                .warning(VS122, span, text)
                .help("the first rule that matches is taken: put the longer path first")
                .related(location, format!("prefix `{prefix}` is matched here"));
        }
    }
}
