//! Which priorities later tries leave out; pure.
//!
//! Source: `retries.retryRemoteLocalities`.

use smallvec::SmallVec;

/// How many endpoints are tried before the priorities that they came from are left out.
pub const HOSTS_PER_UPDATE: usize = 2;

/// The priorities that the next try leaves out, given those of the endpoints that were tried, in order, and how many
/// priorities there are. When none would be left, all of them count again.
pub fn left_out(tried: &[u32], priorities: usize) -> SmallVec<[u32; 4]> {
    let mut left_out: SmallVec<[u32; 4]> = SmallVec::new();
    for hosts in tried.chunks_exact(HOSTS_PER_UPDATE) {
        for priority in hosts {
            if !left_out.contains(priority) {
                left_out.push(*priority);
            }
        }
        if left_out.len() >= priorities {
            left_out.clear();
        }
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_left_out_after_every_two_endpoints() {
        let rows: &[(&[u32], usize, &[u32])] = &[
            (&[], 3, &[]),
            (&[0], 3, &[]),
            (&[0, 0], 3, &[0]),
            (&[0, 1], 3, &[0, 1]),
            (&[0, 0, 1], 3, &[0]),
            (&[0, 0, 1, 1], 3, &[0, 1]),
            (&[0, 0, 1, 1, 2, 2], 3, &[]),
            (&[0, 0, 1, 1, 2, 2, 0, 0], 3, &[0]),
            (&[0, 0], 1, &[]),
            (&[0, 0, 0, 0], 1, &[]),
        ];
        for (tried, priorities, expected) in rows {
            assert_eq!(
                left_out(tried, *priorities).as_slice(),
                *expected,
                "{tried:?}"
            );
        }
    }
}
