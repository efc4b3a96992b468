//! A strict parser of the Prometheus text format, independent of the crate that writes it.

use std::collections::{BTreeMap, BTreeSet};

/// One line that is not a comment.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// Content of one scrape.
#[derive(Debug)]
pub(super) struct Scrape {
    /// Type by family.
    pub(super) kinds: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

impl Scrape {
    pub(super) fn named(&self, name: &str) -> Vec<&Sample> {
        self.samples
            .iter()
            .filter(|sample| sample.name == name)
            .collect()
    }

    /// The only sample with that name.
    pub(super) fn only(&self, name: &str) -> &Sample {
        let named = self.named(name);
        assert_eq!(named.len(), 1, "{name}: {named:?}");
        named[0]
    }

    /// The only sample with that name and label.
    pub(super) fn with(&self, name: &str, label: &str, value: &str) -> &Sample {
        let named = self.named(name).into_iter();
        let found: Vec<_> = named
            .filter(|sample| sample.labels[label] == value)
            .collect();
        assert_eq!(found.len(), 1, "{name} {label}={value}: {found:?}");
        found[0]
    }
}

/// Parses a scrape; panics on anything that Prometheus would reject, on a family that is not contiguous, and on a
/// duplicate series.
pub(super) fn scrape(text: &str) -> Scrape {
    let mut scrape = Scrape {
        kinds: BTreeMap::new(),
        samples: Vec::new(),
    };
    let mut family = String::new();
    let mut seen = BTreeSet::new();
    let mut buckets = Vec::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            let [keyword, name, rest] = words[..] else {
                panic!("comment {line}")
            };
            if keyword == "TYPE" {
                family = name.to_owned();
                let twice = scrape.kinds.insert(family.clone(), rest.to_owned());
                assert_eq!(twice, None, "{name} is split");
            } else {
                assert_eq!(keyword, "HELP", "{line}");
                assert!(!rest.is_empty());
            }
            continue;
        }
        let sample = sample(line);
        let suffix = sample
            .name
            .strip_prefix(&family)
            .expect("samples follow their family");
        match scrape.kinds[&family].as_str() {
            "histogram" => {
                assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}");
                check_buckets(suffix, &sample, &mut buckets);
            }
            _ => assert_eq!(suffix, "", "{line}"),
        }
        assert!(
            seen.insert((sample.name.clone(), sample.labels.clone())),
            "twice: {line}"
        );
        scrape.samples.push(sample);
    }
    scrape
}

/// Checks the buckets of consecutive series: their bounds rise up to `+Inf`, which counts all samples.
fn check_buckets(suffix: &str, sample: &Sample, buckets: &mut Vec<(f64, f64)>) {
    match suffix {
        "_bucket" => {
            let written = &*sample.labels["le"];
            let bound: f64 = match written {
                "+Inf" => f64::INFINITY,
                number => number.parse().expect("a bound"),
            };
            assert!(bound.is_finite() || written == "+Inf", "{sample:?}");
            let rises = buckets
                .last()
                .is_none_or(|last| last.0 < bound && last.1 <= sample.value);
            assert!(rises, "{buckets:?} {sample:?}");
            buckets.push((bound, sample.value));
        }
        "_count" => {
            let all = Some((f64::INFINITY, sample.value));
            assert_eq!(std::mem::take(buckets).pop(), all, "{sample:?}");
        }
        _ => {}
    }
}

fn sample(line: &str) -> Sample {
    let name_end = line.find(['{', ' ']).expect("a name");
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, value) = rest.split_once("=\"").expect("a label");
            assert!(
                label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{line}"
            );
            let (value, after) = quoted(value);
            assert_eq!(labels.insert(label.to_owned(), value), None, "{line}");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest
        .strip_prefix(' ')
        .expect("a value")
        .parse()
        .expect("a number");
    Sample {
        name: name.to_owned(),
        labels,
        value,
    }
}

/// Unescapes the value up to the closing quote; also returns the rest.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((index, char)) = chars.next() {
        match char {
            '"' => return (value, &text[index + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                other => panic!("unknown escape {other:?}"),
            },
            _ => value.push(char),
        }
    }
    panic!("quote without an end: {text}");
}
