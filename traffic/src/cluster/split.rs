//! Weighted destinations of a rule.

use rand::{Rng, RngExt};

/// Weighted entries, drawn in proportion to their weights; sums are made when the split is built.
///
/// Source: VirtualService `http[].route[].weight`. The weight of a single entry does not matter, even if it is 0. Of
/// several entries, those with weight 0 take no traffic; they are kept for explanations, and since their clusters are
/// in use.
#[derive(Clone, Debug)]
pub struct Split<T> {
    /// Each entry with the sum of the weights up to and including its own. An entry of weight 0 has the same sum as the
    /// one before it, so that no draw selects it.
    entries: Box<[(u64, T)]>,
    total: u64,
    /// The only entry that takes traffic, if there is just one.
    only: Option<usize>,
}

impl<T> Split<T> {
    /// Builds a split; `None` if no entry can take traffic.
    pub fn build(entries: Vec<(u32, T)>) -> Option<Self> {
        if entries.len() == 1 {
            let entries = entries.into_iter().map(|(_, entry)| (1, entry)).collect();
            return Some(Self {
                entries,
                total: 1,
                only: Some(0),
            });
        }
        let mut weighty = entries.iter().enumerate().filter(|(_, entry)| entry.0 > 0);
        let (first, second) = (weighty.next(), weighty.next());
        let only = first.filter(|_| second.is_none()).map(|(at, _)| at);
        let mut total = 0;
        let entries: Box<[(u64, T)]> = entries
            .into_iter()
            .map(|(weight, entry)| {
                total += u64::from(weight);
                (total, entry)
            })
            .collect();
        (total > 0).then_some(Self {
            entries,
            total,
            only,
        })
    }

    /// Draws one entry; needs no random number if a single entry takes all traffic.
    #[inline]
    pub fn pick(&self, rng: &mut impl Rng) -> &T {
        match self.only {
            Some(only) => &self.entries[only].1,
            None => self.at(rng.random_range(0..self.total)),
        }
    }

    /// The entry for the draw `point` in `0..total`.
    pub fn at(&self, point: u64) -> &T {
        let index = self.entries.partition_point(|(end, _)| *end <= point);
        let last = self.entries.len() - 1;
        &self.entries[index.min(last)].1
    }

    /// All entries with their weights, including those of weight 0; a single entry has weight 1.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &T)> {
        let mut before = 0;
        self.entries.iter().map(move |(end, entry)| {
            let weight = end - before;
            before = *end;
            (weight, entry)
        })
    }

    /// Sum of all weights.
    pub fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::Split;

    #[test]
    fn a_single_entry_gets_all_traffic_with_any_weight() {
        let split = Split::build(vec![(0, "a")]).unwrap();
        assert_eq!(split.pick(&mut SmallRng::seed_from_u64(1)), &"a");
    }

    #[test]
    fn entries_of_weight_zero_get_no_traffic() {
        let mut rng = SmallRng::seed_from_u64(1);
        let split = Split::build(vec![(0, "a"), (5, "b"), (0, "c")]).unwrap();
        assert!((0..1_000).all(|_| split.pick(&mut rng) == &"b"));
        let split = Split::build(vec![(0, "a"), (1, "b"), (0, "c"), (2, "d"), (0, "e")]).unwrap();
        let drawn: Vec<_> = (0..3).map(|point| *split.at(point)).collect();
        assert_eq!(drawn, ["b", "d", "d"]);
        assert!((0..1_000).all(|_| ["b", "d"].contains(split.pick(&mut rng))));
        assert!(Split::build(vec![(0, "a"), (0, "b")]).is_none());
    }

    #[test]
    fn entries_of_weight_zero_are_listed() {
        let split = Split::build(vec![(0, "a"), (5, "b"), (0, "c")]).unwrap();
        let listed: Vec<_> = split
            .entries()
            .map(|(weight, name)| (weight, *name))
            .collect();
        assert_eq!(listed, [(0, "a"), (5, "b"), (0, "c")]);
    }

    #[test]
    fn boundaries_follow_the_cumulative_weights() {
        let split = Split::build(vec![(1, "a"), (3, "b"), (2, "c")]).unwrap();
        let drawn: Vec<_> = (0..6).map(|point| *split.at(point)).collect();
        assert_eq!(drawn, ["a", "b", "b", "b", "c", "c"]);
    }

    #[test]
    fn shares_approach_the_weights() {
        let split = Split::build(vec![(1, 0_usize), (3, 1)]).unwrap();
        let mut rng = SmallRng::seed_from_u64(42);
        let mut counts = [0_u32; 2];
        (0..10_000).for_each(|_| counts[*split.pick(&mut rng)] += 1);
        // three standard deviations of a binomial(10000, 0.25) are 130
        assert!(counts[0].abs_diff(2_500) < 130, "{counts:?}");
    }
}
