//! Rules and match blocks that can never match, because an earlier one takes everything that they would.
//!
//! These are warnings, and they are careful: a rule that delegates may leave requests to later rules, and a block that
//! depends on the proxy (port, gateways, labels) may not exist at all.

mod conditions;
mod earlier;
mod http;

use std::collections::HashMap;
use std::sync::Arc;

use crate::diagnostic::Place;
use crate::diagnostic::codes::istio::{VS119, VS120, VS121, VS122};
use crate::raw::{self, Field};
use crate::resource::istio::{HttpRule, TcpRule, TlsRule};
use crate::span::Span;
use crate::validate::Check;
pub(crate) use earlier::{Earlier, Hidden};
use http::{Finding, Spot, Why};

/// The spans of the entries of a list that have a value.
fn spans<T>(field: &Field<Vec<Field<T>>>) -> Vec<(usize, Span)> {
    let entries = field.get().into_iter().flatten().enumerate();
    entries
        .filter(|(_, entry)| entry.get().is_some())
        .map(|(index, entry)| (index, entry.span()))
        .collect()
}

/// Whether every `http` rule and block can be reached, as far as can be told.
pub(crate) fn all_reached(rules: &[Arc<HttpRule>]) -> bool {
    http::find(rules).is_empty()
}

/// Warns of `http` rules and blocks that are never reached.
pub(super) fn http(
    field: &Field<Vec<Field<raw::istio::HttpRoute>>>,
    rules: &[Arc<HttpRule>],
    check: &mut Check<'_>,
) {
    for finding in http::find(rules) {
        report(&finding, field, check);
    }
}

/// Where a rule, or a block of one, stands.
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
    let place = check.place(span_of(field, by));
    let block = |spot: Spot| spot.block.unwrap_or(0);
    match &finding.why {
        Why::RuleTaken => never_reached(at.rule, span, (by.rule, place), check),
        Why::RuleRepeated => {
            let text = format!(
                "rule {} is never reached: its matches repeat earlier ones",
                at.rule
            );
            check
                .warning(VS121, span, text)
                .help(format!(
                    "requests that it would take go to rule {}; remove one of them",
                    by.rule
                ))
                .related(place, "first matched here");
        }
        Why::BlockTaken => {
            let text = format!(
                "match {} is never reached: match {} takes everything",
                block(at),
                block(by)
            );
            check
                .warning(VS119, span, text)
                .related(place, "this takes everything");
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
                .related(place, "first matched here");
        }
        Why::PathHidden { what, path, prefix } => {
            let text = format!(
                "{what} `{path}` is hidden by prefix `{prefix}` in rule {}",
                by.rule
            );
            check
                .warning(VS122, span, text)
                .help("the first rule that matches is taken: put the longer path first")
                .related(place, format!("prefix `{prefix}` is matched here"));
        }
    }
}

fn never_reached(rule: usize, span: Span, (all, place): (usize, Place), check: &mut Check<'_>) {
    let text = format!("rule {rule} is never reached: rule {all} matches everything");
    check
        .warning(VS119, span, text)
        .help("the first rule that matches is taken: put the rule that matches everything last")
        .related(place, "this matches everything");
}

/// Warns of `tcp` rules that are never reached.
pub(super) fn tcp(
    rules: &[TcpRule],
    field: &Field<Vec<Field<raw::istio::TcpRoute>>>,
    check: &mut Check<'_>,
) {
    let mut all: Option<(usize, Span)> = None;
    let mut blocks = Vec::new();
    for ((rule, span), parsed) in spans(field).into_iter().zip(rules) {
        if let Some((all, all_span)) = all {
            let place = check.place(all_span);
            never_reached(rule, span, (all, place), check);
        } else if parsed.matches.is_empty() {
            all = Some((rule, span));
        }
        let key = |block: &crate::resource::istio::TcpMatch| {
            let mut block = block.clone();
            block.line = Default::default();
            block.gateway_lines.clear();
            format!("{block:?}")
        };
        blocks.push((rule, span, parsed.matches.iter().map(key).collect()));
    }
    repeated_rules(&blocks, check);
}

/// Warns of `tls` rules that are never reached.
pub(super) fn tls(
    rules: &[TlsRule],
    field: &Field<Vec<Field<raw::istio::TlsRoute>>>,
    check: &mut Check<'_>,
) {
    let mut blocks = Vec::new();
    for ((rule, span), parsed) in spans(field).into_iter().zip(rules) {
        let key = |block: &crate::resource::istio::TlsMatch| {
            let mut block = block.clone();
            block.line = Default::default();
            block.gateway_lines.clear();
            format!("{block:?}")
        };
        blocks.push((rule, span, parsed.matches.iter().map(key).collect()));
    }
    repeated_rules(&blocks, check);
}

/// Warns of rules, each its index, its place and its blocks, all of whose blocks stand in earlier rules.
fn repeated_rules(rules: &[(usize, Span, Vec<String>)], check: &mut Check<'_>) {
    let mut seen: HashMap<&str, (usize, Span)> = HashMap::new();
    for (rule, span, blocks) in rules {
        let earlier = blocks.iter().map(|block| seen.get(block.as_str()).copied());
        let earlier: Option<Vec<(usize, Span)>> = earlier.collect();
        if let Some((first, first_span)) = earlier.and_then(|earlier| earlier.first().copied()) {
            let place = check.place(first_span);
            check
                .warning(
                    VS121,
                    *span,
                    format!("rule {rule} is never reached: its matches repeat earlier ones"),
                )
                .help(format!(
                    "connections that it would take go to rule {first}; remove one of them"
                ))
                .related(place, "first matched here");
        }
        for block in blocks {
            seen.entry(block).or_insert((*rule, *span));
        }
    }
}
