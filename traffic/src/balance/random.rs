//! RANDOM: a random endpoint, in proportion to weight.

use rand::Rng;

use super::{EndpointIdx, Weights};

/// Draws endpoints at random, in proportion to their weights.
#[derive(Debug)]
pub struct Random {
    weights: Weights,
}

impl Random {
    /// Builds the table.
    pub fn build(weights: &[u32]) -> Self {
        Self {
            weights: Weights::build(weights),
        }
    }

    /// Share of picks of each endpoint.
    pub fn shares(&self) -> Vec<f64> {
        self.weights.shares()
    }

    /// Picks one endpoint.
    #[inline]
    pub fn pick(&self, rng: &mut impl Rng) -> EndpointIdx {
        self.weights.draw(rng)
    }
}
