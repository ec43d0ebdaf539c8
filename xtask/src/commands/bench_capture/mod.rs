//! `cargo xtask bench capture`: what observing takes from a page-cache read workload, beside other tracers.

mod results;
mod table;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use xtask::peers::{self, Peers};

use super::scripted::{Folders, Scripted};

/// Runs every way in turn.
const ROUNDS: &str = include_str!("rounds.sh");

/// One run of the workload.
const MEASURED: &str = include_str!("measured.sh");

/// What the columns are.
const EXPLAINED: &str = "\
A read is one event. `CPU per read` and `more` are processor time of the reading process, against the run without a tracer right
before; `program` is the time that the kernel counts for one run of the program that reads run; `tracer` the processor time of the
tracer's own processes per read, while it read. `bytes/event` is of the whole recording or text; for trace-cmd of the events as
written while they come, before it compresses them at its end.";

/// Who watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tracer {
    /// observer, into a recording.
    Observer,
    /// bpftrace, which prints counts at its end.
    Counts,
    /// bpftrace, which writes a line per event.
    Records,
    /// trace-cmd.
    TraceCmd,
}

/// A way to run the workload.
#[derive(Clone, Debug)]
struct Way {
    name: &'static str,
    tracer: Tracer,
    /// A function of [`ROUNDS`] and its arguments.
    how: &'static str,
}

impl Way {
    const fn new(name: &'static str, tracer: Tracer, how: &'static str) -> Self {
        Self { name, tracer, how }
    }
}

const WAYS: [Way; 8] = [
    Way::new("observer", Tracer::Observer, "observer_records"),
    Way::new("observer `--sample 1/1`", Tracer::Observer, "observer_records --sample 1/1"),
    Way::new("observer `--sample 1/1 --cost`", Tracer::Observer, "observer_records --sample 1/1 --cost"),
    Way::new("observer `--sample 1/64`", Tracer::Observer, "observer_records --sample 1/64"),
    Way::new("bpftrace, a count per hook", Tracer::Counts, "bpftrace_runs counts"),
    Way::new("bpftrace, `@[probe] = count()`", Tracer::Counts, "bpftrace_runs keyed"),
    Way::new("bpftrace, a line per event", Tracer::Records, "bpftrace_runs records"),
    Way::new("trace-cmd, nearest tracepoints", Tracer::TraceCmd, "trace_cmd_records"),
];

/// Measures on a kernel in a virtual machine, or natively on this one (as root) where `kernel` is `host`.
pub(super) fn run(kernel: &str, rounds: usize) -> Result<()> {
    let out = tempfile::tempdir()?;
    // Without peers (no Debian mirror, say) observer is measured all the same.
    let peers = peers::fetch().map_err(|error| format!("{error:#}"));
    let ways = || WAYS.iter().filter(|way| peers.is_ok() || way.tracer == Tracer::Observer);
    let files = peers.as_ref().map_or(&[] as &[_], |peers| &peers.files);
    let timeout = Duration::from_secs(900 * rounds as u64);
    let script = Scripted { kernel, scripts: &[("rounds.sh", ROUNDS), ("measured.sh", MEASURED)], files, out: out.path(), timeout };
    let reads = if script.is_native() { "1000000" } else { "60000" };
    let release = script.run(|Folders { scripts, out, scratch }| {
        let fixed = [scripts, &rounds.to_string(), out, scratch, reads].map(str::to_owned);
        fixed.into_iter().chain(ways().map(|way| way.how.to_owned())).collect()
    })?;
    println!("Page-cache reads on {release}, medians of {rounds} alternating rounds\n");
    let ways: Vec<Way> = ways().cloned().collect();
    print!("{}", table::table(&table::read(out.path(), &ways, rounds)?));
    match peers {
        Ok(peers) => print_notes(&peers, out.path()),
        Err(reason) => println!("\nbpftrace and trace-cmd: not available: {reason}"),
    }
    Ok(())
}

/// What the rows cannot say.
fn print_notes(peers: &Peers, out: &Path) {
    let list = |name: &str| {
        let text = fs::read_to_string(out.join(name)).unwrap_or_default();
        let mut names: Vec<&str> = text.split_whitespace().collect();
        // Entry and exit of one function are two.
        names.dedup();
        names.join(", ")
    };
    println!("\n{}. bpftrace's hooks: {}.", peers.versions, list("hooks"));
    let missing = list("hooks-missing");
    if !missing.is_empty() {
        println!("This kernel gives bpftrace no {missing}.");
    }
    println!("{EXPLAINED}");
}
