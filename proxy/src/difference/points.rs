//! Requests that meet the conditions of rules: values for each part of a request that conditions are about.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::names::OTHER;
use traffic::pattern::Pattern;
use traffic::route::{Conditions, HeaderKey, HeaderMatch, RequestHead, TextMatch, UriMatch};

/// Methods of requests, the first of which no rule needs to name.
const METHODS: [&str; 5] = ["GET", "PATCH", "TRACE", "OPTIONS", "PUT"];

/// Part of a request that conditions are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Path,
    Method,
    Authority,
    Grpc,
    Header(String),
    Query(String),
}

/// Condition on one part.
#[derive(Clone, Copy, Debug)]
enum Test<'r> {
    Uri(&'r UriMatch),
    Is(&'r TextMatch),
    IsNot(&'r TextMatch),
    Http2,
}

impl Test<'_> {
    fn holds(self, value: Option<&str>) -> bool {
        match self {
            Self::Uri(uri) => uri.matches(value.unwrap_or("/").as_bytes()),
            Self::Is(text) => value.is_some_and(|value| text.matches(value.as_bytes())),
            Self::IsNot(text) => match (value, text) {
                (None, TextMatch::Present) => true,
                (value, text) => !text.matches(value.unwrap_or_default().as_bytes()),
            },
            Self::Http2 => value.is_some(),
        }
    }
}

/// Conditions of a rule by part.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted<'r> {
    tests: BTreeMap<Part, Vec<Test<'r>>>,
    /// Whether a condition is on something that points have no values for, or on a language of which they are samples.
    pub is_sampled: bool,
}

impl<'r> Wanted<'r> {
    /// Collects the conditions of a rule.
    pub(super) fn of(conditions: &'r Conditions) -> Self {
        let mut wanted = Self::default();
        let mut more = Some(conditions);
        while let Some(conditions) = more {
            wanted.add(conditions);
            more = conditions.of_policy.as_deref();
        }
        wanted
    }

    fn add(&mut self, conditions: &'r Conditions) {
        let Conditions {
            uri,
            is_http2,
            scheme,
            method,
            authority,
            headers,
            without_headers,
            query,
            of_policy: _,
        } = conditions;
        if !matches!(uri, UriMatch::Any) {
            self.is_sampled |= matches!(uri, UriMatch::Regex(_) | UriMatch::Call(_));
            self.test(Part::Path, Test::Uri(uri));
        }
        if *is_http2 {
            self.test(Part::Grpc, Test::Http2);
        }
        self.is_sampled |= scheme.is_some();
        for (part, text) in [(Part::Method, method), (Part::Authority, authority)] {
            if let Some(text) = text {
                self.text(part, Test::Is(text), text);
            }
        }
        for header in headers {
            self.header(header, Test::Is(&header.value));
        }
        for header in without_headers {
            self.header(header, Test::IsNot(&header.value));
        }
        for parameter in query {
            let part = Part::Query(parameter.name.to_string());
            self.text(part, Test::Is(&parameter.value), &parameter.value);
        }
    }

    fn header(&mut self, header: &'r HeaderMatch, test: Test<'r>) {
        let part = match &header.key {
            HeaderKey::Name(name) | HeaderKey::Joined(name) => {
                Part::Header(name.as_str().to_owned())
            }
            HeaderKey::Method => Part::Method,
            HeaderKey::Authority | HeaderKey::Host => Part::Authority,
            HeaderKey::Claim(..) | HeaderKey::Path | HeaderKey::Scheme => {
                self.is_sampled = true;
                return;
            }
        };
        self.text(part, test, &header.value);
    }

    fn text(&mut self, part: Part, test: Test<'r>, text: &TextMatch) {
        self.is_sampled |= matches!(text, TextMatch::Regex(_));
        self.test(part, test);
    }

    fn test(&mut self, part: Part, test: Test<'r>) {
        self.tests.entry(part).or_default().push(test);
    }

    /// Returns points that meet the conditions of all rules, at most `most`, and whether there are more.
    pub(super) fn points(rules: &[&Self], most: usize) -> (Vec<Point>, bool) {
        let mut parts: BTreeMap<&Part, Vec<Test<'_>>> = BTreeMap::new();
        for (part, tests) in rules.iter().flat_map(|rule| &rule.tests) {
            parts.entry(part).or_default().extend(tests);
        }
        let mut points = vec![Point::default()];
        for (part, tests) in parts {
            let values = values(part, &tests);
            let fitting: Vec<_> = values
                .into_iter()
                .filter(|value| tests.iter().all(|test| test.holds(value.as_deref())))
                .collect();
            let with = |point: &Point, value: &Option<String>| {
                let mut point = point.clone();
                point.0.insert(part.clone(), value.clone());
                point
            };
            points = points
                .iter()
                .flat_map(|point| fitting.iter().map(move |value| with(point, value)))
                .take(most + 1)
                .collect();
        }
        let has_more = points.len() > most;
        points.truncate(most);
        (points, has_more)
    }

