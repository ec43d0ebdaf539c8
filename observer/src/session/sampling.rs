//! What a sampled stream says about all folios, and how far that may be off.
//!
//! The kernel keeps or drops a folio with all of its events, by a hash ([`observer_common::sample`]). Folios of one hash share
//! that fate, so they are the units drawn, each independently with probability p = 1/N, and everything is summed unit by unit:
//!
//! * A total T = Σ y over all units is estimated by N Σ y over those kept, with the standard error N √((1 − p) Σ y²).
//! * A ratio R = Σ y / Σ x is estimated by the same of those kept, with the standard error √((1 − p) Σ (y − R x)²) / Σ x
//!   (linearised). A binomial error would take the events of one folio for independent, and be too small.
//!
//! A rate that is lowered while observed (automatic sampling) leaves one sample: of all folios until then, what happened is
//! known exactly; of all that followed only the units count that the lowest rate keeps, as if it had been in force since. So
//! with the exact parts Y and X, R = (Y + N Σ y) / (X + N Σ x), and its error is N √((1 − p) Σ (y − R x)²) over that denominator.
//!
//! Both sums of squares have one unit of typical size added. Without it a sample in which nothing rare happened would claim
//! to be exact; with it three standard errors are the rule of three.

use observer_common::sample;
use rustc_hash::FxHashMap;

use crate::{
    session::{
        Session,
        frame::{Estimate, RateChange, RuleSampling, SamplingFrame},
        world::{Folio, Slot, is_anon},
    },
    stream::event::{FolioEvent, Identity},
};

/// Units remembered; beyond that no error is given.
const MAX_UNITS: usize = 1 << 18;

/// What is summed whatever the rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Events of the own model scored.
    Scored,
    /// Of those, agreeing.
    Agree,
    /// Scored, of type anon.
    AnonScored,
    /// Of those, agreeing.
    AnonAgree,
    /// Scored, of type file.
    FileScored,
    /// Of those, agreeing.
    FileAgree,
    /// Promotions by the kernel.
    Promoted,
    /// Pages evicted.
    Evicted,
    /// Pages refaulted.
    Refaulted,
    /// Of those, pages whose eviction the sample holds too.
    Traced,
}

/// What is summed for each rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Promotions by it.
    Promoted,
    /// Folio × window: by both.
    Both,
    /// By it only.
    OnlyPredicted,
    /// By the kernel only.
    OnlyActual,
    /// Evictions judged.
    Judged,
    /// Of those, it would keep.
    Keeps,
    /// Refaulted pages it would have kept.
    Avoidable,
}

const OF: usize = 10;
const BY: usize = 7;

/// Ratios that do not depend on a rule set, and then two for each: keeps, avoidable.
const RATIOS: [(Of, Of); 4] =
    [(Of::Agree, Of::Scored), (Of::Refaulted, Of::Evicted), (Of::AnonAgree, Of::AnonScored), (Of::FileAgree, Of::FileScored)];

/// Sums of one quantity over the units.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// While all folios were observed.
    exact: u64,
    total: u64,
    squares: f64,
    /// Units that have any.
    units: u64,
}

impl Sum {
    /// The square of a unit of typical size.
    fn typical(&self) -> f64 {
        if self.units == 0 { 1.0 } else { self.squares / self.units as f64 }
    }

    /// `n` more of a unit that had `before`.
    fn add(&mut self, before: u32, n: u32) {
        self.total += u64::from(n);
        self.units += u64::from(before == 0);
        let (before, n) = (f64::from(before), f64::from(n));
        self.squares += n * (2.0 * before + n);
    }
}

/// A part of a whole, both quantities, and the sum of their products over the units.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    part: usize,
    whole: usize,
    products: f64,
}

