//! Writing into a rectangle without ever leaving it: everything the panels draw goes through here, so no size of terminal
//! can make them panic.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::report::num;

/// A rectangle to write in; coordinates start at its own corner.
pub(super) struct Pen<'a> {
    buf: &'a mut Buffer,
    area: Rect,
}

impl<'a> Pen<'a> {
    /// On the part of `area` that exists.
    pub(super) fn new(buf: &'a mut Buffer, area: Rect) -> Self {
        let area = area.intersection(buf.area);
        Self { buf, area }
    }

    pub(super) fn width(&self) -> usize {
        self.area.width.into()
    }

    pub(super) fn height(&self) -> usize {
        self.area.height.into()
    }

    /// A part of this rectangle.
    pub(super) fn part(&mut self, x: usize, y: usize, width: usize, height: usize) -> Pen<'_> {
        let clip = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let part = Rect {
            x: self.area.x.saturating_add(clip(x)),
            y: self.area.y.saturating_add(clip(y)),
            width: clip(width),
            height: clip(height),
        };
        let area = part.intersection(self.area);
        Pen { buf: self.buf, area }
    }

    /// Writes what fits; returns the column after it.
    pub(super) fn text(&mut self, x: usize, y: usize, text: &str, style: Style) -> usize {
        if x >= self.width() || y >= self.height() || self.area.is_empty() {
            return x;
        }
        // In range: both are below a u16.
        let (dx, dy) = (x as u16, y as u16);
        let (end, _) = self.buf.set_stringn(self.area.x + dx, self.area.y + dy, text, self.width() - x, style);
        usize::from(end.saturating_sub(self.area.x))
    }

    /// Writes so that it ends before column `end`; cut at the front if it has to be.
    pub(super) fn right(&mut self, end: usize, y: usize, text: &str, style: Style) {
        let text = num::cut_start(text, end);
        let x = end - num::width(&text).min(end);
        self.text(x, y, &text, style);
    }

    /// Restyles a row.
    pub(super) fn row_style(&mut self, y: usize, style: Style) {
        if y < self.height() {
            let row = Rect { y: self.area.y + y as u16, height: 1, ..self.area };
            self.buf.set_style(row, style);
        }
    }

    /// Empties everything.
    pub(super) fn clear(&mut self) {
        for y in self.area.top()..self.area.bottom() {
            for x in self.area.left()..self.area.right() {
                self.buf[(x, y)].reset();
            }
        }
    }

    /// A row of pieces with two blanks between them; pieces are dropped, the highest number first, until the rest fits.
    pub(super) fn flow(&mut self, y: usize, pieces: &[Piece]) {
        let room = self.width().saturating_sub(2);
        let mut kept: Vec<&Piece> = pieces.iter().filter(|p| !p.text.is_empty()).collect();
        while kept.iter().map(|p| num::width(&p.text) + 2).sum::<usize>() > room + 2 && kept.len() > 1 {
            let Some(worst) = kept.iter().enumerate().max_by_key(|(_, p)| p.drop).map(|(i, _)| i) else { break };
            kept.remove(worst);
        }
        let mut x = 1;
        for piece in kept {
            x = self.text(x, y, &piece.text, piece.style) + 2;
        }
    }

    /// A pane's top line: `─ name ─────── note ─`, heavy when it has the focus.
    pub(super) fn title(&mut self, y: usize, name: &str, note: &str, focus: bool, line: Style, words: Style) {
        let stroke = if focus { "━" } else { "─" };
        let width = self.width();
        let x = self.text(0, y, &stroke.repeat(2.min(width)), line);
        let x = self.text(x, y, &format!(" {} ", num::cut_end(name, width.saturating_sub(x + 3))), words);
        let note = if note.is_empty() { String::new() } else { format!(" {note} {stroke}") };
        let rest = width.saturating_sub(x);
        let note = if num::width(&note) < rest { note } else { String::new() };
        self.text(x, y, &format!("{}{note}", stroke.repeat(rest - num::width(&note))), line);
    }
}

/// One piece of a [`Pen::flow`].
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) style: Style,
    /// 0 stays longest.
    pub(super) drop: u8,
}

impl Piece {
    pub(super) fn new(drop: u8, text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, drop }
    }
}

/// First row shown of a list so that the selected one is about in the middle.
pub(super) fn first_row(selected: usize, rows: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(rows.saturating_sub(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_scroll_around_the_selection() {
        assert_eq!(first_row(0, 100, 10), 0);
        assert_eq!(first_row(50, 100, 10), 45);
        assert_eq!(first_row(99, 100, 10), 90);
        assert_eq!(first_row(3, 4, 10), 0);
        assert_eq!(first_row(0, 0, 0), 0);
    }

    #[test]
    fn flow_drops_the_least_important_first() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 14, 1));
        let style = Style::new();
        let pieces = [Piece::new(0, "aaaa", style), Piece::new(9, "bbbb", style), Piece::new(1, "cccc", style)];
        Pen::new(&mut buf, Rect::new(0, 0, 14, 1)).flow(0, &pieces);
        assert_eq!(buf, Buffer::with_lines([" aaaa  cccc   "]));
    }

    #[test]
    fn nothing_is_written_outside() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 3, 1));
        let mut pen = Pen::new(&mut buf, Rect::new(1, 0, 50, 50));
        pen.text(0, 0, "日本", Style::new());
        pen.text(70, 70, "x", Style::new());
        pen.right(1, 5, "x", Style::new());
        pen.row_style(9, Style::new());
        pen.part(1, 1, 5, 5).text(0, 0, "x", Style::new());
        assert_eq!(buf, Buffer::with_lines([" 日"]));
    }
}
