//! From events to the picture: who is who, what the kernel did, what each rule set would have done, and how they compare.
//!
//! Lock step (design.md): every rule set sees the same events, the kernel's clock and the kernel's residency. The own rule
//! set is scored event by event and then takes what was seen, so that each score is one prediction; the others go their
//! own way and are compared.
//!
#![doc = include_str!("memory.md")]

#[cfg(test)]
mod bounds_tests;
pub mod calibration;
pub mod clock;
#[cfg(test)]
mod compared_tests;
mod counters;
pub mod decode;
mod feed;
pub(crate) mod files;
pub mod frame;
mod ghosts;
mod isolation;
mod nested;
mod observed;
mod picture;
mod ranges;
pub mod rule_set;
mod sampling;
#[cfg(test)]
mod sampling_tests;
mod shmem;
#[cfg(test)]
mod shmem_tests;
pub mod side;
mod step;
#[cfg(test)]
mod swap_tests;
mod switch;
mod tally;
#[cfg(test)]
mod tests;
mod thinning;
mod verdicts;
mod what_if;
mod windows;
mod world;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::{
    model::{self, FolioState, Rules, Window},
    session::{
        calibration::Calibrator,
        clock::Advance,
        counters::Counters,
        decode::Decoder,
        frame::{Frame, SourceKind},
        ghosts::Ghosts,
        rule_set::{Engine, RuleSet},
        side::SideCount,
        tally::Tally,
        what_if::FreeRun,
        windows::Windows,
        world::{Slot, World},
    },
    stream::{
        NO_CPU,
        counter_names::{LIMIT, SAMPLE},
        event::{Body, Event, LruvecState},
        header::{Header, Lru, OwnRules},
    },
};

/// Rule sets beside the kernel's own, unless others are asked for: the proposal first.
pub const DEFAULT_RULES: [&str; 5] = ["fg-v4", "fg-v3", "7.3", "6.18", "6.12"];

/// Rule sets at most (the bits of a folio's promotion record).
pub const MAX_RULES: usize = 15;

/// Evictions remembered at most, unless less is asked for: half as many as folios tracked.
const MAX_GHOSTS: usize = world::MAX_FOLIOS / 2;

/// Consumes events, gives pictures.
pub struct Session {
    header: Arc<Header>,
    source: SourceKind,
    name: String,
    note: String,
    total_ns: Option<u64>,
    ended: bool,
    decoder: Decoder,
    calibrator: Calibrator,
    lru: Lru,
    world: World,
    /// The kernel's own first.
    rules: Vec<RuleSet>,
    /// The kernel's flags as last seen, by slot.
    actual: Vec<FolioState>,
    actual_sides: Vec<SideCount>,
    /// Scores of the own rules.
    tally: Tally,
    ghosts: Ghosts,
    /// Folios that reclaim has taken off the lists, with the generations of that moment.
    isolated: FxHashMap<Slot, Window>,
    /// Folios refaulted from an unknown swap entry.
    arrivals: FxHashMap<Slot, verdicts::Arrival>,
    windows: Windows,
    counters: Counters,
    /// Moves with every loss: what was seen before it is unknown (design.md).
    epoch: u32,
    switch: switch::Switch,
    lost: Vec<u64>,
    lost_in_all: u64,
    events: u64,
    first_ts: u64,
    last_ts: u64,
    /// `folio_mark_accessed` reports accesses.
    marks_hooked: bool,
    /// `lru_gen_set_refs` reports what the look-around rule does.
    set_refs_hooked: bool,
    /// `folio_add_lru` reports what enters the page cache.
    adds_hooked: bool,
    /// `workingset_eviction` reports what reclaim takes out of it.
    evictions_hooked: bool,
    /// What-if caches; none unless asked for.
    free_run: Option<Box<FreeRun>>,
    /// Which folios are seen, and sums by what was sampled.
    sampling: sampling::Sampling,
}