/// The sums.
#[derive(Debug)]
pub(super) struct Sampling {
    one_in: u32,
    rules: usize,
    units: FxHashMap<u32, u32>,
    /// By unit, then quantity.
    counts: Vec<u32>,
    sums: Vec<Sum>,
    ratios: Vec<Ratio>,
    /// Some unit found no room.
    full: bool,
    /// Refaulted pages whose eviction could have been seen.
    pub(super) traced: u64,
    /// When the rate was lowered.
    pub(super) changes: Vec<RateChange>,
}

fn by(rule: usize, what: By) -> usize {
    OF + rule * BY + what as usize
}

impl Sampling {
    /// For a stream that keeps one in so many.
    pub(super) fn new(one_in: u32, rules: usize) -> Self {
        let ratio = |(part, whole)| Ratio { part, whole, products: 0.0 };
        let own = RATIOS.iter().map(|(part, whole)| (*part as usize, *whole as usize));
        let each =
            (0..rules).flat_map(|rule| [(by(rule, By::Keeps), by(rule, By::Judged)), (by(rule, By::Avoidable), Of::Traced as usize)]);
        Self {
            one_in: one_in.max(1),
            rules,
            units: FxHashMap::default(),
            counts: Vec::new(),
            sums: vec![Sum::default(); OF + rules * BY],
            ratios: own.chain(each).map(ratio).collect(),
            full: false,
            traced: 0,
            changes: Vec::new(),
        }
    }

    /// One in this many folios is seen now.
    pub(super) fn one_in(&self) -> u32 {
        self.one_in
    }

    /// Counts something of a unit.
    pub(super) fn count(&mut self, unit: impl FnOnce() -> u32, of: Of, n: u64) {
        self.add(unit, of as usize, n);
    }

    /// Counts something of a unit under a rule set.
    pub(super) fn count_by(&mut self, unit: impl FnOnce() -> u32, rule: usize, what: By, n: u64) {
        self.add(unit, by(rule, what), n);
    }

    /// From now on one in so many is seen, fewer than before.
    pub(super) fn thin(&mut self, one_in: u32) {
        self.one_in = one_in;
        let stride = self.sums.len();
        let (units, counts) = (std::mem::take(&mut self.units), std::mem::take(&mut self.counts));
        self.sums.iter_mut().for_each(|sum| *sum = Sum { exact: sum.exact, ..Sum::default() });
        self.ratios.iter_mut().for_each(|ratio| ratio.products = 0.0);
        for (unit, row) in units.into_iter().filter(|(unit, _)| sample::keeps(*unit, one_in)) {
            for (quantity, n) in counts.iter().skip(row as usize * stride).take(stride).enumerate() {
                self.add(|| unit, quantity, u64::from(*n));
            }
        }
    }

    fn add(&mut self, unit: impl FnOnce() -> u32, quantity: usize, n: u64) {
        if self.one_in <= 1 {
            self.sums[quantity].exact += n;
            return;
        }
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        if n == 0 || self.full {
            return;
        }
        let unit = unit();
        let stride = self.sums.len();
        let next = self.units.len();
        if next >= MAX_UNITS && !self.units.contains_key(&unit) {
            self.full = true;
            return;
        }
        let at = *self.units.entry(unit).or_insert_with(|| u32::try_from(next).unwrap_or(u32::MAX)) as usize * stride;
        if self.counts.len() < at + stride {
            self.counts.resize(at + stride, 0);
        }
        let counts = &mut self.counts[at..at + stride];
        let before = counts[quantity];
        counts[quantity] = before.saturating_add(n);
        self.sums[quantity].add(before, n);
        for ratio in &mut self.ratios {
            if ratio.part == quantity {
                ratio.products += f64::from(n) * f64::from(counts[ratio.whole]);
            } else if ratio.whole == quantity {
                ratio.products += f64::from(n) * f64::from(counts[ratio.part]);
            }
        }
    }

    /// 1 − p.
    fn left_out(&self) -> f64 {
        1.0 - 1.0 / f64::from(self.one_in)
    }

