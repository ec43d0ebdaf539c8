//! The rows beside each other.

use std::path::Path;

use anyhow::Result;

use super::Way;
use super::results::{Files, Reading, Run};

/// A way, and what its runs measured or why they did not.
pub(super) type Row<'a> = (&'a Way, Result<Vec<Run>, String>);

/// Reads what every round of a way left.
pub(super) fn read<'a>(folder: &Path, ways: &'a [Way], rounds: usize) -> Result<Vec<Row<'a>>> {
    let mut rows = Vec::new();
    for (number, way) in ways.iter().enumerate() {
        let files = |round| Files { folder, way: number, round };
        let row = match (1..=rounds).find_map(|round| files(round).failure()) {
            Some(reason) => Err(reason),
            None => Ok((1..=rounds).map(|round| files(round).read(way.tracer)).collect::<Result<_>>()?),
        };
        rows.push((way, row));
    }
    Ok(rows)
}

/// The table, in Markdown.
pub(super) fn table(rows: &[Row<'_>]) -> String {
    let mut text = "| | reads/s | kept | CPU per read | more | program | tracer | events | lost | bytes/event |\n".to_owned();
    text.push_str("|---|---|---|---|---|---|---|---|---|---|\n");
    let base: Vec<Reading> = rows.iter().filter_map(|(_, runs)| runs.as_ref().ok()).flatten().map(|run| run.base).collect();
    let mut cells = vec!["no tracer".to_owned()];
    cells.extend(speed(&base));
    cells.insert(2, String::new());
    text.push_str(&line(cells));
    for (way, runs) in rows {
        text.push_str(&line(match runs {
            Err(reason) => vec![way.name.to_owned(), format!("not available: {reason}")],
            Ok(runs) => row(way, runs),
        }));
    }
    text
}

/// A line of the table, of whatever cells there are.
fn line(mut cells: Vec<String>) -> String {
    cells.resize(10, String::new());
    format!("| {} |\n", cells.join(" | "))
}

/// Reads per second, and processor time of one.
fn speed(readings: &[Reading]) -> [String; 2] {
    let rate = 1.0 / median(readings.iter().map(|reading| reading.wall));
    let cpu = median(readings.iter().map(|reading| reading.cpu)) * 1e9;
    [format!("{rate:.0}"), format!("{cpu:.0} ns")]
}

fn row(way: &Way, runs: &[Run]) -> Vec<String> {
    let [rate, cpu] = speed(&runs.iter().map(|run| run.traced).collect::<Vec<_>>());
    // Each run against the one right before it: what else the machine does changes slower than that.
    let kept = median(runs.iter().map(|run| run.base.wall / run.traced.wall)) * 100.0;
    let more = median(runs.iter().map(|run| run.traced.cpu - run.base.cpu)) * 1e9;
    let sum = |what: fn(&Run) -> u64| runs.iter().map(what).sum::<u64>();
    let events = sum(|run| run.events);
    let per_event = |bytes: u64| bytes as f64 / events.max(1) as f64;
    let mut bytes = format!("{:.1}", per_event(sum(|run| run.bytes)));
    if runs.iter().any(|run| run.bytes_before.is_some()) {
        let before = per_event(sum(|run| run.bytes_before.unwrap_or(0)));
        bytes = format!(
            "{before:.1}, compressed at its end {bytes}, with the file's fixed part {:.1}",
            per_event(sum(|run| run.bytes + run.fixed))
        );
    }
    let program = match runs.iter().filter_map(|run| run.program).fold((0, 0), |(ns, n), (more_ns, more_n)| (ns + more_ns, n + more_n)) {
        (_, 0) => String::new(),
        (ns, n) => format!("{} ns", ns / n),
    };
    let tracer = format!("{:.0} ns", median(runs.iter().map(|run| run.tracer)) * 1e9);
    let chosen = runs.iter().filter_map(|run| run.chosen).max().filter(|_| !way.how.contains("--sample"));
    let name = chosen.map_or_else(|| way.name.to_owned(), |one_in| format!("{}, which chose 1/{one_in}", way.name));
    let (events, lost) = (events.to_string(), sum(|run| run.lost).to_string());
    vec![name, rate, format!("{kept:.1} %"), cpu, format!("{more:+.0} ns"), program, tracer, events, lost, bytes]
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::super::Tracer;
    use super::*;

    #[test]
    fn the_middle_value_is_taken() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert!(median([].into_iter()).is_nan());
    }

    #[test]
    fn a_row_is_held_against_the_runs_right_before() {
        let way = Way::new("it", Tracer::TraceCmd, "");
        let reading = |seconds| Reading { wall: seconds, cpu: seconds };
        let more = Run {
            events: 10,
            lost: 1,
            bytes: 50,
            bytes_before: Some(400),
            fixed: 100,
            program: Some((300, 2)),
            tracer: 5e-7,
            ..Run::default()
        };
        let run = |base, traced| Run { base: reading(base), traced: reading(traced), ..more };
        let rows = [(&way, Ok(vec![run(1e-6, 2e-6), run(2e-6, 4e-6)]))];
        let text = table(&rows);
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            "| it | 250000 | 50.0 % | 4000 ns | +2000 ns | 150 ns | 500 ns | 20 | 2 | 40.0, compressed at its end 5.0, with the file's fixed part 15.0 |"
        );
        assert_eq!(last.matches('|').count(), text.lines().next().unwrap().matches('|').count());
    }

    #[test]
    fn a_rate_that_was_left_to_observer_is_told() {
        let name = |how| table(&[(&Way::new("it", Tracer::Observer, how), Ok(vec![Run { chosen: Some(8), ..Run::default() }]))]);
        assert!(name("observer_records").contains("| it, which chose 1/8 |"));
        assert!(name("observer_records --sample 1/8").contains("| it |"));
    }

    #[test]
    fn a_missing_row_says_why_and_claims_no_number() {
        let way = Way::new("peer", Tracer::Counts, "");
        assert!(table(&[(&way, Err("no such hook".to_owned()))]).contains("| peer | not available: no such hook |  |  |"));
    }
}
