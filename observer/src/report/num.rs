//! Numbers, durations and names as people read them. The screen and the text summary share these, so a figure looks the
//! same in both.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands for a number that was not observed.
pub const UNKNOWN: &str = "–";

/// `1204332` → `1,204,332`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// [`grouped`], or [`UNKNOWN`].
#[must_use]
pub fn grouped_or(n: Option<u64>) -> String {
    n.map_or_else(|| UNKNOWN.to_owned(), grouped)
}

/// At most five columns: `9,999`, `12.3k`, `123k`, `1.23M`. Cut, not rounded: a total never reads larger than it is.
#[must_use]
pub fn short(n: u64) -> String {
    if n < 10_000 {
        return grouped(n);
    }
    let mut unit = 1_000u64;
    let mut suffix = 'k';
    for next in ['M', 'G', 'T', 'P', 'E'] {
        match unit.checked_mul(1_000) {
            Some(larger) if n >= larger => {
                unit = larger;
                suffix = next;
            }
            _ => break,
        }
    }
    let whole = n / unit;
    let hundredths = n % unit / (unit / 100).max(1);
    match whole {
        0..10 => format!("{whole}.{hundredths:02}{suffix}"),
        10..100 => format!("{whole}.{}{suffix}", hundredths / 10),
        _ => format!("{whole}{suffix}"),
    }
}

/// [`short`], or [`UNKNOWN`].
#[must_use]
pub fn short_or(n: Option<u64>) -> String {
    n.map_or_else(|| UNKNOWN.to_owned(), short)
}

/// A rate per second: one decimal below ten, [`short`] above, [`UNKNOWN`] for no number.
#[must_use]
pub fn rate(per_s: f64) -> String {
    if !per_s.is_finite() || per_s < 0.0 {
        UNKNOWN.to_owned()
    } else if per_s == 0.0 {
        "0".to_owned()
    } else if per_s < 0.05 {
        "<0.1".to_owned()
    } else if per_s < 9.95 {
        format!("{per_s:.1}")
    } else {
        short(to_u64(per_s.round()))
    }
}

/// A finite, non-negative float as a count.
#[expect(clippy::cast_sign_loss, reason = "clamped to the range of u64 first")]
#[must_use]
pub fn to_u64(x: f64) -> u64 {
    if x.is_finite() { x.max(0.0) as u64 } else { 0 }
}

/// `part` of `whole` as a number of `steps`, rounded: how many cells of a bar. No part is more than the whole.
#[must_use]
pub fn steps(part: f64, whole: f64, steps: usize) -> usize {
    if !(part > 0.0 && whole > 0.0) {
        return 0;
    }
    let n = to_u64((part / whole).min(1.0) * steps as f64 + 0.5);
    usize::try_from(n).unwrap_or(steps)
}

/// `part` of `whole` in percent with two decimals. Rounded down, so that only a full match reads `100 %`, and never to a
/// bare zero while there is a part.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return UNKNOWN.to_owned();
    }
    let part = part.min(whole);
    if part == whole {
        return "100 %".to_owned();
    }
    let hundredths = u128::from(part) * 10_000 / u128::from(whole);
    if hundredths == 0 && part > 0 {
        return "<0.01 %".to_owned();
    }
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Nanoseconds as `0:12.3`, `1:02:03.4`.
#[must_use]
pub fn clock(ns: u64) -> String {
    let tenths = ns / 100_000_000;
    let (s, tenth) = (tenths / 10, tenths % 10);
    let (h, m, s) = (s / 3600, s / 60 % 60, s % 60);
    if h > 0 { format!("{h}:{m:02}:{s:02}.{tenth}") } else { format!("{m}:{s:02}.{tenth}") }
}

/// Nanoseconds in seconds with one decimal, cut.
#[must_use]
pub fn seconds(ns: u64) -> String {
    let tenths = ns / 100_000_000;
    format!("{}.{} s", grouped(tenths / 10), tenths % 10)
}

