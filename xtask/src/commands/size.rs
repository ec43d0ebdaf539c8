//! Sizes and times on the command line.

use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Reads a size such as 512M; the units are powers of 1024.
pub(super) fn parse_size(text: &str) -> Result<u64> {
    let (digits, unit) = split_unit(text)?;
    let shift = match unit {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => bail!("{unit:?} is no unit of size: K, M or G"),
    };
    digits.checked_mul(1 << shift).context("that is too large")
}

/// Reads a time such as 300s or 5m.
pub(super) fn parse_time(text: &str) -> Result<Duration> {
    let (digits, unit) = split_unit(text)?;
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => bail!("{unit:?} is no unit of time: s, m or h"),
    };
    Ok(Duration::from_secs(digits.checked_mul(seconds).context("that is too long")?))
}

fn split_unit(text: &str) -> Result<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let digits = text[..end].parse().with_context(|| format!("{text:?} does not begin with a number"))?;
    Ok((digits, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(parse_size("512M").unwrap(), 512 << 20);
        assert_eq!(parse_size("0").unwrap(), 0);
        assert!(parse_size("12T").is_err());
        assert!(parse_size("99999999999999G").is_err());
        assert_eq!(parse_time("5m").unwrap(), Duration::from_secs(300));
        assert!(parse_time("soon").is_err());
    }
}
