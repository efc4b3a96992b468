//! Lists, texts, hosts and durations.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::diagnostic::codes::common::CM034;
use crate::diagnostic::codes::gateway_api::{GA101, GA102, GA104, GA120, GA131, GA138};
use crate::diagnostic::{Code, Diagnostic};
use crate::raw::{Field, Map};
use crate::resource::istio::{Lined, Pattern};
use crate::resource::shared_text;
use crate::span::Span;
use crate::validate::scalar::RegexCodes;
use crate::validate::{Check, api, scalar};

const REGEX_CODES: RegexCodes = RegexCodes {
    empty: GA120,
    long: GA120,
    syntax: GA120,
};

/// Reports that the mapping at `parent` has no `field`.
pub(super) fn missing<'c>(
    parent: Span,
    field: &str,
    check: &'c mut Check<'_>,
) -> &'c mut Diagnostic {
    let found = api::required(parent, field, "", GA101, check);
    found.help(format!("write `{field}`"))
}

/// Returns the text of a required field.
pub(super) fn required_text(
    field: &Field<String>,
    parent: Span,
    name: &str,
    check: &mut Check<'_>,
) -> Option<Arc<str>> {
    match field.get() {
        Some(text) if text.is_empty() => {
            let found = check.error(GA101, field.span(), "Required value");
            found.help(format!("write a text in `{name}`"));
        }
        Some(text) => return Some(shared_text(text)),
        None if field.is_invalid() => {}
        None => _ = missing(parent, name, check),
    }
    None
}

/// Maximum number of characters of a name.
pub(super) const NAME_MAX: usize = 253;
/// Maximum number of options, and of characters of a value of theirs.
const OPTIONS_MAX: usize = 16;
const OPTION_MAX: usize = 4096;

/// Reports a text with more characters than the API allows.
pub(super) fn limit_text(field: &Field<String>, most: usize, check: &mut Check<'_>) {
    let count = field.get().map_or(0, |text| text.chars().count());
    if count > most {
        let message = format!("the text has {count} characters");
        let found = check.error(GA138, field.span(), message);
        found.help(format!("write at most {most}"));
    }
}

/// Reports a mapping with more entries than the API allows.
pub(super) fn limit_entries<T>(field: &Field<Map<T>>, most: usize, check: &mut Check<'_>) {
    let count = field.get().map_or(0, |map| map.0.len());
    if count > most {
        let message = format!("the mapping has {count} entries");
        let found = check.error(GA102, field.span(), message);
        found.help(format!("write at most {most}"));
    }
}

/// Reports options that are more or longer than the API allows.
pub(super) fn limit_options(field: &Field<Map<String>>, check: &mut Check<'_>) {
    limit_entries(field, OPTIONS_MAX, check);
    for (_, _, value) in field.get().into_iter().flat_map(Map::iter) {
        limit_text(value, OPTION_MAX, check);
    }
}

/// Reports a text that another one of its list has as well.
pub(super) fn unique<'f>(
    texts: impl Iterator<Item = &'f Field<String>>,
    code: Code,
    check: &mut Check<'_>,
) {
    let mut seen: Vec<&Field<String>> = Vec::new();
    for field in texts {
        let Some(text) = field.get() else {
            continue;
        };
        if let Some(first) = seen.iter().find(|known| known.get() == Some(text)) {
            let location = check.location(first.span());
            let found = check.error(code, field.span(), format!("`{text}` is there twice"));
            found.help("remove one of them, or write another");
            found.related(location, "the first one");
        }
        seen.push(field);
    }
}

/// Returns the entries of a list, and reports if there are not `counts` of them. `name` is that of the field, and
/// `parent` the span around it.
pub(super) fn entries<'f, T>(
    field: &'f Field<Vec<Field<T>>>,
    name: &str,
    parent: Span,
    counts: RangeInclusive<usize>,
    check: &mut Check<'_>,
) -> Vec<(&'f Field<T>, &'f T)> {
    let listed = scalar::items(field, check);
    let count = field.get().map_or(0, Vec::len);
    let (least, most) = (counts.start(), counts.end());
    if !counts.contains(&count) && !field.is_invalid() {
        let span = if field.is_set() { field.span() } else { parent };
        let message = match count {
            0 => format!("`{name}` has no entry"),
            _ => format!("`{name}` has {count} entries"),
        };
        let found = check.error(GA102, span, message);
        found.help(match least == most {
            true => format!("write exactly {most}"),
            false => format!("write {least} to {most} entries"),
        });
    }
    listed
}

