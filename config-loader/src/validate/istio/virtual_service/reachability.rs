//! Rules and match blocks that can never match, because an earlier one takes everything that they would.
//!
//! These are warnings, and they are careful: a rule that delegates may leave requests to later rules, and a block that
//! depends on the proxy (port, gateways, labels) may not exist at all.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Debug, Write};
use std::ops::Bound::{Included, Unbounded};

use super::http_rule::keeps_all;
use crate::diagnostic::codes::istio::{VS119, VS120, VS121, VS122};
use crate::raw::{self, Field};
use crate::resource::istio::{
    HeaderMatch, HttpMatch, HttpRule, QueryMatch, StringMatch, TcpRule, TlsRule,
};
use crate::span::Span;
use crate::validate::Check;

/// Where a rule or a block stands in its list, and in the document.
#[derive(Clone, Copy, Debug)]
struct Spot {
    rule: usize,
    block: usize,
    span: Span,
}

/// The spans of the entries of a list that have a value.
fn spans<T>(field: &Field<Vec<Field<T>>>) -> Vec<(usize, Span)> {
    let entries = field.get().into_iter().flatten().enumerate();
    entries
        .filter(|(_, entry)| entry.get().is_some())
        .map(|(index, entry)| (index, entry.span()))
        .collect()
}

