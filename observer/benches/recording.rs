//! What a recording costs: bytes per event on disk, events per second written and read.
//!
//! `cargo bench -p observer --bench recording [-- --seed N --events N --cpus N --write FILE]`
//!
//! The stream is made up, but with the entropy of a real one: zipf-distributed reads through a page cache with an LRU at
//! three hit rates, physical frames in random order, gaps between events of about a microsecond, a shrink every 32
//! misses, and several CPUs whose events interleave. A recording of a real kernel is measured the same way with `--read FILE`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read};
use std::time::Duration;

use observer::stream::event::{Body, Clock, Event, FolioEvent, Home, Identity, LruvecState};
use observer::stream::header::{FORMAT, FlagLayout, Header, Lru, OwnRules};
use observer::stream::{Reader, Writer};
use observer_common::Kind;

/// Address of the first struct page on x86-64 and its size.
const VMEMMAP: u64 = 0xffff_ea00_0000_0000;
const STRUCT_PAGE: u64 = 64;

/// splitmix64: plenty for a benchmark's noise.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

/// A page of the file, resident or not.
#[derive(Clone, Copy, Default)]
struct Page {
    frame: Option<u32>,
    flags: u64,
    shadow: u64,
    touched: bool,
}

/// A page cache that reports like the kernel's hooks.
struct Cache {
    rng: Rng,
    cpus: usize,
    ts: u64,
    cpu: u16,
    max_seq: u64,
    moved: u64,
    pages: Vec<Page>,
    free: Vec<u32>,
    queue: VecDeque<u32>,
    out: Vec<Event>,
}

const GEN: u32 = 57;
const REFS: u32 = 55;
const LRUVEC: u64 = 0xffff_8881_0a2b_4000;

impl Cache {
    fn new(seed: u64, cpus: usize, pages: usize, capacity: u32) -> Cache {
        let mut rng = Rng(seed);
        let mut free: Vec<u32> = (0..capacity * 3).collect();
        rng.shuffle(&mut free);
        free.truncate(capacity as usize);
        let pages = vec![Page::default(); pages];
        let (ts, max_seq) = (86_400_123_456_789, 7);
        Cache { rng, cpus, ts, cpu: 0, max_seq, moved: 0, pages, free, queue: VecDeque::new(), out: Vec::new() }
    }

    fn pass(&mut self, mean_ns: f64) {
        let gap = -mean_ns * (1.0 - self.rng.unit()).ln();
        self.ts += observer::report::num::to_u64(gap) + 120;
    }

    fn report(&mut self, kind: Kind, page: u32, frame: u32, cold: bool, shadow: u64) {
        let flags = self.pages[page as usize].flags;
        let clock = (kind != Kind::Add).then_some(Clock { max_seq: self.max_seq as u32, window: [3, 3] });
        let identity = cold.then_some(Identity { dev: 254 << 20, ino: 1_048_577, index: u64::from(page) });
        let home = cold.then_some(Home { cgroup: 4242, memcg_id: 37, node: 0, order: 0 });
        let folio = VMEMMAP + STRUCT_PAGE * (65_536 + u64::from(frame));
        let body = FolioEvent { kind, folio, flags, clock, aux: 0, identity, home, shadow };
        self.out.push(Event { ts: self.ts, cpu: self.cpu, body: Body::Folio(body) });
    }

    fn report_shrink(&mut self, kind: Kind, nr_reclaimed: u64) {
        let resident = self.queue.len() as u32;
        let state = LruvecState {
            cgroup: 4242,
            node: 0,
            enabled: true,
            priority: 12,
            max_seq: self.max_seq,
            min_seq: [self.max_seq - 3, self.max_seq - 2],
            nr_reclaimed,
            pages: [[0, resident / 4]; 4],
        };
        self.out.push(Event { ts: self.ts, cpu: self.cpu, body: Body::Lruvec { kind, lruvec: LRUVEC, state } });
    }