impl Session {
    /// For a stream; `rules` are compared with the kernel's own.
    pub fn new(header: Arc<Header>, source: SourceKind, name: String, rules: Vec<Rules>) -> Self {
        let width = header.layout.refs_width;
        let mut sets = vec![own(header.own_rules, width)];
        for rules in rules {
            // The label names changed parameters too: a preset and its variants stand side by side.
            let name = rules.label();
            if sets.len() < MAX_RULES && sets.iter().all(|set| set.name != name) {
                sets.push(RuleSet::new(name, Engine::Generations(fit(rules, header.own_rules, width))));
            }
        }
        let mglru = header.lru == Lru::Mglru;
        let (sample, rules_in_all) = (header.sample, sets.len());
        let hooked = |name: &str| header.hooks.iter().any(|hook| hook.name == name && !hook.target.is_empty());
        let (set_refs_hooked, adds_hooked) = (hooked("lru_gen_set_refs"), hooked("folio_add_lru"));
        let (marks_hooked, evictions_hooked) = (hooked("folio_mark_accessed"), hooked("workingset_eviction"));
        Self {
            decoder: Decoder::new(&header.layout),
            calibrator: Calibrator::new(&header.layout, mglru),
            lru: header.lru,
            world: World::new(header.hooks.iter().any(|hook| hook.name == "reads")),
            first_ts: header.start_boottime,
            last_ts: header.start_boottime,
            windows: Windows::new(header.start_boottime),
            lost: vec![0; header.cpus.min(1 << 16) as usize],
            lost_in_all: 0,
            header,
            source,
            name,
            note: String::new(),
            total_ns: None,
            ended: false,
            rules: sets,
            actual: Vec::new(),
            actual_sides: Vec::new(),
            tally: Tally::default(),
            ghosts: Ghosts::new(rules_in_all, MAX_GHOSTS),
            isolated: FxHashMap::default(),
            arrivals: FxHashMap::default(),
            counters: Counters::default(),
            epoch: 0,
            switch: switch::Switch::default(),
            events: 0,
            marks_hooked,
            set_refs_hooked,
            adds_hooked,
            evictions_hooked,
            free_run: None,
            sampling: sampling::Sampling::new(sample, rules_in_all),
        }
    }

    /// Runs each rule set alone on the access stream too, at these sizes in percent of the observed one. To be said before the first event;
    /// costs about as much as all rule sets in lock step for each size.
    pub fn what_if(&mut self, percents: &[u32]) {
        let lru = |set: &RuleSet| match set.engine {
            Engine::Generations(rules) => model::Lru::Generations(rules),
            Engine::Classical => model::Lru::Classical,
        };
        let rules = self.rules.iter().map(|set| (set.name.clone(), lru(set))).collect();
        let header = &self.header;
        self.free_run =
            (!percents.is_empty()).then(|| Box::new(FreeRun::new(rules, percents, header.sample, header.page_size, header.cpus)));
    }

    /// Tracks no more folios than that at once, and remembers no more evictions. To be said before the first event.
    pub fn track_at_most(&mut self, folios: usize) {
        self.world.track_at_most(folios);
        self.ghosts = Ghosts::new(self.rules.len(), folios.min(MAX_GHOSTS));
    }

    /// Does what was put off until more is known: no more will be.
    pub fn finish(&mut self) {
        if let Some(free_run) = &mut self.free_run {
            free_run.start();
        }
    }

    /// The default rule sets beside the own.
    pub fn default_rules() -> Vec<Rules> {
        DEFAULT_RULES.iter().filter_map(|name| Rules::by_name(name)).collect()
    }

    /// A line the user should see; empty for none.
    pub fn note(&mut self, note: String) {
        self.note = note;
    }

    /// Length of the recording, when known.
    pub fn total(&mut self, nanoseconds: Option<u64>) {
        self.total_ns = nanoseconds;
    }

    /// No more events will come.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Takes one event.
    pub fn apply(&mut self, event: &Event) {
        self.events += 1;
        self.last_ts = self.last_ts.max(event.ts);
        self.roll_windows();
        if let Some(free_run) = &mut self.free_run {
            free_run.run_on(event.cpu);
        }
        match &event.body {
            Body::Folio(folio) => self.folio(folio, event.cpu),
            Body::Lruvec { lruvec, state, .. } => self.lruvec(*lruvec, state),
            Body::Controller { lruvec, state } => self.controller(*lruvec, state),
            Body::Range { kind, dev, ino, first, last } => self.range(*kind, *dev, *ino, *first, *last),
            Body::FileName { dev, ino, name } => {
                let lruvec = self.world.lruvec_of(0, 0, 0);
                self.grow_lruvecs(lruvec);
                self.world.files.name(*dev, *ino, name, lruvec);
                self.begin_files_anew();
            }
            Body::CgroupName { cgroup, name } => self.world.name_cgroup(*cgroup, name),
            Body::Lost { cpu, count } => self.lose(*cpu, *count),
            Body::ClockSnapshot { .. } => {}
            Body::Counter { cgroup, name, value } => {
                if let Some(free_run) = self.free_run.as_mut().filter(|_| name == LIMIT) {
                    free_run.limit(*cgroup, *value);
                }
                if name == SAMPLE {
                    self.thin(*value);
                } else {
                    self.counters.read(*cgroup, name, *value);
                }
            }
        }
    }

