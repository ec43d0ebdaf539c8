//! Bars and columns made of block characters.

use crate::report::num::steps;

/// Eighths of a cell, from the left.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Eighths of a cell, from below.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Anon, then file, as one bar: `▒▒███▌`. `max` fills `width` cells. What is there is seen, however little.
pub(super) fn stacked([anon, file]: [u64; 2], max: u64, width: usize) -> String {
    let total = anon.saturating_add(file).min(max.max(1));
    if total == 0 || max == 0 || width == 0 {
        return String::new();
    }
    let eighths = steps(total as f64, max as f64, width * 8).max(1);
    let cells = eighths.div_ceil(8);
    let mut patterned = steps(anon as f64, max as f64, width).min(cells);
    if anon > 0 {
        patterned = patterned.max(1);
    }
    if file > 0 && patterned == cells && cells > 1 {
        patterned -= 1;
    }
    let mut bar = "▒".repeat(patterned);
    if cells > patterned {
        let rest = eighths - patterned * 8;
        bar.push_str(&"█".repeat(rest / 8));
        bar.push_str(EIGHTHS[rest % 8]);
    }
    bar
}

/// One column per value, newest at the right, `height` rows from the top; `max` fills the height. A window without
/// anything is a dot, a time without a window is blank.
pub(super) fn columns(values: &[f64], max: f64, width: usize, height: usize) -> Vec<String> {
    if width == 0 || height == 0 {
        return Vec::new();
    }
    // Few windows in a wide chart get wider columns.
    let each = (width / values.len().max(1)).clamp(1, 4);
    let shown = &values[values.len().saturating_sub(width / each)..];
    let blank = width - shown.len() * each;
    let levels = |v: f64| {
        if !v.is_finite() || v <= 0.0 || max <= 0.0 {
            return 0;
        }
        steps(v, max, height * 8).max(1)
    };
    (0..height)
        .map(|row| {
            let below = (height - 1 - row) * 8;
            let mut line = " ".repeat(blank);
            for v in shown {
                let level = levels(*v);
                let c = if level == 0 && below == 0 { '·' } else { LEVELS[level.saturating_sub(below).min(8)] };
                line.extend(std::iter::repeat_n(c, each));
            }
            line
        })
        .collect()
}

/// Four characters, one per age, youngest first.
pub(super) fn by_age(pages: &[[u64; 2]; 4]) -> String {
    let max = pages.iter().map(|p| p[0].saturating_add(p[1])).max().unwrap_or(0);
    let level = |p: &[u64; 2]| {
        let n = p[0].saturating_add(p[1]);
        if n == 0 { '·' } else { LEVELS[steps(n as f64, max as f64, 8).max(1)] }
    };
    pages.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_a_scale() {
        assert_eq!(stacked([0, 100], 100, 10), "██████████");
        assert_eq!(stacked([0, 50], 100, 10), "█████");
        assert_eq!(stacked([20, 30], 100, 10), "▒▒███");
        assert_eq!(stacked([0, 0], 100, 10), "");
        assert_eq!(stacked([0, 1], 100_000, 10), "▏");
        assert_eq!(stacked([1, 0], 100_000, 10), "▒");
        assert_eq!(stacked([1, 99], 100, 10), "▒█████████");
        assert_eq!(stacked([99, 1], 100, 10), "▒▒▒▒▒▒▒▒▒█");
        assert_eq!(stacked([0, u64::MAX], u64::MAX, 4), "████");
        assert_eq!(stacked([u64::MAX, u64::MAX], 1, 4), "▒▒▒█");
    }

    #[test]
    fn columns_are_newest_right() {
        assert_eq!(columns(&[1.0, 2.0], 2.0, 2, 1), ["▄█"]);
        assert_eq!(columns(&[0.0, 1.0, 2.0], 2.0, 2, 2), [" █", "██"]);
        assert_eq!(columns(&[0.0], 2.0, 3, 1), ["···"]);
        assert_eq!(columns(&[8.0; 5], 8.0, 12, 1), ["  ██████████"]);
        assert_eq!(columns(&[], 2.0, 3, 1), ["   "]);
        assert_eq!(columns(&[f64::NAN, f64::INFINITY, -1.0], 1.0, 3, 1), ["···"]);
        assert_eq!(columns(&[0.0001], 1000.0, 1, 3), [" ", " ", "▁"]);
    }

    #[test]
    fn ages_in_four_characters() {
        assert_eq!(by_age(&[[0, 8], [4, 0], [0, 0], [0, 1]]), "█▄·▁");
        assert_eq!(by_age(&[[0, 0]; 4]), "····");
    }
}