    /// Whether a path may meet the conditions of both rules, as far as that is seen at once.
    pub(super) fn may_meet(&self, other: &Self) -> bool {
        self.uris()
            .all(|one| other.uris().all(|other| may_overlap(one, other)))
    }

    fn uris(&self) -> impl Iterator<Item = &UriMatch> {
        let tests = self.tests.get(&Part::Path).into_iter().flatten();
        tests.filter_map(|test| match test {
            Test::Uri(uri) => Some(*uri),
            _ => None,
        })
    }

    /// Returns changes of a request that meets the conditions, after which it still does, and misses a condition of another
    /// rule.
    pub(super) fn steps(&self, other: &Self) -> Vec<(Part, Option<String>)> {
        let mut steps = Vec::new();
        for (part, missed) in &other.tests {
            let own = self.tests.get(part).map_or(&[][..], Vec::as_slice);
            let all: Vec<Test<'_>> = own.iter().chain(missed).copied().collect();
            let holds = |tests: &[Test<'_>], value: &Option<String>| {
                tests.iter().all(|test| test.holds(value.as_deref()))
            };
            let mut values = values(part, &all);
            values.retain(|value| holds(own, value) && !holds(missed, value));
            values.dedup();
            steps.extend(values.into_iter().map(|value| (part.clone(), value)));
        }
        steps
    }
}

/// Whether a path may meet both conditions; of others than exact paths and prefixes it is not known.
fn may_overlap(one: &UriMatch, other: &UriMatch) -> bool {
    match (exact(one), exact(other)) {
        (Some(path), _) => other.matches(path.as_bytes()),
        (_, Some(path)) => one.matches(path.as_bytes()),
        _ => match (prefix(one), prefix(other)) {
            (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
            _ => true,
        },
    }
}

fn exact(uri: &UriMatch) -> Option<&str> {
    match uri {
        UriMatch::Exact {
            value,
            ignore_case: false,
        } => Some(value),
        _ => None,
    }
}

fn prefix(uri: &UriMatch) -> Option<&str> {
    match uri {
        UriMatch::Segments(value)
        | UriMatch::Prefix {
            value,
            ignore_case: false,
        } => Some(value),
        _ => None,
    }
}

/// Values of a part, one or more for each way in which tests on it can turn out.
fn values(part: &Part, tests: &[Test<'_>]) -> Vec<Option<String>> {
    let mut values: Vec<Option<String>> = Vec::new();
    for test in tests {
        match test {
            Test::Uri(uri) => values.extend(paths(uri).into_iter().map(Some)),
            Test::Is(text) | Test::IsNot(text) => {
                values.extend(texts(text).into_iter().map(Some));
            }
            Test::Http2 => values.push(Some("application/grpc".to_owned())),
        }
    }
    match part {
        Part::Path => values.push(Some(format!("/{OTHER}"))),
        Part::Method => values.extend(METHODS.map(|method| Some(method.to_owned()))),
        Part::Authority => {}
        Part::Grpc => values.push(None),
        Part::Header(_) | Part::Query(_) => {
            values.extend([None, Some(OTHER.to_owned())]);
        }
    }
    values
}

fn paths(uri: &UriMatch) -> Vec<String> {
    match uri {
        UriMatch::Any | UriMatch::Call(_) => Vec::new(),
        UriMatch::Exact { value, ignore_case } => with_case(vec![value.to_string()], *ignore_case),
        UriMatch::Prefix { value, ignore_case } => {
            let root = if value.is_empty() { "/" } else { value };
            let paths = vec![
                root.to_owned(),
                format!("{root}{OTHER}"),
                format!("{root}/{OTHER}"),
            ];
            with_case(paths, *ignore_case)
        }
        UriMatch::Segments(value) => {
            let root = if value.is_empty() { "/" } else { value };
            vec![root.to_owned(), format!("{value}/{OTHER}")]
        }
        UriMatch::Regex(pattern) => sample(pattern),
    }
}

/// Adds the paths in the other case, where their case does not matter.
fn with_case(mut paths: Vec<String>, ignore_case: bool) -> Vec<String> {
    if ignore_case {
        let other = |path: &String| [path.to_ascii_uppercase(), path.to_ascii_lowercase()];
        let others: Vec<String> = paths.iter().flat_map(other).collect();
        paths.extend(others);
        paths.sort_unstable();
        paths.dedup();
    }
    paths
}

fn texts(text: &TextMatch) -> Vec<String> {
    match text {
        TextMatch::Exact(value) => vec![value.to_string()],
        TextMatch::Prefix(value) => vec![value.to_string(), format!("{value}{OTHER}")],
        TextMatch::Suffix(value) => vec![value.to_string(), format!("{OTHER}{value}")],
        TextMatch::Present => vec![OTHER.to_owned()],
        TextMatch::Regex(pattern) => sample(pattern),
    }
}

/// Returns a short text that matches a regular expression, if one is found.
fn sample(pattern: &Pattern) -> Vec<String> {
    // patterns are on bytes
    let parsed = regex_syntax::ParserBuilder::new().utf8(false).build();
    let parsed = { parsed }.parse(pattern.compiled().as_str());
    let mut texts = Vec::new();
    if let Ok(expression) = parsed {
        let mut text = Vec::new();
        shortest(&expression, &mut text);
        texts.extend(String::from_utf8(text).ok());
    }
    texts.push(OTHER.to_owned());
    texts.retain(|text| pattern.is_match(text.as_bytes()));
    texts
}

/// Returns a character of a class: a letter or digit if it has one, else one that can be seen.
fn letter(ranges: Vec<std::ops::RangeInclusive<u32>>) -> Option<u32> {
    let seen = (b'a'..=b'z')
        .chain(b'0'..=b'9')
        .chain(b'A'..=b'Z')
        .chain(b'!'..=b'~');
    let mut seen = seen.map(u32::from);
    let found = seen.find(|one| ranges.iter().any(|range| range.contains(one)));
    found.or_else(|| ranges.first().map(|range| *range.start()))
}

/// Appends a shortest text of an expression.
fn shortest(expression: &regex_syntax::hir::Hir, text: &mut Vec<u8>) {
    use regex_syntax::hir::{Class, HirKind};
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges().iter();
            let ranges = ranges.map(|range| u32::from(range.start())..=u32::from(range.end()));
            let letter = letter(ranges.collect()).and_then(char::from_u32);
            text.extend(
                letter
                    .into_iter()
                    .flat_map(|one| one.to_string().into_bytes()),
            );
        }
        HirKind::Class(Class::Bytes(class)) => {
            let ranges = class.ranges().iter();
            let ranges = ranges.map(|range| u32::from(range.start())..=u32::from(range.end()));
            let byte = letter(ranges.collect()).and_then(|one| u8::try_from(one).ok());
            text.extend(byte);
        }
        HirKind::Repetition(repetition) => {
            for _ in 0..repetition.min {
                shortest(&repetition.sub, text);
            }
        }
        HirKind::Capture(capture) => shortest(&capture.sub, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| shortest(part, text)),
        HirKind::Alternation(branches) => {
            let texts = branches.iter().map(|branch| {
                let mut text = Vec::new();
                shortest(branch, &mut text);
                text
            });
            text.extend(texts.min_by_key(Vec::len).unwrap_or_default());
        }
    }
}

