//! Rules that share a path, as lists in rule order. Long lists are split by the value of a header or query parameter.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::route::byte_map::ByteMap;
use crate::route::method::MethodSet;
use crate::route::{Conditions, HeaderKey, RequestHead, Rule, TextMatch, query};

/// Minimum number of rules with an exact value for the same field, for a list to be split by that field.
const SPLIT_MIN: usize = 8;

/// Maximum number of fields to split a list by; each costs a header or parameter lookup per request.
const SPLITS_MAX: usize = 4;

/// A rule to check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Number of the rule.
    pub(super) rule: u32,
    /// Methods that the rule may match.
    pub(super) methods: MethodSet,
    /// Conditions that the position in the prefix tree has not decided.
    pub(super) open: Open,
    /// Number of the text that a matching path must contain; [`Candidate::NO_INNER`] for none.
    pub(super) inner: u32,
}

/// Conditions to check after the prefix tree has selected a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// All conditions.
    All,
    /// All conditions except `uri`.
    BeyondUri,
    /// No conditions: the rule matches.
    Nothing,
}

impl Candidate {
    /// Value of `inner` for a candidate without a required text.
    pub(super) const NO_INNER: u32 = u32::MAX;

    /// Creates a candidate whose path condition is decided by its position in the tree.
    pub(super) fn path_matched(number: u32, rule: &Rule) -> Self {
        let only_uri = rule.conditions.only_uri();
        Self {
            open: if only_uri {
                Open::Nothing
            } else {
                Open::BeyondUri
            },
            ..Self::path_unchecked(number, rule)
        }
    }

    /// Creates a candidate whose path condition must still be checked.
    pub(super) fn path_unchecked(number: u32, rule: &Rule) -> Self {
        Self {
            rule: number,
            methods: MethodSet::wanted_by(rule.conditions.method.as_ref()),
            open: Open::All,
            inner: Self::NO_INNER,
        }
    }
}

/// The candidates at one position in the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Rules to check for every request, in [`Groups::candidates`].
    plain: Range<u32>,
    /// Rules selected by a value, in [`Groups::splits`].
    splits: Range<u32>,
}

/// Candidates by their exact value for one field.
#[derive(Clone, Debug)]
struct Split {
    field: Field,
    /// Position in `lists` by value.
    values: ByteMap,
    /// Ranges of [`Groups::candidates`].
    lists: Box<[Range<u32>]>,
}

/// Field to split a list by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Field {
    /// A header field.
    Header(HeaderKey),
    Query(Box<str>),
}

/// Storage of all groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    candidates: Vec<Candidate>,
    splits: Vec<Split>,
}

impl Groups {
    /// Adds a group. `candidates` are in rule order; those after one without open conditions are never reached, and
    /// dropped.
    pub(super) fn add(&mut self, rules: &[Rule], mut candidates: Vec<Candidate>) -> Group {
        let winner = candidates
            .iter()
            .position(|candidate| candidate.open == Open::Nothing);
        if let Some(winner) = winner {
            candidates.truncate(winner + 1);
        }
        let splits_start = self.splits.len() as u32;
        for _ in 0..SPLITS_MAX {
            let Some(field) = commonest_field(rules, &candidates) else {
                break;
            };
            let mut by_value: BTreeMap<&[u8], Vec<Candidate>> = BTreeMap::new();
            candidates.retain(|candidate| {
                let wanted = field.wanted_by(&rules[candidate.rule as usize].conditions);
                if let Some(value) = wanted {
                    by_value.entry(value).or_default().push(*candidate);
                }
                wanted.is_none()
            });
            self.add_split(field, by_value);
        }
        Group {
            plain: self.add_list(candidates),
            splits: splits_start..self.splits.len() as u32,
        }
    }

    /// Releases excess capacity.
    pub(super) fn shrink(&mut self) {
        self.candidates.shrink_to_fit();
        self.splits.shrink_to_fit();
    }

