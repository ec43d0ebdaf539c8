//! Programs that are run rather than attached: the census of what was there before, and the sweeps over what is followed.

use anyhow::{Context, Result, anyhow};
use aya::{
    Ebpf,
    maps::{Array, MapData},
    programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _},
};
use observer_common::{Known, Progress, SWEEP_LEN};

use super::{
    census::Census,
    object::take_map,
    sweep::{self, Sweep},
};
use crate::{
    capture::live::boottime,
    kernel::{
        frames::{Place, Unplaced},
        size,
    },
    stream::{
        counter_names::RECORDER,
        event::{Body, Event, FolioEvent},
        header::{FlagLayout, Hook, Via},
    },
};

/// Words of the table that the sweep's program reads.
const TABLE: usize = SWEEP_LEN * size_of::<Known>() / 8;

/// Both programs, and what is unknown without them.
const ROWS: [(&str, &str); 2] = [
    ("census", "folios that were on the lists before observer came, until they are inserted again"),
    ("sweep", "folios that the kernel moves, frees or splits without calling anything, until their next event"),
];

/// Both, as far as this kernel lets them.
pub(super) struct OnDemand {
    progress: Array<MapData, [u64; 4]>,
    known: Array<MapData, [u64; TABLE]>,
    table: Box<[u64; TABLE]>,
    census: Option<Census>,
    /// What the census begins with as soon as a folio tells where.
    unplaced: Option<Unplaced>,
    sweep: Option<Sweep>,
    told_sweeps: u64,
    told_census: bool,
    notes: Vec<String>,
}

impl OnDemand {
    /// Loads the programs; the rows say what cannot be done.
    pub(super) fn new(ebpf: &mut Ebpf, place: Result<Place>) -> Result<(Self, Vec<Hook>)> {
        let progress = Array::try_from(take_map(ebpf, "PROGRESS")?)?;
        let known = Array::try_from(take_map(ebpf, "KNOWN")?)?;
        let table = vec![0; TABLE].into_boxed_slice().try_into().map_err(|_| anyhow!("no table for the sweep"))?;
        let page_bytes = place.as_ref().map_or(0, Place::page_bytes);
        let place = load(ebpf, "census").and(place);
        let sweep = load(ebpf, "sweep").map(|()| Sweep::new(page_bytes, size::folios_to_follow()));
        let mut missing = Vec::new();
        for ((name, without), why) in ROWS.into_iter().zip([place.as_ref().err(), sweep.as_ref().err()]) {
            if let Some(why) = why {
                let why = format!("{why:#}").lines().next().unwrap_or_default().to_owned();
                missing.push(Hook { name: name.to_owned(), via: Via::None, target: String::new(), why, without: without.to_owned() });
            }
        }
        let (census, unplaced) = match place {
            Ok(Place::At(frames)) => (Some(Census::new(frames)), None),
            Ok(Place::Unplaced(frames)) => (None, Some(frames)),
            Err(_) => (None, None),
        };
        let sweep = sweep.ok();
        let on_demand = Self { progress, known, table, census, unplaced, sweep, told_sweeps: 0, told_census: false, notes: Vec::new() };
        Ok((on_demand, missing))
    }

    /// Those that work, and on what.
    pub(super) fn rows(&self) -> Vec<Hook> {
        let census = match (&self.census, &self.unplaced) {
            (Some(census), _) => Some((format!("{} page frames", census.count()), "")),
            (None, Some(_)) => Some(("page frames".to_owned(), "from the first folio on: the kernel shows no address of vmemmap_base")),
            (None, None) => None,
        };
        let sweep = self.sweep.as_ref().map(|_| ("followed folios".to_owned(), ""));
        let found = ROWS.into_iter().zip([census, sweep]);
        found.filter_map(|(row, found)| found.map(|(target, why)| reached(row, target, why))).collect()
    }

    /// What sweeps look for follows from what the hooks report.
    pub(super) fn compare_under(&mut self, layout: &FlagLayout, hooks: &[Hook]) {
        let reported = |name: &str| hooks.iter().any(|hook| hook.name == name && hook.via != Via::None);
        if let Some(sweep) = &mut self.sweep {
            sweep.mask = sweep::mask(layout, !reported("walk_update_folio"));
            sweep.swapbacked = 1 << (layout.swapbacked & 63);
        }
    }

    /// Takes note of an event.
    pub(super) fn saw(&mut self, event: &Event) {
        // Of what carries an identity the address is the folio's own.
        if let (Some(unplaced), Body::Folio(FolioEvent { folio, identity: Some(_), .. })) = (&self.unplaced, &event.body) {
            match unplaced.around(*folio) {
                Ok(frames) => self.census = Some(Census::new(frames)),
                Err(error) => self.notes.push(format!("no census is made: {error:#}")),
            }
            self.unplaced = None;
        }
        if let Some(sweep) = &mut self.sweep {
            sweep.saw(event);
        }
    }

