//! `cargo xtask bench capture`: what observing takes from a page-cache read workload, beside other tracers.

mod results;
mod table;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use xtask::guest::Copied;
use xtask::kernel::Kernel;
use xtask::peers::{self, Peers};
use xtask::programs::{self, Link, PROGRAMS};
use xtask::shell::{self, say};
use xtask::vm::{Output, Step, Vm};

/// Runs every way in turn.
const ROUNDS: &str = include_str!("rounds.sh");

/// One run of the workload.
const MEASURED: &str = include_str!("measured.sh");

/// The folder of scripts and peers in a guest.
const GUEST_FOLDER: &str = "/bench";

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
    let release = if kernel == "host" {
        natively(peers.as_ref().ok(), ways(), rounds, out.path())?
    } else {
        in_guest(Kernel::resolve(kernel)?, peers.as_ref().ok(), ways(), rounds, out.path())?
    };
    println!("Page-cache reads on {release}, medians of {rounds} alternating rounds\n");
    let ways: Vec<Way> = ways().cloned().collect();
    print!("{}", table::table(&table::read(out.path(), &ways, rounds)?));
    match peers {
        Ok(peers) => print_notes(&peers, out.path()),
        Err(reason) => println!("\nbpftrace and trace-cmd: not available: {reason}"),
    }
    Ok(())
}

/// What the script was told, where its folders are.
fn words<'a>(folder: &str, rounds: usize, out: &str, scratch: &str, reads: &str, ways: impl Iterator<Item = &'a Way>) -> Vec<String> {
    let fixed = ["sh".to_owned(), format!("{folder}/rounds.sh"), folder.to_owned(), rounds.to_string(), out.to_owned()];
    let fixed = fixed.into_iter().chain([scratch.to_owned(), reads.to_owned()]);
    fixed.chain(ways.map(|way| way.how.to_owned())).collect()
}

fn in_guest<'a>(kernel: Kernel, peers: Option<&Peers>, ways: impl Iterator<Item = &'a Way>, rounds: usize, out: &Path) -> Result<String> {
    let scripts = tempfile::tempdir()?;
    write_scripts(scripts.path())?;
    let mut vm = Vm::new(kernel);
    // The peers' libraries lie in the guest's memory.
    vm.memory = 2 << 30;
    vm.out = Some(out.to_owned());
    vm.timeout = Duration::from_secs(900 * rounds as u64);
    let scripts = ["rounds.sh", "measured.sh"].map(|name| Copied { host: scripts.path().join(name), guest: name.to_owned() });
    let files = scripts.iter().chain(peers.map(|peers| &peers.files).into_iter().flatten());
    vm.copies = files.map(|file| Copied { host: file.host.clone(), guest: format!("{GUEST_FOLDER}/{}", file.guest) }).collect();
    let words = words(GUEST_FOLDER, rounds, "/out", "/data", "60000", ways);
    Ok(vm.run_steps(&[Step::new(words)], &mut Output::Keep)?.succeeded()?.release)
}

fn natively<'a>(peers: Option<&Peers>, ways: impl Iterator<Item = &'a Way>, rounds: usize, out: &Path) -> Result<String> {
    let folder = tempfile::tempdir()?;
    write_scripts(folder.path())?;
    for place in ["bin", "lib"] {
        fs::create_dir(folder.path().join(place))?;
    }
    for file in peers.map(|peers| &peers.files).into_iter().flatten() {
        symlink(&file.host, folder.path().join(&file.guest))?;
    }
    for (program, built) in PROGRAMS.iter().zip(programs::build(&PROGRAMS, Link::Host)?) {
        fs::copy(built, folder.path().join(program.name))?;
    }
    let text = |path: &Path| Ok::<_, anyhow::Error>(path.to_str().context("a path that is text")?.to_owned());
    let place = text(folder.path())?;
    let search = format!("{place}:{}", std::env::var("PATH").unwrap_or_default());
    say(format_args!("{rounds} rounds on this machine's own kernel"));
    // In a mount namespace of its own: tracefs may have to be mounted, and the machine stays as it is.
    let mut unshare = shell::command("unshare", "util-linux")?;
    unshare.arg("--mount").args(words(&place, rounds, &text(out)?, &place, "1000000", ways)).env("PATH", search);
    shell::output(&mut unshare)?;
    Ok(fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned())
}

fn write_scripts(folder: &Path) -> Result<()> {
    for (name, text) in [("rounds.sh", ROUNDS), ("measured.sh", MEASURED)] {
        fs::write(folder.join(name), text).with_context(|| name.to_owned())?;
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
