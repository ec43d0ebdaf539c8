//! The picture of one moment.

use std::sync::Arc;

use crate::{
    session::{
        Session,
        files::File,
        frame::{Calibration, CounterFrame, FileFrame, Frame, LruvecFrame, MAX_FILES, RuleFrame, RuleSampling, SamplingFrame, Source},
        side::SideCount,
        windows::WINDOW_NS,
    },
    stream::{counter_names::LIMIT, header::Lru},
};

/// Draws it.
pub(super) fn draw(session: &Session) -> Frame {
    Frame {
        source: Source {
            kind: session.source,
            name: session.name.clone(),
            note: session.whole_note(),
            duration_ns: session.last_ts.saturating_sub(session.first_ts),
            total_ns: session.total_ns,
            events: session.events,
            events_per_s: session.windows.events_per_s,
            lost: session.lost_in_all,
            lost_per_cpu: session.lost.clone(),
            sample: session.sampling.one_in(),
            ended: session.ended,
            rounds: 0,
            table_evictions: session.world.refused
                + session.world.files.forgotten
                + session.counters.refused
                + session.ghosts.forgotten
                + session.free_run.as_ref().map_or(0, |free_run| free_run.refused),
        },
        header: Arc::clone(&session.header),
        lru: session.lru,
        calibration: session.calibrator.state().clone(),
        rules: session.rules.iter().enumerate().map(|(index, set)| rule(session, index, set)).collect(),
        fidelity_by_type: if proven(session) { session.tally.by_type() } else { Default::default() },
        fidelity_by: if proven(session) { session.tally.rows() } else { Vec::new() },
        lruvecs: lruvecs(session),
        files: files(session),
        window_s: WINDOW_NS as f64 / 1e9,
        counters: session
            .counters
            .readings
            .iter()
            .filter(|((_, name), _)| name != LIMIT)
            .map(|((cgroup, name), (first, last))| CounterFrame {
                cgroup: if *cgroup == 0 { "whole machine".to_owned() } else { session.world.cgroup_name(*cgroup) },
                name: name.clone(),
                delta: last.saturating_sub(*first),
            })
            .collect(),
        what_if: session.free_run.as_ref().map_or_else(Vec::new, |free_run| {
            let refaults = session.header.hooks.iter().any(|hook| hook.name == "lru_gen_refault" && !hook.target.is_empty());
            free_run.rows(|cgroup| session.world.cgroup_name(cgroup), refaults)
        }),
        sampling: (session.sampling.one_in() > 1).then(|| told(session.sampling.frame(), proven(session))),
    }
}

/// What is read off flags is told only where their positions are proven.
fn told(frame: SamplingFrame, proven: bool) -> SamplingFrame {
    if proven {
        return frame;
    }
    let rules = vec![RuleSampling::default(); frame.rules.len()];
    SamplingFrame { fidelity: None, fidelity_by_type: [None; 2], promoted: None, rules, ..frame }
}

fn proven(session: &Session) -> bool {
    matches!(session.calibrator.state(), Calibration::Confirmed { .. } | Calibration::NotNeeded)
}

fn rule(session: &Session, index: usize, set: &super::RuleSet) -> RuleFrame {
    let own = index == 0;
    let mut frame = RuleFrame {
        name: set.name.clone(),
        own,
        fidelity: Default::default(),
        promotions: Default::default(),
        evictions: Default::default(),
        refaults: set.refaults,
    };
    // Nothing is claimed from flags whose positions are not proven (spec 1.3).
    if proven(session) {
        frame.promotions = set.promotions;
        frame.evictions = set.evictions;
        if own {
            frame.fidelity = session.tally.total();
        }
    } else if own {
        let total = session.tally.total();
        frame.fidelity.unknown = total.scored + total.unknown;
    }
    frame
}

