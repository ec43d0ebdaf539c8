//! The last line: keys, or what is being typed, or what just happened.

use super::Ctx;
use super::pen::{Pen, Piece};
use crate::tui::keys::FOOTER;
use crate::tui::state::{Ask, Mode, Prompt, seekable};

/// Draws it.
pub(super) fn draw(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    if let Mode::Prompt(Prompt { ask, text }) = &ctx.state.mode {
        let (label, help) = match ask {
            Ask::Filter(_) => ("filter: ", "enter keeps it, esc clears it"),
            Ask::Jump => ("jump to: ", "90, 1:30, +5, -5, 50%"),
        };
        let x = pen.text(1, 0, label, t.strong);
        let room = pen.width().saturating_sub(x + 2);
        let x = pen.text(x, 0, &crate::report::num::cut_start(&crate::report::num::clean(text), room), t.plain);
        let x = pen.text(x, 0, " ", t.selected);
        if pen.width() > x + help.len() + 3 {
            pen.right(pen.width().saturating_sub(1), 0, help, t.dim);
        }
        return;
    }
    if !ctx.state.notice.is_empty() {
        pen.text(1, 0, &ctx.state.notice, t.strong);
        return;
    }
    let movable = seekable(ctx.frame);
    let shown = FOOTER.iter().filter(|(_, _, replay)| movable || !replay);
    let pieces: Vec<Piece> = shown.zip(0u8..).map(|((key, word, _), drop)| Piece::new(drop, format!("{key} {word}"), t.dim)).collect();
    pen.flow(0, &pieces);
}
