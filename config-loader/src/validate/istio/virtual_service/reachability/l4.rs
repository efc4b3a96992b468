//! Detection of unreachable `tcp` and `tls` rules, blocks and list entries.
//!
//! A block with several SNI hosts or subnets is compared entry by entry: a connection goes to the first block with a
//! matching entry, whatever the block's other entries.

use std::collections::HashMap;
use std::fmt::Debug;

use super::never_reached::never_reached;
use crate::diagnostic::Location;
use crate::diagnostic::codes::istio::{VS120, VS121};
use crate::raw::{self, Field};
use crate::resource::istio::{GatewayRef, TcpMatch, TcpRule, TlsMatch, TlsRule};
use crate::span::Span;
use crate::validate::Check;

/// Rule, by its index.
struct Rule {
    index: usize,
    span: Span,
    blocks: Vec<Block>,
    /// Whether it matches every connection.
    takes_everything: bool,
}

/// Match block, with an entry for each SNI host or subnet.
struct Block {
    span: Span,
    entries: Vec<Entry>,
}

/// SNI host or subnet, together with all other conditions of its block.
struct Entry {
    span: Span,
    /// Key that is equal for entries that match the same connections.
    key: String,
    /// Entry as written; `None` if the block has no list.
    text: Option<String>,
}

/// First occurrence of an entry.
#[derive(Clone, Copy)]
struct Seen {
    rule: usize,
    block: usize,
    span: Span,
}

