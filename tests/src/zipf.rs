//! Zipf-distributed ranks.

use crate::random::Random;

/// Draws ranks 0, 1, 2 … with probability proportional to 1 / (rank + 1)^θ, exactly, by rejection-inversion
/// (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
/// ACM TOMACS 6(3), 1996); no table, about one draw in nine is repeated at worst.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    theta: f64,
    first: f64,
    last: f64,
    squeeze: f64,
}

impl Zipf {
    /// A distribution over `count` ranks. `None` unless there is a rank and θ is a number above 0.
    #[must_use]
    pub fn new(count: u64, theta: f64) -> Option<Self> {
        if count == 0 || !theta.is_finite() || theta <= 0.0 {
            return None;
        }
        let count = count as f64;
        let mut zipf = Self { count, theta, first: 0.0, last: 0.0, squeeze: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(count + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        Some(zipf)
    }

    /// The next rank, from 0.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.squeeze || area >= self.integral(rank + 0.5) - self.weight(rank) {
                #[expect(clippy::cast_sign_loss, reason = "the rank was clamped to 1 and above")]
                return rank as u64 - 1;
            }
        }
    }

    /// The weight of a rank counted from 1, for any real rank: x^-θ.
    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// An antiderivative of the weight: (x^(1-θ) - 1) / (1-θ), or ln x where θ is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.theta) * log;
        log * if power.abs() > 1e-8 { power.exp_m1() / power } else { 1.0 + power / 2.0 }
    }

    /// The inverse of [`Self::integral`].
    fn inverse(&self, y: f64) -> f64 {
        // Rounding may push the argument of the logarithm below what the antiderivative can reach.
        let power = (y * (1.0 - self.theta)).max(-1.0);
        let log = if power.abs() > 1e-8 { power.ln_1p() / power } else { 1.0 - power / 2.0 };
        (y * log).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the draws with the exact probabilities, by Pearson's statistic over all ranks.
    #[test]
    fn draws_follow_the_law() {
        const RANKS: usize = 100;
        const DRAWS: u32 = 1_000_000;
        for theta in [0.5, 0.9, 1.0, 1.2, 2.5] {
            let zipf = Zipf::new(RANKS as u64, theta).unwrap();
            let mut random = Random::new(7);
            let mut seen = [0_u32; RANKS];
            for _ in 0..DRAWS {
                seen[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
            }
            let weights: Vec<f64> = (1..=RANKS).map(|rank| (rank as f64).powf(-theta)).collect();
            let total: f64 = weights.iter().sum();
            let statistic: f64 = weights
                .iter()
                .zip(seen)
                .map(|(weight, seen)| {
                    let expected = weight / total * f64::from(DRAWS);
                    (f64::from(seen) - expected).powi(2) / expected
                })
                .sum();
            // 99 degrees of freedom: above 161 once in ten thousand honest samples.
            assert!(statistic < 161.0, "theta {theta}: {statistic}");
        }
    }

    #[test]
    fn one_rank_and_no_rank() {
        assert_eq!(Zipf::new(1, 0.9).unwrap().draw(&mut Random::new(1)), 0);
        assert!(Zipf::new(0, 0.9).is_none());
        assert!(Zipf::new(9, f64::NAN).is_none());
    }
}
