//! Seeded randomness: the same seed gives the same stream on every machine.

/// xoshiro256++ (Blackman and Vigna), seeded through splitmix64.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator for a seed.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        let state = std::array::from_fn(|_| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        });
        Self { state }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ b << 17, d.rotate_left(45)];
        result
    }

    /// Uniform below `n` (n > 0).
    pub fn below(&mut self, n: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random order of 0..n.
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for i in (1..n).rev() {
            let j = self.below(i + 1);
            order.swap(i as usize, j as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_stream() {
        let take = |seed| {
            let mut random = Random::new(seed);
            [random.bits(), random.bits()]
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn numbers_are_in_range_and_spread() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[random.below(10) as usize] += 1;
            assert!((0.0..1.0).contains(&random.unit()));
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)));
    }

    #[test]
    fn a_permutation_has_everything_once() {
        let mut order = Random::new(3).permutation(1000);
        assert!(order[..10] != [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }
}
