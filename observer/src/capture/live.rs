//! This kernel as a source of events.

use std::{
    collections::{HashSet, VecDeque},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use aya::{
    Ebpf,
    maps::{MapData, PerCpuArray, RingBuf},
};
use observer_common::layout::{ABSENT, Filter};

use super::{
    attach,
    cost::Cost,
    object,
    on_demand::{self, OnDemand},
    peek::Peeker,
    sample::{Drain, Sample, Sampler, Why},
    warnings::Warnings,
    wire,
};
use crate::{
    kernel::{
        btf::Btf,
        cgroup::{self, CgroupNames},
        flag_fields,
        frames::{Frames, Place, Unplaced},
        hooks::{self, Tier},
        layout, own_rules,
        symbols::Symbols,
    },
    stream::{
        counter_names::SAMPLE,
        event::{Body, Event},
        header::{FORMAT, FlagLayout, Header, Hook, Via},
    },
};

/// What to observe.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only this cgroup's subtree.
    pub cgroup: Option<PathBuf>,
    /// Bytes of the ring buffer, a power of two.
    pub ring_bytes: u32,
    /// The command run under observation, for the header.
    pub command: String,
    /// Whether the kernel counts what the programs cost.
    pub cost: bool,
    /// Which folios are observed.
    pub sample: Sample,
    /// Which hooks are used.
    pub tier: Tier,
}

impl Default for Options {
    fn default() -> Self {
        Self { cgroup: None, ring_bytes: 1 << 25, command: String::new(), cost: false, sample: Sample::default(), tier: Tier::All }
    }
}

/// Events of the running kernel, as long as it lives.
pub struct Live {
    header: Arc<Header>,
    // Dropping it detaches the programs.
    ebpf: Ebpf,
    on_demand: OnDemand,
    ring: RingBuf<MapData>,
    lost: PerCpuArray<MapData, u64>,
    lost_seen: Vec<u64>,
    cgroups: CgroupNames,
    told: HashSet<u64>,
    pending: VecDeque<Event>,
    last_clock: Option<Instant>,
    warnings: Warnings,
    cost: Cost,
    sampler: Sampler,
    /// What the user should know from the start.
    notes: Vec<String>,
}

/// Clock snapshots come this often.
const CLOCK_EVERY: Duration = Duration::from_secs(10);

/// How long the programs may pile up events between two drains.
pub const DRAIN_EVERY: Duration = Duration::from_millis(10);

/// At most this many events are handed over at once, so that nobody downstream waits long or grows without bound.
const MAX_BATCH: usize = 65_536;

/// Cgroups whose names were told.
const MAX_TOLD: usize = 1 << 16;

impl Live {
    /// Loads and attaches.
    ///
    /// # Errors
    /// Says which privilege or kernel feature is missing; a hook that cannot be reached is no error.
    pub fn start(options: &Options) -> Result<Self> {
        let btf = Btf::running()?;
        let symbols = Symbols::running(&hooks::symbols_wanted()).unwrap_or_default();
        let lru = own_rules::running_lru();
        let (own, because) = own_rules::find(&btf, lru);
        let mut layout = layout::offsets(&btf)?;
        let mut flags = layout::flag_bits(&btf)?;

        let cgroups = CgroupNames::new();
        let mut filter = Filter { cgroup: 0, level: 0, self_tgid: rustix::process::getpid().as_raw_nonzero().get().unsigned_abs() };
        if let Some(path) = &options.cgroup {
            ensure!(
                layout.cgroup_ancestors != ABSENT && layout.folio_memcg_data != ABSENT,
                "this kernel does not tell which cgroup a folio belongs to: run without --cgroup"
            );
            let found = cgroup::resolve(path)?;
            filter.cgroup = found.id;
            filter.level = found.level;
        }

        let unfinished = layout;
        let mut loader = object::Loader::new();
        let kernel_btf = aya::Btf::from_sys_fs().context("cannot read this kernel's BTF")?;
        let mut vmemmap = Err(anyhow!("/proc/kallsyms shows no address of pff: it hides them, or this kernel has no such table"));
        if let Some(address) = symbols.address("pff") {
            // The layout must be complete before the programs are loaded, and only a program can read it: load twice.
            let mut peeker = Peeker::new(loader.load(&unfinished, &filter, 4096)?);
            let mut peek = |address| peeker.as_mut().map_err(|error| anyhow!("{error:#}"))?.read(address);
            let base = symbols.address("vmemmap_base").context("this kernel has no vmemmap_base");
            vmemmap = base.and_then(&mut peek).and_then(|bytes| Ok(u64::from_ne_bytes(*bytes.first_chunk().context("nothing was read")?)));
            if let Ok(widths) = peek(address).and_then(|bytes| flag_fields::parse_table(&bytes)) {
                flag_fields::derive(&mut flags, &widths, own);
                layout.node_shift = widths.node_shift;
                layout.node_mask = (1_u32 << widths.width[1].min(31)) - 1;
            }
        }
        let mut ebpf = loader.load(&layout, &filter, options.ring_bytes)?;
        let sampler = Sampler::new(&mut ebpf, options.sample, options.ring_bytes)?;
        let frames = place(&btf, vmemmap);
        // Before the hooks: what they report until the census is over is about folios that nobody knows yet.
        let (mut on_demand, missing) = OnDemand::new(&mut ebpf, frames)?;
        let mut hooks = attach_all(&mut ebpf, &kernel_btf, &btf, &symbols, options.tier);
        ensure!(
            hooks.iter().any(|hook| hook.via != Via::None),
            "the kernel refused every hook ({}): `observer doctor` says what to change",
            hooks.first().map_or("", |hook| hook.why.as_str())
        );
        let ring = RingBuf::try_from(object::take_map(&mut ebpf, "EVENTS")?)?;
        let lost = PerCpuArray::try_from(object::take_map(&mut ebpf, "LOST")?)?;
        on_demand.compare_under(&flags, &hooks);
        hooks.extend(missing);
        let warnings = Warnings::of(&mut ebpf);
        let (cost, notes) = Cost::start(&ebpf, options.cost);
        let header = Arc::new(startup_record(options, sampler.one_in(), lru, own, because, flags, hooks));
        let cpus = header.cpus as usize;
        let mut live = Self {
            header,
            ebpf,
            on_demand,
            ring,
            lost,
            lost_seen: vec![0; cpus],
            cgroups,
            told: HashSet::new(),
            pending: VecDeque::new(),
            last_clock: None,
            warnings,
            cost,
            sampler,
            notes,
        };
        live.begin()?;
        Ok(live)
    }