fn lruvecs(session: &Session) -> Vec<LruvecFrame> {
    let empty = SideCount::default();
    let mut frames: Vec<LruvecFrame> = session
        .world
        .lruvecs()
        .iter()
        .enumerate()
        .filter(|(_, lruvec)| lruvec.cgroup != 0 || lruvec.window.is_some())
        .map(|(index, lruvec)| {
            let window = lruvec.window;
            let standing = match session.header.lru {
                Lru::Mglru => window,
                Lru::Classical => Some(crate::model::Window::INITIAL),
            };
            let actual = session.actual_sides.get(index).unwrap_or(&empty);
            LruvecFrame {
                key: index as u64,
                cgroup: session.world.cgroup_name(lruvec.cgroup),
                node: lruvec.node,
                max_seq: window.map(|window| window.max_seq),
                min_seq: window.map(|window| window.min_seq),
                pages: lruvec.pages.and_then(|(pages, max_seq)| by_age(pages, max_seq, window)),
                agings: lruvec.agings,
                refaults: lruvec.refaults,
                evictions: lruvec.evictions,
                actual: actual.frame(if session.header.lru == Lru::Mglru { window.as_ref() } else { None }),
                predicted: session
                    .rules
                    .iter()
                    .map(|set| {
                        let window = if matches!(set.engine, super::Engine::Classical) { None } else { standing.as_ref() };
                        set.sides.get(index).unwrap_or(&empty).frame(window)
                    })
                    .collect(),
            }
        })
        .collect();
    let tracked = |frame: &LruvecFrame| frame.actual.by_age.iter().flatten().sum::<u64>();
    frames.sort_by_key(|frame| std::cmp::Reverse((tracked(frame), frame.evictions)));
    frames
}

/// The kernel's own sizes, by age at the time they were read; ages beyond min_seq are empty.
fn by_age(pages: [[u32; 2]; 4], max_seq: u64, window: Option<crate::model::Window>) -> Option<[[u64; 2]; 4]> {
    window?;
    let mut ages = [[0; 2]; 4];
    for (age, row) in ages.iter_mut().enumerate() {
        let seq = max_seq.checked_sub(age as u64)?;
        *row = pages[(seq % 4) as usize].map(u64::from);
    }
    Some(ages)
}

fn files(session: &Session) -> Vec<FileFrame> {
    let mut order: Vec<(u64, usize)> = session
        .world
        .files
        .all()
        .iter()
        .enumerate()
        .filter_map(|(index, file)| {
            let weight = divergence(session, index);
            (weight + file.pages + file.evictions > 0).then_some((weight, index))
        })
        .collect();
    // Selecting is enough: a machine may have tens of thousands of files.
    if order.len() > MAX_FILES {
        order.select_nth_unstable_by_key(MAX_FILES, |entry| std::cmp::Reverse(*entry));
        order.truncate(MAX_FILES);
    }
    order.sort_unstable_by_key(|entry| std::cmp::Reverse(*entry));
    order
        .into_iter()
        .map(|(_, index)| {
            let file = &session.world.files.all()[index];
            let lruvec = session.world.lruvec(file.lruvec);
            FileFrame {
                key: file.serial,
                name: name(file),
                cgroup: session.world.cgroup_name(lruvec.cgroup),
                lruvec: u64::from(file.lruvec),
                pages: file.pages,
                accesses: file.accesses,
                by_rules: session.rules.iter().map(|set| set.files.get(index).copied().unwrap_or_default()).collect(),
                evictions: file.evictions,
                refaults: file.refaults,
                untraced: file.untraced,
            }
        })
        .collect()
}

/// How much any rule set and the kernel disagree on a file.
fn divergence(session: &Session, file: usize) -> u64 {
    session
        .rules
        .iter()
        .filter_map(|set| set.files.get(file))
        .map(|at| at.only_predicted + at.only_actual + at.would_keep + at.avoidable)
        .max()
        .unwrap_or(0)
}

fn name(file: &File) -> String {
    match &file.name {
        Some(name) if !name.is_empty() => name.clone(),
        _ if file.anon => "anon".to_owned(),
        // The kernel's encoding of a device number: 12 bits of major above 20 bits of minor.
        _ => format!("inode {} on {}:{}", file.ino, file.dev >> 20, file.dev & 0xf_ffff),
    }
}
