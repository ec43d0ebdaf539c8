//! Hooks: what is seen and what is therefore unknown.

use ratatui::style::Style;

use super::super::Ctx;
use super::{Lines, wrap};
use crate::report::num::{clean, cut_end, pad_end};
use crate::stream::header::{Hook, Via};

fn via(hook: &Hook) -> &'static str {
    match hook.via {
        Via::Fentry => "fentry",
        Via::Fexit => "fexit",
        Via::Kprobe => "kprobe",
        Via::TpBtf => "tp_btf",
        Via::Run => "run",
        Via::None => "–",
    }
}

/// A line each: `fentry  lru_gen_refault → workingset_refault`.
pub(in super::super) fn short(ctx: &Ctx<'_>, columns: usize) -> Vec<(String, Style)> {
    let t = ctx.theme;
    ctx.frame
        .header
        .hooks
        .iter()
        .map(|h| {
            let style = if h.via == Via::None { t.dim } else { t.plain };
            let detail = match h.via {
                Via::None if !h.without.is_empty() => format!("{}: unknown: {}", h.name, h.without),
                _ if h.target.is_empty() || h.target == h.name => h.name.clone(),
                _ => format!("{} → {}", h.name, h.target),
            };
            (cut_end(&format!("{} {}", pad_end(via(h), 7), clean(&detail)), columns), style)
        })
        .collect()
}

/// All of it, with reasons.
pub(super) fn lines(ctx: &Ctx<'_>, columns: usize) -> Lines {
    let t = ctx.theme;
    let mut out: Lines = Vec::new();
    // The header has one line for these, and they may be longer.
    for words in [ctx.known.hidden.as_deref().unwrap_or_default(), &ctx.frame.source.note] {
        if !words.is_empty() {
            out.extend(wrap(&clean(words), columns, "! ", "  ").into_iter().map(|l| vec![(l, t.strong)]));
        }
    }
    let hooks = &ctx.frame.header.hooks;
    let reached = hooks.iter().filter(|h| h.via != Via::None).count();
    out.push(vec![(format!("{reached} of {} reached", hooks.len()), t.strong)]);
    for (h, (line, style)) in hooks.iter().zip(short(ctx, usize::MAX)) {
        let line = if h.via == Via::None { format!("{} {}", pad_end(via(h), 7), h.name) } else { line };
        out.push(vec![(line, style)]);
        for (label, words) in [("why: ", &h.why), ("unknown: ", &h.without)] {
            if words.is_empty() {
                continue;
            }
            let indent = " ".repeat(8);
            for line in wrap(&format!("{label}{}", clean(words)), columns, &indent, &indent) {
                out.push(vec![(line, t.plain)]);
            }
        }
    }
    let h = &ctx.frame.header;
    out.push(Vec::new());
    let how = if h.layout.derived_from.is_empty() { "not derived" } else { h.layout.derived_from.as_str() };
    let bit = |b: Option<u8>| b.map_or_else(|| "–".to_owned(), |b| b.to_string());
    let (gen_bit, refs_bit, refs_width) = (bit(h.layout.gen_pgoff), bit(h.layout.refs_pgoff), bit(h.layout.refs_width));
    let layout = format!("layout: generation at bit {gen_bit}, references at bit {refs_bit}, {refs_width} wide ({how})");
    let rules = format!("rules: {}", h.own_rules_because);
    for words in [layout, rules] {
        out.extend(wrap(&clean(&words), columns, "", "  ").into_iter().map(|l| vec![(l, t.plain)]));
    }
    out
}
