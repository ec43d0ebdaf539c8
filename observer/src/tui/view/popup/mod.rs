//! What opens over the screen: help, hooks, what-if caches, cost, one lruvec, one file.

mod cost;
mod detail;
mod help;
pub(super) mod hooks;
mod what_if;

use ratatui::style::Style;

use super::Ctx;
use super::pen::Pen;
use crate::report::known::Known;
use crate::report::num::{cut_end, width};
use crate::session::frame::Frame;
use crate::tui::state::{Mode, Popup, State};
use crate::tui::theme::Theme;

/// Lines of a popup, each a few styled pieces.
pub(super) type Lines = Vec<Vec<(String, Style)>>;

/// Title and lines of an open popup.
fn content(ctx: &Ctx<'_>, popup: Popup, columns: usize) -> (String, Lines) {
    match popup {
        Popup::Help => ("keys and words".to_owned(), help::lines(ctx, columns)),
        Popup::Hooks => ("source and hooks".to_owned(), hooks::lines(ctx, columns)),
        Popup::WhatIf => ("what if: refaults of each rule set alone".to_owned(), what_if::lines(ctx, columns)),
        Popup::Cost => ("cost of observing".to_owned(), cost::lines(ctx, columns)),
        Popup::Lruvec(key) => detail::lruvec(ctx, key),
        Popup::File(key) => detail::file(ctx, key),
    }
}

/// Draws the open popup, if any.
pub(super) fn draw(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let Mode::Popup(popup) = ctx.state.mode else { return };
    let (screen_w, screen_h) = (pen.width(), pen.height());
    let columns = inner_width(screen_w);
    let (title, lines) = content(ctx, popup, columns);
    let widest = lines.iter().map(|l| l.iter().map(|(s, _)| width(s)).sum()).max().unwrap_or(0);
    let w = widest.max(width(&title) + 4).min(columns) + 4;
    let rows = lines.len().min(inner_height(screen_h));
    let h = rows + 2;
    let mut part = pen.part((screen_w.saturating_sub(w)) / 2, (screen_h.saturating_sub(h)) / 2, w, h);
    part.clear();
    frame(&mut part, &title, ctx.theme);
    let first = ctx.state.scroll.min(lines.len().saturating_sub(rows));
    let mut inside = part.part(2, 1, w.saturating_sub(4), rows);
    for (y, line) in lines.iter().skip(first).take(rows).enumerate() {
        let mut x = 0;
        for (text, style) in line {
            x = inside.text(x, y, text, *style);
        }
    }
    let more = if first + rows < lines.len() {
        " j more ▼ "
    } else if first > 0 {
        " k back ▲ "
    } else {
        " esc closes "
    };
    part.right(w.saturating_sub(2), h.saturating_sub(1), more, ctx.theme.dim);
}

/// Lines that are out of sight.
pub(in super::super) fn max_scroll(state: &State, frame: &Frame) -> usize {
    let Mode::Popup(popup) = state.mode else { return 0 };
    let (known, theme) = (Known::of(frame), state.theme());
    let ctx = Ctx::new(frame, &known, state, &theme);
    let (w, h) = state.size;
    let (_, lines) = content(&ctx, popup, inner_width(w.into()));
    lines.len().saturating_sub(inner_height(h.into()))
}

fn inner_width(screen: usize) -> usize {
    screen.saturating_sub(8).min(100)
}

fn inner_height(screen: usize) -> usize {
    screen.saturating_sub(4)
}

fn frame(pen: &mut Pen<'_>, title: &str, theme: &Theme) {
    let (w, h) = (pen.width(), pen.height());
    let across = "─".repeat(w.saturating_sub(2));
    pen.text(0, 0, &format!("┌{across}┐"), theme.dim);
    for y in 1..h.saturating_sub(1) {
        pen.text(0, y, "│", theme.dim);
        pen.text(w.saturating_sub(1), y, "│", theme.dim);
    }
    pen.text(0, h.saturating_sub(1), &format!("└{across}┘"), theme.dim);
    pen.text(2, 0, &format!(" {} ", cut_end(title, w.saturating_sub(6))), theme.strong);
}

/// Words in lines of at most `columns`, the first after `first`, the others after `others`.
fn wrap(words: &str, columns: usize, first: &str, others: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in words.split(' ').filter(|w| !w.is_empty()) {
        if !empty && width(&line) + 1 + width(word) > columns {
            out.push(std::mem::replace(&mut line, others.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push(line);
    out
}
