//! Fuzz target: rules and requests as text. The index finds the same rule as a linear scan, and `explain` agrees with
//! both.
//!
//! A rule is a line of words `FIELD:KIND=VALUE`; an empty line ends the rules. A request is a line `METHOD SCHEME
//! AUTHORITY PATH?QUERY`, followed by words `HEADER=VALUE`. Invalid parts are skipped, so that all bytes are valid
//! input; see the corpus.

use std::str::FromStr as _;
use std::sync::Arc;

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use traffic::pattern::Pattern;
use traffic::provenance::Provenance;
use traffic::route::explain::explain;
use traffic::route::{
    Conditions, HeaderKey, HeaderMatch, QueryMatch, RequestHead, Rule, Table, TextMatch, UriMatch,
    normalize_host, normalize_path, scan,
};

const RULES_MAX: usize = 64;
const REQUESTS_MAX: usize = 16;

/// Maximum size of a compiled expression, so that most time is spent on routes.
const REGEX_BYTES_MAX: usize = 1 << 16;

/// Compiles the rules and matches every request against them.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let rules: Vec<Rule> = lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .take(RULES_MAX)
        .map(rule)
        .collect();
    let table = Table::compile(rules.clone());
    for line in lines.take(REQUESTS_MAX) {
        ask(&table, &rules, line);
    }
}

fn ask(table: &Table, rules: &[Rule], line: &str) {
    let mut words = line.split(' ');
    let method = words
        .next()
        .and_then(|word| Method::from_str(word).ok())
        .unwrap_or_default();
    let scheme = words.next().unwrap_or("http");
    let authority = words.next().unwrap_or_default();
    let target = words.next().unwrap_or("/");
    let (path, query) = target
        .split_once('?')
        .map_or((target, None), |(path, query)| (path, Some(query)));
    let Ok(path) = normalize_path(path) else {
        return;
    };
    assert_eq!(
        normalize_path(&path).as_ref(),
        Ok(&path),
        "the normal form of {target} is a fixed point"
    );
    let mut headers = HeaderMap::new();
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_str(name), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    let host = normalize_host(authority);
    let head = RequestHead {
        is_http2: false,
        method: &method,
        scheme,
        authority,
        host: &host,
        path: &path,
        query,
        headers: &headers,
        claims: None,
    };
    let found = table.find(&head);
    assert_eq!(
        found,
        scan::find(rules, &head),
        "index and scan agree on {head:?}"
    );
    for (index, rule) in rules.iter().enumerate() {
        let matches = explain(rule, &head).iter().all(|line| line.held);
        assert_eq!(
            matches,
            rule.conditions.matches(&head),
            "explain and matcher agree on rule {index}"
        );
    }
}

fn rule(line: &str) -> Rule {
    let mut conditions = Conditions::default();
    let (mut headers, mut without, mut query) = (Vec::new(), Vec::new(), Vec::new());
    for (field, kind, value) in line.split(' ').filter_map(word) {
        if field == "uri" {
            conditions.uri = uri(kind, value).unwrap_or_default();
            continue;
        }
        let Some(text) = text(kind, value) else {
            continue;
        };
        match field.split_once('.') {
            Some(("header", name)) => headers.extend(header(name, text)),
            Some(("joined", name)) => headers.extend(header(name, text).map(|one| HeaderMatch {
                key: one.key.joined(),
                ..one
            })),
            Some(("without", name)) => without.extend(header(name, text)),
            Some(("query", name)) => query.push(QueryMatch {
                name: name.into(),
                value: text,
            }),
            _ if field == "authority" => conditions.authority = Some(text),
            _ if field == "method" => conditions.method = Some(text),
            _ if field == "scheme" => conditions.scheme = Some(text),
            _ => {}
        }
    }
    conditions.headers = headers.into();
    conditions.without_headers = without.into();
    conditions.query = query.into();
    let provenance = Provenance {
        object: Arc::from("fuzz"),
        file: Arc::from("fuzz"),
        line: 0,
    };
    Rule {
        name: Arc::from(""),
        conditions,
        provenance,
    }
}

/// Parses `FIELD:KIND=VALUE`; the field may contain colons itself, as in `header.:path:exact=/`.
fn word(word: &str) -> Option<(&str, &str, &str)> {
    let (left, value) = word.split_once('=')?;
    let (field, kind) = left.rsplit_once(':')?;
    Some((field, kind, value))
}

fn header(name: &str, value: TextMatch) -> Option<HeaderMatch> {
    Some(HeaderMatch {
        key: HeaderKey::parse(name)?,
        value,
    })
}

fn text(kind: &str, value: &str) -> Option<TextMatch> {
    match kind {
        "exact" => Some(TextMatch::Exact(value.into())),
        "prefix" => Some(TextMatch::Prefix(value.into())),
        "present" => Some(TextMatch::Present),
        "regex" => Some(TextMatch::Regex(regex(value)?)),
        _ => None,
    }
}

fn uri(kind: &str, value: &str) -> Option<UriMatch> {
    match kind {
        "exact" | "iexact" => Some(UriMatch::Exact {
            value: value.into(),
            ignore_case: kind == "iexact",
        }),
        "prefix" | "iprefix" => Some(UriMatch::Prefix {
            value: value.into(),
            ignore_case: kind == "iprefix",
        }),
        "segments" => Some(UriMatch::Segments(value.trim_end_matches('/').into())),
        "regex" => Some(UriMatch::Regex(regex(value)?)),
        _ => None,
    }
}

/// Compiles an anchored expression, as the loader does.
fn regex(written: &str) -> Option<Pattern> {
    let anchored = format!(r"\A(?:{written})\z");
    let regex = regex::bytes::RegexBuilder::new(&anchored)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .ok()?;
    Some(Pattern::new(written.into(), Arc::new(regex)))
}
