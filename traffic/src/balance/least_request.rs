//! LEAST_REQUEST: of two random endpoints, the less busy one.

use rand::Rng;

use super::{EndpointIdx, Weights};
use crate::registry::EndpointState;

/// Draws two endpoints in proportion to their weights (with replacement) and picks the one with fewer active requests
/// per weight; the first on a tie. Without traffic, shares are proportional to weights.
#[derive(Debug)]
pub struct LeastRequest {
    draw: Weights,
    /// Weights by index; empty when all are equal.
    weights: Box<[u32]>,
}

impl LeastRequest {
    /// Builds the table.
    pub fn build(weights: &[u32]) -> Self {
        let draw = Weights::build(weights);
        let weights = if draw.is_equal() {
            Box::default()
        } else {
            weights.iter().map(|&weight| weight.max(1)).collect()
        };
        Self { draw, weights }
    }

    /// Picks one endpoint by its number of active requests, read through `state`.
    #[inline]
    pub fn pick<'a>(
        &self,
        state: impl Fn(EndpointIdx) -> &'a EndpointState,
        rng: &mut impl Rng,
    ) -> EndpointIdx {
        let first = self.draw.draw(rng);
        let second = self.draw.draw(rng);
        if first == second {
            return first;
        }
        // active / weight, compared without division
        let load = |of: EndpointIdx, other: EndpointIdx| {
            u64::from(state(of).active()) * u64::from(self.weight(other))
        };
        if load(second, first) < load(first, second) {
            second
        } else {
            first
        }
    }

    /// Share of picks of each endpoint while none is busy.
    pub fn shares(&self) -> Vec<f64> {
        self.draw.shares()
    }

    #[inline]
    fn weight(&self, index: EndpointIdx) -> u32 {
        self.weights.get(index.0 as usize).copied().unwrap_or(1)
    }
}