    fn total(&self, quantity: usize) -> Option<Estimate> {
        let sum = self.sums[quantity];
        let error = f64::from(self.one_in) * (self.left_out() * (sum.squares + sum.typical())).sqrt();
        (!self.full).then_some(Estimate { value: self.expected(&sum), error })
    }

    fn expected(&self, sum: &Sum) -> f64 {
        sum.exact as f64 + f64::from(self.one_in) * sum.total as f64
    }

    fn ratio(&self, index: usize) -> Option<Estimate> {
        let Ratio { part, whole, products } = self.ratios[index];
        let (y, x) = (self.sums[part], self.sums[whole]);
        let whole = self.expected(&x);
        if self.full || whole == 0.0 {
            return None;
        }
        let value = self.expected(&y) / whole;
        // Rounding may leave a little less than nothing.
        let squares = (y.squares - 2.0 * value * products + value * value * x.squares).max(0.0);
        let error = f64::from(self.one_in) * (self.left_out() * (squares + x.typical())).sqrt() / whole;
        Some(Estimate { value, error })
    }

    /// What may be said now.
    pub(super) fn frame(&self) -> SamplingFrame {
        let rule = |rule: usize| {
            let total = |what| self.total(by(rule, what));
            let first = RATIOS.len() + rule * 2;
            RuleSampling {
                predicted: total(By::Promoted),
                both: total(By::Both),
                only_predicted: total(By::OnlyPredicted),
                only_actual: total(By::OnlyActual),
                judged: total(By::Judged),
                would_keep: total(By::Keeps),
                keeps: self.ratio(first),
                avoidable: total(By::Avoidable),
                avoidable_share: self.ratio(first + 1),
            }
        };
        SamplingFrame {
            one_in: self.one_in,
            units: self.units.len() as u64,
            fidelity: self.ratio(0),
            fidelity_by_type: [self.ratio(2), self.ratio(3)],
            promoted: self.total(Of::Promoted as usize),
            evicted: self.total(Of::Evicted as usize),
            refaulted: self.total(Of::Refaulted as usize),
            refaults_per_eviction: self.ratio(1),
            traced: self.traced,
            changes: self.changes.clone(),
            rules: (0..self.rules).map(rule).collect(),
        }
    }
}

/// The hash by which the kernel chose a folio.
pub(super) fn unit(folio: &Folio) -> u32 {
    hash(&folio.identity, folio.is_file, folio.address)
}

/// The same of an event that tells the identity.
pub(super) fn unit_of(event: &FolioEvent, file: bool) -> u32 {
    event.identity.map_or_else(|| sample::of_address(event.folio), |identity| hash(&identity, file, event.folio))
}

pub(super) fn hash(identity: &Identity, file: bool, address: u64) -> u32 {
    if outlives(identity, file) { sample::of_file(identity.ino, identity.index) } else { sample::of_address(address) }
}

/// Whether what a folio holds is chosen again after an eviction: a page of a file is, what is anonymous is chosen by its address.
pub(super) fn outlives(identity: &Identity, file: bool) -> bool {
    file && identity.ino != 0 && !is_anon(identity)
}

impl Session {
    /// Counts something of a folio for the estimates.
    pub(super) fn sample(&mut self, slot: Slot, of: Of, n: u64) {
        let folio = self.world.folio(slot);
        self.sampling.count(|| unit(folio), of, n);
    }

    /// Counts something of a folio under a rule set for the estimates.
    pub(super) fn sample_by(&mut self, slot: Slot, rule: usize, what: By, n: u64) {
        let folio = self.world.folio(slot);
        self.sampling.count_by(|| unit(folio), rule, what, n);
    }

    /// Whether an eviction may be remembered until the refault: of what the refault's sample does not hold, any would be chance.
    pub(super) fn may_return(&self, folio: &Folio) -> bool {
        self.sampling.one_in() <= 1 || outlives(&folio.identity, folio.is_file)
    }
}