    /// Folios that found the table of those that are swept full, so far.
    pub(super) fn refused(&self) -> u64 {
        self.sweep.as_ref().map_or(0, |sweep| sweep.refused)
    }

    /// One in this many folios is observed from now on.
    pub(super) fn keep_fewer(&mut self, one_in: u32) {
        if let Some(sweep) = &mut self.sweep {
            sweep.keep_fewer(one_in);
        }
    }

    /// Does some of what there is to do, between two drains. What fails once is given up, with a note.
    pub(super) fn step(&mut self, ebpf: &Ebpf, out: &mut impl Extend<Event>) {
        if let Err(error) = self.look(ebpf) {
            self.notes.push(format!("the census is given up: {error:#}"));
            self.census = None;
        }
        // First everyone is met, then followed.
        if self.has_met_all()
            && let Err(error) = self.compare(ebpf)
        {
            self.notes.push(format!("the sweeps are given up: {error:#}"));
            self.sweep = None;
        }
        self.tell(out);
    }

    /// Whether the census is over, or there is none.
    pub(super) fn has_met_all(&self) -> bool {
        self.census.as_ref().is_none_or(Census::is_over)
    }

    /// Lines for the user since the last call.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn look(&mut self, ebpf: &Ebpf) -> Result<()> {
        let Some(census) = self.census.as_mut().filter(|census| !census.is_over()) else { return Ok(()) };
        let progress = &self.progress;
        census.step(|[vmemmap, page_bytes, first, end, limit]| run(ebpf, "census", &[vmemmap, page_bytes, first, end, limit], progress))
    }

    fn compare(&mut self, ebpf: &Ebpf) -> Result<()> {
        let Some(sweep) = &mut self.sweep else { return Ok(()) };
        let (progress, known, table) = (&self.progress, &mut self.known, &mut self.table);
        sweep.step(|entries, mask| {
            let words: &[u64] = bytemuck::cast_slice(entries);
            table[..words.len()].copy_from_slice(words);
            let whole: &[u64; TABLE] = table;
            known.set(0, whole, 0)?;
            run(ebpf, "sweep", &[entries.len() as u64, mask], progress)
        })
    }

    /// What both have cost so far, as counters of the stream.
    fn tell(&mut self, out: &mut impl Extend<Event>) {
        if let Some(census) = self.census.as_ref().filter(|census| census.is_over() && !self.told_census) {
            self.told_census = true;
            let rows = [("frames", census.passed), ("folios", census.folios), ("written", census.written), ("ns", census.ns)];
            for (name, value) in rows {
                // Summaries show the change since the first reading.
                out.extend([counter("census", name, 0), counter("census", name, value)]);
            }
        }
        if let Some(sweep) = self.sweep.as_ref().filter(|sweep| sweep.has_ended_since(self.told_sweeps)) {
            self.told_sweeps = sweep.sweeps;
            let rows = [
                ("runs", sweep.sweeps),
                ("folios", sweep.folios),
                ("changed", sweep.written),
                ("ns", sweep.ns),
                ("refused", sweep.refused),
            ];
            for (name, value) in rows {
                if sweep.sweeps == 1 {
                    out.extend([counter("sweep", name, 0)]);
                }
                out.extend([counter("sweep", name, value)]);
            }
        }
    }
}

/// A counter of our own.
fn counter(what: &str, name: &str, value: u64) -> Event {
    Event { ts: boottime(), cpu: 0, body: Body::Counter { cgroup: 0, name: format!("{RECORDER}{what}.{name}"), value } }
}

/// Both, where nothing was tried.
pub(super) fn planned() -> Vec<Hook> {
    ROWS.into_iter().zip(["page frames", "followed folios"]).map(|(row, target)| reached(row, target.to_owned(), "")).collect()
}

fn reached((name, without): (&str, &str), target: String, why: &str) -> Hook {
    Hook { name: name.to_owned(), via: Via::Run, target, why: why.to_owned(), without: without.to_owned() }
}

fn load(ebpf: &mut Ebpf, name: &str) -> Result<()> {
    let program: &mut RawTracePoint =
        ebpf.program_mut(name).with_context(|| format!("the eBPF object has no program {name}"))?.try_into()?;
    program.load().with_context(|| format!("the kernel refused the program {name}"))
}

fn run(ebpf: &Ebpf, name: &str, arguments: &[u64], progress: &Array<MapData, [u64; 4]>) -> Result<Progress> {
    let program: &RawTracePoint = ebpf.program(name).with_context(|| format!("the eBPF object has no program {name}"))?.try_into()?;
    let mut options = RawTracePointRunOptions::default();
    options.args[..arguments.len()].copy_from_slice(arguments);
    program.test_run(options).with_context(|| format!("the kernel did not run the program {name}"))?;
    Ok(bytemuck::cast(progress.get(&0, 0)?))
}
