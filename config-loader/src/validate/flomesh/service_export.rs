//! ServiceExport: the checks of its API, and of gateway routes.

use std::sync::Arc;

use regex::bytes::Regex;

use crate::diagnostic::codes::multicluster::{
    SX001, SX002, SX003, SX004, SX005, SX006, SX007, SX008, SX009,
};
use crate::raw::Field;
use crate::raw::flomesh as raw;
use crate::re2::Extent;
use crate::resource::flomesh::{Algorithm, ExportRule, PathRewrite, PathType, ServiceExport};
use crate::resource::istio::Pattern;
use crate::span::Span;
use crate::validate::{Check, api, api_status, scalar};

const PATH_TYPES: [(&str, PathType); 2] =
    [("Exact", PathType::Exact), ("Prefix", PathType::Prefix)];

/// Names of algorithms in the API.
const ALGORITHMS: [(&str, Algorithm); 3] = [
    ("HashingLoadBalancer", Algorithm::Hashing),
    ("LeastWorkLoadBalancer", Algorithm::LeastWork),
    ("RoundRobinLoadBalancer", Algorithm::RoundRobin),
];

/// Names of algorithms that the flomesh controller also accepts.
const ALGORITHM_ALIASES: [(&str, Algorithm); 3] = [
    ("hashing", Algorithm::Hashing),
    ("least-work", Algorithm::LeastWork),
    ("round-robin", Algorithm::RoundRobin),
];

/// Checks a ServiceExport.
pub fn service_export(raw: &raw::ServiceExport, check: &mut Check<'_>) -> ServiceExport {
    let empty = raw::ServiceExportSpec::default();
    let spec = raw.spec.get().unwrap_or(&empty);
    needs_rules(raw, spec, check);
    let mut target_clusters = Vec::new();
    for (entry, _) in scalar::items(&spec.target_clusters, check) {
        target_clusters.extend(api::cluster_key(entry, SX005, check));
    }
    ServiceExport {
        rules: rules(&spec.rules, check),
        path_rewrite: rewrite(&spec.path_rewrite, check),
        session_sticky: spec.session_sticky.get().copied().unwrap_or(false),
        algorithm: algorithm(&spec.load_balancer, check),
        target_clusters,
        service_account: api::service_account(&spec.service_account_name, SX008, check),
        conditions: raw.status.get().map_or_else(Vec::new, |status| {
            api_status::conditions(&status.conditions, SX009, check)
        }),
    }
}

fn needs_rules(raw: &raw::ServiceExport, spec: &raw::ServiceExportSpec, check: &mut Check<'_>) {
    let why = "at least one rule is required";
    if raw.spec.is_invalid() || spec.rules.is_invalid() {
        return;
    }
    if !raw.spec.is_set() {
        api::required(check.body(), "spec", "", SX001, check);
    } else if !spec.rules.is_set() {
        api::required(raw.spec.span(), "rules", why, SX001, check);
    } else if spec.rules.get().is_some_and(Vec::is_empty) {
        check.error(SX001, spec.rules.span(), format!("Required value: {why}"));
    }
}

fn algorithm(field: &Field<String>, check: &mut Check<'_>) -> Algorithm {
    let alias = field
        .get()
        .and_then(|text| ALGORITHM_ALIASES.iter().find(|(name, _)| name == text));
    match alias {
        Some((_, algorithm)) => *algorithm,
        None => api::enum_of(field, &ALGORITHMS, check).unwrap_or_default(),
    }
}