/// Returns a host. A wildcard as its first label is allowed if `takes_wildcard` is set.
pub(super) fn host(
    field: &Field<String>,
    takes_wildcard: bool,
    check: &mut Check<'_>,
) -> Option<Arc<str>> {
    let text = field.get()?;
    let name = text.strip_prefix("*.").filter(|_| takes_wildcard);
    if scalar::is_dns_subdomain(name.unwrap_or(text)) && scalar::ip(text).is_none() {
        return Some(shared_text(text));
    }
    let found = check.error(GA104, field.span(), format!("`{text}` is not a host"));
    let lower = text.to_ascii_lowercase();
    found.help(if scalar::ip(text).is_some() {
        "write a DNS name instead of an IP address".to_owned()
    } else if text.contains(':') {
        "a host has no port and no scheme".to_owned()
    } else if text.contains('*') && !takes_wildcard {
        "write the name without a wildcard".to_owned()
    } else if text.contains('*') {
        "a wildcard is the whole first label, such as `*.example.com`".to_owned()
    } else if scalar::is_dns_subdomain(&lower) {
        format!("hosts are in lower case: write `{lower}`")
    } else {
        "write a DNS name such as `www.example.com`".to_owned()
    });
    None
}

/// Returns the hosts of a route.
pub(super) fn hosts(
    field: &Field<Vec<Field<String>>>,
    parent: Span,
    counts: RangeInclusive<usize>,
    check: &mut Check<'_>,
) -> Vec<Lined<Arc<str>>> {
    let listed = entries(field, "hostnames", parent, counts, check);
    let hosts = listed.into_iter().filter_map(|(entry, _)| {
        Some(Lined {
            value: host(entry, true, check)?,
            line: check.line(entry.span()),
        })
    });
    hosts.collect()
}

/// Returns a duration as GEP-2257 has it; `None` for a missing one, and for `0s`, which means no limit.
pub(super) fn limit(field: &Field<String>, check: &mut Check<'_>) -> Option<Duration> {
    let text = field.get()?;
    let parsed = parse_duration(text);
    if parsed.is_none() {
        let message = format!("`{text}` is not a duration");
        let found = check.error(GA131, field.span(), message);
        found.help(
            "write up to four whole numbers of at most five digits, each with one of the units h, m, s and ms, such as \
             `1m30s` or `500ms`",
        );
    }
    parsed.filter(|duration| !duration.is_zero())
}

/// Parses a duration as GEP-2257 has it: `^([0-9]{1,5}(h|m|s|ms)){1,4}$`.
fn parse_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let (mut rest, mut millis) = (text, 0);
    for _ in 0..4 {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let number = number.parse::<u64>().ok().filter(|_| digits <= 5)?;
        let mut units = UNITS.into_iter();
        let (unit, after) =
            units.find_map(|(name, unit)| Some((unit, after.strip_prefix(name)?)))?;
        millis += number * unit;
        rest = after;
        if rest.is_empty() {
            return Some(Duration::from_millis(millis));
        }
    }
    None
}

/// Compiles a regular expression that must match the whole value.
pub(super) fn pattern(field: &Field<String>, check: &mut Check<'_>) -> Option<Pattern> {
    let regex = scalar::regex(field, crate::re2::Extent::Whole, REGEX_CODES, check)?;
    let source = Arc::from(field.get()?.as_str());
    Some(Pattern { source, regex })
}

/// Returns the value of an annotation, and reports one that `read` does not take.
pub(super) fn value_of<T>(
    key: &str,
    help: &str,
    check: &mut Check<'_>,
    read: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let field = check.annotations().get(key)?;
    let text = field.get()?;
    let value = read(text);
    if value.is_none() {
        let message = format!("`{text}` is not a value of this annotation");
        check.error(CM034, field.span(), message).help(help);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_gep_2257() {
        for (text, millis) in [
            ("0s", Some(0)),
            ("1h30m", Some(5_400_000)),
            ("10s500ms", Some(10_500)),
            ("99999ms", Some(99_999)),
            ("1h1m1s1ms", Some(3_661_001)),
            ("1s1s1s1s", Some(4_000)),
            ("1h1m1s1ms1s", None),
            ("100000ms", None),
            ("1.5s", None),
            ("-1s", None),
            ("+1s", None),
            ("1", None),
            ("0", None),
            ("s", None),
            ("1us", None),
            ("1 s", None),
            ("", None),
        ] {
            assert_eq!(
                parse_duration(text),
                millis.map(Duration::from_millis),
                "{text}"
            );
        }
    }
}
