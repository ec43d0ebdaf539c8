//! Sizes and durations as people write them.

use std::time::Duration;

use crate::capture::sample::{Sample, Share};

/// Bytes: a number and, perhaps, a unit. `K M G T` and `KiB …` count in 1024 as memory does, `kB MB …` in 1000.
///
/// # Errors
/// Says what is accepted.
pub fn size(text: &str) -> Result<u64, String> {
    let refuse = || format!("{text:?} is no size: give a number and K, M, G or T (512M)");
    let (number, unit) = split(text);
    let (letter, rest) = unit.split_at_checked(1).unwrap_or((unit, ""));
    let base: u64 = match rest.to_ascii_lowercase().as_str() {
        "" | "i" | "ib" => 1024,
        "b" => 1000,
        _ => return Err(refuse()),
    };
    let power = match letter.to_ascii_lowercase().as_str() {
        "" => 0,
        "b" if rest.is_empty() => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(refuse()),
    };
    let number: f64 = number.parse().map_err(|_| refuse())?;
    let bytes = number * base.pow(power) as f64;
    if bytes >= 1.0 && bytes < i64::MAX as f64 { Ok(crate::report::num::to_u64(bytes)) } else { Err(refuse()) }
}

/// A duration: numbers with `ms`, `s`, `m`, `h` or `d` (`1h30m`); a number alone means seconds.
///
/// # Errors
/// Says what is accepted.
pub fn duration(text: &str) -> Result<Duration, String> {
    let refuse = || format!("{text:?} is no duration: give numbers with ms, s, m, h or d (90s, 1h30m)");
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, tail) = split(rest);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let scale = match unit {
            "ms" => 1e-3,
            "s" => 1.0,
            "" if number == text => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(refuse()),
        };
        seconds += number.parse::<f64>().map_err(|_| refuse())? * scale;
        rest = tail;
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero()).ok_or_else(refuse)
}

/// How far something may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many bytes.
    Bytes(u64),
    /// So long.
    Time(Duration),
}

/// A size or a duration: `10m` is ten minutes, `10M` ten mebibytes; a number alone could be either.
///
/// # Errors
/// Says what is accepted.
pub fn limit(text: &str) -> Result<Limit, String> {
    let refuse = || format!("{text:?} is neither a size (256M, 1G) nor a time (90s, 10m, 1h)");
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        return Err(refuse());
    }
    duration(text).map(Limit::Time).or_else(|_| size(text).map(Limit::Bytes)).map_err(|_| refuse())
}

/// One in how many: `1/64`, or 64 alone; `5%` leaves it to the load and to what observing takes, `auto` so with the default share.
///
/// # Errors
/// Says what is accepted.
pub fn sample(text: &str) -> Result<Sample, String> {
    /// With fewer nothing is left of any ordinary machine's memory.
    const MOST: u32 = 1 << 16;
    if text == "auto" {
        return Ok(Sample::default());
    }
    if let Some(share) = text.strip_suffix('%').and_then(|percent| percent.trim_end().parse::<f64>().ok()) {
        let share = Share::percent(share).ok_or_else(|| format!("{text:?} is no share of processor time: give 0.01% to 100%"))?;
        return Ok(Sample::Within(share));
    }
    let number: Option<u32> = text.strip_prefix("1/").unwrap_or(text).parse().ok();
    let number = number.filter(|n| (1..=MOST).contains(n));
    number
        .map(Sample::OneIn)
        .ok_or_else(|| format!("{text:?} is no sample: give auto, a share of processor time (2%), or 1/N with N from 1 to {MOST} (1/64)"))
}

/// Bytes of a ring buffer: a power of two, and whole pages.
///
/// # Errors
/// Says what is accepted.
pub fn ring(text: &str) -> Result<u32, String> {
    let bytes = size(text)?;
    let whole = bytes.is_power_of_two() && (4096..=1 << 30).contains(&bytes);
    u32::try_from(bytes).ok().filter(|_| whole).ok_or_else(|| format!("{text:?} is no power of two from 4K to 1G"))
}

/// The digits at the beginning, and what follows.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let accepted = [
            ("4096", 4096),
            ("100b", 100),
            ("512M", 512 << 20),
            ("1.5G", 3 << 29),
            ("64KiB", 64 << 10),
            ("64ki", 64 << 10),
            ("10MB", 10_000_000),
            ("2T", 2 << 40),
        ];
        for (text, bytes) in accepted {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "0", "-1", "1X", "1Mb/s", "1e3", "1.2.3M", "9999999999T", "１M", "Mé"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_is_a_size_or_a_time() {
        assert_eq!(limit("10m"), Ok(Limit::Time(Duration::from_secs(600))));
        assert_eq!(limit("10M"), Ok(Limit::Bytes(10 << 20)));
        assert_eq!(limit("64k"), Ok(Limit::Bytes(64 << 10)));
        assert_eq!(limit("1h30m"), Ok(Limit::Time(Duration::from_secs(5400))));
        for text in ["", "10", "m", "M", "10x", "-1m"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_sample_is_one_in_so_many() {
        for (text, n) in [("1", 1), ("1/1", 1), ("64", 64), ("1/64", 64), ("1/65536", 65536)] {
            assert_eq!(sample(text), Ok(Sample::OneIn(n)), "{text}");
        }
        assert_eq!(sample("auto"), Ok(Sample::default()));
        for (text, percent) in [("2%", 2.0), ("5%", 5.0), ("0.5 %", 0.5), ("0.01%", 0.01), ("100%", 100.0)] {
            assert_eq!(sample(text), Ok(Sample::Within(Share::percent(percent).unwrap())), "{text}");
        }
        for text in
            ["", "0", "1/0", "2/64", "1/", "-8", "1/65537", "0.5", "1 / 8", "Auto", "0%", "101%", "-1%", "%", "nan%", "inf%", "1/2%"]
        {
            assert!(sample(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        let accepted = [("60s", 60_000), ("1h30m", 5_400_000), ("500ms", 500), ("2", 2000), ("1.5s", 1500), ("1d", 86_400_000)];
        for (text, milliseconds) in accepted {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "0", "0s", "-1s", "1y", "1m30", "1h m", "99999999999999999999d", "é"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
