//! This kernel, or what stands in for it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rustix::thread::{CapabilitySet, capabilities};

use super::OBSERVED_SIZE;
use super::show::Show;
use crate::capture::live::{Live, Options};
use crate::cli::{self, Color};
use crate::exit::{Code, Failure, code_of};
use crate::kernel::own_rules;
use crate::privileges;
use crate::record::referee::{Referee, Refereed};
use crate::replay::EMBEDDED;
use crate::replay::{Input, Recorded, Source};
use crate::session::Session;
use crate::stream::header::Lru;

/// What a summary of a live kernel covers unless told otherwise.
const SUMMARY: Duration = Duration::from_secs(10);

/// `observer live`.
pub(super) fn run(args: cli::Live, color: Color) -> Result<Code> {
    let rules = if args.rules.is_empty() { Session::default_rules() } else { args.rules };
    let mut show = Show { summary: args.summary, rules, duration: args.duration, ..Show::new(color) };
    if show.is_summary() {
        show.duration.get_or_insert(SUMMARY);
    }
    may_trace()?;
    let source = start(Options { cgroup: args.cgroup, ..options(&args.observe) })?;
    give_up(CapabilitySet::empty(), &source);
    show.run(source)
}

/// `observer`: this kernel if it has what matters and lets us, else the embedded recording.
pub(super) fn main_job(mut show: Show) -> Result<Code> {
    let obstacle = match obstacle() {
        None => match start(Options::default()) {
            Ok(live) => {
                give_up(CapabilitySet::empty(), &live);
                if show.is_summary() {
                    show.duration.get_or_insert(SUMMARY);
                }
                return show.run(live);
            }
            Err(error) => format!("{error:#}"),
        },
        Some(obstacle) => obstacle,
    };
    show.note = format!("a recording, not this machine: {obstacle}");
    show.sizes = OBSERVED_SIZE.to_vec();
    privileges::drop_all();
    show.run(Recorded::open(Input::Embedded(EMBEDDED))?)
}

/// Attached, so nothing needs a capability any more but `keep` and, on old kernels, reading maps.
pub(super) fn give_up(keep: CapabilitySet, source: &impl Source) {
    privileges::drop_except(keep | privileges::for_maps(&source.header().kernel));
}

/// What was asked for of how the kernel is observed.
pub(super) fn options(args: &cli::Observe) -> Options {
    Options { cost: args.cost, sample: args.sample, ring_bytes: args.ring, tier: args.hooks, ..Options::default() }
}

/// This kernel's events with its own counters beside them.
pub(super) fn start(options: Options) -> Result<impl Source> {
    // First what has nothing to do with the kernel: a cgroup that does not exist.
    let referee = Referee::new(options.cgroup.as_deref())?;
    let live = Live::start(&options).map_err(|error| match code_of(&error) {
        Some(Code::Failed) => Failure::new(Code::Unsupported, format!("{error:#}")).into(),
        _ => error,
    })?;
    Ok(Refereed::new(live, referee))
}

/// Refuses early and clearly what the kernel would refuse late.
pub(super) fn may_trace() -> Result<()> {
    if can_trace() {
        return Ok(());
    }
    Err(Failure::new(Code::Permission, "tracing this kernel needs root (or CAP_BPF and CAP_PERFMON): run it with sudo").into())
}

fn can_trace() -> bool {
    let wanted = CapabilitySet::BPF | CapabilitySet::PERFMON;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(wanted) || sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Why the main job cannot be live here, and what would change that.
fn obstacle() -> Option<String> {
    const SWITCH: &str = "/sys/kernel/mm/lru_gen/enabled";
    if own_rules::running_lru() == Lru::Mglru {
        return (!can_trace()).then(|| "tracing needs root; sudo observer is live".to_owned());
    }
    Some(if Path::new(SWITCH).exists() {
        format!("its multi-gen LRU is off; echo y | sudo tee {SWITCH} makes this live")
    } else {
        "its kernel has no multi-gen LRU (CONFIG_LRU_GEN); boot one that has, or watch its classical LRU: sudo observer live".to_owned()
    })
}