/// Values of the parts of a request; what is not named is as in a plain one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Point(BTreeMap<Part, Option<String>>);

impl Point {
    /// Sets the value of a part.
    pub(super) fn with(mut self, part: Part, value: Option<String>) -> Self {
        self.0.insert(part, value);
        self
    }

    fn value(&self, part: &Part) -> Option<&str> {
        self.0.get(part)?.as_deref()
    }

    pub(super) fn method(&self) -> &str {
        self.value(&Part::Method).unwrap_or(METHODS[0])
    }

    pub(super) fn path(&self) -> &str {
        self.value(&Part::Path).unwrap_or("/strait-other")
    }

    pub(super) fn authority(&self) -> Option<&str> {
        self.value(&Part::Authority)
    }

    /// Path and query.
    pub(super) fn target(&self) -> String {
        let query: Vec<String> = self
            .0
            .iter()
            .filter_map(|(part, value)| match (part, value) {
                (Part::Query(name), Some(value)) => Some(format!("{name}={value}")),
                _ => None,
            })
            .collect();
        match query.is_empty() {
            true => self.path().to_owned(),
            false => format!("{}?{}", self.path(), query.join("&")),
        }
    }

    /// Header fields.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(part, value)| match part {
            Part::Header(name) => Some((name.as_str(), value.as_deref()?)),
            Part::Grpc => Some(("content-type", value.as_deref()?)),
            _ => None,
        })
    }

    /// Calls `of` with the properties that rules match on; `None` if the point is no request.
    pub(super) fn head<T>(
        &self,
        (scheme, host): (&str, &str),
        of: impl FnOnce(&RequestHead<'_>) -> T,
    ) -> Option<T> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers() {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.insert(name, HeaderValue::from_str(value).ok()?);
        }
        let target = self.target();
        let query = target.split_once('?').map(|(_, query)| query);
        Some(of(&RequestHead {
            is_http2: self.value(&Part::Grpc).is_some(),
            method: &Method::from_bytes(self.method().as_bytes()).ok()?,
            scheme,
            authority: self.authority().unwrap_or(host),
            host,
            path: self.path(),
            query,
            headers: &headers,
            claims: None,
        }))
    }
}