    fn read(&mut self, page: u32) {
        self.cpu = self.rng.below(self.cpus) as u16;
        self.pass(1200.0);
        let index = page as usize;
        if self.pages[index].frame.is_none() {
            if self.free.is_empty() {
                self.shrink();
            }
            let Some(frame) = self.free.pop() else { return };
            self.pages[index].flags = 0x2000_0000_0000_0001;
            self.report(Kind::CacheAdd, page, frame, true, 0);
            self.pass(200.0);
            self.report(Kind::Add, page, frame, true, 0);
            if self.pages[index].shadow != 0 {
                self.pass(150.0);
                let shadow = self.pages[index].shadow;
                self.report(Kind::Refault, page, frame, true, shadow);
            }
            self.pass(250.0);
            self.pages[index].flags = 0x2000_0000_0000_0029 | ((self.max_seq % 4 + 1) << GEN);
            self.pages[index].frame = Some(frame);
            self.queue.push_back(page);
            self.report(Kind::Insert, page, frame, true, 0);
            // The disk.
            self.pass(20_000.0);
        }
        let Some(frame) = self.pages[index].frame else { return };
        self.report(Kind::Mark, page, frame, false, 0);
        let page = &mut self.pages[index];
        let refs = (page.flags >> REFS & 3) + 1;
        page.flags = page.flags & !(3 << REFS) | refs.min(3) << REFS | 4 | u64::from(refs > 3) << 9;
        page.touched = true;
    }

    fn shrink(&mut self) {
        self.report_shrink(Kind::ShrinkEnter, 0);
        let mut freed = 0;
        while freed < 32 {
            let Some(page) = self.queue.pop_front() else { break };
            let index = page as usize;
            let Some(frame) = self.pages[index].frame else { continue };
            self.pass(250.0);
            self.moved += 1;
            if std::mem::take(&mut self.pages[index].touched) && self.pages[index].flags >> REFS & 3 >= 2 {
                self.report(Kind::IncGen, page, frame, false, 0);
                self.queue.push_back(page);
                continue;
            }
            let refs = self.pages[index].flags >> REFS & 3;
            let shadow = (self.max_seq & 0xfff) << 26 | refs << 24 | 37 << 8 | 1;
            self.pages[index].shadow = shadow;
            self.report(Kind::Evict, page, frame, true, shadow);
            self.pass(100.0);
            self.report(Kind::Delete, page, frame, true, 0);
            self.pages[index].frame = None;
            self.free.push(frame);
            freed += 1;
        }
        self.report_shrink(Kind::ShrinkExit, freed);
        if self.moved > self.pages.len() as u64 / 8 {
            self.moved = 0;
            self.max_seq += 1;
            self.report_shrink(Kind::Age, 0);
        }
    }
}

/// A stream of about so many events.
fn stream(seed: u64, events: usize, cpus: usize, theta: f64, pages: usize, capacity: u32) -> Vec<Event> {
    let mut cache = Cache::new(seed, cpus, pages, capacity);
    let mut cumulative = Vec::with_capacity(pages);
    let mut sum = 0.0;
    for rank in 1..=pages {
        sum += (rank as f64).powf(-theta);
        cumulative.push(sum);
    }
    let mut places: Vec<u32> = (0..pages as u32).collect();
    cache.rng.shuffle(&mut places);
    // Filling the cache is not what is measured.
    let mut warm_up = true;
    while warm_up || cache.out.len() < events {
        let point = cache.rng.unit() * sum;
        let rank = cumulative.partition_point(|&upto| upto < point).min(pages - 1);
        cache.read(places[rank]);
        if warm_up && cache.free.is_empty() {
            warm_up = false;
            cache.out.clear();
        }
    }
    cache.out
}