    /// What is known now.
    pub fn frame(&self) -> Frame {
        picture::draw(self)
    }

    fn lose(&mut self, cpu: u16, count: u64) {
        self.lost_in_all = self.lost_in_all.saturating_add(count);
        // Rows of a damaged recording have no CPU.
        if cpu != NO_CPU {
            let cpu = usize::from(cpu);
            if self.lost.len() <= cpu {
                self.lost.resize(cpu + 1, 0);
            }
            self.lost[cpu] = self.lost[cpu].saturating_add(count);
        }
        self.epoch = self.epoch.wrapping_add(1);
    }

    fn lruvec(&mut self, address: u64, state: &LruvecState) {
        // Which LRU is in use may change under us (threat 33 of anchors.md).
        self.lru = if state.enabled { Lru::Mglru } else { Lru::Classical };
        let index = self.world.lruvec_of(state.cgroup, state.node, 0);
        self.grow_lruvecs(index);
        self.counters.lruvec_is(address, index);
        let advance = self.world.lruvec_mut(index).state(state);
        self.follow(index, advance);
    }

    /// Controller counters name the lruvec by address: the state event before them told whose it is.
    fn controller(&mut self, lruvec: u64, state: &crate::stream::event::ControllerState) {
        if let Some(index) = self.counters.lruvec_at(lruvec) {
            // More pages than a machine has would only overflow the sums; a recording is not always made by a kernel.
            let bounded = |counts: [[u64; 4]; 2]| counts.map(|tiers| tiers.map(|count| count.min(1 << 48)));
            self.world.lruvec_mut(index).controller = model::Controller {
                avg_refaulted: bounded(state.avg_refaulted),
                avg_total: bounded(state.avg_total),
                refaulted: bounded(state.refaulted),
                evicted: bounded(state.evicted),
                protected: bounded(state.protected),
            };
        }
    }

    /// Lets every count follow a lruvec's clock.
    fn follow(&mut self, lruvec: u32, advance: Advance) {
        if advance == Advance::default() {
            return;
        }
        let Some(window) = self.world.lruvec(lruvec).window else { return };
        for (kind, from) in advance.min_from.into_iter().enumerate() {
            let Some(from) = from else { continue };
            let to = window.min_seq[kind];
            self.actual_sides[lruvec as usize].fold(kind == 1, from, to);
            for set in &mut self.rules {
                set.sides[lruvec as usize].fold(kind == 1, from, to);
            }
        }
    }

    /// What is counted by file begins anew where an entry has become another file's.
    fn begin_files_anew(&mut self) {
        if let Some(file) = self.world.files.take_reused() {
            self.rules.iter_mut().for_each(|set| set.forget_file(file));
        }
    }

    fn grow_lruvecs(&mut self, lruvec: u32) {
        let needed = lruvec as usize + 1;
        if self.actual_sides.len() < needed {
            self.actual_sides.resize(needed, SideCount::default());
        }
        for set in &mut self.rules {
            set.grow_lruvecs(lruvec);
        }
    }
}

/// The kernel's own rule set.
fn own(own: OwnRules, width: Option<u8>) -> RuleSet {
    let engine = Rules::by_name(own.name()).map_or(Engine::Classical, |rules| Engine::Generations(fit(rules, own, width)));
    RuleSet::new(own.name().to_owned(), engine)
}

/// A rule set with the width its reference field would have on this kernel (spec 1.3): FG asks for one bit less.
fn fit(rules: Rules, own: OwnRules, width: Option<u8>) -> Rules {
    use crate::model::rules::Encoding;
    let Some(width) = width else { return rules };
    let kernel_counts = own == OwnRules::FgV3;
    let wanted = match (rules.encoding, kernel_counts) {
        (Encoding::Count, false) => width.saturating_sub(1),
        (Encoding::Count, true) => width,
        (_, true) => width + 1,
        (_, false) => width,
    };
    Rules { width: wanted.min(rules.width), ..rules }
}
