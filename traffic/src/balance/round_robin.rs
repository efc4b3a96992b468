//! ROUND_ROBIN: smoothly weighted rotation.

use super::EndpointIdx;
use crate::registry::Cursor;

/// Maximum length of a schedule. Weights with a larger reduced sum are scaled down to fit; the error of an endpoint's
/// share is then below one part in this many.
pub const SCHEDULE_LEN_MAX: usize = 16_384;

/// Picks endpoints in rotation. All workers share one cursor, so that the rotation is exact across the process.
#[derive(Debug)]
pub enum RoundRobin {
    /// Equal weights; the number of endpoints.
    Equal(u32),
    /// One full cycle of the smooth weighted rotation.
    Schedule(Box<[u32]>),
}

impl RoundRobin {
    /// Builds the schedule.
    pub fn build(weights: &[u32]) -> Self {
        let reduced = reduce(weights);
        if reduced.iter().all(|&weight| weight == 1) {
            return RoundRobin::Equal(reduced.len() as u32);
        }
        RoundRobin::Schedule(smooth_schedule(&reduced))
    }

    /// Share of picks of each endpoint.
    pub fn shares(&self) -> Vec<f64> {
        match self {
            RoundRobin::Equal(len) => vec![f64::from(*len).recip(); *len as usize],
            RoundRobin::Schedule(schedule) => {
                let count = schedule.iter().max().map_or(0, |last| *last as usize + 1);
                let mut shares = vec![0.0; count];
                for index in schedule {
                    shares[*index as usize] += (schedule.len() as f64).recip();
                }
                shares
            }
        }
    }

    /// Picks the next endpoint of the rotation.
    #[inline]
    pub fn pick(&self, cursor: &Cursor) -> EndpointIdx {
        let turn = cursor.next();
        match self {
            RoundRobin::Equal(len) => EndpointIdx((turn % u64::from(*len)) as u32),
            RoundRobin::Schedule(schedule) => {
                EndpointIdx(schedule[(turn % schedule.len() as u64) as usize])
            }
        }
    }
}

/// Divides weights by their greatest common divisor, then scales them so that their sum fits the schedule.
fn reduce(weights: &[u32]) -> Vec<u64> {
    let mut reduced: Vec<u64> = weights
        .iter()
        .map(|&weight| u64::from(weight.max(1)))
        .collect();
    let divisor = reduced.iter().copied().fold(0, gcd).max(1);
    reduced.iter_mut().for_each(|weight| *weight /= divisor);
    let sum: u64 = reduced.iter().sum();
    let room = SCHEDULE_LEN_MAX.max(reduced.len()) as u64;
    if sum > room {
        let scale = room as f64 / sum as f64;
        reduced
            .iter_mut()
            .for_each(|weight| *weight = ((*weight as f64 * scale).round() as u64).max(1));
    }
    reduced
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Schedules by earliest deadline: endpoint `i` is due for its `n`-th turn at `(2n + 1) / (2 * weight)`, which spreads
/// its turns evenly over the cycle.
fn smooth_schedule(weights: &[u64]) -> Box<[u32]> {
    let mut turns: Vec<(f64, u32)> = Vec::with_capacity(weights.iter().sum::<u64>() as usize);
    for (index, &weight) in weights.iter().enumerate() {
        turns.extend(
            (0..weight).map(|turn| ((2 * turn + 1) as f64 / (2 * weight) as f64, index as u32)),
        );
    }
    turns.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    turns.into_iter().map(|(_, index)| index).collect()
}
