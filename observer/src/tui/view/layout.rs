//! Where the panels lie.

use ratatui::layout::Rect;

/// Below this there is one message and nothing else.
pub(in super::super) const MIN: (u16, u16) = (60, 16);

/// From here on the rule sets have a column of their own.
const WIDE: u16 = 170;

/// The panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) header: Rect,
    pub(super) lruvecs: Rect,
    pub(super) compare: Rect,
    /// Rule sets, hooks and counters at the right of a wide screen.
    pub(super) side: Option<Rect>,
    /// Rule sets between the comparison and the files: a table, or two lines where rows are few.
    pub(super) rules: Option<Rect>,
    pub(super) files: Rect,
    pub(super) footer: Rect,
}

/// For a screen with a header of `header` rows and a number of rule sets; None when it is too small.
pub(super) fn areas(screen: Rect, header: u16, rules: usize) -> Option<Areas> {
    if screen.width < MIN.0 || screen.height < MIN.1 {
        return None;
    }
    let (w, h) = (screen.width, screen.height);
    let side_width = if w >= WIDE { (w / 3).min(72) } else { 0 };
    let rules_height = match (side_width > 0, h) {
        (true, _) => 0,
        (false, 30..) => u16::try_from(rules).unwrap_or(u16::MAX).clamp(1, 8) + 3,
        (false, 20..) => 2,
        (false, _) => 1,
    };
    let body = h.saturating_sub(header + 1 + rules_height);
    // The comparison has at most this much to say; a taller screen shows more files.
    let files_height = (body * 3 / 8).clamp(4, body.saturating_sub(7).max(4)).max(body.saturating_sub(36));
    let top_height = body - files_height;
    let left_width = (20 + (w - MIN.0) / 4).min(44);
    let x = screen.x;
    let row = |y: u16, height: u16| Rect { x, y: screen.y + y, width: w, height };
    let top = row(header, top_height);
    let files_y = header + top_height + rules_height;
    Some(Areas {
        header: row(0, header),
        lruvecs: Rect { width: left_width, ..top },
        compare: Rect { x: x + left_width + 1, width: w - left_width - 1 - side_width, ..top },
        side: (side_width > 0).then(|| Rect { x: x + w - side_width + 1, width: side_width - 1, ..top }),
        rules: (rules_height > 0).then(|| row(header + top_height, rules_height)),
        files: row(files_y, files_height),
        footer: row(h - 1, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_cover_the_screen_without_overlap() {
        for w in 60..=240 {
            for h in 16..=80 {
                for (header, rules) in [(2, 0), (3, 7), (3, 40)] {
                    let screen = Rect::new(0, 0, w, h);
                    let a = areas(screen, header, rules).expect("large enough");
                    let side = a.side.unwrap_or_default();
                    let strip = a.rules.unwrap_or_default();
                    let rows = a.header.height + a.compare.height + strip.height + a.files.height + a.footer.height;
                    assert_eq!(rows, h, "{w}x{h} {a:?}");
                    let gap = u16::from(a.side.is_some());
                    assert_eq!(a.lruvecs.width + 1 + a.compare.width + gap + side.width, w, "{w}x{h} {a:?}");
                    assert!(a.compare.height >= 6 && a.files.height >= 4, "{w}x{h} {a:?}");
                    assert!(a.compare.width >= 38, "{w}x{h} {a:?}");
                }
            }
        }
    }

    #[test]
    fn too_small_has_no_panels() {
        assert_eq!(areas(Rect::new(0, 0, 59, 16), 2, 3), None);
        assert_eq!(areas(Rect::new(0, 0, 60, 15), 2, 3), None);
    }
}
