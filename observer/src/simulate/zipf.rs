//! Zipf-distributed pages without spatial locality.

use serde::Serialize;

use super::random::Random;

/// Which page each rank of popularity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scatter {
    /// A random order: each page has its rank.
    Shuffle,
    /// fio's: a multiplicative hash of the rank, modulo the pages. Some pages have several ranks, and some none (6 % of the letter's file),
    /// so that what is read is smaller than the file. Every `stride`-th rank of a file `stride` times as large is taken, a power of two:
    /// those ranks lie on every `stride`-th page, and so the share of pages without a rank is that of the large file.
    Fio {
        /// How much larger the file is that this one stands for.
        stride: u32,
    },
}

/// The multiplier of fio's hash (its hash.h, version 3.33: the golden ratio's complement in 64 bits).
const FIO_MULTIPLIER: u64 = 0x61c8_8646_80b5_83eb;

impl Scatter {
    fn items(self, n: u32, random: &mut Random) -> Vec<u32> {
        match self {
            Self::Shuffle => random.permutation(n),
            Self::Fio { stride } => {
                let (stride, pages) = (u64::from(stride.max(1)), u64::from(n));
                // fio begins each job's file at a random place.
                let begin = u64::from(random.below(n));
                let page = |rank: u64| (rank * stride).wrapping_mul(FIO_MULTIPLIER) % (pages * stride) / stride;
                (0..pages).map(|rank| ((page(rank) + begin) % pages) as u32).collect()
            }
        }
    }
}

/// Draws item r (0-based rank) with a probability proportional to 1 / (r + 1)^θ, by Walker's alias method; ranks are scattered over the items.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// Item, alias, and the share of 2^32 that the item itself gets.
    cells: Vec<(u32, u32, u32)>,
}

impl Zipf {
    /// `n` items with exponent `theta`, scattered by `random`.
    pub fn new(n: u32, theta: f64, random: &mut Random) -> Self {
        Self::scattered(n, theta, Scatter::Shuffle, random)
    }

    /// `n` items with exponent `theta`, scattered as said.
    pub fn scattered(n: u32, theta: f64, scatter: Scatter, random: &mut Random) -> Self {
        let n = n.max(1);
        let items = scatter.items(n, random);
        let weights: Vec<f64> = (1..=n).map(|rank| f64::from(rank).powf(-theta)).collect();
        let mean = weights.iter().sum::<f64>() / f64::from(n);
        let mut share: Vec<f64> = weights.iter().map(|w| w / mean).collect();
        // Ranks with less than an even share are filled up from those with more.
        let (mut less, mut more): (Vec<u32>, Vec<u32>) = (0..n).partition(|&rank| share[rank as usize] < 1.0);
        let mut cells: Vec<_> = items.iter().map(|&item| (item, item, u32::MAX)).collect();
        while let (Some(&small), Some(&large)) = (less.last(), more.last()) {
            less.pop();
            let kept = share[small as usize];
            cells[small as usize].1 = items[large as usize];
            #[expect(clippy::cast_sign_loss, reason = "a share is never negative")]
            let share_of_cell = (kept * 2f64.powi(32)) as u32;
            cells[small as usize].2 = share_of_cell;
            share[large as usize] -= 1.0 - kept;
            if share[large as usize] < 1.0 {
                more.pop();
                less.push(large);
            }
        }
        Self { cells }
    }

    /// The next item.
    pub fn next(&self, random: &mut Random) -> u32 {
        let bits = random.bits();
        let at = (((bits >> 32) * self.cells.len() as u64) >> 32) as usize;
        let (item, alias, share) = self.cells[at];
        if (bits as u32) < share { item } else { alias }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        for theta in [0.8, 1.2] {
            let mut random = Random::new(1);
            let zipf = Zipf::new(1000, theta, &mut random);
            let mut seen = vec![0u32; 1000];
            let draws = 1_000_000;
            for _ in 0..draws {
                seen[zipf.next(&mut random) as usize] += 1;
            }
            seen.sort_unstable_by(|a, b| b.cmp(a));
            let total: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-theta)).sum();
            for rank in [1usize, 2, 10, 100] {
                let expected = (rank as f64).powf(-theta) / total * f64::from(draws);
                let got = f64::from(seen[rank - 1]);
                assert!((got / expected - 1.0).abs() < 0.1, "θ {theta} rank {rank}: {got} instead of {expected}");
            }
        }
    }

    /// Share of the pages that have a rank.
    fn read_at_all(n: u32, stride: u32) -> f64 {
        let mut items = Scatter::Fio { stride }.items(n, &mut Random::new(1));
        items.sort_unstable();
        items.dedup();
        assert!(items.last().is_some_and(|&last| last < n));
        items.len() as f64 / f64::from(n)
    }

    #[test]
    fn fio_leaves_pages_out_and_a_smaller_file_as_many() {
        let whole = read_at_all(655_360, 1);
        // Counted over all ranks of the letter's file.
        assert!((whole - 0.941).abs() < 0.001, "{whole}");
        for stride in [4, 8, 32] {
            let part = read_at_all(655_360 / stride, stride);
            assert!((part - whole).abs() < 0.005, "one in {stride}: {part}");
        }
        assert!(read_at_all(20_480, 1) < 0.85, "without the stride a smaller file is another one");
    }

    #[test]
    fn popular_items_are_scattered() {
        let mut random = Random::new(5);
        let zipf = Zipf::new(4096, 1.4, &mut random);
        assert!((0..100).map(|_| zipf.next(&mut random)).any(|item| item > 2048));
    }
}