/// A name from the kernel or a file, safe to print: control characters (a file name may hold an escape sequence) are
/// shown as `\x1b`.
#[must_use]
pub fn clean(name: &str) -> String {
    if !name.chars().any(char::is_control) {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if c.is_control() {
            out.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Columns a string takes on a terminal.
#[must_use]
pub fn width(s: &str) -> usize {
    UnicodeWidthStr::width(s)
}

/// At most `max` columns, cut at the end with `…`.
#[must_use]
pub fn cut_end(s: &str, max: usize) -> String {
    if width(s) <= max {
        return s.to_owned();
    }
    if max == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in s.chars() {
        used += c.width().unwrap_or(0);
        if used > max {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// At most `max` columns, cut at the start with `…`: of a path the last part says most.
#[must_use]
pub fn cut_start(s: &str, max: usize) -> String {
    if width(s) <= max {
        return s.to_owned();
    }
    if max == 0 {
        return String::new();
    }
    let mut used = 1;
    let mut from = s.len();
    for (at, c) in s.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > max {
            break;
        }
        from = at;
    }
    format!("…{}", &s[from..])
}

/// Padded on the right to `columns` (format's own padding counts characters, not columns).
#[must_use]
pub fn pad_end(s: &str, columns: usize) -> String {
    format!("{s}{}", " ".repeat(columns.saturating_sub(width(s))))
}

/// Padded on the left to `columns`.
#[must_use]
pub fn pad_start(s: &str, columns: usize) -> String {
    format!("{}{s}", " ".repeat(columns.saturating_sub(width(s))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators() {
        for (n, s) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_204_332, "1,204,332")] {
            assert_eq!(grouped(n), s);
        }
    }

    #[test]
    fn short_is_at_most_five_columns_and_never_larger_than_the_number() {
        for (n, s) in [
            (9_999, "9,999"),
            (10_000, "10.0k"),
            (99_999, "99.9k"),
            (999_999, "999k"),
            (1_000_000, "1.00M"),
            (1_239_999, "1.23M"),
            (48_213_000, "48.2M"),
            (7_999_999_999, "7.99G"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(short(n), s);
            assert!(width(&short(n)) <= 5);
        }
    }

    #[test]
    fn percent_claims_neither_all_nor_nothing_too_early() {
        assert_eq!(percent(0, 0), "–");
        assert_eq!(percent(0, 10), "0.00 %");
        assert_eq!(percent(1, 1_000_000), "<0.01 %");
        assert_eq!(percent(999_999, 1_000_000), "99.99 %");
        assert_eq!(percent(10, 10), "100 %");
        assert_eq!(percent(u64::MAX - 1, u64::MAX), "99.99 %");
    }

    #[test]
    fn rates() {
        for (x, s) in [(f64::NAN, "–"), (0.0, "0"), (0.01, "<0.1"), (3.21, "3.2"), (9.97, "10"), (12_345.0, "12.3k")] {
            assert_eq!(rate(x), s);
        }
    }

    #[test]
    fn clocks() {
        assert_eq!(clock(12_345_000_000), "0:12.3");
        assert_eq!(clock(3_723_400_000_000), "1:02:03.4");
        assert_eq!(seconds(1_234_560_000_000), "1,234.5 s");
    }

    #[test]
    fn names_carry_no_escape_sequences() {
        assert_eq!(clean("/a\x1b[31mb\n"), "/a\\x1b[31mb\\x0a");
        assert_eq!(clean("/plain"), "/plain");
    }

    #[test]
    fn cutting_counts_columns() {
        assert_eq!(cut_end("abcdef", 4), "abc…");
        assert_eq!(cut_start("/var/lib/x.db", 6), "…/x.db");
        assert_eq!(cut_start("abc", 3), "abc");
        assert_eq!(cut_end("abc", 0), "");
        assert_eq!(cut_end("日本語", 4), "日…");
        assert_eq!(cut_start("日本語", 4), "…語");
        assert_eq!(pad_start("日", 4), "  日");
        assert_eq!(pad_end("日", 4), "日  ");
    }
}
