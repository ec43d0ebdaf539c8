//! What this kernel lets observer see, row by row, and what to change.
//!
//! Hooks are tried by really attaching them, and the flag positions by watching real insertions for a few seconds: a
//! prediction of what would work is worth less than the attempt.

mod checks;
mod rows;
mod text;

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use serde::Serialize;

pub use checks::{Check, Facts, State};
pub use rows::Row;
pub use text::render;

use crate::{
    capture::live::{self, DRAIN_EVERY, Live, Options},
    exit::Code,
    kernel::{
        btf::Btf,
        hooks::{self, Tier},
        own_rules,
        symbols::Symbols,
    },
    session::{Session, frame::Calibration, frame::SourceKind},
    stream::header::{Hook, Lru, Via},
};

/// How long insertions are awaited for the calibration.
const CALIBRATE_FOR: Duration = Duration::from_secs(4);

/// Everything `observer doctor` says; its JSON is this structure (schema `observer.doctor/1`).
#[derive(Debug, Serialize)]
pub struct Report {
    /// `observer.doctor/1`.
    pub schema: &'static str,
    /// `uname -r`.
    pub kernel: String,
    /// LRU in use.
    pub lru: Lru,
    /// The kernel's own rule set, when its BTF can be read.
    pub own_rules: Option<String>,
    /// What made us choose it.
    pub own_rules_because: String,
    /// Requirements and settings.
    pub checks: Vec<Check>,
    /// Hooks, and the programs that are run rather than attached: reached if they were attached just now, else planned.
    pub hooks: Vec<Row>,
    /// Whether `hooks` were attached or only planned.
    pub attached: bool,
    /// Positions of generation and references in a flags word, derived.
    pub layout: Layout,
    /// What insertions proved: "confirmed", "pending", "contradicted", "not needed", "not tried".
    pub calibration: String,
    /// One line that sums it up.
    pub verdict: String,
    /// The exit code.
    pub exit_code: u8,
}

/// Derived positions; null where unknown.
#[derive(Debug, Default, Serialize)]
pub struct Layout {
    /// LRU_GEN_PGOFF.
    pub gen_pgoff: Option<u8>,
    /// LRU_REFS_PGOFF.
    pub refs_pgoff: Option<u8>,
    /// LRU_REFS_WIDTH.
    pub refs_width: Option<u8>,
    /// How they were derived.
    pub derived_from: String,
}

/// Examines this machine.
pub fn examine() -> Report {
    let facts = Facts::of_this_machine();
    let mut report = Report {
        schema: "observer.doctor/1",
        kernel: facts.release.clone(),
        lru: facts.lru,
        own_rules: None,
        own_rules_because: String::new(),
        checks: checks::all(&facts),
        hooks: Vec::new(),
        attached: false,
        layout: Layout::default(),
        calibration: "not tried".to_owned(),
        verdict: String::new(),
        exit_code: 0,
    };
    if let Ok(btf) = Btf::running() {
        let (own, because) = own_rules::find(&btf, facts.lru);
        report.own_rules = Some(own.name().to_owned());
        report.own_rules_because = because.to_owned();
        let symbols = Symbols::running(&hooks::symbols_wanted()).unwrap_or_default();
        report.hooks = hooks::plan(&btf, &symbols, Tier::All).iter().map(planned).chain(live::planned_on_demand()).map(Row::from).collect();
    }
    let failure = match Live::start(&Options::default()) {
        Ok(live) => attached(&mut report, live).err(),
        Err(error) => Some(error),
    };
    let (verdict, code) = judge(&report, &facts, failure.as_ref());
    report.verdict = verdict;
    report.exit_code = code as u8;
    report
}

fn planned(plan: &hooks::Plan) -> Hook {
    Hook { name: plan.name.to_owned(), via: plan.via, target: plan.target.clone(), why: plan.why.clone(), without: plan.without.to_owned() }
}

/// Watches insertions until the flag positions are proven, or for a few seconds.
fn attached(report: &mut Report, mut live: Live) -> Result<()> {
    let header = live.header();
    report.hooks = header.hooks.iter().cloned().chain(live.on_demand()).map(Row::from).collect();
    report.attached = true;
    report.layout = Layout {
        gen_pgoff: header.layout.gen_pgoff,
        refs_pgoff: header.layout.refs_pgoff,
        refs_width: header.layout.refs_width,
        derived_from: header.layout.derived_from.clone(),
    };
    let mut session = Session::new(header, SourceKind::Live, String::new(), Vec::new());
    let start = Instant::now();
    let mut events = Vec::new();
    loop {
        report.calibration = match session.frame().calibration {
            Calibration::NotNeeded => "not needed".to_owned(),
            Calibration::Pending { seen, need } => format!("pending: {seen} of {need} insertions so far"),
            Calibration::Confirmed { samples } => format!("confirmed by {samples} insertions"),
            Calibration::Contradicted { why } => format!("contradicted: {why}"),
        };
        if !report.calibration.starts_with("pending") || start.elapsed() >= CALIBRATE_FOR {
            return Ok(());
        }
        thread::sleep(DRAIN_EVERY);
        events.clear();
        live.drain(&mut events)?;
        for event in &events {
            session.apply(event);
        }
    }
}

fn judge(report: &Report, facts: &Facts, failure: Option<&anyhow::Error>) -> (String, Code) {
    if let Some(error) = failure {
        let code = if !facts.privileged() { Code::Permission } else { Code::Unsupported };
        return (format!("live observation does not work: {error:#}"), code);
    }
    let functions = report.hooks.iter().any(|row| matches!(row.hook.via, Via::Fentry | Via::Fexit));
    let missing: Vec<&str> =
        report.hooks.iter().map(|row| &row.hook).filter(|hook| hook.via == Via::None).map(|hook| hook.name.as_str()).collect();
    match (report.lru, functions) {
        (Lru::Mglru, true) if report.calibration.starts_with("contradicted") => {
            ("the flag positions of this kernel are not what they were derived to be: no prediction is made".to_owned(), Code::Unsupported)
        }
        (Lru::Mglru, true) if missing.is_empty() => ("everything observer wants is reached".to_owned(), Code::Ok),
        (Lru::Mglru, true) => (format!("predicted and actual can be compared; not reached: {}", missing.join(", ")), Code::Ok),
        (Lru::Classical, true) => {
            ("this kernel runs the classical LRU: the actual side is its active and inactive lists".to_owned(), Code::Unsupported)
        }
        (_, false) => (
            "this kernel refuses function hooks: tracepoints only, so the actual side is the classical LRU's lists and accesses are known by file and page"
                .to_owned(),
            Code::Unsupported,
        ),
    }
}
