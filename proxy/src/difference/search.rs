//! Classes of requests for one host: which rule finds them before, and which after.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::points::{Point, Wanted};
use super::rules::{HostRules, align};

/// Maximum number of points that are tried for a rule, and for a pair of rules.
const POINTS_MAX: usize = 512;

/// Maximum number of classes from which others are searched for one rule.
const STEPS_MAX: usize = 256;

/// Rules that find a request before and after, by their positions; `None` for no rule.
pub(super) type Class = (Option<usize>, Option<usize>);

/// Maximum number of requests of a class.
const REQUESTS_MAX: usize = 4;

/// Class of requests.
pub(super) struct Found {
    /// Requests of the class, one or more.
    pub points: Vec<Point>,
    /// Whether other classes of its rules may have been missed.
    pub is_sampled: bool,
}

/// Search for classes.
struct Search<'s> {
    sides: [&'s HostRules<'s>; 2],
    wanted: [Vec<Wanted<'s>>; 2],
    /// Scheme and host.
    origin: (&'s str, &'s str),
    found: BTreeMap<Class, Found>,
    /// Number of rules, and of pairs of rules, of which classes may have been missed.
    unsure: usize,
}

/// Returns the classes of rules that differ in conditions or place, and of each rule that stays; and the number of rules, and of pairs of
/// rules, of which classes may have been missed.
pub(super) fn classes<'s>(
    sides: [&'s HostRules<'s>; 2],
    origin: (&'s str, &'s str),
) -> (Vec<Found>, usize) {
    let [old, new] = sides;
    let alignment = align(old, new);
    let wanted = sides.map(|side| {
        let rules = side.rules();
        rules.map(|rule| Wanted::of(&rule.conditions)).collect()
    });
    let mut search = Search {
        sides,
        wanted,
        origin,
        found: BTreeMap::new(),
        unsure: 0,
    };
    for (before, after) in alignment.pairs {
        search.stays((before, after));
    }
    for (side, others) in [(0, alignment.old), (1, alignment.new)] {
        for rule in others {
            search.differs(side, rule);
        }
    }
    search.nothing();
    (search.found.into_values().collect(), search.unsure)
}

impl Search<'_> {
    fn class(&self, point: &Point) -> Option<Class> {
        let [old, new] = self.sides;
        point.head(self.origin, |head| (old.find(head), new.find(head)))
    }

    fn keep(&mut self, class: Class, point: Point, is_sampled: bool) {
        let points = Vec::new();
        let found = self
            .found
            .entry(class)
            .or_insert(Found { points, is_sampled });
        found.is_sampled |= is_sampled;
        if found.points.len() < REQUESTS_MAX && !found.points.contains(&point) {
            found.points.push(point);
        }
    }

    /// Finds a request that a rule gets before and after.
    fn stays(&mut self, (before, after): (usize, usize)) {
        let (points, _) = Wanted::points(&[&self.wanted[0][before]], POINTS_MAX);
        let points = points.into_iter().map(|point| (point, false));
        let class = (Some(before), Some(after));
        self.explore(0, before, points.collect(), Some(class));
        self.unsure += usize::from(!self.found.contains_key(&class));
    }

    /// Finds the classes of a rule of one side, alone and together with each rule of the other side.
    fn differs(&mut self, side: usize, rule: usize) {
        let own = &self.wanted[side][rule];
        let mut unsure = 0;
        let (points, mut has_more) = Wanted::points(&[own], POINTS_MAX);
        let mut all: Vec<_> = points
            .into_iter()
            .map(|point| (point, own.is_sampled))
            .collect();
        let others = self.wanted[1 - side].iter();
        for other in others.filter(|other| own.may_meet(other)) {
            let (points, more) = Wanted::points(&[own, other], POINTS_MAX);
            has_more |= more;
            let is_sampled = own.is_sampled || other.is_sampled;
            unsure += usize::from(is_sampled && points.is_empty());
            all.extend(points.into_iter().map(|point| (point, is_sampled)));
        }
        self.unsure += unsure;
        for (_, is_sampled) in &mut all {
            *is_sampled |= has_more;
        }
        self.explore(side, rule, all, None);
        let mut classes = self.found.keys();
        let is_found = classes.any(|class| [class.0, class.1][side] == Some(rule));
        self.unsure += usize::from(!is_found);
    }

    /// Keeps the classes of points that a rule of one side gets, and of those which miss the rules that get the others. Ends
    /// with the class `wanted`.
    fn explore(
        &mut self,
        side: usize,
        rule: usize,
        points: Vec<(Point, bool)>,
        wanted: Option<Class>,
    ) {
        let mut left: VecDeque<(Point, bool)> = points.into();
        let mut seen = BTreeSet::new();
        while let Some((point, is_sampled)) = left.pop_front() {
            let Some(class) = self.class(&point) else {
                continue;
            };
            let found = [class.0, class.1];
            if found[side] == Some(rule) {
                self.keep(class, point.clone(), is_sampled || seen.len() > STEPS_MAX);
            }
            if wanted == Some(class) {
                // further requests of the class may get another path or redirect
                for (point, _) in left {
                    if self.class(&point) == wanted {
                        self.keep(class, point, false);
                    }
                }
                return;
            }
            if !seen.insert(class) || seen.len() > STEPS_MAX {
                continue;
            }
            for (of, blocker) in found.into_iter().enumerate() {
                let Some(blocker) = blocker.filter(|at| (of, *at) != (side, rule)) else {
                    continue;
                };
                let blocker = &self.wanted[of][blocker];
                let steps = self.wanted[side][rule].steps(blocker).into_iter();
                let is_sampled = is_sampled || blocker.is_sampled;
                left.extend(
                    steps.map(|(part, value)| (point.clone().with(part, value), is_sampled)),
                );
            }
        }
    }

    /// Finds a request that no rule gets before, or after.
    fn nothing(&mut self) {
        let point = Point::default();
        if let Some(class) = self.class(&point) {
            self.keep(class, point, false);
        }
    }
}
