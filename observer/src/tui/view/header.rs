//! The header: what is watched, how it is seen, and how far it may be believed.

use super::Ctx;
use super::pen::{Pen, Piece};
use crate::report::num::{clean, clock, grouped, percent, rate, short};
use crate::report::{cost, known};
use crate::session::frame::{Calibration, Estimate, Fidelity, SourceKind};
use crate::stream::header::{Lru, Via};
use crate::tui::state::seekable;

/// Rows the header takes: a third only if there is something to say.
pub(super) fn height(ctx: &Ctx<'_>) -> u16 {
    if remark(ctx).is_empty() { 2 } else { 3 }
}

/// Draws it.
pub(super) fn draw(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    let (s, h) = (&ctx.frame.source, &ctx.frame.header);
    let lru = match ctx.frame.lru {
        Lru::Mglru => "MGLRU",
        Lru::Classical => "active/inactive",
    };
    let own = known::own(ctx.frame);
    let rules = own.map(|r| format!("rules {}", r.name)).unwrap_or_default();
    let mut what = vec![
        Piece::new(8, "observer", t.strong),
        Piece::new(1, clean(&h.kernel), t.plain),
        Piece::new(2, lru, t.plain),
        Piece::new(5, rules, t.plain),
    ];
    let playing = if s.ended {
        Piece::new(0, "■ end", t.plain)
    } else if ctx.state.paused {
        Piece::new(0, "‖ PAUSED", t.alarm)
    } else {
        Piece::new(0, "▶", t.plain)
    };
    what.push(playing);
    let name = clean(&s.name);
    what.push(Piece::new(3, crate::report::num::cut_start(&source(s.kind, &name), 40), t.plain));
    if seekable(ctx.frame) {
        let of = s.total_ns.map(|total| format!(" of {}", clock(total))).unwrap_or_default();
        what.push(Piece::new(1, format!("{}{of}", clock(s.duration_ns)), t.plain));
        let speed = Some(ctx.state.speed).filter(|speed| speed.is_finite()).map_or("max".to_owned(), |speed| speed.to_string());
        what.push(Piece::new(4, format!("×{speed}"), t.plain));
        if s.rounds > 0 {
            what.push(Piece::new(5, format!("round {}", grouped(s.rounds + 1)), t.plain));
        }
        if let Some(total) = s.total_ns.filter(|t| *t > 0) {
            what.push(Piece::new(9, progress(s.duration_ns, total, 20), t.dim));
        }
    } else {
        what.push(Piece::new(4, clock(s.duration_ns), t.plain));
    }
    pen.flow(0, &what);

    let fidelity = match own {
        // A score of flags that may be read wrongly is none.
        _ if !ctx.known.predictions() => {
            vec![Piece::new(0, "fidelity –", t.strong), Piece::new(6, "layout not proven", t.plain)]
        }
        Some(r) if r.fidelity.scored > 0 => {
            let f = r.fidelity;
            let style = if known::trusted(ctx.frame) { t.strong } else { t.alarm };
            vec![
                Piece::new(0, format!("fidelity {}", percent(f.agree, f.scored)), style),
                Piece::new(6, format!("of {} scored, {} unknown", short(f.scored), short(f.unknown)), t.plain),
                Piece::new(7, by_type(ctx), t.plain),
            ]
        }
        Some(_) => vec![Piece::new(0, "fidelity –", t.strong), Piece::new(6, "nothing scored yet", t.plain)],
        None => vec![Piece::new(0, "fidelity –", t.strong), Piece::new(6, "no model of these rules", t.plain)],
    };
    let lost = if s.lost > 0 { Piece::new(0, format!(" LOST {} ", grouped(s.lost)), t.alarm) } else { Piece::new(1, "lost 0", t.plain) };
    let mut how = fidelity;
    how.push(lost);
    if let Some(missed) = cost::missed(ctx.frame).filter(|missed| *missed > 0) {
        how.push(Piece::new(0, format!(" MISSED {} ", grouped(missed)), t.alarm));
    }
    if s.table_evictions > 0 {
        how.push(Piece::new(3, format!("tables full: {} dropped", short(s.table_evictions)), t.strong));
    }
    how.push(Piece::new(2, format!("{} ev/s", rate(s.events_per_s)), t.plain));
    how.push(Piece::new(if s.sample > 1 { 0 } else { 3 }, crate::report::sampling::headline(ctx.frame), t.plain));
    let reached = h.hooks.iter().filter(|k| k.via != Via::None).count();
    how.push(Piece::new(3, format!("hooks {reached}/{}", h.hooks.len()), t.plain));
    how.push(Piece::new(8, format!("({})", tiers(ctx)), t.dim));
    if let Calibration::Confirmed { samples } = ctx.frame.calibration {
        how.push(Piece::new(7, format!("layout confirmed ({})", short(samples)), t.plain));
    }
    pen.flow(1, &how);

    let remark = remark(ctx);
    if !remark.is_empty() {
        let style = if matches!(ctx.frame.calibration, Calibration::Contradicted { .. }) { t.alarm } else { t.strong };
        let text = crate::report::num::cut_end(&format!("! {remark}"), pen.width().saturating_sub(2));
        pen.text(1, 2, &text, style);
    }
}

/// What the user should read before anything else.
fn remark(ctx: &Ctx<'_>) -> String {
    match (&ctx.known.hidden, ctx.frame.source.note.is_empty()) {
        (Some(why), true) => clean(why),
        (Some(why), false) => clean(&format!("{why} · {}", ctx.frame.source.note)),
        (None, _) => clean(&ctx.frame.source.note),
    }
}

/// `anon 99.12 %, file 99.97 %`, where both were scored; of a sample with their errors.
fn by_type(ctx: &Ctx<'_>) -> String {
    let errors = ctx.frame.sampling.as_ref().map_or([None; 2], |sampling| sampling.fidelity_by_type);
    let rows = ["anon", "file"].into_iter().zip(&ctx.frame.fidelity_by_type).zip(errors);
    let scored = rows.filter(|((_, f), _)| f.scored > 0);
    let part = |((name, f), estimate): ((&str, &Fidelity), Option<Estimate>)| match estimate {
        Some(e) => format!("{name} {:.2} ±{:.2} %", 100.0 * e.value, 100.0 * e.error),
        None => format!("{name} {}", percent(f.agree, f.scored)),
    };
    let parts: Vec<String> = scored.map(part).collect();
    if parts.len() == 2 { parts.join(", ") } else { String::new() }
}

fn source(kind: SourceKind, name: &str) -> String {
    match kind {
        SourceKind::Live => format!("live {name}"),
        SourceKind::Recording => name.to_owned(),
        SourceKind::Pipe => format!("pipe {name}"),
        SourceKind::Embedded => "embedded recording".to_owned(),
    }
}

/// `9 fentry, 3 tp_btf`.
fn tiers(ctx: &Ctx<'_>) -> String {
    let hooks = &ctx.frame.header.hooks;
    let ways = [(Via::Fentry, "fentry"), (Via::Fexit, "fexit"), (Via::Kprobe, "kprobe"), (Via::TpBtf, "tp_btf")];
    let counted = ways.iter().map(|(via, name)| (hooks.iter().filter(|h| h.via == *via).count(), name));
    let parts: Vec<String> = counted.filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn progress(at: u64, total: u64, width: usize) -> String {
    let done = crate::report::num::steps(at as f64, total as f64, width);
    format!("{}{}", "━".repeat(done), "╌".repeat(width - done))
}