fn header() -> Header {
    Header {
        format: FORMAT,
        tool: env!("CARGO_PKG_VERSION").into(),
        kernel: "7.3.0-bench".into(),
        machine: "x86_64".into(),
        host: "bench".into(),
        page_size: 4096,
        cpus: 4,
        lru: Lru::Mglru,
        own_rules: OwnRules::V7_3,
        own_rules_because: "made up".into(),
        layout: FlagLayout {
            referenced: 2,
            uptodate: None,
            active: 5,
            workingset: 9,
            swapbacked: 17,
            swapcache: 10,
            unevictable: 18,
            reclaim: 16,
            dirty: 4,
            writeback: 1,
            lru: 3,
            head: 6,
            dropbehind: Some(20),
            nr_pageflags: 24,
            gen_pgoff: Some(57),
            refs_pgoff: Some(55),
            refs_width: Some(2),
            derived_from: "made up".into(),
            nodes_shift: Some(10),
        },
        hooks: vec![],
        sample: 1,
        filter: String::new(),
        start_boottime: 86_400_000_000_000,
        start_realtime: 1_790_000_000_000_000_000,
        command: String::new(),
        part: None,
    }
}

/// CPU time of this thread: what other work on the machine takes does not count.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// Writes and reads `events` a few times, a batch at most for every second of theirs, and prints the best of them: caches shared with others only ever slow down.
fn measure(name: &str, events: &[Event], header: &Header) -> std::io::Result<Vec<u8>> {
    let mut recording = Vec::new();
    let (mut write, mut read) = (f64::MAX, f64::MAX);
    let mut rows = Vec::new();
    for _ in 0..5 {
        let start = cpu_time();
        let mut writer = Writer::new(Vec::with_capacity(events.len() * 10), header)?;
        let mut batch_start = 0;
        for event in events {
            if event.ts.saturating_sub(batch_start) >= 1_000_000_000 {
                batch_start = event.ts;
                writer.flush()?;
            }
            writer.push(event)?;
        }
        recording = writer.finish()?;
        write = write.min((cpu_time() - start).as_secs_f64());

        let start = cpu_time();
        let mut reader = Reader::new(recording.as_slice()).map_err(std::io::Error::other)?;
        let mut total = 0;
        while reader.next_batch(&mut rows)?.is_some() {
            total += rows.len();
            rows.clear();
        }
        read = read.min((cpu_time() - start).as_secs_f64());
        assert_eq!(total, events.len());
    }
    let count = events.len() as f64;
    let marks = events.iter().filter(|event| matches!(&event.body, Body::Folio(folio) if folio.kind == Kind::Mark)).count();
    println!(
        "{name:<28} {:>9} events {:>5.1} % marks {:>6.2} bytes/event {:>6.2} M/s written {:>6.2} M/s read",
        events.len(),
        100.0 * marks as f64 / count,
        recording.len() as f64 / count,
        count / write / 1e6,
        count / read / 1e6,
    );
    Ok(recording)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1));
    let number = |name: &str, default: usize| value(name).map_or(Ok(default), |value| value.parse());
    let (seed, events, cpus) = (number("--seed", 1)? as u64, number("--events", 2_000_000)?, number("--cpus", 4)?);
    if let Some(path) = value("--read") {
        let mut bytes = Vec::new();
        BufReader::new(File::open(path)?).read_to_end(&mut bytes)?;
        let mut reader = Reader::new(bytes.as_slice())?;
        let mut rows = Vec::new();
        while reader.next_batch(&mut rows)?.is_some() {}
        println!("{path}: {:.2} bytes/event as it is", bytes.len() as f64 / rows.len() as f64);
        measure("rewritten", &rows, &reader.header())?;
        return Ok(());
    }
    for (name, theta, pages, capacity) in [
        ("zipf 1.2, most reads hit", 1.2, 400_000, 160_000),
        ("zipf 0.9, cache 40 %", 0.9, 400_000, 160_000),
        ("zipf 0.6, cache 10 %", 0.6, 400_000, 40_000),
    ] {
        let events = stream(seed, events, cpus, theta, pages, capacity);
        let recording = measure(name, &events, &header())?;
        if let Some(path) = value("--write") {
            std::fs::write(path, recording)?;
        }
    }
    Ok(())
}
