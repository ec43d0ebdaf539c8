//! Stretches of one workload, watched and not, and what watching costs.

use anyhow::{Context, Result, ensure};

/// Reads of a line of slices.
const SLICE: f64 = 1024.0;

/// A stretch of the workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stretch {
    /// Which way watched, if any did.
    pub(super) way: Option<usize>,
    /// Nanoseconds of a read by the clock.
    pub(super) wall: f64,
    /// Nanoseconds of a read that the reading process ran.
    pub(super) cpu: f64,
}

/// What a way costs; errors are one standard error of the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    /// Throughput that is left, of one.
    pub(super) kept: f64,
    pub(super) kept_error: f64,
    /// Nanoseconds more per read that the reading process ran.
    pub(super) more: f64,
    pub(super) more_error: f64,
    /// Stretches that were compared.
    pub(super) pairs: usize,
}

/// Brings together when who watched (`WAY BEGIN END` in seconds since boot) and what every 1024 reads took (`BEGIN END CPU` in
/// nanoseconds since boot). Only what lies wholly in a stretch counts.
///
/// # Errors
/// When a text is damaged, or a stretch has no reads in it.
pub(super) fn parse(stretches: &str, slices: &str) -> Result<Vec<Stretch>> {
    // The workload is ended by a signal, perhaps amid a line.
    let whole = slices.rfind('\n').map_or("", |end| &slices[..end]);
    let slices = whole.lines().map(|line| numbers(line).with_context(|| format!("no slice: {line}"))).collect::<Result<Vec<_>>>()?;
    let stretch = |line: &str| {
        let (way, times) = line.split_once(' ')?;
        let way = if way == "none" { None } else { Some(way.parse().ok()?) };
        let [begun, ended] = numbers(times)?.map(|seconds| seconds * 1e9);
        Some((way, begun, ended))
    };
    let mut all = Vec::new();
    for line in stretches.lines() {
        let (way, begun, ended) = stretch(line).with_context(|| format!("no stretch: {line}"))?;
        let within = slices.iter().filter(|[from, to, _]| *from >= begun && *to <= ended);
        let (count, wall, cpu) = within.fold((0.0, 0.0, 0.0), |(n, wall, cpu), [from, to, ran]| (n + 1.0, wall + to - from, cpu + ran));
        ensure!(count > 0.0, "no reads from {begun:.0} to {ended:.0}: stretches are too short for this machine");
        all.push(Stretch { way, wall: wall / count / SLICE, cpu: cpu / count / SLICE });
    }
    Ok(all)
}

fn numbers<const N: usize>(line: &str) -> Option<[f64; N]> {
    let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Holds every stretch of a way against the mean of the two around it, which nobody watches.
pub(super) fn cost(stretches: &[Stretch], way: usize) -> Cost {
    let (mut kept, mut more) = (Vec::new(), Vec::new());
    for around in stretches.windows(3) {
        if let [before @ Stretch { way: None, .. }, of, after @ Stretch { way: None, .. }] = around
            && of.way == Some(way)
        {
            let rate = f64::midpoint(1.0 / before.wall, 1.0 / after.wall);
            kept.push(1.0 / of.wall / rate);
            more.push(of.cpu - f64::midpoint(before.cpu, after.cpu));
        }
    }
    let ((kept, kept_error), (more, more_error), pairs) = (mean(&kept), mean(&more), kept.len());
    Cost { kept, kept_error, more, more_error, pairs }
}

/// Mean and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_count_for_the_stretch_that_holds_them() {
        let slices = "1000000000 1001024000 512000\n1900000000 2100000000 1\n2200000000 2202048000 2048000\n23";
        let stretches = parse("none 0.9 2.0\n0 2.0 3.0\n", slices).unwrap();
        let expected = [Stretch { way: None, wall: 1000.0, cpu: 500.0 }, Stretch { way: Some(0), wall: 2000.0, cpu: 2000.0 }];
        assert_eq!(stretches, expected);
        assert!(parse("none 5 6\n", slices).is_err(), "no reads in it");
        assert!(parse("none 5\n", slices).is_err());
        assert!(parse("none 0.9 2.0\n", "1 2\n").is_err());
    }

    #[test]
    fn a_way_is_held_against_what_is_around_it() {
        let stretch = |way, wall, cpu| Stretch { way, wall, cpu };
        let all = [
            stretch(None, 100.0, 50.0),
            stretch(Some(0), 200.0, 70.0),
            stretch(None, 100.0, 50.0),
            stretch(Some(1), 100.0, 50.0),
            stretch(None, 100.0, 70.0),
            stretch(Some(0), 100.0, 70.0),
            stretch(None, 100.0, 50.0),
        ];
        let Cost { kept, kept_error, more, more_error, pairs } = cost(&all, 0);
        assert_eq!((kept, more, pairs), (0.75, 15.0, 2));
        assert!((kept_error - 0.25).abs() < 1e-9 && (more_error - 5.0).abs() < 1e-9);
        assert_eq!(cost(&all, 1).kept, 1.0);
        assert!(cost(&all, 1).kept_error.is_nan(), "one pair has no error");
    }
}