    /// The stream begins when all hooks are attached: what the first of them reported before that has gaps nobody counted.
    /// Names are told once, and kept.
    fn begin(&mut self) -> Result<()> {
        const DISCARD: Duration = Duration::from_secs(1);
        const MEET: Duration = Duration::from_millis(500);
        let mut start = Instant::now();
        while let Some(record) = self.ring.next() {
            let event = wire::decode(&record)?;
            if matches!(event.body, Body::FileName { .. }) {
                self.pending.push_back(event);
            }
            if start.elapsed() > DISCARD {
                break;
            }
        }
        for (seen, count) in self.lost_seen.iter_mut().zip(self.lost.get(&0, 0)?.iter()) {
            *seen = *count;
        }
        // Whom the census has met before the first event is known from then on.
        start = Instant::now();
        while !self.on_demand.has_met_all() && start.elapsed() < MEET {
            self.on_demand.step(&self.ebpf, &mut self.pending);
        }
        Ok(())
    }

    /// The startup record.
    pub fn header(&self) -> Arc<Header> {
        Arc::clone(&self.header)
    }

    /// Programs that are run rather than attached, as far as they work.
    pub fn on_demand(&self) -> Vec<Hook> {
        self.on_demand.rows()
    }

    /// Takes what the programs left, appending to `out`; never blocks. True when there may be more at once.
    ///
    /// # Errors
    /// When a record cannot be decoded: object and binary do not belong together.
    pub fn drain(&mut self, out: &mut Vec<Event>) -> Result<bool> {
        let before = out.len();
        out.extend(self.pending.drain(..));
        if self.last_clock.is_none_or(|last| last.elapsed() >= CLOCK_EVERY) {
            self.last_clock = Some(Instant::now());
            out.push(clock_snapshot());
        }
        self.cost.read(boottime(), out);
        // Losses first: they happened before what is still in the ring was taken out.
        let refused = self.on_demand.refused();
        let mut drain = Drain { lost: self.losses(out)?, ..Drain::default() };
        let more = loop {
            if out.len() - before >= MAX_BATCH {
                break true;
            }
            let Some(record) = self.ring.next() else { break false };
            drain.bytes += record.len() as u64;
            let event = wire::decode(&record)?;
            drop(record);
            drain.taken.all += 1;
            drain.taken.sampled += u64::from(matches!(event.body, Body::Folio(_) | Body::Range { .. }));
            self.on_demand.saw(&event);
            self.name_cgroup(&event, out);
            out.push(event);
        };
        if more {
            drain.lag = out.last().map(|event| Duration::from_nanos(boottime().saturating_sub(event.ts)));
        }
        drain.full = self.on_demand.refused() > refused;
        self.sample(&drain, out)?;
        if !more {
            self.warnings.collect();
            self.sampler.pause();
            self.on_demand.step(&self.ebpf, &mut self.pending);
            self.sampler.resume();
            if !self.on_demand.has_met_all() {
                // Whom it meets is met once.
                self.sampler.start_anew();
            }
        }
        Ok(more)
    }

