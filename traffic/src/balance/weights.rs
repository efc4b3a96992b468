//! Weighted draws in constant time (Vose's alias method).

use rand::{Rng, RngExt};

use super::EndpointIdx;

/// Draws an index in proportion to its weight, by one table lookup.
#[derive(Debug)]
pub enum Weights {
    /// All weights are equal; the number of endpoints.
    Equal(u32),
    /// Alias table: each slot keeps its own index below the threshold and gives the alias at or above it.
    Alias(Box<[AliasEntry]>),
}

/// One slot of an alias table.
#[derive(Clone, Copy, Debug)]
pub struct AliasEntry {
    /// Threshold in 2^-32 parts; a draw below it keeps the slot's own index.
    keep: u32,
    alias: u32,
}

impl Weights {
    /// Builds the table; a weight of 0 counts as 1 (WorkloadEntry `weight`).
    pub fn build(weights: &[u32]) -> Self {
        let first = weights.first().copied().unwrap_or(1).max(1);
        if weights.iter().all(|&weight| weight.max(1) == first) {
            return Weights::Equal(weights.len() as u32);
        }
        Weights::Alias(alias_table(weights))
    }

    /// Whether all weights are equal.
    pub fn is_equal(&self) -> bool {
        matches!(self, Weights::Equal(_))
    }

    /// Share of draws of each index.
    pub fn shares(&self) -> Vec<f64> {
        match self {
            Weights::Equal(len) => vec![f64::from(*len).recip(); *len as usize],
            Weights::Alias(slots) => {
                let slot_share = (slots.len() as f64).recip();
                let mut shares = vec![0.0; slots.len()];
                for (index, slot) in slots.iter().enumerate() {
                    let kept = f64::from(slot.keep) / f64::from(u32::MAX);
                    shares[index] += slot_share * kept;
                    shares[slot.alias as usize] += slot_share * (1.0 - kept);
                }
                shares
            }
        }
    }

    /// Draws one index.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> EndpointIdx {
        match self {
            Weights::Equal(len) => EndpointIdx(bounded(rng.random::<u32>(), *len)),
            Weights::Alias(slots) => {
                let bits: u64 = rng.random();
                let index = bounded((bits >> 32) as u32, slots.len() as u32);
                let slot = slots[index as usize];
                EndpointIdx(if (bits as u32) < slot.keep {
                    index
                } else {
                    slot.alias
                })
            }
        }
    }
}

/// Maps 32 random bits onto `0..len` by multiplication; biased by less than `len / 2^32`.
#[inline]
fn bounded(bits: u32, len: u32) -> u32 {
    ((u64::from(bits) * u64::from(len)) >> 32) as u32
}

fn alias_table(weights: &[u32]) -> Box<[AliasEntry]> {
    let len = weights.len();
    let total: f64 = weights.iter().map(|&weight| f64::from(weight.max(1))).sum();
    let mut scaled: Vec<f64> = weights
        .iter()
        .map(|&weight| f64::from(weight.max(1)) * len as f64 / total)
        .collect();
    let mut slots: Vec<AliasEntry> = (0..len as u32)
        .map(|alias| AliasEntry {
            keep: u32::MAX,
            alias,
        })
        .collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..len).partition(|&index| scaled[index] < 1.0);
    while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
        slots[low] = AliasEntry {
            keep: (scaled[low] * 4_294_967_296.0) as u32,
            alias: high as u32,
        };
        scaled[high] -= 1.0 - scaled[low];
        if scaled[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    slots.into_boxed_slice()
}
