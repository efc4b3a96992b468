//! The rules that share a path, as lists in rule order; long ones are split by the value of a header or parameter.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use http::HeaderName;

use crate::route::byte_map::ByteMap;
use crate::route::method::MethodSet;
use crate::route::{Conditions, HeaderKey, RequestHead, Rule, TextMatch, query};

/// A list is split by a field when at least this many of its rules want an exact value of it.
const SPLIT_MIN: usize = 8;

/// Most fields that one list is split by; each costs a header or parameter lookup per request.
const SPLITS_MAX: usize = 4;

/// A rule to try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Number of the rule.
    pub(super) rule: u32,
    /// Methods that the rule may take.
    pub(super) methods: MethodSet,
    /// What the place in the tree leaves open.
    pub(super) open: Open,
    /// Number of the text that the path must hold for a match; [`Candidate::NO_INNER`] when there is none.
    pub(super) inner: u32,
}

/// The conditions that remain for a request after the prefix tree selected a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// All conditions.
    All,
    /// Conditions that are not about the path.
    BeyondUri,
    /// Nothing: the rule wins.
    Nothing,
}

impl Candidate {
    /// No text is known.
    pub(super) const NO_INNER: u32 = u32::MAX;

    /// A candidate for a place in the tree that settles the condition on the path.
    pub(super) fn settled(number: u32, rule: &Rule) -> Self {
        let only_uri = rule.conditions.only_uri();
        Self {
            open: if only_uri {
                Open::Nothing
            } else {
                Open::BeyondUri
            },
            ..Self::unsettled(number, rule)
        }
    }

    /// A candidate for a place in the tree that leaves the condition on the path open.
    pub(super) fn unsettled(number: u32, rule: &Rule) -> Self {
        Self {
            rule: number,
            methods: MethodSet::wanted_by(rule.conditions.method.as_ref()),
            open: Open::All,
            inner: Self::NO_INNER,
        }
    }
}

/// The candidates of one place in the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Rules that every request has to check, in [`Groups::candidates`].
    plain: Range<u32>,
    /// Rules that a value selects, in [`Groups::splits`].
    splits: Range<u32>,
}

/// Candidates by the exact value that they want of one field.
#[derive(Clone, Debug)]
struct Split {
    field: Field,
    /// Value to position in `lists`.
    values: ByteMap,
    /// Parts of [`Groups::candidates`].
    lists: Box<[Range<u32>]>,
}

/// What a list can be split by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Field {
    Header(HeaderName),
    Query(Box<str>),
}

/// What all groups are parts of.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    candidates: Vec<Candidate>,
    splits: Vec<Split>,
}

impl Groups {
    /// Adds a group. `candidates` are in rule order; those behind one that leaves nothing open are never reached.
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

    /// Gives back what growing has left over.
    pub(super) fn shrink(&mut self) {
        self.candidates.shrink_to_fit();
        self.splits.shrink_to_fit();
    }

    /// Visits the lists of a group that `head` has to try; each is in rule order.
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
                // Any of several lines may bring a rule.
                Field::Header(name) => head
                    .headers
                    .get_all(name)
                    .iter()
                    .for_each(|line| visit_value(line.as_bytes())),
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

/// The field of which most candidates want an exact value, if they are enough to split by it; the first one met of
/// several.
fn commonest_field(rules: &[Rule], candidates: &[Candidate]) -> Option<Field> {
    if candidates.len() < SPLIT_MIN {
        return None;
    }
    let mut counts: HashMap<Field, (usize, Reverse<usize>)> = HashMap::new();
    for candidate in candidates {
        for field in Field::all_of(&rules[candidate.rule as usize].conditions) {
            let met = Reverse(counts.len());
            counts.entry(field).or_insert((0, met)).0 += 1;
        }
    }
    let (field, (count, _)) = counts.into_iter().max_by_key(|(_, rank)| *rank)?;
    (count >= SPLIT_MIN).then_some(field)
}

impl Field {
    /// The fields of which `conditions` want an exact value.
    fn all_of(conditions: &Conditions) -> impl Iterator<Item = Self> {
        let headers =
            conditions
                .headers
                .iter()
                .filter_map(|header| match (&header.key, &header.value) {
                    (HeaderKey::Name(name), TextMatch::Exact(_)) => {
                        Some(Self::Header(name.clone()))
                    }
                    _ => None,
                });
        let wanted = conditions.query.iter();
        let exact = wanted.filter(|parameter| matches!(parameter.value, TextMatch::Exact(_)));
        let query = exact.map(|parameter| Self::Query(parameter.name.clone()));
        headers.chain(query)
    }

    /// The exact value that `conditions` want of this field; the first one when they want several.
    fn wanted_by<'c>(&self, conditions: &'c Conditions) -> Option<&'c [u8]> {
        let exact = |value: &'c TextMatch| match value {
            TextMatch::Exact(wanted) => Some(wanted.as_bytes()),
            _ => None,
        };
        match self {
            Self::Header(name) => {
                let of_name = conditions
                    .headers
                    .iter()
                    .filter(|header| matches!(&header.key, HeaderKey::Name(key) if key == name));
                of_name.filter_map(|header| exact(&header.value)).next()
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
