//! Delegation: a root rule with `delegate` is replaced by the rules of another VirtualService.

use std::borrow::Cow;

use config_loader::catalog::View;
use config_loader::resource::Line;
use config_loader::resource::istio::{HttpAction, HttpMatch, HttpRule, StringMatch, conflict};

use crate::compile::route_source::RouteSource;
use crate::compile::rules::scope::Sourced;

/// Returns the rules of a source, with those of its delegates in place of the rules that name them. If a delegate
/// provides no rules, its root rule is dropped; the others stay.
pub(in crate::compile) fn expand<'a>(root: &'a RouteSource, view: View<'_>) -> Vec<Sourced<'a>> {
    let own_rules = root.http(view);
    let mut rules = Vec::with_capacity(own_rules.len());
    let own = root.provenance(Line(0));
    for rule in own_rules {
        let rule: &'a HttpRule = rule;
        let HttpAction::Delegate(named) = &rule.action else {
            rules.push(Sourced {
                rule: Cow::Borrowed(rule),
                source: root.clone(),
                root: None,
                at: own.clone(),
            });
            continue;
        };
        let Ok(delegate) = root.delegate(&named.name, view) else {
            continue;
        };
        let at = delegate.provenance(Line(0));
        let lent = delegate.http(view).iter();
        let lent = lent.filter(|inner| !matches!(inner.action, HttpAction::Delegate(_)));
        let merged = lent.filter_map(|inner| merge(rule, inner));
        let by = rule;
        rules.extend(merged.map(|rule| Sourced {
            rule: Cow::Owned(rule),
            source: delegate.clone(),
            root: Some((root, by)),
            at: at.clone(),
        }));
    }
    rules
}

/// Merges a root rule into a rule of its delegate; `None` if a block of the delegate matches no block of the root.
///
/// Source: VirtualService `http[].delegate`; the delegate's settings win, whole field by whole field.
pub(in crate::compile) fn merge(root: &HttpRule, inner: &HttpRule) -> Option<HttpRule> {
    let name = match (&*root.name, &*inner.name) {
        ("", name) | (name, "") => name.into(),
        (root, inner) => format!("{root}-{inner}").into(),
    };
    Some(HttpRule {
        name,
        matches: merge_matches(&root.matches, &inner.matches)?,
        action: inner.action.clone(),
        rewrite: inner.rewrite.clone().or_else(|| root.rewrite.clone()),
        timeout: inner.timeout.or(root.timeout),
        retries: inner.retries.clone().or_else(|| root.retries.clone()),
        fault: inner.fault.clone().or_else(|| root.fault.clone()),
        mirror: inner.mirror.clone().or_else(|| root.mirror.clone()),
        mirror_percentage: inner.mirror_percentage.or(root.mirror_percentage),
        mirrors: if inner.mirrors.is_empty() {
            root.mirrors.clone()
        } else {
            inner.mirrors.clone()
        },
        cors: inner.cors.clone().or_else(|| root.cors.clone()),
        headers: inner.headers.clone().or_else(|| root.headers.clone()),
        line: inner.line,
    })
}

fn merge_matches(root: &[HttpMatch], inner: &[HttpMatch]) -> Option<Vec<HttpMatch>> {
    if root.is_empty() || inner.is_empty() {
        return Some(if root.is_empty() { inner } else { root }.to_vec());
    }
    let mut merged = Vec::new();
    for block in inner {
        let before = merged.len();
        merged.extend(
            root.iter()
                .filter(|outer| conflict(outer, block).is_none())
                .map(|outer| merge_block(outer, block)),
        );
        if merged.len() == before {
            return None;
        }
    }
    Some(merged)
}

fn merge_block(root: &HttpMatch, inner: &HttpMatch) -> HttpMatch {
    let either = |inner: &Option<StringMatch>, root: &Option<StringMatch>| {
        inner.clone().or_else(|| root.clone())
    };
    let mut source_labels = root.source_labels.clone();
    source_labels.extend(inner.source_labels.clone());
    HttpMatch {
        name: match (&*root.name, &*inner.name) {
            ("", name) | (name, "") => name.into(),
            (root, inner) => format!("{root}-{inner}").into(),
        },
        uri: either(&inner.uri, &root.uri),
        ignore_uri_case: inner.ignore_uri_case || root.ignore_uri_case,
        scheme: either(&inner.scheme, &root.scheme),
        method: either(&inner.method, &root.method),
        authority: either(&inner.authority, &root.authority),
        headers: union(&root.headers, &inner.headers, |a, b| a.key == b.key),
        without_headers: union(&root.without_headers, &inner.without_headers, |a, b| {
            a.key == b.key
        }),
        query_params: union(&root.query_params, &inner.query_params, |a, b| {
            a.name == b.name
        }),
        port: inner.port.or(root.port),
        source_labels,
        source_namespace: inner
            .source_namespace
            .clone()
            .or_else(|| root.source_namespace.clone()),
        gateways: if inner.gateways.is_empty() {
            root.gateways.clone()
        } else {
            inner.gateways.clone()
        },
        gateway_lines: inner.gateway_lines.clone(),
        stat_prefix: if inner.stat_prefix.is_empty() {
            root.stat_prefix.clone()
        } else {
            inner.stat_prefix.clone()
        },
        line: inner.line,
    }
}

/// Returns the entries of both lists; of two entries with one key the inner one.
fn union<T: Clone>(root: &[T], inner: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let kept = root
        .iter()
        .filter(|outer| !inner.iter().any(|block| same(outer, block)));
    kept.chain(inner).cloned().collect()
}