    /// Observes fewer folios from now on where their events are too many.
    fn sample(&mut self, drain: &Drain, out: &mut Vec<Event>) -> Result<()> {
        let Some((one_in, why)) = self.sampler.drained(drain) else { return Ok(()) };
        // Told before it is done: what the former rate still leaves in the ring is more than was promised, and nothing is missing.
        let ts = boottime();
        out.push(Event { ts, cpu: 0, body: Body::Counter { cgroup: 0, name: SAMPLE.to_owned(), value: u64::from(one_in) } });
        self.sampler.keep_fewer()?;
        self.on_demand.keep_fewer(one_in);
        let why = match why {
            Why::Full => "there are more folios than can be followed",
            Why::Fast => "events come faster than they can be taken",
            Why::Dear => "observing takes more processor time than its share (--sample SHARE% sets that)",
        };
        self.notes.push(format!(
            "{why}: one folio in {one_in} is observed from now on (--cgroup narrows it down, --sample 1/1 keeps what fits and counts the rest)"
        ));
        Ok(())
    }

    /// Adds an event of user space's own (a counter read, say) to the stream.
    pub fn push(&mut self, event: Event) {
        self.pending.push_back(event);
    }

    /// Whether what this thread does from now on counts as the cost of events. It does unless told otherwise.
    pub fn meter(&mut self, on_events: bool) {
        if on_events {
            self.sampler.resume();
        } else {
            self.sampler.pause();
        }
    }

    /// What the programs warned of since the last call, each kind once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.append(&mut self.warnings.take());
        notes.append(&mut self.on_demand.take_notes());
        notes
    }

    /// Tells how many were lost on each CPU; how many in all.
    fn losses(&mut self, out: &mut Vec<Event>) -> Result<u64> {
        let counts = self.lost.get(&0, 0)?;
        let mut all = 0;
        for (cpu, (count, seen)) in counts.iter().zip(&mut self.lost_seen).enumerate() {
            if *count > *seen {
                let cpu = u16::try_from(cpu).unwrap_or(u16::MAX);
                out.push(Event { ts: boottime(), cpu, body: Body::Lost { cpu, count: *count - *seen } });
                all += *count - *seen;
                *seen = *count;
            }
        }
        Ok(all)
    }

    fn name_cgroup(&mut self, event: &Event, out: &mut Vec<Event>) {
        let cgroup = match &event.body {
            Body::Folio(folio) => folio.home.map_or(0, |home| home.cgroup),
            Body::Lruvec { state, .. } => state.cgroup,
            _ => 0,
        };
        if cgroup != 0
            && !self.told.contains(&cgroup)
            && self.told.len() < MAX_TOLD
            && let Some(name) = self.cgroups.name(cgroup)
        {
            self.told.insert(cgroup);
            out.push(Event { ts: event.ts, cpu: event.cpu, body: Body::CgroupName { cgroup, name } });
        }
    }
}

/// The programs that would be run rather than attached.
pub fn planned_on_demand() -> Vec<Hook> {
    on_demand::planned()
}

/// Where the struct pages are. Without the symbol that tells it, the first folio may.
fn place(btf: &Btf, vmemmap: Result<u64>) -> Result<Place> {
    let zones = std::fs::read_to_string("/proc/zoneinfo").context("cannot read /proc/zoneinfo")?;
    let page_bytes = u64::from(btf.size("page")?);
    match vmemmap {
        Ok(vmemmap) => Frames::new(vmemmap, page_bytes, &zones).map(Place::At),
        Err(why) => Unplaced::new(page_bytes, &zones).map(Place::Unplaced).map_err(|more| why.context(more)),
    }
}

fn attach_all(ebpf: &mut Ebpf, kernel_btf: &aya::Btf, btf: &Btf, symbols: &Symbols, tier: Tier) -> Vec<Hook> {
    let mut hooks = attach::attach(ebpf, kernel_btf, &hooks::plan(btf, symbols, tier));
    if !attach::functions_hooked(&hooks) {
        hooks.extend(attach::attach(ebpf, kernel_btf, &hooks::plan_tracepoints(btf, symbols)));
    }
    hooks
}

fn startup_record(
    options: &Options,
    one_in: u32,
    lru: crate::stream::header::Lru,
    own: crate::stream::header::OwnRules,
    because: &str,
    layout: FlagLayout,
    hooks: Vec<Hook>,
) -> Header {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Header {
        format: FORMAT,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: text(uname.release()),
        machine: text(uname.machine()),
        host: text(uname.nodename()),
        page_size: u32::try_from(rustix::param::page_size()).unwrap_or(0),
        cpus: aya::util::nr_cpus().map_or(1, |cpus| u32::try_from(cpus).unwrap_or(1)),
        lru,
        own_rules: own,
        own_rules_because: because.to_owned(),
        layout,
        hooks,
        sample: one_in,
        filter: options.cgroup.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        start_boottime: boottime(),
        start_realtime: realtime(),
        command: options.command.clone(),
        part: None,
    }
}

fn nanoseconds(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// CLOCK_BOOTTIME, nanoseconds: the clock of every event.
pub fn boottime() -> u64 {
    nanoseconds(rustix::time::ClockId::Boottime)
}

/// CLOCK_REALTIME, nanoseconds since the epoch.
pub fn realtime() -> u64 {
    nanoseconds(rustix::time::ClockId::Realtime)
}

fn clock_snapshot() -> Event {
    let boottime = boottime();
    Event { ts: boottime, cpu: 0, body: Body::ClockSnapshot { boottime, realtime: realtime() } }
}
