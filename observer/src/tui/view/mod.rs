//! Draws the screen from a picture and the user's choices; nothing is changed here.

mod bar;
mod compare;
mod files;
mod footer;
mod header;
mod layout;
mod lruvecs;
mod pen;
pub(super) mod popup;
mod promotions;
mod rules;
mod scope;
mod side;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::pen::Pen;
use super::state::State;
use super::theme::Theme;
use crate::report::known::Known;
use crate::report::num::cut_end;
use crate::session::frame::Frame;

/// All that a panel draws from.
pub(super) struct Ctx<'a> {
    pub(super) frame: &'a Frame,
    pub(super) known: &'a Known,
    pub(super) state: &'a State,
    pub(super) theme: &'a Theme,
    /// Index of the rule set compared with.
    pub(super) rule: Option<usize>,
}

impl<'a> Ctx<'a> {
    pub(super) fn new(frame: &'a Frame, known: &'a Known, state: &'a State, theme: &'a Theme) -> Self {
        Self { frame, known, state, theme, rule: state.rule(frame) }
    }
}

/// Draws everything.
pub(super) fn draw(frame: &Frame, state: &State, buf: &mut Buffer, screen: Rect) {
    let (known, theme) = (Known::of(frame), state.theme());
    let ctx = Ctx::new(frame, &known, state, &theme);
    let Some(areas) = layout::areas(screen, header::height(&ctx), frame.rules.len()) else {
        too_small(&theme, &mut Pen::new(buf, screen), screen);
        return;
    };
    header::draw(&ctx, &mut Pen::new(buf, areas.header));
    lruvecs::draw(&ctx, &mut Pen::new(buf, areas.lruvecs));
    compare::draw(&ctx, &mut Pen::new(buf, areas.compare));
    let mut fences = vec![areas.lruvecs.right()];
    if let Some(side) = areas.side {
        side::draw(&ctx, &mut Pen::new(buf, side));
        fences.push(areas.compare.right());
    }
    fence(&theme, buf, areas.compare, &fences);
    if let Some(rules) = areas.rules {
        let mut pen = Pen::new(buf, rules);
        if rules.height > 2 { rules::table(&ctx, &mut pen) } else { rules::strip(&ctx, &mut pen) }
    }
    files::draw(&ctx, &mut Pen::new(buf, areas.files));
    footer::draw(&ctx, &mut Pen::new(buf, areas.footer));
    popup::draw(&ctx, &mut Pen::new(buf, screen));
}

/// The lines between the columns.
fn fence(theme: &Theme, buf: &mut Buffer, rows: Rect, columns: &[u16]) {
    for x in columns {
        let mut pen = Pen::new(buf, Rect { x: *x, width: 1, ..rows });
        pen.text(0, 0, "┬", theme.dim);
        for y in 1..pen.height() {
            pen.text(0, y, "│", theme.dim);
        }
    }
}

/// One message, as much of it as there is room for.
fn too_small(theme: &Theme, pen: &mut Pen<'_>, screen: Rect) {
    let (w, h) = layout::MIN;
    let now = format!("{}×{}", screen.width, screen.height);
    let lines = [format!("{now} is too small"), format!("needs {w}×{h}"), "q quits".to_owned()];
    let one = format!("{now} is too small, needs {w}×{h}; q quits");
    let lines: &[String] =
        if pen.height() < lines.len() || crate::report::num::width(&one) <= pen.width() { std::slice::from_ref(&one) } else { &lines };
    let top = pen.height().saturating_sub(lines.len()) / 2;
    for (i, line) in lines.iter().enumerate() {
        let line = cut_end(line, pen.width());
        let x = pen.width().saturating_sub(crate::report::num::width(&line)) / 2;
        pen.text(x, top + i, &line, theme.strong);
    }
}