fn rules(
    field: &Field<Vec<Field<raw::ServiceExportRule>>>,
    check: &mut Check<'_>,
) -> Vec<ExportRule> {
    let mut seen: Vec<(String, Span)> = Vec::new();
    let mut rules = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let span = entry.span();
        let port = api::required_port(&raw.port_number, span, "portNumber", SX001, check);
        api::require_text(&raw.path_type, span, "pathType", SX001, check);
        let path_type = api::enum_of(&raw.path_type, &PATH_TYPES, check);
        if !raw.path.is_set() {
            api::required(span, "path", "", SX001, check);
        }
        let path = raw.path.get().map_or("", String::as_str);
        if raw.path.get().is_some() && !path.starts_with('/') {
            api::invalid(&raw.path, "must start with '/'", SX002, check)
                .help(format!("write `/{path}`"));
        } else if let Some(why) = api::not_of_a_path(path) {
            api::invalid(&raw.path, why, SX002, check);
        }
        let Some(path_type) = path_type else { continue };
        let both = format!("{} {path}", path_type.as_str());
        match seen.iter().find(|(known, _)| *known == both) {
            Some((_, first)) => api::duplicate(&both, span, *first, SX003, check),
            None => seen.push((both, span)),
        }
        let Some(port) = port else { continue };
        rules.push(ExportRule {
            port,
            path: Arc::from(path),
            path_type,
            line: check.line(span),
        });
    }
    rules
}

/// Returns the rewrite, if both of its parts are present.
fn rewrite(field: &Field<raw::PathRewrite>, check: &mut Check<'_>) -> Option<PathRewrite> {
    let raw = field.get()?;
    let from = raw.from.get().filter(|text| !text.is_empty());
    let to = raw.to.get().filter(|text| !text.is_empty());
    let half = match (from, to) {
        (Some(_), None) if !raw.to.is_invalid() => Some("to"),
        (None, Some(_)) if !raw.from.is_invalid() => Some("from"),
        _ => None,
    };
    if let Some(missing) = half {
        let message = format!("the rewrite has no effect without `{missing}`");
        check
            .warning(SX006, field.span(), message)
            .help(format!("add `{missing}`, or remove the rewrite"));
    }
    let from = from?;
    let regex = regex(from, &raw.from, check)?;
    let to = braced(to?);
    for group in groups(&to) {
        if group >= regex.captures_len() {
            let known = regex.captures_len() - 1;
            let message = format!("`${group}` means nothing: `from` has {known} groups");
            check.warning(SX007, raw.to.span(), message);
        }
    }
    Some(PathRewrite {
        from: Pattern {
            source: from.as_str().into(),
            regex,
        },
        to: Arc::from(to),
        line: check.line(field.span()),
    })
}

fn regex(text: &str, field: &Field<String>, check: &mut Check<'_>) -> Option<Arc<Regex>> {
    if check.regexes().is_spent() {
        return None;
    }
    let limit = scalar::REGEX_BYTES_MAX;
    let reason = match check.regexes().compile(text, Extent::Part) {
        _ if text.len() > limit => format!("longer than {limit} bytes"),
        Ok(regex) => return Some(regex),
        Err(reason) => reason,
    };
    api::invalid(
        field,
        format!("invalid regular expression: {reason}"),
        SX004,
        check,
    );
    None
}

/// Writes `$1` as `${1}`. Without braces, the crate `regex` reads letters that follow as part of the group name.
fn braced(to: &str) -> String {
    let mut out = String::with_capacity(to.len() + 4);
    let mut rest = to;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        out.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (group, tail) = after.split_at(digits);
        let braces = after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
            .filter(|(name, _)| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()));
        if digits > 0 {
            out.push_str(&format!("${{{group}}}"));
            rest = tail;
        } else if let Some((name, tail)) = braces {
            out.push_str(&format!("${{{name}}}"));
            rest = tail;
        } else {
            // A dollar that names no group matches itself, and so does one of two.
            out.push_str("$$");
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    out.push_str(rest);
    out
}

/// Returns the group numbers in a text made by [`braced`].
fn groups(to: &str) -> impl Iterator<Item = usize> + '_ {
    to.split("${").skip(1).map(|part| {
        let (number, _) = part.split_once('}').unwrap_or(("", ""));
        number.parse().unwrap_or(usize::MAX)
    })
}

#[cfg(test)]
mod tests;
