//! Spreads ranks over a file, so that popular pages are no neighbours.

use crate::random::mix;

/// A bijection of 0..count without a table: four Feistel rounds over the next even number of bits, repeated while the
/// result lies outside (cycle walking).
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// The permutation of that seed.
    #[must_use]
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// Where `index` goes; it must be below the count.
    #[must_use]
    pub fn apply(&self, index: u64) -> u64 {
        assert!(index < self.count, "{index} is not below {}", self.count);
        let mut value = self.rounds(index);
        while value >= self.count {
            value = self.rounds(value);
        }
        value
    }

    fn rounds(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..4 {
            let turned = left ^ (mix(right ^ self.seed.wrapping_add(round << 56)) & mask);
            (left, right) = (right, turned);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_taken_once() {
        for count in [1, 2, 3, 1000, 4096, 40_961] {
            let permutation = Permutation::new(count, 5);
            let mut taken: Vec<_> = (0..count).map(|index| permutation.apply(index)).collect();
            taken.sort_unstable();
            assert!(taken.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn neighbours_part() {
        let permutation = Permutation::new(40_960, 5);
        let close = (0..40_959).filter(|index| permutation.apply(*index).abs_diff(permutation.apply(index + 1)) < 64).count();
        // Two random places lie that close about once in 320 pairs.
        assert!(close < 200, "{close} of 40959 neighbours stayed neighbours");
    }
}