/// Warns of unreachable `tcp` rules, blocks and subnets.
pub(in super::super) fn tcp(
    rules: &[TcpRule],
    field: &Field<Vec<Field<raw::istio::TcpRoute>>>,
    check: &mut Check<'_>,
) {
    let raws = set(field).zip(rules);
    let rules = raws.map(|((index, span, raw), rule)| {
        let blocks = set(&raw.r#match).zip(&rule.matches);
        Rule {
            index,
            span,
            blocks: blocks
                .map(|((_, span, raw), block)| Block {
                    span,
                    entries: tcp_entries(span, raw, block),
                })
                .collect(),
            takes_everything: rule.matches.is_empty() || rule.matches.iter().any(is_unconditional),
        }
    });
    report(&rules.collect::<Vec<_>>(), check);
}

/// Warns of unreachable `tls` rules, blocks and SNI hosts.
pub(in super::super) fn tls(
    rules: &[TlsRule],
    field: &Field<Vec<Field<raw::istio::TlsRoute>>>,
    check: &mut Check<'_>,
) {
    let raws = set(field).zip(rules);
    let rules = raws.map(|((index, span, raw), rule)| {
        let blocks = set(&raw.r#match).zip(&rule.matches);
        Rule {
            index,
            span,
            blocks: blocks
                .map(|((_, span, raw), block)| Block {
                    span,
                    entries: tls_entries(raw, block),
                })
                .collect(),
            takes_everything: false,
        }
    });
    report(&rules.collect::<Vec<_>>(), check);
}

/// Returns the entries of a list that are valid and not null, each with its index and its span.
fn set<T>(field: &Field<Vec<Field<T>>>) -> impl Iterator<Item = (usize, Span, &T)> {
    let entries = field.get().into_iter().flatten().enumerate();
    entries.filter_map(|(index, entry)| Some((index, entry.span(), entry.get()?)))
}

fn is_unconditional(block: &TcpMatch) -> bool {
    let lists = block.destination_subnets.is_empty() && block.gateways.is_empty();
    let sources = block.source_labels.is_empty()
        && block.source_namespace.is_none()
        && block.source_subnet.is_none();
    lists && sources && block.port.is_none()
}

fn tcp_entries(span: Span, raw: &raw::istio::L4MatchAttributes, block: &TcpMatch) -> Vec<Entry> {
    let rest = (
        block.port,
        sorted(&block.gateways),
        &block.source_labels,
        &block.source_namespace,
        &block.source_subnet,
    );
    if block.destination_subnets.is_empty() {
        return vec![Entry {
            span,
            key: format!("{rest:?}"),
            text: None,
        }];
    }
    let subnets = set(&raw.destination_subnets).zip(&block.destination_subnets);
    let entries = subnets.map(|((_, span, text), net)| Entry {
        span,
        key: key(net.trunc(), &rest),
        text: Some(text.clone()),
    });
    entries.collect()
}

fn tls_entries(raw: &raw::istio::TlsMatchAttributes, block: &TlsMatch) -> Vec<Entry> {
    let mut subnets: Vec<_> = block
        .destination_subnets
        .iter()
        .map(|net| net.trunc())
        .collect();
    subnets.sort_unstable();
    let rest = (
        subnets,
        block.port,
        sorted(&block.gateways),
        &block.source_labels,
        &block.source_namespace,
    );
    let entries = set(&raw.sni_hosts).map(|(_, span, sni)| Entry {
        span,
        key: key(sni.to_ascii_lowercase(), &rest),
        text: Some(sni.clone()),
    });
    entries.collect()
}

fn key(entry: impl Debug, rest: &impl Debug) -> String {
    format!("{entry:?} {rest:?}")
}

fn sorted(gateways: &[GatewayRef]) -> Vec<&GatewayRef> {
    let mut gateways: Vec<&GatewayRef> = gateways.iter().collect();
    gateways.sort_unstable();
    gateways
}

fn report(rules: &[Rule], check: &mut Check<'_>) {
    let mut all: Option<&Rule> = None;
    let mut seen: HashMap<&str, Seen> = HashMap::new();
    for rule in rules {
        if let Some(all) = all {
            let location = check.location(all.span);
            never_reached(rule.index, rule.span, all.index, location, check);
            continue;
        }
        let mut entries = rule.blocks.iter().flat_map(|block| &block.entries);
        let first = entries
            .clone()
            .next()
            .and_then(|entry| seen.get(&*entry.key));
        match first.copied() {
            Some(first) if entries.all(|entry| seen.contains_key(&*entry.key)) => {
                let location = check.location(first.span);
                repeated_rule(rule, first.rule, location, check);
            }
            _ => {
                for (at, block) in rule.blocks.iter().enumerate() {
                    repeated_block(rule.index, at, block, &mut seen, check);
                }
            }
        }
        if rule.takes_everything {
            all = Some(rule);
        }
    }
}

fn repeated_rule(rule: &Rule, first: usize, location: Location, check: &mut Check<'_>) {
    let text = format!(
        "rule {} is never reached: its matches repeat earlier ones",
        rule.index
    );
    check
        .warning(VS121, rule.span, text)
        .help(format!(
            "rule {first} matches these connections first; remove one of them"
        ))
        .related(location, "first matched here");
}

/// Warns of a block, or of its entries, that repeat earlier blocks. Records the others.
fn repeated_block<'r>(
    rule: usize,
    at: usize,
    block: &'r Block,
    seen: &mut HashMap<&'r str, Seen>,
    check: &mut Check<'_>,
) {
    let earlier: Vec<Option<Seen>> = block
        .entries
        .iter()
        .map(|entry| seen.get(&*entry.key).copied())
        .collect();
    let whole = earlier.iter().all(Option::is_some).then(|| earlier.first());
    let what = match whole.flatten().copied().flatten() {
        Some(first) => vec![(block.span, format!("match {at}"), first)],
        None => {
            let entries = block.entries.iter().zip(earlier);
            let repeated = entries.filter_map(|(entry, first)| {
                let text = entry.text.as_deref().unwrap_or_default();
                Some((entry.span, format!("`{text}`"), first?))
            });
            repeated.collect()
        }
    };
    for (span, what, first) in what {
        let location = check.location(first.span);
        let text = format!(
            "{what} repeats match {} of rule {}, which takes the connections",
            first.block, first.rule
        );
        check
            .warning(VS120, span, text)
            .help("remove it")
            .related(location, "first matched here");
    }
    for entry in &block.entries {
        seen.entry(&entry.key).or_insert(Seen {
            rule,
            block: at,
            span: entry.span,
        });
    }
}