/// Warns of `http` rules and blocks that are never reached.
pub(super) fn http(
    field: &Field<Vec<Field<raw::istio::HttpRoute>>>,
    rules: &[HttpRule],
    check: &mut Check<'_>,
) {
    let raws = field.get().into_iter().flatten().filter_map(Field::get);
    let mut seen = Seen::default();
    let mut all: Option<Spot> = None;
    for (((rule, span), raw), parsed) in spans(field).into_iter().zip(raws).zip(rules) {
        if let Some(all) = all {
            never_reached(rule, span, all, check);
            continue;
        }
        let blocks = spans(&raw.r#match);
        let spots = blocks
            .into_iter()
            .map(|(block, span)| Spot { rule, block, span });
        let blocks: Vec<(Spot, &HttpMatch)> = spots.zip(&parsed.matches).collect();
        let taken = hidden_blocks((rule, span), &blocks, &seen, check);
        all = taken.filter(|_| keeps_all(parsed));
        if blocks.is_empty() && keeps_all(parsed) {
            all = Some(Spot {
                rule,
                block: 0,
                span,
            });
        }
        if keeps_all(parsed) {
            for (spot, block) in &blocks {
                seen.add(*spot, block);
            }
        }
    }
}

/// Warns of the blocks of one rule that are never reached. Returns the block that takes everything, if one does.
fn hidden_blocks(
    (rule, span): (usize, Span),
    blocks: &[(Spot, &HttpMatch)],
    seen: &Seen,
    check: &mut Check<'_>,
) -> Option<Spot> {
    let repeated = blocks.iter().map(|(_, block)| seen.same(block));
    let all_repeated: Option<Vec<Spot>> = repeated.collect();
    if let Some(first) = all_repeated.and_then(|spots| spots.first().copied()) {
        let place = check.place(first.span);
        check
            .warning(
                VS121,
                span,
                format!("rule {rule} is never reached: its matches repeat earlier ones"),
            )
            .help(format!(
                "requests that it would take go to rule {}; remove one of them",
                first.rule
            ))
            .related(place, "first matched here");
        return None;
    }
    let mut own = Seen::default();
    let mut all: Option<Spot> = None;
    for (spot, block) in blocks {
        let earlier = seen.same(block).or_else(|| own.same(block));
        if let Some(all) = all {
            let place = check.place(all.span);
            let text = format!(
                "match {} is never reached: match {} takes everything",
                spot.block, all.block
            );
            check
                .warning(VS119, spot.span, text)
                .related(place, "this takes everything");
        } else if let Some(first) = earlier {
            let place = check.place(first.span);
            let text = format!(
                "match {} repeats match {} of rule {}",
                spot.block, first.block, first.rule
            );
            check
                .warning(VS120, spot.span, text)
                .help("remove it")
                .related(place, "first matched here");
        } else if let Some((prefix, first)) = seen.hiding(block).or_else(|| own.hiding(block)) {
            hidden_path(*spot, block, (&prefix, first), check);
        }
        own.add(*spot, block);
        if all.is_none() && takes_everything(block) {
            all = Some(*spot);
        }
    }
    all
}

fn hidden_path(
    spot: Spot,
    block: &HttpMatch,
    (prefix, first): (&str, Spot),
    check: &mut Check<'_>,
) {
    let (what, path) = match &block.uri {
        Some(StringMatch::Exact(path)) => ("path", path),
        Some(StringMatch::Prefix(path)) => ("prefix", path),
        _ => return,
    };
    let place = check.place(first.span);
    check
        .warning(
            VS122,
            spot.span,
            format!(
                "{what} `{path}` is hidden by prefix `{prefix}` in rule {}",
                first.rule
            ),
        )
        .help("the first rule that matches is taken: put the longer path first")
        .related(place, format!("prefix `{prefix}` is matched here"));
}

fn never_reached(rule: usize, span: Span, all: Spot, check: &mut Check<'_>) {
    let place = check.place(all.span);
    check
        .warning(
            VS119,
            span,
            format!(
                "rule {rule} is never reached: rule {} matches everything",
                all.rule
            ),
        )
        .help("the first rule that matches is taken: put the rule that matches everything last")
        .related(place, "this matches everything");
}

/// Warns of `tcp` rules that are never reached.
pub(super) fn tcp(
    rules: &[TcpRule],
    field: &Field<Vec<Field<raw::istio::TcpRoute>>>,
    check: &mut Check<'_>,
) {
    let mut all: Option<Spot> = None;
    let mut blocks = Vec::new();
    for ((rule, span), parsed) in spans(field).into_iter().zip(rules) {
        if let Some(all) = all {
            never_reached(rule, span, all, check);
        } else if parsed.matches.is_empty() {
            all = Some(Spot {
                rule,
                block: 0,
                span,
            });
        }
        let key = |block: &crate::resource::istio::TcpMatch| {
            let mut block = block.clone();
            block.line = Default::default();
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

/// Whether a block holds for every request at every proxy.
fn takes_everything(block: &HttpMatch) -> bool {
    let any_path = match &block.uri {
        None => true,
        Some(StringMatch::Prefix(prefix)) => prefix.is_empty() || &**prefix == "/",
        Some(StringMatch::Regex(pattern)) => matches!(&*pattern.source, ".*" | "/.*"),
        Some(StringMatch::Exact(_) | StringMatch::Present) => false,
    };
    any_path && other_conditions(block).is_empty()
}

/// The blocks so far, by what they say.
#[derive(Debug, Default)]
struct Seen {
    /// By all conditions.
    same: HashMap<String, Spot>,
    /// By the conditions other than a prefix: the prefixes that came with them.
    prefixes: HashMap<String, BTreeMap<String, Spot>>,
}

impl Seen {
    fn add(&mut self, spot: Spot, block: &HttpMatch) {
        self.same.entry(all_conditions(block)).or_insert(spot);
        if let Some(StringMatch::Prefix(prefix)) = &block.uri {
            let prefixes = self.prefixes.entry(other_conditions(block)).or_default();
            prefixes.entry(prefix.to_string()).or_insert(spot);
        }
    }

    fn same(&self, block: &HttpMatch) -> Option<Spot> {
        self.same.get(&all_conditions(block)).copied()
    }

    /// The prefix of an earlier block that takes all paths of `block`, and asks for nothing more than it does.
    fn hiding(&self, block: &HttpMatch) -> Option<(String, Spot)> {
        let Some(StringMatch::Exact(path) | StringMatch::Prefix(path)) = &block.uri else {
            return None;
        };
        // Paths that differ in case only are not one path, unless the earlier block says so too.
        let own = other_conditions(block);
        let unconditional = if block.ignore_uri_case {
            None
        } else {
            self.prefixes.get("")
        };
        [self.prefixes.get(&own), unconditional]
            .into_iter()
            .flatten()
            .find_map(|prefixes| prefix_of(prefixes, path))
    }
}

/// The key of `prefixes` that `path` begins with, if there is one.
fn prefix_of(prefixes: &BTreeMap<String, Spot>, path: &str) -> Option<(String, Spot)> {
    let mut upper = path;
    // Every key that begins a text sorts before it; what lies between shares less and less with it.
    loop {
        let (key, spot) = prefixes
            .range::<str, _>((Unbounded, Included(upper)))
            .next_back()?;
        if path.starts_with(key.as_str()) {
            return Some((key.clone(), *spot));
        }
        let shared = key.chars().zip(path.chars()).take_while(|(a, b)| a == b);
        let shared: usize = shared.map(|(_, b)| b.len_utf8()).sum();
        upper = &path[..shared];
    }
}

fn all_conditions(block: &HttpMatch) -> String {
    let mut text = other_conditions(block);
    add(&mut text, "uri", &block.uri);
    text
}

/// All conditions but the uri, as a text that is equal where they are; empty if there is none.
fn other_conditions(block: &HttpMatch) -> String {
    let mut text = String::new();
    for (name, value) in [
        ("scheme", &block.scheme),
        ("method", &block.method),
        ("authority", &block.authority),
    ] {
        add(&mut text, name, value);
    }
    if block.ignore_uri_case && block.uri.is_some() {
        text.push_str("ignoreUriCase;");
    }
    let header = |header: &HeaderMatch| format!("{:?}{:?}", header.key, header.value);
    let query = |query: &QueryMatch| format!("{:?}{:?}", query.name, query.value);
    add_sorted(&mut text, "headers", block.headers.iter().map(header));
    add_sorted(
        &mut text,
        "withoutHeaders",
        block.without_headers.iter().map(header),
    );
    add_sorted(
        &mut text,
        "queryParams",
        block.query_params.iter().map(query),
    );
    add(&mut text, "port", &block.port);
    add(&mut text, "sourceNamespace", &block.source_namespace);
    let labels = block.source_labels.iter().map(|label| format!("{label:?}"));
    add_sorted(&mut text, "sourceLabels", labels);
    add_sorted(
        &mut text,
        "gateways",
        block.gateways.iter().map(|gateway| format!("{gateway}")),
    );
    text
}

fn add<T: Debug>(text: &mut String, name: &str, value: &Option<T>) {
    if let Some(value) = value {
        // Writing to a String cannot fail.
        let _ = write!(text, "{name}={value:?};");
    }
}

fn add_sorted(text: &mut String, name: &str, values: impl Iterator<Item = String>) {
    let mut values: Vec<String> = values.collect();
    values.sort_unstable();
    add(text, name, &(!values.is_empty()).then_some(values));
}