    /// Visits the candidate lists of a group for `head`; each is in rule order.
    pub(super) fn lists<'g>(
        &'g self,
        group: &Group,
        head: &RequestHead<'_>,
        mut visit: impl FnMut(&'g [Candidate]),
    ) {
        visit(self.list(&group.plain));
        for split in &self.splits[to_usize(&group.splits)] {
            let mut visit_value = |value: &[u8]| {
                if let Some(position) = split.values.find(value) {
                    visit(self.list(&split.lists[position as usize]));
                }
            };
            match &split.field {
                // each line of the header may select a rule
                Field::Header(key) => {
                    key.any_line(head, |line| {
                        visit_value(line);
                        false
                    });
                }
                Field::Query(name) => {
                    if let Some(value) = query::first_value(head.query, name) {
                        visit_value(value.as_bytes());
                    }
                }
            }
        }
    }

    fn add_split(&mut self, field: Field, by_value: BTreeMap<&[u8], Vec<Candidate>>) {
        let mut values = ByteMap::builder();
        let mut lists = Vec::with_capacity(by_value.len());
        for (value, candidates) in by_value {
            values.insert(value, lists.len() as u32);
            lists.push(self.add_list(candidates));
        }
        self.splits.push(Split {
            field,
            values: values.build(),
            lists: lists.into(),
        });
    }

    fn add_list(&mut self, candidates: Vec<Candidate>) -> Range<u32> {
        let start = self.candidates.len() as u32;
        self.candidates.extend(candidates);
        start..self.candidates.len() as u32
    }

    fn list(&self, range: &Range<u32>) -> &[Candidate] {
        &self.candidates[to_usize(range)]
    }
}

fn to_usize(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// The field for which most candidates have an exact value, if there are enough to split; the first of several.
fn commonest_field(rules: &[Rule], candidates: &[Candidate]) -> Option<Field> {
    if candidates.len() < SPLIT_MIN {
        return None;
    }
    let mut counts: HashMap<Field, (usize, Reverse<usize>)> = HashMap::new();
    for candidate in candidates {
        for field in Field::exact_in(&rules[candidate.rule as usize].conditions) {
            let met = Reverse(counts.len());
            counts.entry(field).or_insert((0, met)).0 += 1;
        }
    }
    let (field, (count, _)) = counts.into_iter().max_by_key(|(_, rank)| *rank)?;
    (count >= SPLIT_MIN).then_some(field)
}

impl Field {
    /// Headers and query parameters for which `conditions` have an exact value.
    fn exact_in(conditions: &Conditions) -> impl Iterator<Item = Self> {
        let headers = conditions.headers.iter().filter(|header| {
            header.key.name().is_some() && matches!(header.value, TextMatch::Exact(_))
        });
        let headers = headers.map(|header| Self::Header(header.key.clone()));
        let wanted = conditions.query.iter();
        let exact = wanted.filter(|parameter| matches!(parameter.value, TextMatch::Exact(_)));
        let query = exact.map(|parameter| Self::Query(parameter.name.clone()));
        headers.chain(query)
    }

    /// Exact value in `conditions` for this field; the first of several.
    fn wanted_by<'c>(&self, conditions: &'c Conditions) -> Option<&'c [u8]> {
        let exact = |value: &'c TextMatch| match value {
            TextMatch::Exact(wanted) => Some(wanted.as_bytes()),
            _ => None,
        };
        match self {
            Self::Header(key) => {
                let headers = conditions.headers.iter();
                let mut of_key = headers.filter(|header| header.key == *key);
                of_key.find_map(|header| exact(&header.value))
            }
            Self::Query(name) => {
                let of_name = conditions
                    .query
                    .iter()
                    .filter(|parameter| parameter.name == *name);
                of_name
                    .filter_map(|parameter| exact(&parameter.value))
                    .next()
            }
        }
    }
}
