//! Rewrites of the path and the authority.

use super::string_match;
use crate::diagnostic::codes::istio::{VS067, VS068, VS069, VS303, VS304};
use crate::raw::{self, Field};
use crate::re2::Extent;
use crate::resource::istio::{HttpMatch, RegexRewrite, Rewrite, RewritePath, StringMatch};
use crate::validate::Check;
use crate::validate::istio::shared;

/// Returns a rewrite, checked against the paths that `matches` allows.
pub(super) fn rewrite(
    field: &Field<raw::istio::HttpRewrite>,
    matches: &[HttpMatch],
    check: &mut Check<'_>,
) -> Option<Rewrite> {
    let raw = field.get()?;
    let uri = ("uri", shared::text_span(&raw.uri));
    let regex = ("uriRegexRewrite", shared::block(&raw.uri_regex_rewrite));
    let authority = shared::text_arc(&raw.authority);
    if uri.1.is_none() && regex.1.is_none() && authority.is_none() {
        check
            .error(VS067, field.span(), "the rewrite is empty")
            .help("set `uri`, `uriRegexRewrite` or `authority`");
    }
    shared::exclude([uri, regex], VS068, "keep the one that is meant", check);
    let by_regex = regex_rewrite(&raw.uri_regex_rewrite, check);
    let path = match shared::text_arc(&raw.uri) {
        Some(path) => {
            doubled_slash(&path, &raw.uri, matches, check);
            RewritePath::Matched(path)
        }
        None => by_regex.map_or(RewritePath::Keep, RewritePath::Regex),
    };
    Some(Rewrite {
        authority,
        path,
        line: check.line(field.span()),
    })
}

/// Warns of a rewritten path with a double slash: the new prefix ends with a slash, and the rest of the path begins
/// with one.
fn doubled_slash(path: &str, field: &Field<String>, matches: &[HttpMatch], check: &mut Check<'_>) {
    if !path.ends_with('/') {
        return;
    }
    let bare = matches.iter().find_map(|block| match &block.uri {
        Some(StringMatch::Prefix(prefix)) if !prefix.is_empty() && !prefix.ends_with('/') => {
            Some(prefix)
        }
        _ => None,
    });
    if let Some(prefix) = bare {
        check
            .warning(
                VS304,
                field.span(),
                format!("prefix `{prefix}` rewritten to `{path}` makes `{path}/x` of `{prefix}/x`"),
            )
            .help(format!(
                "match `prefix: {prefix}/`, and `exact: {prefix}` in a block of its own"
            ));
    }
}

fn regex_rewrite(
    field: &Field<raw::istio::RegexRewrite>,
    check: &mut Check<'_>,
) -> Option<RegexRewrite> {
    let raw = field.get()?;
    let written = |text: &Field<String>| text.is_invalid() || !shared::text_span(text).is_none();
    if !written(&raw.r#match) || !written(&raw.rewrite) {
        check
            .error(
                VS069,
                field.span(),
                "uriRegexRewrite needs `match` and `rewrite`",
            )
            .help("write what to look for under `match`, and what to put in its place under `rewrite`");
        return None;
    }
    let pattern = string_match::pattern(&raw.r#match, Extent::Part, check)?;
    let replacement = shared::text_arc(&raw.rewrite)?;
    let count = pattern.regex.captures_len() - 1;
    groups(&replacement, count, &raw.rewrite, check);
    Some(RegexRewrite {
        pattern,
        replacement,
    })
}

/// Checks that `\1` to `\9` refer to existing groups.
fn groups(replacement: &str, count: usize, field: &Field<String>, check: &mut Check<'_>) {
    let mut rest = replacement.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            continue;
        }
        let problem = match rest.next() {
            Some('\\') => continue,
            Some(digit) if digit.is_ascii_digit() => {
                let group = digit.to_digit(10).map_or(0, |digit| digit as usize);
                if group <= count {
                    continue;
                }
                format!("`\\{group}` refers to a group that the match does not have")
            }
            Some(other) => format!("`\\{other}` is not a reference to a group"),
            None => "the rewrite ends in a lone `\\`".to_owned(),
        };
        check.error(VS303, field.span(), problem).help(format!(
            "the match has {count} groups; a backslash is written `\\\\`"
        ));
    }
}
